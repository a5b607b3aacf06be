//! The list of decoders, the registry that it is held against, and the reading of the engine's words.

use super::file;
use crate::fuzz::decoders::{Registry, all};
use crate::fuzz::output::{Found, Run};
use crate::fuzz::{canaries_missed, machines, share};
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
    let text = format!("{text}\n[machines]");
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
    let no_reason =
        "[targets]\none = []\n[exempt]\n\"a::Answer\" = ' '\n[machines]".parse().expect("a table");
    assert!(Registry::parse(&no_reason).is_err());
}

const PROTOCOL: &str = "
pub(crate) struct Other;
impl Agreement for Machine {
    type Body = Body;
}
impl<A: Agreement> Wrapper<A> {
    fn agreement(&self) -> &impl Agreement { &self.0 }
}
impl<T> Other<T> for Machine {}
";

#[test]
fn agreement_machines_are_found_in_the_source() {
    let found = machines::all(&[file("crates/protocols/some-thing/src/agreement.rs", PROTOCOL)]);
    let names: Vec<(&str, &str)> = found.iter().map(|(name, at)| (name.as_str(), at.as_str())).collect();
    assert_eq!(names, [("some_thing::Machine", "crates/protocols/some-thing/src/agreement.rs:3")]);
    let generic = "impl<X: Debug> troth_core::Agreement for Around<X> where X: Clone {}";
    let found = machines::all(&[file("crates/protocols/b/src/lib.rs", generic)]);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["b::Around"]);
    for elsewhere in ["crates/protocols/a/src/tests/a.rs", "crates/core/src/a.rs", "crates/sim/src/a.rs"] {
        assert!(machines::all(&[file(elsewhere, PROTOCOL)]).is_empty(), "{elsewhere}");
    }
}

#[test]
fn a_machine_without_its_targets_is_found() {
    let source = [file("crates/protocols/a/src/agreement.rs", PROTOCOL)];
    let in_source = machines::all(&source);
    let of = |targets: &str, entries: &str| {
        let text = format!("[targets]\n{targets}\n[exempt]\n[machines]\n{entries}");
        Registry::parse(&text.parse().expect("a table"))
    };
    let wrong = |targets: &str, entries: &str| {
        of(targets, entries).expect("a registry").check_machines(&in_source).join("\n")
    };
    let (both, entry) = ("m = []\nr = []", "\"a::Machine\" = { drives = 'm', recovers = 'r' }");
    assert_eq!(wrong(both, entry), "");
    let without = wrong(both, "");
    assert!(
        without.starts_with(
            "crates/protocols/a/src/agreement.rs:3: nothing drives the agreement machine a::Machine"
        ),
        "{without}"
    );
    // A target that a protocol names must be there: the one that drives it, and the one that starts it from its log.
    assert!(wrong("r = []", entry).contains("a::Machine names 'm', which is no target"));
    assert!(wrong("m = []", entry).contains("a::Machine names 'r', which is no target"));
    let same = "\"a::Machine\" = { drives = 'm', recovers = 'm' }";
    assert!(wrong(both, same).contains("one target for two purposes"));
    let gone = format!("{entry}\n\"a::Gone\" = {{ drives = 'm', recovers = 'r' }}");
    assert!(wrong(both, &gone).contains("there is no machine a::Gone"));
    for half in ["\"a::Machine\" = { drives = 'm' }", "\"a::Machine\" = { recovers = 'r' }"] {
        assert!(of(both, half).expect_err("half").contains("a::Machine has no target under"));
    }
}

#[test]
fn every_agreement_machine_of_this_workspace_is_driven() {
    let root = workspace::root();
    let table = workspace::toml(&root, "fuzz/targets.toml").expect("a table");
    let registry = Registry::parse(&table).expect("a registry");
    let found = machines::all(&workspace::files(&root).expect("the source"));
    assert!(found.len() >= 4, "the scan sees hardly any: {found:?}");
    assert_eq!(registry.check_machines(&found).join("\n"), "");
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
