//! The list of decoders, the registry that it is held against, and the reading of the engine's words.

use super::file;
use crate::fuzz::decoders::{Registry, all};
use crate::fuzz::output::{Found, Run};
use crate::fuzz::{canaries_missed, share};
use crate::process::{Ending, Ran};
use crate::workspace;
use std::path::Path;

const SOURCE: &str = "
impl Wire for Answer {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> { Ok(Self { fields: [0; 4] }) }
}
impl<M: Wire> Wire for Envelope<M> {
    fn encode(&self, out: &mut Vec<u8>) {}
}
impl<'a> Header<'a> {
    pub(super) fn decode_all(bytes: &'a [u8]) -> Option<Self> { None }
    fn read(&self) -> u64 { 0 }
}
trait Source { fn read_at(&self, bytes: &mut [u8]); }
fn parse(text: &str) -> Option<u8> { None }
fn parsed_before(text: &str) -> bool { true }
fn to_bytes() -> Bytes { Bytes::new() }
";

fn registry(text: &str) -> Registry {
    Registry::parse(&text.parse().expect("a table")).expect("a registry")
}

#[test]
fn decoders_are_found_in_the_source() {
    let files = [file("crates/some-thing/src/wire/mod.rs", SOURCE)];
    let found = all(&files);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            "some_thing::Answer",
            "some_thing::Envelope",
            "some_thing::wire::Header::decode_all",
            "some_thing::wire::parse"
        ]
    );
    assert_eq!(found["some_thing::Answer"], "crates/some-thing/src/wire/mod.rs:2");
    for elsewhere in ["crates/some-thing/src/tests/a.rs", "crates/sim/src/a.rs", "xtask/src/a.rs"] {
        assert!(all(&[file(elsewhere, SOURCE)]).is_empty(), "{elsewhere}");
    }
}

#[test]
fn a_decoder_without_a_target_is_found() {
    let decoders = all(&[file("crates/a/src/lib.rs", SOURCE)]);
    let whole = registry(
        "[targets]\none = ['a::Answer', 'a::Envelope']\ntwo = ['a::parse']\n[exempt]\n\"a::Header::decode_all\" = 'why'",
    );
    assert_eq!(whole.check(&decoders), Vec::<String>::new());
    let without = registry(
        "[targets]\none = ['a::Answer', 'a::Envelope']\n[exempt]\n\"a::Header::decode_all\" = 'why'",
    );
    let wrong = without.check(&decoders);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("crates/a/src/lib.rs:13: no target covers a::parse"), "{}", wrong[0]);
}

#[test]
fn an_entry_for_no_decoder_is_found() {
    let decoders = all(&[file("crates/a/src/lib.rs", "impl Wire for Answer {}")]);
    let old = registry("[targets]\none = ['a::Answer', 'a::Gone']\n[exempt]");
    assert!(old.check(&decoders)[0].contains("there is no a::Gone"));
    let both = registry("[targets]\none = ['a::Answer']\n[exempt]\n\"a::Answer\" = 'why'");
    assert!(both.check(&decoders)[0].contains("both covered and exempt"));
    let no_reason = "[targets]\none = []\n[exempt]\n\"a::Answer\" = ' '".parse().expect("a table");
    assert!(Registry::parse(&no_reason).is_err());
}

#[test]
fn every_decoder_of_this_workspace_has_a_target() {
    let root = workspace::root();
    let table = workspace::toml(&root, "fuzz/targets.toml").expect("a table");
    let registry = Registry::parse(&table).expect("a registry");
    let decoders = all(&workspace::files(&root).expect("the source"));
    assert!(decoders.len() > 80, "the scan sees hardly any: {}", decoders.len());
    assert_eq!(registry.check(&decoders).join("\n"), "");
}

fn ran(ending: Ending, lines: &[&str]) -> Ran {
    let all = lines.iter().map(|line| (*line).to_string()).collect();
    Ran { ending, seconds: 1.0, stdout: Vec::new(), all }
}

#[test]
fn what_the_engine_says_is_understood() {
    let good = ran(
        Ending::Exit(0),
        &[
            "#2\tINITED cov: 40 ft: 41 corp: 1/1b exec/s: 0 rss: 38Mb",
            "#4096\tpulse  cov: 312 ft: 800 corp: 92/4012b lim: 43 exec/s: 1024 rss: 38Mb",
            "stat::number_of_executed_units: 5000",
        ],
    );
    let run = Run::of("wire", &good);
    assert_eq!((run.inputs, run.edges, run.corpus, run.found), (5000, 312, 92, None));
    let crash =
        ["thread 'main' panicked at a.rs:3:4:", "no", "artifact_prefix='x'; Test unit written to /x/crash-1"];
    let found = Found::of(Ending::Exit(77), &crash.map(str::to_string)).expect("a crash");
    assert_eq!((found.what, found.input.as_deref()), ("crash", Some(Path::new("/x/crash-1"))));
    let shown = found.describe("wire", Path::new("/x"));
    assert!(shown.contains("cargo xtask fuzz --target wire --input crash-1"), "{shown}");
    let what = |line: &str, ending| Found::of(ending, &[line.to_string()]).map(|found| found.what);
    assert_eq!(what("ERROR: libFuzzer: timeout after 10 seconds", Ending::Exit(70)), Some("hang"));
    assert_eq!(what("", Ending::TimedOut), Some("hang"));
    assert_eq!(
        what("wire: 9 bytes of memory for an input of 1, over its bound of 8", Ending::Exit(77)),
        Some("memory")
    );
    assert_eq!(what("ERROR: libFuzzer: out-of-memory (used: 2g)", Ending::Exit(71)), Some("memory"));
}

#[test]
fn a_canary_that_was_not_found_out_is_told() {
    let run = |target: &str, what: Option<&'static str>| {
        let mut run = Run::of(target, &ran(Ending::Exit(0), &[]));
        run.found = what.map(|what| Found { what, input: None, said: String::new() });
        run
    };
    let seen = [
        run("canary-crash", Some("crash")),
        run("canary-hang", Some("hang")),
        run("canary-memory", Some("memory")),
    ];
    assert_eq!(canaries_missed(&seen), Vec::<String>::new());
    let blind = [run("canary-crash", None), run("canary-hang", Some("crash")), run("canary-memory", None)];
    assert_eq!(canaries_missed(&blind), ["canary-crash", "canary-hang", "canary-memory"]);
}

#[test]
fn the_time_is_shared() {
    assert_eq!(share(60, 20), 6);
    assert_eq!(share(60, 1), 120);
    assert_eq!(share(1, 20), 1);
}
