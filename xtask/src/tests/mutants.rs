//! The table of planted bugs.

use crate::mutants::table::{Mutant, parse, protocol, stale};

fn table(text: &str) -> Result<Vec<Mutant>, String> {
    parse(&text.parse().expect("the fixture is TOML"))
}

const ONE: &str = r#"
[[mutant]]
id = "a"
file = "x.rs"
find = "if bad {"
replace = "if false {"
breaks = "bad input is taken"
label = "TOY-N1"
tests = "toy"
sim = { f = 2, seeds = 50, options = ["--no-clients"] }
"#;

#[test]
fn a_bug_is_read_and_planted() {
    let mutants = table(ONE).unwrap();
    assert_eq!(mutants[0].labels, ["TOY-N1"]);
    assert_eq!(mutants[0].hunters(), "tests of toy, sim f=2 ≤50 seeds");
    assert_eq!(mutants[0].plant("x; if bad { return }").as_deref(), Ok("x; if false { return }"));
}

#[test]
fn a_table_may_be_of_another_protocol_than_its_name() {
    let of = |text: &str| protocol(&text.parse().expect("the fixture is TOML"), "toy");
    assert_eq!((of(ONE).as_str(), of(&format!("protocol = 'other'\n{ONE}")).as_str()), ("toy", "other"));
}

#[test]
fn a_bug_that_no_longer_applies_is_stale() {
    let mutants = table(ONE).unwrap();
    let stale_with = |text: Option<&str>| stale(&mutants, &|_| text.map(str::to_string));
    assert_eq!(stale_with(Some("if bad {")).len(), 0);
    assert_eq!(stale_with(Some("if worse {")).len(), 1);
    assert_eq!(stale_with(Some("if bad { if bad {")).len(), 1);
    assert_eq!(stale_with(None).len(), 1);
}

#[test]
fn a_wrong_table_is_refused() {
    let twice = format!("{ONE}{ONE}");
    let unhunted = ONE.replace("tests = \"toy\"", "").replace("sim =", "label2 =");
    let nobody = "[[mutant]]\nid='a'\nfile='x'\nfind='a'\nreplace='b'\nbreaks='c'";
    let nothing = ONE.replace("if false {", "if bad {");
    for wrong in [
        "",
        &twice,
        &unhunted,
        nobody,
        &nothing,
        &ONE.replace("f = 2", "f = -2"),
        &ONE.replace("breaks", "brakes"),
    ] {
        assert!(table(wrong).is_err(), "{wrong}");
    }
}
