//! What the process gives up before it serves.
//!
//! [`harden`] takes the steps of [`Step`] in their order and reports each. A step that the kernel does
//! not offer is reported and left out, for a component with fewer walls is better than none and the
//! operator decides; a step that should work and does not is an error, and the process ends.
//!
//! The order matters. The user is left first, while there are rights to leave it. Everything after it
//! needs none. What Linux keeps per thread (users, Landlock, seccomp) is set while the process has one
//! thread; it never gets another, as the filter allows none.

mod filter;
mod paths;
mod report;
mod user;

pub use report::{Isolation, Outcome, Report, Step};
pub use user::User;

use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};
use std::io;
use std::path::PathBuf;

/// What the process keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sandbox {
    /// The user to become; needed when started as root. It owns [`Sandbox::directory`] and nothing else.
    pub user: Option<User>,
    /// The user that the replica runs as. What isolates the process from it is measured by it.
    pub client_uid: u32,
    /// The directory of the component: its key and its store. Must belong to the process's user alone.
    pub directory: PathBuf,
    /// Files outside the directory that may be read, such as the boot id.
    pub readable: Vec<PathBuf>,
}

/// The process must not serve.
#[derive(Debug, thiserror::Error)]
pub enum HardenError {
    /// There would be nothing to leave.
    #[error("the trusted process does not run as root; mend: name a user of its own that it becomes")]
    StillRoot,
    /// Only root becomes somebody else.
    #[error(
        "the trusted process runs as user {own} and cannot become user {wanted}; mend: start it as root or as that user"
    )]
    OtherUser {
        /// The user it runs as.
        own: u32,
        /// The user it should run as.
        wanted: u32,
    },
    /// Threads would be left outside.
    #[error(
        "the process has {0} threads, and a sandbox is for one; mend: harden before any thread is started"
    )]
    Threads(usize),
    /// Others have access to the key and the store.
    #[error(
        "{directory} belongs to user {owner} with mode {mode:o}; mend: chown it to user {wanted} and chmod it to 700"
    )]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permissions.
        mode: u32,
        /// The user of the process.
        wanted: u32,
    },
    /// Rights were left that should be gone.
    #[error(
        "the process could still become root after it left it; mend: start it without extra capabilities or secure bits"
    )]
    RightsLeft,
    /// A step that every supported system has failed.
    #[error(
        "the trusted process cannot be hardened, {step}: {why}; mend: run it on a supported kernel, outside of sandboxes that forbid the step"
    )]
    Failed {
        /// The step.
        step: Step,
        /// What the system said.
        why: io::Error,
    },
}

/// Takes all steps. Call it once, in a process of one thread that has bound its socket and opened neither
/// key nor store.
///
/// # Errors
/// [`HardenError`]: the process must end.
pub fn harden(sandbox: &Sandbox) -> Result<Report, HardenError> {
    alone()?;
    let mut report = Report::new(user::leave_root(sandbox)?);
    report.add(Step::OwnUser, report.isolation.outcome());
    let failed = |step| move |why: Errno| HardenError::Failed { step, why: why.into() };

    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed(Step::NotDumpable))?;
    report.add(Step::NotDumpable, Outcome::Done);

    let none = Rlimit { current: Some(0), maximum: Some(0) };
    setrlimit(Resource::Core, none).map_err(failed(Step::NoCore))?;
    report.add(Step::NoCore, Outcome::Done);

    rustix::thread::set_no_new_privs(true).map_err(failed(Step::NoNewPrivileges))?;
    report.add(Step::NoNewPrivileges, Outcome::Done);

    let locked = lock_memory();
    report.add(Step::SecretMemory, secret_memory(&locked));
    report.add(Step::LockedMemory, locked);
    report.add(Step::Landlock, paths::restrict(sandbox)?);
    report.add(Step::Seccomp, filter::apply()?);
    Ok(report)
}

/// Demands that the process has one thread.
fn alone() -> Result<(), HardenError> {
    let failed = |why| HardenError::Failed { step: Step::OwnUser, why };
    let threads = std::fs::read_dir("/proc/self/task").map_err(failed)?.count();
    if threads == 1 { Ok(()) } else { Err(HardenError::Threads(threads)) }
}

/// The most that serving and the store take beyond what the process has before them: buffers of a frame
/// each way, and a store file read or written as a whole.
const GROWTH: u64 = 4 * 1024 * 1024;

/// Locks what is mapped and what will be, each page as it is first touched: the key is read after this, and
/// an allocator that reserves a gigabyte would otherwise get all of it. Under a limit the kernel refuses memory beyond it, which ends the
/// process in the middle of its work, so nothing is locked where the limit leaves no room to grow.
fn lock_memory() -> Outcome {
    let mend =
        "memory may be written to swap; mend: raise the limit on locked memory (LimitMEMLOCK=infinity)";
    if let Some(limit) = getrlimit(Resource::Memlock).current {
        let enough = mapped().and_then(|mapped| mapped.checked_add(GROWTH)).is_some_and(|most| most <= limit);
        if !enough {
            return Outcome::NotAvailable(format!("the limit of {limit} bytes is too low: {mend}"));
        }
    }
    match mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT) {
        Ok(()) => Outcome::Done,
        Err(why) => Outcome::NotAvailable(format!("{why}: {mend}")),
    }
}

/// Bytes of the process's address space.
fn mapped() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().next()?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// A `memfd_secret` is a mapping that not even the kernel's own map has. A mapping is raw memory, and the
/// key lives in values that only the allocator places: there is no way to it without unsafe code, which
/// this project does not have.
fn secret_memory(locked: &Outcome) -> Outcome {
    let kept = if *locked == Outcome::Done { "locked" } else { "ordinary" };
    Outcome::NotAvailable(format!(
        "keys are in {kept} memory: a memfd_secret mapping cannot be used without unsafe code"
    ))
}
