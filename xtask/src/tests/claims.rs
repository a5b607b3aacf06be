//! The page of claims.

use crate::claims::{Claim, Shown, page, parse, short};
use serde_json::json;

fn claims() -> Vec<Claim> {
    let text = "[[claim]]\nid='one'\nclaim='a|b'\ncommand='x | y'\nlimit=5\n[[claim]]\nid='two'\nclaim='c'\ncommand='z'\nexit=1\nlimit=6";
    parse(&text.parse().expect("the fixture is TOML")).expect("it is complete")
}

fn shown(ok: bool, line: &str) -> Shown {
    Shown { ok, line: line.to_string(), seconds: 1.6 }
}

#[test]
fn the_table_is_read() {
    assert_eq!((claims()[0].exit, claims()[1].exit, claims()[1].limit), (0, 1, 6));
    assert!(parse(&"[[claim]]\nid='x'".parse().expect("the fixture is TOML")).is_err());
}

#[test]
fn the_table_of_this_project_is_complete() {
    let table = crate::workspace::toml(&crate::workspace::root(), "xtask/claims.toml").expect("it is TOML");
    let claims = parse(&table).expect("each claim has what it needs");
    let mut ids: Vec<&str> = claims.iter().map(|claim| claim.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), claims.len(), "each claim has a name of its own");
}

#[test]
fn a_row_that_was_not_run_keeps_its_result() {
    let claims = claims();
    let first = page(&claims, &[(&claims[0], shown(true, "5 | 5"))], "aaa", "");
    assert!(first.contains("| one | a\\|b | `x \\| y` | 5 \\| 5 | holds | 2 | aaa |"), "{first}");
    assert!(first.contains("| two | c | `z` | – | not run | – | – |"), "{first}");
    let second = page(&claims, &[(&claims[1], shown(false, "no"))], "bbb", &first);
    assert!(second.contains("| one | a\\|b | `x \\| y` | 5 \\| 5 | holds | 2 | aaa |"), "{second}");
    assert!(second.contains("| two | c | `z` | no | **fails** | 2 | bbb |"), "{second}");
    assert_eq!(page(&claims, &[], "ccc", &second), second);
}

#[test]
fn a_figure_must_reach_what_is_claimed() {
    let table =
        |least: &str| format!("[[claim]]\nid='one'\nclaim='a'\ncommand='x'\nlimit=5\nleast={least}").parse();
    let claim = parse(&table("{ speed = 100 }").expect("TOML")).expect("it is complete").remove(0);
    assert!(short(&claim, Some(&json!({ "speed": 100 }))).is_empty());
    assert_eq!(short(&claim, Some(&json!({ "speed": 99.5 }))), ["speed is 99.5, at least 100 is claimed"]);
    assert_eq!(short(&claim, Some(&json!({ "other": 100 }))), ["no speed in the result"]);
    assert_eq!(short(&claim, None), ["no speed in the result"]);
    assert!(parse(&table("{ speed = 'fast' }").expect("TOML")).is_err());
}
