use crate::marker::{MarkerError, leave_mark};

#[test]
fn a_second_start_is_refused_and_says_what_to_do() {
    let path = std::env::temp_dir().join(format!("troth-mark-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    leave_mark(&path).expect("the first start");
    let error = leave_mark(&path).expect_err("the second start");
    let _ = std::fs::remove_file(&path);
    assert!(matches!(error, MarkerError::RanBefore(_)));
    let message = error.to_string();
    assert!(message.contains("it stays stopped") && message.contains("refuses-to-start"), "{message}");
}
