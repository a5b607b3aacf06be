//! Starting the store of attested logs from files that anybody wrote, and from files that were damaged. The last
//! logs may come back or be refused; other ones must not.

use super::trusted_store::{Memory, only_zeroed};
use crate::bytes::{Steps, damage};
use crate::{Bound, Target};
use troth_trusted::a2m::{LOGS, LogId, LogStore, Logs, Operation};
use troth_trusted::{CounterValue, Epoch, Identity};
use troth_trusted_host::LogRoom;
use troth_trusted_host::store::DiskLogs;

pub(super) const TARGET: Target = Target {
    name: "trusted-log-store",
    run,
    seeds,
    // Two files of a few slots and their bases, and what they are compared with.
    bound: Bound { fixed: 4 << 20, per_byte: 64 },
    longest: 32_768,
};

const ME: Identity = Identity { group: [7; 16], replica: 1, epoch: Epoch(1) };
/// So few slots that a handful of calls needs several files.
const FEW: u32 = 4;
/// Entries for which each log has room.
const ROOM: usize = 8;

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    if steps.one_in(4) { anything(&mut steps) } else { damaged(&mut steps) }
}

fn open(disk: &Memory) -> Option<Logs<LogRoom>> {
    let opened = DiskLogs::open_in(disk.clone(), ME, [ROOM; LOGS], FEW).ok()?;
    drop(opened.store);
    let again = DiskLogs::open_in(disk.clone(), ME, [ROOM; LOGS], FEW).expect("what was opened opens");
    assert_eq!(again.logs, opened.logs, "other logs the second time");
    Some(opened.logs)
}

fn anything(steps: &mut Steps<'_>) {
    let disk = Memory::default();
    let marker = usize::from(steps.byte());
    disk.put("started", steps.take(marker).to_vec());
    let name = format!("logs-{:016x}-{:016x}", steps.byte() % 3, steps.byte() % 3);
    let blocks = 1 + FEW as usize + usize::from(steps.byte() % 3);
    let mut bytes = steps.rest().to_vec();
    // A file of the right length with a beginning of any kind.
    bytes.resize(blocks * 4096, 0);
    disk.put(&name, bytes);
    open(&disk);
}

/// What the logs accept of what the input says, call by call.
fn damaged(steps: &mut Steps<'_>) {
    let disk = Memory::default();
    let opened = DiskLogs::open_in(disk.clone(), ME, [ROOM; LOGS], FEW).expect("an empty directory");
    let (mut store, mut logs) = (opened.store, opened.logs);
    for _ in 0..steps.byte() % 8 {
        let operations: Vec<_> = (0..1 + steps.byte() % 32).map(|_| operation(steps, &logs)).collect();
        // Each was made for the logs as they are before the call, so often only the first can be done.
        let fit = (0..=operations.len()).rev().find(|fit| logs.check(&operations[..*fit]).is_ok());
        let fitting = &operations[..fit.unwrap_or(0)];
        store.store(&logs, fitting).expect("the disk is sound");
        logs = logs.replay(fitting).expect("it was checked");
    }
    drop(store);
    let kept = disk.files();
    for _ in 0..1 + steps.byte() % 2 {
        let files: Vec<(String, Vec<u8>)> = disk.files().into_iter().collect();
        let (name, mut bytes) = steps.one_of(&files).expect("a store has files").clone();
        damage(steps, &mut bytes);
        disk.put(&name, bytes);
    }
    // What no software can find, and says so: the newest records overwritten by zeros.
    let zeroed = only_zeroed(&kept, &disk);
    if let Some(found) = open(&disk)
        && !zeroed
    {
        assert_eq!(found, logs, "other logs than the last were resumed");
    }
}

fn operation(steps: &mut Steps<'_>, logs: &Logs<LogRoom>) -> Operation {
    let log = LogId(u16::from(steps.byte() % 17));
    let high = logs.get(log).map_or(0, |log| log.high().0);
    let value = [steps.byte(); 32];
    let ahead = u128::from(steps.byte() % 4);
    match steps.byte() % 4 {
        0 | 1 => {
            Operation::Append { log, slot: CounterValue(high + 1 + ahead / 2), value, nonce: Some(value) }
        }
        2 => Operation::Advance {
            log,
            slot: CounterValue(high + 1 + ahead),
            previous: value,
            value,
            nonce: None,
        },
        _ => Operation::Truncate { log, slot: CounterValue(high.saturating_sub(ahead)) },
    }
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        [&[0, 8][..], b"TROTHMRK", &[1, 1, 1], b"TROTHLOG"].concat(),
        vec![1, 2, 1, 0, 5, 0, 0, 1, 0, 6, 0, 2, 0, 40, 0, 1],
        vec![1, 7, 0, 0, 5, 0, 0, 0, 1, 6, 3, 2, 0, 0, 7, 0, 0, 0, 0, 8, 1, 3, 1, 40, 16, 0, 1],
    ]
}
