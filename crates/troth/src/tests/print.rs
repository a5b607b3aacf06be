//! What came from outside commands no terminal.

use crate::print::{foreign, json};

#[test]
fn control_characters_of_others_are_escaped() {
    assert_eq!(foreign("500 \u{1b}[2J\r\nred\u{9b}31m"), "500 \\u{1b}[2J\\r\\nred\\u{9b}31m");
    assert_eq!(foreign("Füße \"und\" \\ Hände"), "Füße \"und\" \\ Hände");
}

#[test]
fn escaped_json_is_the_same_json() {
    let value = serde_json::json!({ "protocol": "a\u{1b}b\u{7f}c\u{9b}d" });
    let line = json(&value);
    assert!(!line.contains(char::is_control), "{line:?}");
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).expect("JSON"), value);
}
