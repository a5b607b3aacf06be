//! The names of nodes.

use crate::path::{MAX_PATH, check, split, upwards};

#[test]
fn paths_lead_from_the_root_step_by_step() {
    for good in ["/", "/a", "/a/b", "/a.b/..c", "/ä", "/a b", "/\u{d7ff}"] {
        assert_eq!(check(good), Ok(()), "{good}");
    }
    let long = format!("/{}", "x".repeat(MAX_PATH));
    for bad in [
        "",
        "a",
        "/a/",
        "//",
        "/a//b",
        "/.",
        "/a/..",
        "/a/./b",
        "/a\0b",
        "/\u{1}",
        "/\u{85}",
        "/\u{f000}",
        "/\u{10000}",
        "/\u{1f600}",
        &long,
    ] {
        assert!(check(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_path_has_a_parent_and_a_way_up() {
    assert_eq!((split("/a"), split("/a/b"), split("/")), (("/", "a"), ("/a", "b"), ("/", "")));
    assert_eq!(upwards("/a/b").collect::<Vec<_>>(), ["/a/b", "/a", "/"]);
    assert_eq!(upwards("/").collect::<Vec<_>>(), ["/"]);
}

#[test]
fn nodes_are_made_only_so_deep() {
    let of = |steps: usize| "/x".repeat(steps);
    assert_eq!(crate::path::check_new(&of(crate::MAX_STEPS)), Ok(()));
    assert_eq!(crate::path::check_new(&of(crate::MAX_STEPS + 1)), Err(crate::Code::BadArguments));
    assert_eq!(check(&of(crate::MAX_STEPS + 1)), Ok(()), "one that is there is reached");
}
