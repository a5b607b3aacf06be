//! The stored form of a component's attested logs. What can be read is written the same way again.

use crate::{Bound, Target};
use sha2::{Digest as _, Sha256};
use troth_trusted::a2m::{LOGS, LogId, Logs, Operation};
use troth_trusted::{CounterValue, Epoch, Identity};
use troth_trusted_host::log_room;

pub(super) const TARGET: Target =
    Target { name: "trusted-logs", run, seeds, bound: Bound::DECODER, longest: 8192 };

/// Entries for which each log has room.
const ROOM: usize = 8;

fn run(input: &[u8]) {
    let _ = Logs::read(input, log_room([ROOM; LOGS]));
    // Damage is noticed by a checksum, which no search finds.
    let mut whole = input.to_vec();
    whole.extend_from_slice(&Sha256::digest(input));
    if let Ok(logs) = Logs::read(&whole, log_room([ROOM; LOGS])) {
        let mut again = Vec::new();
        logs.write(|part| again.extend_from_slice(part));
        assert!(again == whole, "the same logs have more than one stored form");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let identity = Identity { group: [1; 16], replica: 1, epoch: Epoch(1) };
    let log = LogId(0);
    let (value, other) = ([5; 32], [6; 32]);
    let at = CounterValue;
    let histories: [&[Operation]; 3] = [
        &[],
        &[
            Operation::Append { log, slot: at(1), value, nonce: None },
            Operation::Advance { log, slot: at(7), previous: other, value, nonce: None },
        ],
        &[
            Operation::Append { log, slot: at(1), value, nonce: None },
            Operation::Append { log, slot: at(2), value: other, nonce: None },
            Operation::Truncate { log, slot: at(2) },
        ],
    ];
    let stored = |operations: &[Operation]| {
        let logs = Logs::new(identity, log_room([ROOM; LOGS]));
        let logs = logs.replay(operations).expect("the history is one");
        let mut bytes = Vec::new();
        logs.write(|part| bytes.extend_from_slice(part));
        bytes.truncate(bytes.len() - Sha256::output_size());
        bytes
    };
    histories.into_iter().map(stored).collect()
}
