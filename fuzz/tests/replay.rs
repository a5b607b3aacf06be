//! Without a search: what was found before, what every search begins with, and whether the registry tells the truth.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use troth_fuzz::{CANARIES, MACHINES, TARGETS, decoders, find};

fn file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn table() -> toml::Table {
    file("targets.toml").parse().expect("a table")
}

/// A type as the registry names it: its crate and its name.
fn short(name: &str) -> Option<String> {
    let name = name.split('<').next()?.strip_prefix("troth_")?;
    Some(format!("{}::{}", name.split("::").next()?, name.rsplit("::").next()?))
}

/// The decoders that `targets.toml` names, by target.
fn registry() -> BTreeMap<String, BTreeSet<String>> {
    let table = table();
    let targets = table["targets"].as_table().expect("a section");
    let list = |covers: &toml::Value| {
        let covers = covers.as_array().expect("a list");
        covers.iter().map(|decoder| decoder.as_str().expect("a text").to_owned()).collect()
    };
    targets.iter().map(|(target, covers)| (target.clone(), list(covers))).collect()
}

#[test]
fn what_was_found_before_stays_mended() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    for place in std::fs::read_dir(&all).expect("it is there").map(|entry| entry.expect("readable")) {
        if !place.path().is_dir() {
            continue;
        }
        let name = place.file_name().into_string().expect("a target's name");
        let target = find(&name).unwrap_or_else(|| panic!("regressions/{name} is of no target"));
        for input in std::fs::read_dir(place.path()).expect("it is there") {
            let input = input.expect("readable").path();
            println!("{}", input.display());
            target.check(&std::fs::read(&input).expect("readable"));
        }
    }
}

#[test]
fn every_target_takes_its_seeds_and_what_is_near_them() {
    for target in TARGETS {
        let seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "{} has no seeds", target.name);
        for (number, seed) in seeds.iter().enumerate() {
            println!("{}, seed {number}", target.name);
            assert!(seed.len() <= target.longest, "seed {number} of {} is too long", target.name);
            target.check(seed);
            target.check(&seed[..seed.len() / 2]);
            target.check(&[seed, &seed[..]].concat());
        }
        target.check(&[]);
    }
}

#[test]
fn what_the_registry_says_of_the_codec_is_so() {
    let registry = registry();
    let named: BTreeSet<&str> = registry.keys().map(String::as_str).collect();
    let built: BTreeSet<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(named, built, "targets.toml and the targets");
    let mut decoded: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for (target, decoder) in decoders() {
        decoded.entry(target).or_default().extend(short((decoder.name)()));
    }
    for (target, decoded) in decoded {
        // A type is `crate::Type`, anything else has more parts; those of the standard library are not ours to name.
        let is_type =
            |name: &&String| name.matches("::").count() == 1 && name.ends_with(|c: char| c.is_alphanumeric());
        let ours = |name: &&String| !matches!(name.as_str(), "types::Arc" | "types::Option" | "types::bool");
        let said = registry[target].iter().filter(is_type).filter(ours);
        let untrue: Vec<&String> = said.filter(|said| !decoded.contains(*said)).collect();
        assert!(untrue.is_empty(), "{target} decodes none of {untrue:?}");
        assert!(decoded.len() > 5, "{decoded:?}");
    }
}

#[test]
fn what_the_registry_says_of_machines_is_so() {
    let table = table();
    let said = table["machines"].as_table().expect("a section").iter().map(|(machine, targets)| {
        let target = |key: &str| targets[key].as_str().expect("a text").to_owned();
        (machine.clone(), (target("drives"), target("recovers")))
    });
    let built = MACHINES.iter().map(|machine| {
        let name = short((machine.name)()).expect("a type of ours");
        (name, (machine.drives.name.to_owned(), machine.recovers.name.to_owned()))
    });
    assert_eq!(said.collect::<BTreeMap<_, _>>(), built.collect());
}

#[test]
fn the_canaries_are_wrong() {
    for canary in CANARIES.iter().filter(|canary| canary.name != "canary-hang") {
        canary.check(b"bir");
        let wrong = std::panic::catch_unwind(|| canary.check(b"bird"));
        assert!(wrong.is_err(), "{} takes its word", canary.name);
    }
}
