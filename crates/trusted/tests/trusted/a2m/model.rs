//! Random calls, restarts and failing writes against a model that knows every slot by itself.
//!
//! Goal: no slot is ever attested in two ways, and every answer is the model's, whatever is asked, refused,
//! lost in a crash or kept in one.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use troth_trusted::StoreFailed;
use troth_trusted::a2m::{LogRefusal, Logs, Request, Unfit, chained, jumped};

const CAPACITY: usize = 6;
const CALLS: usize = 400;
/// The logs that calls are about; the last one does not exist.
const USED: [LogId; 3] = [Q, M, LogId(16)];

/// SplitMix64: every run of the test sees the same numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// An operation that is often possible and often not.
    fn operation(&mut self, model: &Model) -> Operation {
        let log = match self.below(32) {
            0 => USED[2],
            other => USED[other as usize % 2],
        };
        let high = model.logs.get(&log).map_or(0, |log| log.high);
        let near = (high + u128::from(self.below(6))).saturating_sub(u128::from(self.below(4)));
        let nonce = (self.below(2) == 0).then_some([self.below(256) as u8; 32]);
        let value = [self.below(256) as u8; 32];
        match self.below(10) {
            0..=2 => {
                let number = if self.below(6) == 0 { near } else { high + 1 };
                Operation::Append { log, slot: slot(number), value, nonce }
            }
            3 | 4 => Operation::Advance {
                log,
                slot: slot(near),
                previous: [self.below(256) as u8; 32],
                value,
                nonce,
            },
            5 | 6 => Operation::Truncate { log, slot: slot(near.saturating_sub(u128::from(self.below(4)))) },
            7 => Operation::Lookup { log, slot: slot(u128::from(self.below(near as u64 + 3))), nonce: value },
            8 => Operation::LookupFor {
                log,
                slot: slot(u128::from(self.below(near as u64 + 3))),
                nonce: value,
                peer: [self.below(3) as u8; 32],
            },
            _ => Operation::End { log, nonce: value },
        }
    }
}

/// What became of one slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Assigned(Digest, Digest),
    SkippedTo(u128),
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct ModelLog {
    low: u128,
    high: u128,
    /// Every slot that was ever filled or skipped, forgotten ones too.
    slots: BTreeMap<u128, Fate>,
}

impl ModelLog {
    fn kept(&self) -> usize {
        self.slots.range(self.low..).filter(|(_, fate)| matches!(fate, Fate::Assigned(..))).count()
    }

    fn digest(&self) -> Digest {
        match self.slots.get(&self.high) {
            Some(Fate::Assigned(_, digest)) => *digest,
            _ => ZERO,
        }
    }

    fn content(&self, number: u128) -> Content {
        if number == 0 || number < self.low {
            return Content::Forgotten { low: slot(self.low) };
        }
        match self.slots.get(&number) {
            None => Content::Unassigned { high: slot(self.high) },
            Some(&Fate::Assigned(value, digest)) => Content::Assigned { value, digest },
            Some(&Fate::SkippedTo(end)) => match self.slots[&end] {
                Fate::Assigned(value, digest) => Content::Skipped { end: slot(end), value, digest },
                Fate::SkippedTo(_) => panic!("the end of a skipped range is filled"),
            },
        }
    }

    fn fill(&mut self, number: u128, value: Digest, digest: Digest) {
        for skipped in self.high + 1..number {
            assert_eq!(self.slots.insert(skipped, Fate::SkippedTo(number)), None, "skipped twice");
        }
        let fate = Fate::Assigned(value, digest);
        assert_eq!(self.slots.insert(number, fate), None, "filled twice");
        self.high = number;
    }
}

/// What was answered, without the proof.
type Seen = Option<(Request, LogId, u128, Nonce, Content)>;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Model {
    logs: BTreeMap<LogId, ModelLog>,
}

impl Model {
    fn new() -> Self {
        Self { logs: (0..16).map(|log| (LogId(log), ModelLog::default())).collect() }
    }

