//! Which decoders there are, by the source, and which of them a target covers, by `fuzz/targets.toml`.

use super::machines::Driven;
use crate::source::{Kind, Token, is_rust, is_test, tokens};
use crate::workspace::SourceFile;
use std::collections::{BTreeMap, BTreeSet};
use toml::{Table, Value};

/// How a function's name begins that makes something of bytes.
const VERBS: &[&str] = &[
    "accept", "decode", "decoded", "from", "initiate", "load", "loaded", "open", "opened", "parse", "read",
    "receive", "recover", "scan", "serve", "split", "take",
];
/// What stands in the parameters of one that is handed bytes, or a place to have them from.
const SOURCES: &[&str] = &[
    "Block",
    "Bytes",
    "BufRead",
    "Directory",
    "Disk",
    "DiskFile",
    "File",
    "Layout",
    "Path",
    "PathBuf",
    "Read",
    "Reader",
    "StoreFile",
    "TcpStream",
    "UnixListener",
    "UnixStream",
    "str",
    "u8",
];
/// Crates whose programs measure and test, and read nothing that a stranger wrote.
const NOT_SERVING: &[&str] = &["crates/sim/", "crates/bench/", "crates/chaos/"];

/// What the registry says of decoders.
#[derive(Debug, Default)]
pub struct Registry {
    /// Decoders by the target that covers them.
    pub covered: BTreeMap<String, String>,
    /// What looks like a decoder of foreign bytes and is none, with the reason.
    pub exempt: BTreeMap<String, String>,
    /// All targets.
    pub targets: Vec<String>,
    /// Which of them drive which agreement machine.
    pub machines: BTreeMap<String, Driven>,
}

impl Registry {
    /// Reads `fuzz/targets.toml`.
    pub fn parse(table: &Table) -> Result<Self, String> {
        let mut registry = Self::default();
        let section = |name: &str| {
            table.get(name).and_then(Value::as_table).ok_or(format!("targets.toml: no section [{name}]"))
        };
        for (target, covers) in section("targets")? {
            let covers = covers.as_array().ok_or(format!("targets.toml: {target} is no list"))?;
            registry.targets.push(target.clone());
            for decoder in covers {
                let decoder = decoder.as_str().ok_or(format!("targets.toml: {target}: no text"))?;
                registry.covered.insert(decoder.to_string(), target.clone());
            }
        }
        for (decoder, reason) in section("exempt")? {
            let reason = reason.as_str().filter(|reason| !reason.trim().is_empty());
            let reason = reason.ok_or(format!("targets.toml: no reason to leave {decoder} out"))?;
            registry.exempt.insert(decoder.clone(), reason.to_string());
        }
        for (machine, targets) in section("machines")? {
            registry.machines.insert(machine.clone(), Driven::parse(machine, targets)?);
        }
        Ok(registry)
    }

    /// What is wrong: decoders without a target, and entries that stand for no decoder.
    pub fn check(&self, decoders: &BTreeMap<String, String>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (decoder, place) in decoders {
            if !self.covered.contains_key(decoder) && !self.exempt.contains_key(decoder) {
                wrong.push(format!(
                    "{place}: no target covers {decoder}; write one, or say why not, in fuzz/targets.toml"
                ));
            }
        }
        let named: BTreeSet<&String> = self.covered.keys().chain(self.exempt.keys()).collect();
        for decoder in named.into_iter().filter(|decoder| !decoders.contains_key(*decoder)) {
            wrong.push(format!("fuzz/targets.toml: there is no {decoder} in the source; remove it"));
        }
        for decoder in self.covered.keys().filter(|decoder| self.exempt.contains_key(*decoder)) {
            wrong.push(format!("fuzz/targets.toml: {decoder} is both covered and exempt"));
        }
        wrong
    }
}

/// All decoders in the source, each with the place where it stands: `crate::Type` for what the canonical codec
/// decodes, `crate::module::[Type::]function` for the others.
pub fn all(files: &[SourceFile]) -> BTreeMap<String, String> {
    let mut decoders = BTreeMap::new();
    for file in files {
        let serves =
            file.path.starts_with("crates/") && !NOT_SERVING.iter().any(|at| file.path.starts_with(at));
        if is_rust(file) && serves && !is_test(&file.path) {
            for (name, line) in of(file) {
                decoders.entry(name).or_insert_with(|| format!("{}:{line}", file.path));
            }
        }
    }
    decoders
}

