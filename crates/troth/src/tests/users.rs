//! Users by name and by number.

use crate::users::{find, find_in};
use troth_trusted_process::User;

const USERS: &str = "root:x:0:0:root:/root:/bin/sh\nbroken\n:::\ntroth:x:64101:64200::/:/bin/false\nbig:x:99999999999:1::/:\n";

#[test]
fn users_are_found_by_name_and_by_number() {
    assert_eq!(find_in(USERS, "troth"), Some(User { uid: 64_101, gid: 64_200 }));
    assert_eq!(find_in(USERS, "64101"), Some(User { uid: 64_101, gid: 64_200 }));
    assert_eq!(find_in(USERS, "7"), Some(User { uid: 7, gid: 7 }), "unknown here, known elsewhere");
    for unknown in ["", "broken", "big", "tro", "-1", "99999999999"] {
        assert_eq!(find_in(USERS, unknown), None, "{unknown}");
    }
}

#[test]
fn user_and_group_can_be_given_as_they_are() {
    assert_eq!(find("64101:64200").expect("numbers"), User { uid: 64_101, gid: 64_200 });
    let nobody = find("no such user").expect_err("it is none").message;
    assert!(nobody.contains("no such user") && nobody.contains("UID"), "{nobody}");
}