    fn call(&mut self, operations: &[Operation]) -> Result<Vec<Seen>, LogRefusal> {
        let mut next = self.clone();
        let mut room: BTreeMap<_, _> =
            self.logs.iter().map(|(id, log)| (*id, CAPACITY - log.kept())).collect();
        let mut answers = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            let answer = next.one(operation, &mut room);
            answers.push(answer.map_err(|why| LogRefusal::Operation { index, why })?);
        }
        *self = next;
        Ok(answers)
    }

    fn one(&mut self, operation: &Operation, room: &mut BTreeMap<LogId, usize>) -> Result<Seen, Unfit> {
        let id = operation.log();
        let (log, room) = match (self.logs.get_mut(&id), room.get_mut(&id)) {
            (Some(log), Some(room)) => (log, room),
            _ => return Err(Unfit::NoSuchLog),
        };
        let high = slot(log.high);
        let mut take_room = || {
            *room = room.checked_sub(1).ok_or(Unfit::Full)?;
            Ok(())
        };
        let looked =
            |log: &ModelLog, request, number, nonce| Some((request, id, number, nonce, log.content(number)));
        match *operation {
            Operation::Append { slot, value, nonce, .. } => {
                if slot.0 != log.high + 1 {
                    return Err(Unfit::Elsewhere { high });
                }
                take_room()?;
                let digest = chained(slot, &value, &log.digest());
                log.fill(slot.0, value, digest);
                Ok(nonce.and_then(|nonce| looked(log, Request::Lookup, slot.0, nonce)))
            }
            Operation::Advance { slot, previous, value, nonce, .. } => {
                if slot <= high {
                    return Err(Unfit::NotAhead { high });
                }
                take_room()?;
                let link = if log.high == 0 { chained } else { jumped };
                log.fill(slot.0, value, link(slot, &value, &previous));
                Ok(nonce.and_then(|nonce| looked(log, Request::Lookup, slot.0, nonce)))
            }
            Operation::Truncate { slot: CounterValue(number), .. } => {
                if number <= log.low || number > log.high {
                    return Err(Unfit::OutsideLog { low: slot(log.low), high });
                }
                log.low = number;
                Ok(None)
            }
            Operation::Lookup { slot, nonce, .. } | Operation::LookupFor { slot, nonce, .. } => {
                Ok(looked(log, Request::Lookup, slot.0, nonce))
            }
            Operation::End { nonce, .. } => Ok(looked(log, Request::End, log.high, nonce)),
        }
    }
}

fn seen(answer: &Answer) -> Seen {
    match answer {
        Answer::Done => None,
        Answer::Attested(Attestation { claim, .. }) => {
            Some((claim.request, claim.log, claim.slot.0, claim.nonce, claim.content))
        }
    }
}

/// What was ever attested of slots that are filled or skipped, and whether it was said again otherwise.
#[derive(Default)]
struct Witness(BTreeMap<(LogId, u128), Content>);

impl Witness {
    fn hears(&mut self, seen: &Seen) {
        if let Some((_, log, number, _, content @ (Content::Assigned { .. } | Content::Skipped { .. }))) =
            *seen
        {
            let before = *self.0.entry((log, number)).or_insert(content);
            assert_eq!(before, content, "two stories of slot {number} of {log:?}");
        }
    }
}

/// How a write goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Write {
    Works,
    NoSpace,
    FailsLost,
    FailsKept,
}

/// What a disk holds: a state, and the changes since then.
#[derive(Debug)]
struct Held {
    base: Vec<u8>,
    since: Vec<Operation>,
    next_write: Write,
}

/// A disk that outlives the component.
#[derive(Clone, Debug)]
struct Disk(Rc<RefCell<Held>>);

fn written(logs: &Logs<Vec<Entry>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    logs.write(|part| bytes.extend(part));
    bytes
}

impl Disk {
    fn empty() -> Self {
        let base = written(&Logs::new(IDENTITY, room(CAPACITY)));
        Self(Rc::new(RefCell::new(Held { base, since: Vec::new(), next_write: Write::Works })))
    }

