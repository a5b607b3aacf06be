//! The stored form, restarts and epochs.

use super::*;
use sha2::{Digest as _, Sha256};
use troth_trusted::a2m::{LogRefusal, Logs, Unfit, Unreadable};
use troth_trusted::{Epoch, Identity, NotOurState, StoreFailed};

const HEAD: usize = 14 + 1 + 26;

fn bytes(logs: &Logs<Vec<Entry>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    logs.write(|part| bytes.extend(part));
    bytes
}

fn sealed(mut body: Vec<u8>) -> Vec<u8> {
    let checksum = Sha256::digest(&body);
    body.extend(checksum);
    body
}

fn busy() -> Component {
    let mut a2m = volatile(4);
    done(&mut a2m, &[append(Q, 1, 1), append(Q, 2, 2), advance(Q, 9, [3; 32], 9), truncate(Q, 2)]);
    done(&mut a2m, &[advance(M, u128::MAX, ZERO, 5), truncate(M, 77)]);
    a2m
}

#[test]
fn logs_are_stored_in_this_layout() {
    covers!("A2M-S2");
    let a2m = busy();
    let mut expected = b"troth-a2m-logs".to_vec();
    expected.push(1);
    expected.extend(IDENTITY.group);
    expected.extend(IDENTITY.replica.to_be_bytes());
    expected.extend(IDENTITY.epoch.0.to_be_bytes());
    assert_eq!(expected.len(), HEAD);
    for log in 0..16 {
        let (low, slots): (u128, &[u128]) = match log {
            0 => (2, &[2, 9]),
            5 => (77, &[u128::MAX]),
            _ => (0, &[]),
        };
        expected.extend(low.to_be_bytes());
        expected.extend((slots.len() as u32).to_be_bytes());
        for (number, entry) in slots.iter().zip(a2m.logs().get(LogId(log)).expect("a log").entries()) {
            expected.extend(number.to_be_bytes());
            expected.extend(entry.value);
            expected.extend(entry.digest);
        }
    }
    assert_eq!(bytes(a2m.logs()), sealed(expected));
    assert_eq!(a2m.logs().written_len(), bytes(a2m.logs()).len());
    assert_eq!(volatile(9).logs().written_len(), HEAD + 16 * 20 + 32);
}

#[test]
fn stored_logs_come_back() {
    covers!("A2M-S2");
    for a2m in [volatile(4), busy()] {
        let read = Logs::read(&bytes(a2m.logs()), room(4)).expect("intact");
        assert_eq!(read, *a2m.logs());
        assert_eq!(read.identity(), IDENTITY);
        assert_eq!(read.get(Q).expect("a log").room(), 4 - read.get(Q).expect("a log").entries().len());
        // Less room will do, as long as it is enough.
        assert_eq!(Logs::read(&bytes(a2m.logs()), room(2)), Ok(read));
    }
    assert_eq!(Logs::read(&bytes(busy().logs()), room(1)), Err(Unreadable::NoRoom(Q)));
    let mut uneven = room(2);
    uneven[5] = Vec::new();
    assert_eq!(Logs::read(&bytes(busy().logs()), uneven), Err(Unreadable::NoRoom(M)));
}

#[test]
fn damaged_logs_do_not() {
    covers!("A2M-S2");
    let good = bytes(busy().logs());
    let read = |bytes: &[u8]| Logs::read(bytes, room(4));
    for bit in 0..8 * good.len() {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(read(&bytes), Err(Unreadable::Damaged), "bit {bit} is not covered");
    }
    for length in 0..good.len() {
        assert_eq!(read(&good[..length]), Err(Unreadable::Damaged), "{length} bytes");
    }
    assert_eq!(read(&[good.clone(), vec![0]].concat()), Err(Unreadable::Damaged));
}

#[test]
fn bytes_with_a_good_checksum_that_are_no_logs_are_refused() {
    covers!("A2M-S2");
    let good = bytes(busy().logs());
    let body = &good[..good.len() - 32];
    let read = |body: &[u8]| Logs::read(&sealed(body.to_vec()), room(4));
    assert!(read(body).is_ok());
    for length in 0..body.len() {
        assert_eq!(read(&body[..length]), Err(Unreadable::Damaged), "{length} bytes");
    }
    assert_eq!(read(&[body, &[0]].concat()), Err(Unreadable::Damaged));
    let with = |at: usize, part: &[u8]| {
        let mut changed = body.to_vec();
        changed[at..at + part.len()].copy_from_slice(part);
        read(&changed)
    };
    assert_eq!(with(0, b"T"), Err(Unreadable::Damaged));
    assert_eq!(with(14, &[2]), Err(Unreadable::Version(2)));
    let (low, first) = (HEAD, HEAD + 20);
    for wrong in [3, 9, 10, u128::MAX] {
        let refused = Err(Unreadable::Damaged);
        assert_eq!(with(low, &u128::to_be_bytes(wrong)), refused, "low mark {wrong} with an entry below it");
    }
    // The low mark of a log that holds nothing.
    assert_eq!(with(low + 20 + 2 * 80, &u128::to_be_bytes(1)), Err(Unreadable::Damaged));
    for wrong in [0, 9, 10] {
        assert_eq!(with(first, &u128::to_be_bytes(wrong)), Err(Unreadable::Damaged), "first slot {wrong}");
    }
    assert_eq!(with(first + 80, &u128::to_be_bytes(2)), Err(Unreadable::Damaged), "a slot twice");
}

