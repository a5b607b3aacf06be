//! How many connections the operating system lets this process have.

use crate::connection::RESERVED_DESCRIPTORS;
use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit on open files as far as the process may, and says how many clients fit beside what is
/// kept for everything else. At least one does: a process that may open hardly anything says so by itself.
pub(crate) fn most_clients() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit = raised,
            Err(why) => tracing::warn!(%why, "cannot raise the limit on open files"),
        }
    }
    let files = limit.current.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX));
    files.saturating_sub(RESERVED_DESCRIPTORS).max(1)
}
