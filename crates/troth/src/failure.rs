//! Why a command failed, and the exit code that says so.

use crate::places;
use crate::print::note;
use crate::suggest;
use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use troth_client::{ClientError, SubmitError};
use troth_node::backup::BackupError;
use troth_node::config::{ConfigError, MakeError};
use troth_node::{AsideError, DurableError, HomeError, RunError, Standing, SupervisorError};
use troth_types::{Group, ReplicaId};

/// The service said no.
pub(crate) const NO: u8 = 1;
/// Wrong usage or configuration.
pub(crate) const USAGE: u8 = 2;
/// The replica must not start.
pub(crate) const MUST_NOT_START: u8 = 3;
/// The outcome is unknown.
pub(crate) const UNKNOWN: u8 = 4;
/// Not done.
pub(crate) const NOT_DONE: u8 = 5;

/// A failed command: what to print and which code to end with.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(USAGE, message)
    }

    /// Something of the operating system's that went wrong while doing `what`.
    pub(crate) fn system(what: &str, why: &std::io::Error) -> Self {
        Self::new(NOT_DONE, format!("{what}: {why}"))
    }

    /// A directory or file that could not be made, opened or written, as `what` says.
    pub(crate) fn place(what: &str, path: &Path, why: &std::io::Error) -> Self {
        let mend = places::mend(path, why);
        // Another name was meant, and no other try of the same makes it.
        let is_misnamed = matches!(why.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory);
        let code = if is_misnamed && !mend.is_empty() { USAGE } else { NOT_DONE };
        Self::new(code, format!("{what} {}: {why}{mend}", path.display()))
    }

    /// A backup's directory in the place of a cluster's.
    pub(crate) fn of_a_backup(place: &Path) -> Self {
        let place = place.display();
        Self::usage(format!(
            "{place} is a backup, and nothing runs from it\n  mend: `troth restore --from {place} --dir DIRECTORY` makes a group of it"
        ))
    }

    /// A replica that the group does not have, which an option named.
    pub(crate) fn no_such_replica(group: &Group, option: &str, named: ReplicaId) -> Self {
        let last = group.n() - 1;
        Self::usage(format!("the group has replicas 0 to {last}; {option} {} is none of them", named.0))
    }

    /// A file of keys that is another replica's.
    pub(crate) fn keys_of_another(file: &Path, owner: ReplicaId, wanted: ReplicaId) -> Self {
        Self::usage(format!(
            "{} is replica {}'s, not replica {}'s\n  mend: give this machine the directory of its own replica, or the --id of the \
             one whose directory it has",
            file.display(),
            owner.0,
            wanted.0
        ))
    }

    /// The same, with commands in the message for the cluster in this directory.
    pub(crate) fn in_dir(self, dir: Option<&Path>) -> Self {
        match dir {
            Some(dir) => Self { message: suggest::in_dir(&self.message, dir), ..self },
            None => self,
        }
    }

    /// Prints the message and gives the code.
    pub(crate) fn report(&self) -> ExitCode {
        if !self.message.is_empty() {
            note!("troth: {}", self.message);
        }
        ExitCode::from(self.code)
    }
}

impl From<ConfigError> for Failure {
    fn from(why: ConfigError) -> Self {
        Self::usage(why.to_string())
    }
}

impl From<BackupError> for Failure {
    fn from(why: BackupError) -> Self {
        let code = match &why {
            BackupError::Exists(_)
            | BackupError::Absent(_)
            | BackupError::NoBackup(_)
            | BackupError::Version { .. }
            | BackupError::Form(_) => USAGE,
            BackupError::Damaged { .. } => NO,
            BackupError::Unreachable(..)
            | BackupError::Refused(_)
            | BackupError::Lost(_)
            | BackupError::Foreign(_)
            | BackupError::Uncertified(_)
            | BackupError::File { .. }
            | BackupError::NotYet(_) => NOT_DONE,
        };
        Self::new(code, why.to_string())
    }
}

impl From<MakeError> for Failure {
    fn from(why: MakeError) -> Self {
        match why {
            MakeError::Exists(_)
            | MakeError::Plan(_)
            | MakeError::Config(_)
            | MakeError::Unfinished { .. } => Self::usage(why.to_string()),
            MakeError::Genesis(why) => why.into(),
            MakeError::File(path, why) => Self::place("cannot write", &path, &why),
            MakeError::Random(_) | MakeError::NoPorts => Self::new(NOT_DONE, why.to_string()),
        }
    }
}

impl From<RunError> for Failure {
    fn from(why: RunError) -> Self {
        let code =
            match &why {
                RunError::Config(_) | RunError::Genesis(_) | RunError::Listen(..) => USAGE,
                // Its trusted process has said what is wrong with the set-up, and another start would hear the same.
                RunError::Durable(DurableError::Home(HomeError::Supervisor(SupervisorError::Ended(
                    status,
                )))) if status.code() == Some(USAGE.into()) => USAGE,
                why if Standing::of(why).is_some() => MUST_NOT_START,
                RunError::System(_)
                | RunError::Marker(_)
                | RunError::Start(_)
                | RunError::Component(_)
                | RunError::Logs(_)
                | RunError::Contradiction(_)
                | RunError::Halted
                | RunError::Panicked(_)
                | RunError::Durable(_)
                | RunError::Disk(_) => NOT_DONE,
            };
        Self::new(code, why.to_string())
    }
}

impl From<AsideError> for Failure {
    fn from(why: AsideError) -> Self {
        Self::new(NOT_DONE, why.to_string())
    }
}

impl From<ClientError> for Failure {
    fn from(why: ClientError) -> Self {
        let code = if why.outcome_unknown() { UNKNOWN } else { NOT_DONE };
        let message = match &why {
            // Replicas say neither why they hang up nor why they do not know somebody.
            ClientError::Unauthorised | ClientError::Unavailable { .. } => {
                format!(
                    "{why}\n  mend: `troth status` shows who answers; if all do, this client may have been removed by the operator"
                )
            }
            ClientError::TimedOut => {
                format!(
                    "{why}\n  mend: `troth status` shows whether enough replicas serve; read before you repeat it"
                )
            }
            _ => why.to_string(),
        };
        Self::new(code, message)
    }
}

impl From<SubmitError> for Failure {
    fn from(why: SubmitError) -> Self {
        Self::new(NOT_DONE, why.to_string())
    }
}
