//! Licences, banned crates and sources of everything in the lock file, by the rules of `deny.toml`.
//!
//! The file is in cargo-deny's own format, so that cargo-deny can be used on it as well; this check
//! needs no installation and takes a second. It reads `licenses.allow`, `bans.deny` and
//! `sources.allow-registry`; advisories need cargo-deny and a network.

use super::{Finding, spdx};
use serde_json::Value as Json;
use toml::{Table, Value};

/// The rules.
#[derive(Debug, Default)]
pub struct Policy {
    licences: Vec<String>,
    bans: Vec<Ban>,
    registries: Vec<String>,
}

#[derive(Debug)]
struct Ban {
    name: String,
    below: Option<[u64; 3]>,
    reason: String,
}

impl Policy {
    /// Reads the rules.
    pub fn parse(table: &Table) -> Result<Self, String> {
        let list = |section: &str, name: &str| -> Result<Vec<Value>, String> {
            let found = table.get(section).and_then(|section| section.get(name)).and_then(Value::as_array);
            found.cloned().ok_or(format!("deny.toml: [{section}] has no list '{name}'"))
        };
        let texts = |section: &str, name: &str| -> Result<Vec<String>, String> {
            Ok(list(section, name)?.iter().filter_map(Value::as_str).map(str::to_string).collect())
        };
        let mut bans = Vec::new();
        for entry in list("bans", "deny")? {
            let field = |name: &str| entry.get(name).and_then(Value::as_str);
            let name = field("crate").ok_or("deny.toml: a ban has no 'crate'")?;
            let reason = field("reason").ok_or(format!("deny.toml: the ban of {name} has no 'reason'"))?;
            let (name, below) = match name.split_once('@') {
                None => (name, None),
                Some((name, range)) => {
                    let bound = range
                        .strip_prefix('<')
                        .and_then(version)
                        .ok_or(format!("deny.toml: '{range}': only '<x.y.z' is understood as a range"))?;
                    (name, Some(bound))
                }
            };
            bans.push(Ban { name: name.to_string(), below, reason: reason.to_string() });
        }
        Ok(Self {
            licences: texts("licenses", "allow")?,
            bans,
            registries: texts("sources", "allow-registry")?,
        })
    }

    /// Every package that breaks a rule.
    pub fn check(&self, metadata: &Json) -> Vec<Finding> {
        let mut findings = Vec::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let field = |name: &str| package[name].as_str();
            let (name, number) = (field("name").unwrap_or_default(), field("version").unwrap_or_default());
            let mut report = |rule, what| {
                findings.push(Finding { rule, path: format!("{name} {number}"), line: 0, what });
            };
            let allowed = |licence: &str| self.licences.iter().any(|known| known == licence);
            match field("license").map(|licence| (licence, spdx::satisfied(licence, &allowed))) {
                Some((_, Ok(true))) => {}
                Some((licence, Ok(false))) => {
                    report("licence", format!("'{licence}' is not allowed by deny.toml"))
                }
                Some((_, Err(why))) => report("licence", why),
                None => report("licence", "states no licence".to_string()),
            }
            for ban in self.bans.iter().filter(|ban| ban.name == name) {
                let hit = match ban.below {
                    None => true,
                    Some(bound) => version(number).is_none_or(|number| number < bound),
                };
                if hit {
                    report("banned", ban.reason.clone());
                }
            }
            if let Some(source) = field("source") {
                let registry = source.strip_prefix("registry+").or(source.strip_prefix("sparse+"));
                if !registry.is_some_and(|registry| self.registries.iter().any(|known| known == registry)) {
                    report("source", format!("comes from {source}"));
                }
            }
        }
        findings
    }
}

/// The three numbers of a version, without what may follow them.
fn version(text: &str) -> Option<[u64; 3]> {
    let plain = text.trim().split(['-', '+']).next()?;
    let mut parts = plain.split('.').map(|part| part.parse().ok());
    let mut next = || parts.next().unwrap_or(Some(0));
    Some([next()?, next()?, next()?])
}