    /// The component as it starts from this disk, which works again.
    fn started(&self) -> Component<Disk> {
        let mut held = self.0.borrow_mut();
        held.next_write = Write::Works;
        let logs = Logs::read(&held.base, room(CAPACITY)).expect("intact");
        let logs = logs.replay(&held.since).expect("what was stored follows");
        A2m::restart(IDENTITY, Certifier::Mac(mac_key()), self.clone(), logs).expect("its own logs")
    }
}

impl LogStore<Vec<Entry>> for Disk {
    fn store(&mut self, before: &Logs<Vec<Entry>>, operations: &[Operation]) -> Result<(), StoreFailed> {
        let mut held = self.0.borrow_mut();
        if held.next_write == Write::NoSpace {
            return Err(StoreFailed::NoSpace);
        }
        if held.next_write != Write::FailsLost {
            if held.since.len() > 40 {
                (held.base, held.since) = (written(before), Vec::new());
            }
            held.since.extend(operations.iter().filter(|operation| operation.changes()));
        }
        if held.next_write == Write::Works { Ok(()) } else { Err(StoreFailed::Unknown) }
    }
}

/// What is expected of a call whose write goes like this; the model changes as the disk does.
fn expected(model: &mut Model, operations: &[Operation], write: Write) -> Result<Vec<Seen>, LogRefusal> {
    let mut after = model.clone();
    let answers = after.call(operations)?;
    let stored = operations.iter().any(Operation::changes);
    if stored && write == Write::NoSpace {
        return Err(LogRefusal::NoSpace);
    }
    if !stored || write != Write::FailsLost {
        *model = after;
    }
    if stored && write != Write::Works { Err(LogRefusal::Halted) } else { Ok(answers) }
}

/// Plays one sequence and returns how many calls were carried out, refused and lost in a crash.
fn play(seed: u64) -> [u64; 3] {
    let mut random = Random(seed);
    let disk = Disk::empty();
    let (mut component, mut model) = (disk.started(), Model::new());
    let mut witness = Witness::default();
    let mut counts = [0; 3];
    for round in 0..CALLS {
        let length = 1 + random.below(4) * random.below(2);
        let operations: Vec<_> = (0..length).map(|_| random.operation(&model)).collect();
        let write = match random.below(24) {
            0 => Write::NoSpace,
            1 => Write::FailsLost,
            2 => Write::FailsKept,
            _ => Write::Works,
        };
        disk.0.borrow_mut().next_write = write;
        let mut answers = Vec::new();
        let answered = component.call(&operations, |answer| answers.push(seen(&answer)));
        let expected = expected(&mut model, &operations, write);
        if answered.is_err() {
            assert_eq!(answers, [], "seed {seed}, call {round}: answered and refused");
        }
        let answered = answered.map(|()| answers);
        assert_eq!(answered, expected, "seed {seed}, call {round}: {operations:?}, {write:?}");
        match answered {
            Ok(answers) => {
                counts[0] += 1;
                answers.iter().for_each(|answer| witness.hears(answer));
            }
            Err(LogRefusal::Halted) => {
                counts[2] += 1;
                assert_eq!(component.one(end(Q)), Err(LogRefusal::Halted));
                component = disk.started();
            }
            Err(_) => counts[1] += 1,
        }
        for log in [Q, M] {
            for number in 0..=model.logs[&log].high + 2 {
                let is = content(&component, log, number);
                assert_eq!(is, model.logs[&log].content(number), "seed {seed}, call {round}, slot {number}");
            }
        }
        if random.below(16) == 0 {
            component = disk.started();
        }
    }
    counts
}

#[test]
fn random_calls_do_what_the_model_does() {
    covers!(
        "A2M-L1", "A2M-L3", "A2M-L4", "A2M-L5", "A2M-L6", "A2M-C1", "A2M-C2", "A2M-S1", "A2M-S2", "A2M-S3"
    );
    let mut counts = [0; 3];
    for seed in 0..100 {
        for (count, more) in counts.iter_mut().zip(play(seed)) {
            *count += more;
        }
    }
    let [carried_out, refused, lost] = counts;
    assert!(carried_out > 10_000 && refused > 10_000 && lost > 600, "{counts:?}");
}