fn of(file: &SourceFile) -> Vec<(String, usize)> {
    let Some((place, module)) = names(&file.path) else { return Vec::new() };
    let tokens = tokens(&file.text);
    let mut found = Vec::new();
    let mut depth = 0_usize;
    let mut inside: Option<Impl> = None;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        if token.is("impl") && depth == 0 {
            let head = head(&tokens[at..]);
            let implemented = Impl::of(head);
            if implemented.is("Wire") {
                found.push((format!("{place}::{}", implemented.of), token.line));
            }
            inside = Some(implemented);
            at += head.len();
            continue;
        }
        if token.is_punct('{') {
            depth += 1;
        } else if token.is_punct('}') {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                inside = None;
            }
        } else if token.is("fn")
            && let Some(Token { kind: Kind::Ident(name), .. }) = tokens.get(at + 1)
        {
            let head = head(&tokens[at..]);
            // A trait only says that there is one; the codec's own are found by their trait.
            let has_body = tokens.get(at + head.len()).is_some_and(|next| next.is_punct('{'));
            let wire = inside.as_ref().is_some_and(|inside| inside.is("Wire"));
            if has_body && !wire && reads(name, head) {
                let within = inside.as_ref().map_or(String::new(), |inside| format!("{}::", inside.of));
                found.push((format!("{place}::{module}{within}{name}"), token.line));
            }
            at += head.len();
            continue;
        }
        at += 1;
    }
    found
}

/// The tokens up to the body or the end of a declaration.
pub(super) fn head(tokens: &[Token]) -> &[Token] {
    let end = tokens.iter().enumerate().scan(0_i32, |brackets, (at, token)| {
        if token.is_punct('(') || token.is_punct('[') {
            *brackets += 1;
        } else if token.is_punct(')') || token.is_punct(']') {
            *brackets -= 1;
        }
        let over = *brackets == 0 && (token.is_punct('{') || token.is_punct(';'));
        Some((at, over))
    });
    let end = end.into_iter().find(|(_, over)| *over).map_or(tokens.len(), |(at, _)| at);
    &tokens[..end]
}

fn reads(name: &str, head: &[Token]) -> bool {
    let verb = name.split('_').next().unwrap_or(name);
    let result = head.windows(2).rposition(|pair| pair[0].is_punct('-') && pair[1].is_punct('>'));
    let takes = &head[..result.unwrap_or(head.len())];
    VERBS.contains(&verb) && takes.iter().any(|token| SOURCES.iter().any(|source| token.is(source)))
}

/// The head of an `impl`.
pub(super) struct Impl {
    /// The type.
    pub(super) of: String,
    /// The trait, without what it is made for.
    what: Option<String>,
}

impl Impl {
    /// Whether it is of this trait.
    pub(super) fn is(&self, name: &str) -> bool {
        self.what.as_deref() == Some(name)
    }

    pub(super) fn of(head: &[Token]) -> Self {
        let split = head.iter().position(|token| token.is("for"));
        let what = split.and_then(|split| match &head[split - 1].kind {
            Kind::Ident(word) => Some(word.clone()),
            _ => None,
        });
        let own = &head[split.map_or(1, |split| split + 1)..];
        let own = if split.is_none() { behind_generics(own) } else { own };
        let mut name = String::new();
        for token in own {
            match &token.kind {
                Kind::Punct('<') | Kind::Ident(_) if token.is("where") || token.is_punct('<') => break,
                Kind::Ident(word) if name.ends_with(|last: char| last.is_alphanumeric()) => {
                    name = word.clone()
                }
                Kind::Ident(word) => name += word,
                // Of a path the last part counts.
                Kind::Punct(':') => name.clear(),
                Kind::Punct(',') => name += ", ",
                Kind::Punct(other @ ('(' | ')' | '$')) => name.push(*other),
                _ => {}
            }
        }
        Self { of: name, what }
    }
}

fn behind_generics(tokens: &[Token]) -> &[Token] {
    if !tokens.first().is_some_and(|first| first.is_punct('<')) {
        return tokens;
    }
    let mut open = 0_i32;
    for (at, token) in tokens.iter().enumerate() {
        if token.is_punct('<') {
            open += 1;
        } else if token.is_punct('>') {
            open -= 1;
            if open == 0 {
                return &tokens[at + 1..];
            }
        }
    }
    tokens
}

/// The crate's short name and the module's path, with `::` behind it.
pub(super) fn names(path: &str) -> Option<(String, String)> {
    let (before, after) = path.split_once("/src/")?;
    let place = before.rsplit('/').next()?.replace('-', "_");
    let module = after.strip_suffix(".rs")?;
    let parts = module.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main"));
    Some((place, parts.map(|part| format!("{part}::")).collect()))
}
