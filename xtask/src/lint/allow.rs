//! The exceptions to the lints, each with its reason, in `xtask/allow.toml`.

use super::Finding;
use toml::{Table, Value};

/// One exception.
#[derive(Clone, Debug)]
pub struct Allowed {
    rule: String,
    path: String,
}

impl Allowed {
    /// The rule that it excepts from.
    pub fn rule(&self) -> &str {
        &self.rule
    }

    fn covers(&self, finding: &Finding) -> bool {
        let below = self.path.ends_with('/') && finding.path.starts_with(&self.path);
        self.rule == finding.rule && (below || self.path == finding.path)
    }
}

/// Reads `[[allow]]` entries: `rule`, `path` (a file, or a directory with a slash at the end) and
/// `reason`, which says why the rule does not serve there.
pub fn parse(table: &Table) -> Result<Vec<Allowed>, String> {
    let entries = table.get("allow").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut allowed = Vec::new();
    for (number, entry) in entries.iter().enumerate() {
        let field = |name: &str| {
            let text = entry.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
            text.map(str::to_string).ok_or(format!("allow.toml: entry {} has no '{name}'", number + 1))
        };
        field("reason")?;
        allowed.push(Allowed { rule: field("rule")?, path: field("path")? });
    }
    Ok(allowed)
}

/// The findings that no exception covers, and one for each exception that covers none: a list that
/// keeps what is not needed any more hides the next mistake.
pub fn apply(findings: Vec<Finding>, allowed: &[Allowed]) -> Vec<Finding> {
    let unused = allowed.iter().filter(|entry| !findings.iter().any(|finding| entry.covers(finding)));
    let unused: Vec<Finding> = unused
        .map(|entry| Finding {
            rule: "allow",
            path: "xtask/allow.toml".to_string(),
            line: 0,
            what: format!(
                "nothing needs the exception from '{}' for {} any more; remove it",
                entry.rule, entry.path
            ),
        })
        .collect();
    let mut left: Vec<Finding> =
        findings.into_iter().filter(|finding| !allowed.iter().any(|entry| entry.covers(finding))).collect();
    left.extend(unused);
    left
}
