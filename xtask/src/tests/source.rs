//! The reader of Rust source: nothing in comments, characters or texts is taken for code.

use crate::source::{Kind, is_test, tokens};

fn idents(text: &str) -> Vec<String> {
    let ident = |kind| if let Kind::Ident(name) = kind { Some(name) } else { None };
    tokens(text).into_iter().filter_map(|token| ident(token.kind)).collect()
}

fn texts(text: &str) -> Vec<String> {
    let text_of = |kind| if let Kind::Text(text) = kind { Some(text) } else { None };
    tokens(text).into_iter().filter_map(|token| text_of(token.kind)).collect()
}

#[test]
fn comments_are_not_code() {
    assert_eq!(idents("a // b\n/* c /* d */ e */ f /// g\nh"), ["a", "f", "h"]);
}

#[test]
fn texts_are_not_code_and_keep_their_content() {
    let source = r####"a("b \" c", r"d", r#"e " f"#, b"g", br##"h"# i"##) j"####;
    assert_eq!(idents(source), ["a", "j"]);
    assert_eq!(texts(source), ["b \\\" c", "d", "e \" f", "g", "h\"# i"]);
}

#[test]
fn characters_and_lifetimes_do_not_open_texts() {
    assert_eq!(idents(r#"x<'a>('"', '\'', '\u{1F600}', b'"') y"#), ["x", "y"]);
}

#[test]
fn raw_identifiers_and_numbers_are_read() {
    assert_eq!(idents("r#type + 1u64 + 0xff_u8 .. z"), ["type", "z"]);
}

#[test]
fn lines_are_counted_in_texts_and_comments() {
    let lines: Vec<usize> = tokens("a\n/*\n*/ b \"\n\n\" c").iter().map(|token| token.line).collect();
    assert_eq!(lines, [1, 3, 3, 5]);
}

#[test]
fn unfinished_source_ends() {
    for source in ["\"abc", "r#\"abc", "/* abc", "'", "'\\", "b'", "r#"] {
        tokens(source);
    }
}

#[test]
fn tests_are_told_from_production_code_by_their_place() {
    assert!(is_test("crates/core/src/tests/host.rs"));
    assert!(is_test("crates/trusted/tests/trusted/main.rs"));
    assert!(is_test("crates/exec/examples/merkle.rs"));
    assert!(!is_test("crates/core/src/testsuite.rs"));
}
