//! Tests of the count of allocations.

use crate::allocations::{ask, so_far, tell};

#[tokio::test]
async fn what_is_asked_for_is_counted_and_told() {
    let before = so_far();
    let boxes: Vec<Box<u64>> = (0..1_000).map(Box::new).collect();
    // Other tests run meanwhile and ask for memory too.
    assert!(so_far() - before >= boxes.len() as u64);

    let directory = std::env::temp_dir().join(format!("troth-allocations-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("there is room for a directory");
    for _ in 0..2 {
        // The second time it finds what the first left.
        tell(&directory).expect("a socket can be made there");
        let told = ask(&directory).await.expect("it tells");
        assert!((before..=so_far()).contains(&told));
    }
    std::fs::remove_dir_all(&directory).expect("it was just made");
}
