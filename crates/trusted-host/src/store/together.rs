//! Counters and logs of one component. They share its epoch: whichever is lost, the epoch is over.
//!
//! Neither store's files say anything of the other's, so that those of counters are what they always were. What
//! tells that both were begun is the order: the marker of the logs says that the epoch is being made before the
//! counters start, and that it has started after they did. So counters that go on beside logs whose marker does
//! not know of this epoch mean that the logs were lost, or begun without; logs that go on beside counters which
//! never started, that those were lost; and a crash in between leaves neither.

use super::directory::Directory;
use super::error::StoreError;
use super::logs::{LogsHead, OpenedLogs, Room, first_base, request};
use super::opening::{Examined, Request, examine};
use super::{Opened, Policy, RealDirectory};
use std::path::Path;
use troth_trusted::{Identity, State};

/// How both stores of one component are opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Both {
    /// Whose they are.
    pub identity: Identity,
    /// When a state of the counters, or a call of the logs, is durable.
    pub policy: Policy,
    /// How many entries each log has room for.
    pub room: Room,
    /// Slots of new files.
    pub slots: u32,
}

impl Both {
    /// Opens the counters' store in `counters`, as [`DiskStore::open`](super::DiskStore::open) does, and that of
    /// the logs in `logs`. Both directories must exist, each for its store only.
    ///
    /// # Errors
    /// [`StoreError`]; as [`open_both_in`].
    pub fn open(self, counters: &Path, logs: &Path) -> BothOpened {
        let directory = |path: &Path| {
            RealDirectory::new(path)
                .map_err(|source| StoreError::NoDirectory { path: path.to_path_buf(), source })
        };
        open_both_in(directory(counters)?, directory(logs)?, self)
    }
}

/// Both stores, or why there are none.
pub type BothOpened<D = RealDirectory> = Result<(Opened<D>, OpenedLogs<D>), StoreError>;

/// Opens the stores of one component in these directories, both or none.
///
/// # Errors
/// [`StoreError`]; [`StoreError::Contradiction`] where one of them has started in this epoch and the other not.
pub fn open_both_in<D: Directory>(counters: D, logs: D, both: Both) -> BothOpened<D> {
    let Both { identity, policy, room, slots } = both;
    let base = first_base(identity, room)?;
    let counters: Examined<'_, D, State> = examine(counters, Request { identity, policy, slots, base: &[] })?;
    let mut logs: Examined<'_, D, LogsHead> = examine(logs, request(identity, policy, slots, &base))?;
    rule!("A2M-S5");
    match (counters.is_fresh(), logs.is_fresh()) {
        (true, true) => logs.begin()?,
        (true, false) => {
            return Err(StoreError::Contradiction {
                what: "logs have started in this epoch, counters have not",
            });
        }
        (false, true) if !logs.is_begun() => {
            return Err(StoreError::Contradiction {
                what: "counters have started in this epoch, logs have not",
            });
        }
        (false, _) => {}
    }
    let counters = Opened::new(counters.go_on()?);
    Ok((counters, OpenedLogs::new(logs.go_on()?, room, policy)?))
}