#[test]
fn whatever_is_read_would_be_written_so_again() {
    covers!("A2M-S2");
    let good = bytes(busy().logs());
    let body = &good[..good.len() - 32];
    let mut read = 0;
    for bit in 0..8 * body.len() {
        let mut changed = body.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let changed = sealed(changed);
        if let Ok(logs) = Logs::read(&changed, room(4)) {
            assert_eq!(bytes(&logs), changed, "bit {bit}");
            read += 1;
        }
    }
    assert!(read > 8 * 6 * 32, "values and digests may be any: {read}");
}

#[test]
fn a_component_that_starts_again_says_the_same_and_goes_on_the_same() {
    covers!("A2M-S3");
    let mut before = busy();
    let logs = Logs::read(&bytes(before.logs()), room(4)).expect("intact");
    let mut after = A2m::restart(IDENTITY, Certifier::Mac(mac_key()), VolatileStore, logs).expect("its own");
    for operation in [
        lookup(Q, 1),
        lookup(Q, 2),
        lookup(Q, 5),
        end(Q),
        end(M),
        end(LogId(3)),
        append(Q, 3, 1),
        fused(append(Q, 10, 1)),
        advance(M, 1, ZERO, 1),
        truncate(Q, 9),
        end(Q),
    ] {
        assert_eq!(after.one(operation), before.one(operation), "{operation:?}");
    }
    assert_eq!(after.logs(), before.logs());
}

#[test]
fn a_component_starts_again_from_its_own_logs_only() {
    covers!("A2M-S3");
    let logs = busy().logs().clone();
    for other in [
        Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY },
        Identity { replica: 9, ..IDENTITY },
        Identity { group: [0; 16], ..IDENTITY },
    ] {
        let started = A2m::restart(other, Certifier::Mac(mac_key()), VolatileStore, logs.clone());
        assert_eq!(started.map(|_| ()), Err(NotOurState));
    }
}

#[test]
fn an_epoch_begins_with_empty_logs_and_its_attestations_are_its_own() {
    covers!("A2M-S3");
    let next = Identity { epoch: Epoch(IDENTITY.epoch.0 + 1), ..IDENTITY };
    let mut a2m = A2m::start(next, Certifier::Mac(mac_key()), VolatileStore, room(4));
    for log in 0..16 {
        let log = a2m.logs().get(LogId(log)).expect("a log");
        assert_eq!((log.low(), log.high(), log.digest(), log.entries()), (slot(0), slot(0), ZERO, &[][..]));
    }
    let made = attested(&mut a2m, fused(append(Q, 1, 9)));
    let verify =
        |identity: &Identity| made.verify_lookup(&mac_key().verifier(), identity, Q, slot(1), &Z).is_some();
    assert!(verify(&next) && !verify(&IDENTITY));
}

/// A journal of operations behind the whole state at its beginning.
#[derive(Clone, Debug, Default)]
struct Journal {
    base: Vec<u8>,
    since: Vec<Operation>,
}

impl LogStore<Vec<Entry>> for Journal {
    fn store(&mut self, before: &Logs<Vec<Entry>>, operations: &[Operation]) -> Result<(), StoreFailed> {
        if self.base.is_empty() || self.since.len() > 4 {
            self.base = bytes(before);
            self.since.clear();
        }
        self.since.extend(operations.iter().filter(|operation| operation.changes()));
        Ok(())
    }
}

#[test]
fn a_state_and_the_operations_since_then_are_the_state_now() {
    covers!("A2M-S1", "A2M-S2");
    let mut a2m = A2m::start(IDENTITY, Certifier::Mac(mac_key()), Journal::default(), room(3));
    for round in 1..=30 {
        // Every second call fills the log, and the next one makes room: played again as one list, the
        // operations must not be taken for one call.
        let calls = [fused(append(Q, round, round as u8)), advance(M, 10 * round, ZERO, 1), end(Q)];
        a2m.call(&calls, |_| {}).expect("there is room");
        if round > 1 {
            a2m.call(&[truncate(Q, round), truncate(M, 10 * round - 3)], |_| {}).expect("it can be done");
        }
        let journal = a2m.clone().into_store();
        let logs = Logs::read(&journal.base, room(3)).expect("intact");
        assert_eq!(logs.replay(&journal.since).as_ref(), Ok(a2m.logs()), "round {round}");
    }
    let empty = || Logs::new(IDENTITY, room(3));
    assert_eq!(empty().replay(&[append(Q, 2, 1)]), Err(Unfit::Elsewhere { high: slot(0) }));
    assert_eq!(empty().replay(&[end(Q), append(LogId(16), 1, 1)]), Err(Unfit::NoSuchLog));
    let gap = LogRefusal::Operation { index: 1, why: Unfit::Elsewhere { high: slot(1) } };
    assert_eq!(empty().check(&[append(Q, 1, 1), append(Q, 3, 1)]), Err(gap));
}
