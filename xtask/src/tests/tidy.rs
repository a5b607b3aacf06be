//! The rules of order.

use super::{file, short};
use crate::lint::tidy;

#[test]
fn long_production_files_are_found_and_long_tests_are_not() {
    let (long, fits) = ("x\n".repeat(501), "x\n".repeat(500));
    assert_eq!(short(&tidy::check(&[file("crates/core/src/a.rs", &long)])), ["length@0"]);
    assert_eq!(short(&tidy::check(&[file("crates/core/src/a.rs", &fits)])), [""; 0]);
    assert_eq!(short(&tidy::check(&[file("crates/core/src/tests/a.rs", &long)])), [""; 0]);
    assert_eq!(short(&tidy::check(&[file("crates/chaos/judge/a.go", &long)])), ["length@0"]);
    assert_eq!(short(&tidy::check(&[file("crates/chaos/judge/a_test.go", &long)])), [""; 0]);
}

#[test]
fn marks_of_unfinished_work_are_found_anywhere_but_only_as_words() {
    for mark in [concat!("FIX", "ME"), concat!("XX", "X"), concat!("TO", "DO")] {
        let text = format!("ok\n// {mark}: later");
        assert_eq!(short(&tidy::check(&[file("crates/core/src/a.rs", &text)])), ["marks@2"]);
        assert_eq!(short(&tidy::check(&[file(".ci/run", &text)])), ["marks@2"]);
        assert_eq!(short(&tidy::check(&[file("a.rs", &format!("{mark}X _{mark}"))])), [""; 0]);
    }
}

#[test]
fn a_page_has_one_title() {
    assert_eq!(short(&tidy::check(&[file("a.md", "# A\n## B\n```\n# a comment\n```\n")])), [""; 0]);
    assert_eq!(short(&tidy::check(&[file("a.md", "## B\n")])), ["title@0"]);
    assert_eq!(short(&tidy::check(&[file("a.md", "# A\n# B\n")])), ["title@0"]);
}
