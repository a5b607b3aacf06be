//! The purity lint (ARCHITECTURE.md, invariant 1): below the runtime no clock, network, file,
//! thread, randomness, `async` or order of hash maps; and nowhere anything unfinished.

use super::Finding;
use crate::source::{Kind, Token, is_rust, is_test, tokens};
use crate::workspace::SourceFile;

/// Crates that are pure: what a step can reach.
const PURE: &[&str] = &[
    "crates/types/",
    "crates/trusted/",
    "crates/trusted-host/",
    "crates/auth/",
    "crates/core/",
    "crates/blocks/",
    "crates/protocols/",
    "crates/exec/",
    "crates/services/",
    "crates/client/",
    "crates/gateways/",
];
/// Parts of those crates that belong to the runtime all the same.
const RUNTIME_PARTS: &[&str] = &[
    "crates/client/src/front/",
    "crates/gateways/zookeeper/src/shell/",
    "crates/trusted-host/src/store/real.rs",
];
/// Crates that must give the same run for the same seed, though they print and read arguments.
const DETERMINISTIC: &[&str] = &["crates/sim/"];

/// Where a rule holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Production code of pure crates.
    Pure,
    /// Production code of pure and deterministic crates.
    Deterministic,
    /// The same with its tests.
    DeterministicAndTests,
    /// Production code of the shared blocks.
    Blocks,
    /// All Rust code.
    Everywhere,
}

impl Scope {
    fn holds(self, path: &str) -> bool {
        let below = |roots: &[&str]| roots.iter().any(|root| path.starts_with(root));
        let within = |roots| below(roots) && !below(RUNTIME_PARTS);
        match self {
            Self::Pure => within(PURE) && !is_test(path),
            Self::Deterministic => (within(PURE) || within(DETERMINISTIC)) && !is_test(path),
            Self::DeterministicAndTests => within(PURE) || within(DETERMINISTIC),
            Self::Blocks => path.starts_with("crates/blocks/") && !is_test(path),
            Self::Everywhere => true,
        }
    }
}

/// What a rule forbids.
enum Banned {
    /// These identifiers.
    Idents(&'static [&'static str]),
    /// These modules of the standard library.
    Std(&'static [&'static str]),
    /// These macros.
    Macros(&'static [&'static str]),
    /// This attribute.
    Attribute(&'static str),
}

struct Rule {
    name: &'static str,
    scope: Scope,
    banned: Banned,
    instead: &'static str,
}

const RULES: &[Rule] = &[
    Rule {
        name: "clock",
        scope: Scope::Deterministic,
        banned: Banned::Idents(&["Instant", "SystemTime"]),
        instead: "time comes with the step's environment",
    },
    Rule {
        name: "network",
        scope: Scope::Pure,
        banned: Banned::Std(&["net"]),
        instead: "ask for a send as an effect",
    },
    Rule {
        name: "files",
        scope: Scope::Pure,
        banned: Banned::Std(&["fs", "process", "env"]),
        instead: "ask for durability as an effect; configuration comes from the caller",
    },
    Rule {
        name: "threads",
        scope: Scope::Pure,
        banned: Banned::Std(&["thread"]),
        instead: "a step is synchronous; threads belong to the runtime",
    },
    Rule {
        name: "print",
        scope: Scope::Pure,
        banned: Banned::Macros(&["println", "print", "eprintln", "eprint"]),
        instead: "leave a note as an effect",
    },
    Rule {
        name: "random",
        scope: Scope::DeterministicAndTests,
        banned: Banned::Idents(&["rand", "getrandom", "thread_rng", "OsRng", "SysRng", "from_os_rng"]),
        instead: "seed a generator from the run's seed, or pass the secret in",
    },
    Rule {
        name: "hash-order",
        scope: Scope::Deterministic,
        banned: Banned::Idents(&["HashMap", "HashSet", "RandomState", "DefaultHasher"]),
        instead: "use BTreeMap, BTreeSet or Vec: the order of a hash map differs between runs",
    },
    Rule {
        name: "async",
        scope: Scope::Deterministic,
        banned: Banned::Idents(&["async", "await", "tokio", "snow"]),
        instead: "below the runtime everything is synchronous",
    },
    Rule {
        name: "passive",
        scope: Scope::Blocks,
        banned: Banned::Idents(&["Cx", "Effect"]),
        instead: "blocks answer and never act; the protocol asks for effects",
    },
    Rule {
        name: "unfinished",
        scope: Scope::Everywhere,
        banned: Banned::Macros(&["todo", "unimplemented", "dbg"]),
        instead: "what is on main works or is not there",
    },
    Rule {
        name: "ignored-test",
        scope: Scope::Everywhere,
        banned: Banned::Attribute("ignore"),
        instead: "mend the test or remove it",
    },
];

