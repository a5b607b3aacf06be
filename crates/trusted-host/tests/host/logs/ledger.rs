//! Logs over the store, with a ledger of every call that was answered.

use crate::store::disk::{Disk, TestDirectory};
use crate::support::{IDENTITY, mac};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{A2m, LOGS, LogId, LogRefusal, Logs, Operation};
use troth_trusted_host::store::directory::Directory;
use troth_trusted_host::store::{DiskLogs, OpenedLogs, Room, StoreError};
use troth_trusted_host::{LogRoom, log_room};

/// So few slots that a handful of calls needs several files.
pub const FEW: u32 = 4;
/// The log that takes one entry with each call, so that its end tells how many calls were done.
pub const Q: LogId = LogId(0);
/// The log that advances with each call.
const M: LogId = LogId(15);
/// The log that now and then takes more in one call than a record holds.
const WIDE: LogId = LogId(2);
/// Entries that it takes then.
const MANY: u128 = 40;

/// Room for what the calls of [`call`] need.
pub const ROOM: Room = {
    let mut room = [0; LOGS];
    (room[Q.0 as usize], room[M.0 as usize], room[WIDE.0 as usize]) = (8, 8, 48);
    room
};

pub fn open(disk: &Disk) -> Result<OpenedLogs<TestDirectory>, StoreError> {
    DiskLogs::open_in(disk.directory(), IDENTITY, ROOM, FEW)
}

/// How many calls were done to these logs.
pub fn done(logs: &Logs<LogRoom>) -> u128 {
    logs.get(Q).map_or(0, |log| log.high().0)
}

/// The call with this number, from one, in a life of the component.
pub fn call(number: u128, life: u8) -> Vec<Operation> {
    let (value, at) = ([life; 32], CounterValue);
    let append = |log, slot| Operation::Append { log, slot: at(slot), value, nonce: None };
    let previous = [number as u8; 32];
    let mut operations = vec![
        append(Q, number),
        Operation::End { log: Q, nonce: [life; 32] },
        Operation::Advance { log: M, slot: at(3 * number), previous, value, nonce: Some([life; 32]) },
    ];
    if number.is_multiple_of(3) {
        operations.push(Operation::Truncate { log: Q, slot: at(number - 1) });
        operations.push(Operation::Truncate { log: M, slot: at(3 * (number - 1)) });
    }
    let wide = MANY * (number / 6);
    match number % 6 {
        0 => operations.extend((wide - MANY + 1..=wide).map(|slot| append(WIDE, slot))),
        1 if wide > 0 => operations.push(Operation::Truncate { log: WIDE, slot: at(wide) }),
        _ => {}
    }
    operations
}

/// What became of the logs so far.
#[derive(Clone, Debug)]
pub struct Ledger {
    /// After all calls that were answered.
    logs: Logs<LogRoom>,
    /// The call that was not answered when the last life ended: done or not.
    doubtful: Option<Vec<Operation>>,
    lives: u8,
    /// How often the disk had no space.
    pub refused: u32,
    /// What was done to the disk, with its seed; every failure prints it.
    pub context: String,
}

impl Ledger {
    pub fn new() -> Self {
        let logs = Logs::new(IDENTITY, log_room(ROOM));
        Self { logs, doubtful: None, lives: 0, refused: 0, context: String::new() }
    }

    /// How many calls were answered.
    pub fn answered(&self) -> u128 {
        done(&self.logs)
    }

    fn enter(&mut self, operations: &[Operation]) {
        self.logs = self.logs.clone().replay(operations).expect("it was done");
    }

    /// Lives one life of a component: holds what was resumed against all that was answered before, makes up to
    /// so many calls, and ends where the disk fails.
    pub fn live<D: Directory>(&mut self, opened: OpenedLogs<D>, calls: u128) {
        self.lives += 1;
        if let Some(doubtful) = self.doubtful.take()
            && done(&opened.logs) == self.answered() + 1
        {
            self.enter(&doubtful);
        }
        assert_eq!(opened.logs, self.logs, "other logs were resumed; {}", self.context);
        let component = A2m::restart(IDENTITY, mac(), opened.store, opened.logs);
        let mut component = component.expect("its own logs");
        let first = self.answered() + 1;
        for number in first..first + calls {
            let operations = call(number, self.lives);
            let mut answered = component.call(&operations, |_| ());
            let mut asked = operations;
            if answered == Err(LogRefusal::NoSpace) {
                // Asked again for something else: what found no space must not come back.
                self.refused += 1;
                asked = call(number, self.lives ^ 0x80);
                answered = component.call(&asked, |_| ());
            }
            match answered {
                Ok(()) => self.enter(&asked),
                Err(LogRefusal::Halted) => {
                    self.doubtful = Some(asked);
                    return;
                }
                Err(LogRefusal::NoSpace) => return,
                Err(refused) => panic!("call {number} was refused: {refused:?}; {}", self.context),
            }
        }
    }
}

/// A disk on which so many calls were done, and its store closed.
pub fn filled(calls: u128) -> Disk {
    let disk = Disk::new();
    let mut ledger = Ledger::new();
    ledger.live(open(&disk).expect("an empty disk"), calls);
    assert_eq!(ledger.answered(), calls);
    disk
}

/// The name of the only store file.
pub fn store_file(disk: &Disk) -> String {
    let files: Vec<String> = disk.names().into_iter().filter(|name| name.starts_with("logs-")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}
