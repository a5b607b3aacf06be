//! What was done, and what protects from whom as a result.

use std::fmt;

/// A wall between the component and the replica.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Step {
    /// The process runs as a user that is neither root nor the replica's.
    OwnUser,
    /// It cannot be traced or read through /proc, and leaves no core (`PR_SET_DUMPABLE`).
    NotDumpable,
    /// The size of a core is limited to nothing.
    NoCore,
    /// No program that it started would gain rights (`PR_SET_NO_NEW_PRIVS`).
    NoNewPrivileges,
    /// Its memory stays out of swap (`mlockall`).
    LockedMemory,
    /// Its keys are in memory that the kernel itself does not map (`memfd_secret`).
    SecretMemory,
    /// It reaches no file but its own (Landlock).
    Landlock,
    /// It makes no system call but those that serving needs (seccomp).
    Seccomp,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnUser => "own user",
            Self::NotDumpable => "not dumpable",
            Self::NoCore => "no core files",
            Self::NoNewPrivileges => "no new privileges",
            Self::LockedMemory => "locked memory",
            Self::SecretMemory => "secret memory",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
        })
    }
}

/// What became of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The wall stands.
    Done,
    /// It stands, but this kernel builds it lower; the text says how.
    Partly(String),
    /// It does not stand; the text says why.
    NotAvailable(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::Partly(how) => write!(f, "partly: {how}"),
            Self::NotAvailable(why) => write!(f, "not available: {why}"),
        }
    }
}

/// Whether the component survives the takeover of its replica's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isolation {
    /// It does not: both run as this user, which can read the key's file, replace the store and start the
    /// component again.
    SameUser(u32),
    /// It does not: the replica runs as root.
    ReplicaIsRoot,
    /// It does: the component is this user's and the replica another's. Kernel and root are trusted.
    OwnUser(u32),
}

impl Isolation {
    /// Whether there is any.
    pub fn isolates(self) -> bool {
        matches!(self, Self::OwnUser(_))
    }

    pub(super) fn outcome(self) -> Outcome {
        if self.isolates() { Outcome::Done } else { Outcome::NotAvailable(self.to_string()) }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameUser(uid) => write!(
                f,
                "no isolation: the trusted process runs as the replica's own user {uid}; mend: start it as root and name a user of its own"
            ),
            Self::ReplicaIsRoot => f.write_str(
                "no isolation: the replica runs as root; mend: give the replica a user of its own",
            ),
            Self::OwnUser(uid) => write!(
                f,
                "isolated from the replica's process as user {uid}; not from the kernel, root, or a store copied back while it is down"
            ),
        }
    }
}

/// What [`harden`](super::harden) did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// What follows from the users involved; all other steps are worth little without it.
    pub isolation: Isolation,
    steps: Vec<(Step, Outcome)>,
}

impl Report {
    pub(super) fn new(isolation: Isolation) -> Self {
        Self { isolation, steps: Vec::new() }
    }

    pub(super) fn add(&mut self, step: Step, outcome: Outcome) {
        self.steps.push((step, outcome));
        self.steps.sort_by_key(|(step, _)| *step);
    }

    /// All steps in their order.
    pub fn steps(&self) -> &[(Step, Outcome)] {
        &self.steps
    }

    /// What became of one step.
    pub fn outcome(&self, step: Step) -> Option<&Outcome> {
        self.steps.iter().find(|(taken, _)| *taken == step).map(|(_, outcome)| outcome)
    }
}

impl fmt::Display for Report {
    /// One line per step, then one on the isolation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (step, outcome) in &self.steps {
            writeln!(f, "{step}: {outcome}")?;
        }
        write!(f, "{}", self.isolation)
    }
}
