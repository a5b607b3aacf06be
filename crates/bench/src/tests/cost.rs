//! What is read of `perf`.

use crate::cost::events::count_of;

#[test]
fn an_event_s_count_is_the_one_of_its_own_line() {
    let said = "\n120,,raw_syscalls:sys_enter,4000,100.00,,\n31,,syscalls:sys_enter_sendto,4000,100.00,,\n\
                <not counted>,,syscalls:sys_enter_futex,0,0.00,,\n";
    assert_eq!(count_of(said, "raw_syscalls:sys_enter"), Some(120));
    assert_eq!(count_of(said, "syscalls:sys_enter_sendto"), Some(31));
    assert_eq!(count_of(said, "syscalls:sys_enter_send"), None, "no part of a name");
    assert_eq!(count_of(said, "syscalls:sys_enter_futex"), None);
}
