//! The names of nodes.

use crate::Code;

/// The longest path, in bytes: with what stands around it, it is a key of the state.
pub const MAX_PATH: usize = 4000;

/// The most steps of the path of a node that is made: what is above a node is looked through where there are quotas or recursive watches.
pub const MAX_STEPS: usize = 256;

/// The root.
pub(crate) const ROOT: &str = "/";
/// Where the service keeps what is about itself.
pub(crate) const SYSTEM: &str = "/zookeeper";
/// Quotas and what they count.
pub(crate) const QUOTA: &str = "/zookeeper/quota";
/// Who serves.
pub(crate) const CONFIG: &str = "/zookeeper/config";

/// Nodes that are there from the beginning and for good.
pub(crate) fn is_special(path: &str) -> bool {
    [ROOT, SYSTEM, QUOTA, CONFIG].contains(&path)
}

/// A character that no path has, as for ZooKeeper: control characters, private use and specials, and whatever Java writes with
/// surrogates, which are no UTF-8.
fn is_barred(character: char) -> bool {
    matches!(character, '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..)
}

/// Checks that this names a node: from the root, without empty, `.` or `..` steps.
pub(crate) fn check(path: &str) -> Result<(), Code> {
    let steps = path.strip_prefix('/').ok_or(Code::BadArguments)?;
    if path.len() > MAX_PATH || path.chars().any(is_barred) {
        return Err(Code::BadArguments);
    }
    let wrong = |step: &str| matches!(step, "" | "." | "..");
    if path != ROOT && steps.split('/').any(wrong) { Err(Code::BadArguments) } else { Ok(()) }
}

/// Checks that a node with this name may be made.
pub(crate) fn check_new(path: &str) -> Result<(), Code> {
    check(path)?;
    // The first step is behind the first slash.
    if path.matches('/').count() > MAX_STEPS { Err(Code::BadArguments) } else { Ok(()) }
}

/// The path of a node's parent and its name there. The root is its own parent, without a name.
pub(crate) fn split(path: &str) -> (&str, &str) {
    match path.rfind('/') {
        Some(0) => (ROOT, &path[1..]),
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (ROOT, path),
    }
}

/// The path, and those of all nodes above it up to the root.
pub(crate) fn upwards(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| (*path != ROOT).then(|| split(path).0))
}