/// The names of all purity rules.
pub fn rules() -> Vec<&'static str> {
    RULES.iter().map(|rule| rule.name).collect()
}

/// All places that break a purity rule.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_rust(file)) {
        let tokens = tokens(&file.text);
        for rule in RULES.iter().filter(|rule| rule.scope.holds(&file.path)) {
            for (line, word) in hits(&tokens, &rule.banned) {
                let what = format!("'{word}' does not belong here: {}", rule.instead);
                findings.push(Finding { rule: rule.name, path: file.path.clone(), line, what });
            }
        }
    }
    findings
}

fn hits(tokens: &[Token], banned: &Banned) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    match banned {
        Banned::Idents(names) => {
            for token in tokens {
                found.extend(
                    names.iter().filter(|name| token.is(name)).map(|name| (token.line, (*name).to_string())),
                );
            }
        }
        Banned::Std(modules) => {
            for (line, module) in std_modules(tokens) {
                if modules.contains(&module.as_str()) {
                    found.push((line, format!("std::{module}")));
                }
            }
        }
        Banned::Macros(names) => {
            for pair in tokens.windows(2).filter(|pair| pair[1].is_punct('!')) {
                let names = names.iter().filter(|name| pair[0].is(name));
                found.extend(names.map(|name| (pair[0].line, format!("{name}!"))));
            }
        }
        Banned::Attribute(name) => {
            let attributes =
                tokens.windows(3).filter(|three| three[0].is_punct('#') && three[1].is_punct('['));
            found.extend(
                attributes
                    .filter(|three| three[2].is(name))
                    .map(|three| (three[0].line, format!("#[{name}]"))),
            );
        }
    }
    found
}

/// The modules named directly below `std`, in paths and in `use std::{…}` groups alike.
fn std_modules(tokens: &[Token]) -> Vec<(usize, String)> {
    let mut modules = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let path_follows =
            [1, 2].iter().all(|ahead| tokens.get(at + ahead).is_some_and(|next| next.is_punct(':')));
        if !token.is("std") || !path_follows {
            continue;
        }
        let rest = &tokens[at + 3..];
        match rest.first().map(|first| &first.kind) {
            Some(Kind::Ident(module)) => modules.push((rest[0].line, module.clone())),
            Some(Kind::Punct('{')) => modules.extend(group_heads(rest)),
            _ => {}
        }
    }
    modules
}

/// The first identifier of each entry of the group that starts at `tokens[0]`.
fn group_heads(tokens: &[Token]) -> Vec<(usize, String)> {
    let mut heads = Vec::new();
    let (mut depth, mut at_head) = (0, false);
    for token in tokens {
        match &token.kind {
            Kind::Punct('{') => {
                depth += 1;
                at_head = depth == 1;
            }
            Kind::Punct('}') => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            Kind::Punct(',') if depth == 1 => at_head = true,
            Kind::Ident(name) if at_head => {
                heads.push((token.line, name.clone()));
                at_head = false;
            }
            _ => {}
        }
    }
    heads
}
