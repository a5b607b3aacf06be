//! Paper coverage on a small made-up protocol.

use super::file;
use crate::paper::{check, definitions};
use crate::workspace::SourceFile;

const PAGE: &str = "docs/protocols/toy.md";

fn page(text: &str) -> SourceFile {
    file(PAGE, text)
}

fn code(text: &str) -> SourceFile {
    file("crates/protocols/toy/src/normal.rs", text)
}

fn test(text: &str) -> SourceFile {
    file("crates/protocols/toy/src/tests/paper.rs", text)
}

fn missing(files: &[SourceFile]) -> Vec<String> {
    check(files).missing
}

#[test]
fn complete_coverage_passes() {
    let files = [
        page("# Toy\n- **TOY-N1** (guard) one\n| `TOY-N2` | two |\n"),
        code("rule!(\"TOY-N1\"); troth_core::rule!(\"TOY-N2\");"),
        test("covers!(\"TOY-N1\"); let label = \"TOY-N2\";"),
    ];
    let coverage = check(&files);
    assert_eq!(coverage.missing, [""; 0]);
    assert_eq!(coverage.rows.len(), 3);
    assert_eq!(
        coverage.rows[1],
        [
            "TOY-N1",
            "guard",
            "docs/protocols/toy.md:2",
            "crates/protocols/toy/src/normal.rs:1",
            "crates/protocols/toy/src/tests/paper.rs:1"
        ]
    );
}

#[test]
fn each_gap_is_found() {
    let rule = page("- **TOY-N1** one");
    let (mark, named) = (code("rule!(\"TOY-N1\")"), test("covers!(\"TOY-N1\")"));
    assert_eq!(missing(&[rule.clone(), mark.clone(), named.clone()]).len(), 0);
    assert!(missing(&[rule.clone(), named.clone()])[0].contains("no code"));
    assert!(missing(&[rule.clone(), mark.clone()])[0].contains("no test"));
    assert!(missing(std::slice::from_ref(&mark))[0].contains("no rule"));
    assert!(missing(&[rule.clone(), page("- **TOY-N1** again"), mark, named])[0].contains("more than once"));
}

#[test]
fn comments_and_other_places_do_not_count() {
    let rule = page("- **TOY-N1** one");
    let files = [rule.clone(), code("// rule!(\"TOY-N1\")"), test("// covers!(\"TOY-N1\")\n/// TOY-N1")];
    assert_eq!(missing(&files).len(), 2);
    let swapped = [rule.clone(), code("covers!(\"TOY-N1\")"), test("rule!(\"TOY-N1\")")];
    assert_eq!(missing(&swapped).len(), 1, "a mark in a test is no code, a name in code is no test");
    let elsewhere = [rule, file("xtask/src/x.rs", "rule!(\"TOY-N1\")"), test("covers!(\"TOY-N1X\")")];
    assert_eq!(missing(&elsewhere).len(), 2);
}

#[test]
fn only_the_opening_of_an_item_defines() {
    let text = "- see **TOY-N1**\n**TOY-N2** no item\n- **F-M1** a flaw\n- **OTHER-N1** x\n- **TOY-n3** x\n- **TOY-N** x\n  - `TOY-C4` yes\n* **TOY-V10**: yes";
    let labels: Vec<String> = definitions(&[page(text)]).into_iter().map(|found| found.label).collect();
    assert_eq!(labels, ["TOY-C4", "TOY-V10"]);
}

#[test]
fn a_page_defines_its_own_labels() {
    let hyphens = file("docs/protocols/a2m-pbft.md", "- **A2MPBFT-N1** x\n- **PBFT-N1** y");
    assert_eq!(definitions(&[hyphens]).len(), 1);
    assert_eq!(definitions(&[file("docs/adr/1.md", "- **ADR-N1** x")]).len(), 0);
}
