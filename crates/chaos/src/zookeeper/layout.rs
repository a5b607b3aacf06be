//! Where the load's nodes are, and what their names say.

/// Directories.
pub(crate) const LOCKS: &str = "/locks";
pub(crate) const GUARDS: &str = "/guards";
pub(crate) const GROUPS: &str = "/groups";
pub(crate) const REGISTERS: &str = "/registers";
pub(crate) const WATCHED: &str = "/watched";
pub(crate) const FLAGS: &str = "/flags";
/// All of them.
pub(crate) const DIRECTORIES: [&str; 6] = [LOCKS, GUARDS, GROUPS, REGISTERS, WATCHED, FLAGS];

/// How many there are of each: few enough that sessions meet.
pub(crate) const LOCK_COUNT: usize = 16;
pub(crate) const GROUP_COUNT: usize = 10;
pub(crate) const WATCHED_COUNT: usize = 40;
/// Registers in use at a time.
pub(crate) const REGISTER_COUNT: usize = 36;
/// Seconds until others take their places: what the judge needs grows with the square of a register's history.
pub(crate) const REGISTER_SECONDS: u64 = 60;

/// A lock's directory.
pub(crate) fn lock(number: usize) -> String {
    format!("{LOCKS}/{number}")
}

/// What it protects.
pub(crate) fn guard(number: usize) -> String {
    format!("{GUARDS}/{number}")
}

/// Where sessions show that they are there.
pub(crate) fn group(number: usize) -> String {
    format!("{GROUPS}/{number}")
}

/// A node that sessions watch.
pub(crate) fn watched(number: usize) -> String {
    format!("{WATCHED}/{number}")
}

/// A node that comes once.
pub(crate) fn flag(number: usize) -> String {
    format!("{FLAGS}/{number}")
}

/// A register of a minute of the run.
pub(crate) fn register(minute: u64, number: usize) -> String {
    format!("{REGISTERS}/{minute}-{number}")
}

/// What a contender's node is called before it has its number: whose it is, and which of its attempts.
pub(crate) fn contender(journal: usize, attempt: u64) -> String {
    format!("{journal}-{attempt}-")
}

/// Whose node in a lock's directory this is.
pub(crate) fn journal_of(name: &str) -> Option<usize> {
    name.split('-').next()?.parse().ok()
}

fn number_of(name: &str) -> Option<u64> {
    name.rsplit('-').next()?.parse().ok()
}

/// The lowest of a lock's nodes.
pub(crate) fn lowest(names: &[String]) -> Option<&str> {
    names.iter().min_by_key(|name| number_of(name)).map(String::as_str)
}

/// The one before this.
pub(crate) fn before<'a>(names: &'a [String], own: &str) -> Option<&'a str> {
    let lower = names.iter().filter(|name| number_of(name) < number_of(own));
    lower.max_by_key(|name| number_of(name)).map(String::as_str)
}

/// Whether this is a lock's directory.
pub(crate) fn is_lock(path: &str) -> bool {
    path.strip_prefix(LOCKS).is_some_and(|rest| rest.len() > 1 && !rest[1..].contains('/'))
}

/// The lock that protects this node.
pub(crate) fn lock_of(path: &str) -> Option<String> {
    path.strip_prefix(GUARDS).filter(|rest| rest.len() > 1).map(|rest| format!("{LOCKS}{rest}"))
}
