//! A crash at every call with every part of the unsynced bytes left: what was synced is there, in order,
//! nothing else but what was appended next, and a base is all or nothing, as is a place that the log begins at.

use super::{open, record, records};
use crate::{FaultyDisk, Log, LogError, MemoryDisk, Recovered, Tear};
use bytes::Bytes;

/// What a log may hold after a crash: on this base these records, of which so many are durable.
#[derive(Clone, Debug, Default)]
struct Generation {
    base: Option<u64>,
    appended: Vec<Bytes>,
    durable: usize,
    /// How many survive the end of the process.
    flushed: usize,
}

impl Generation {
    fn allows(&self, held: &Recovered) -> bool {
        self.base == held.base
            && held.records.len() >= self.durable
            && held.records.len() <= self.appended.len()
            && held.records == self.appended[..held.records.len()]
    }
}

/// What was asked of a log so far.
#[derive(Clone, Debug, Default)]
struct Model {
    /// What the last completed sync left in force.
    now: Generation,
    /// What the sync under way, or the next one, puts in force instead.
    fresh: Option<Generation>,
    /// The records of `now` before the place that was noted.
    place: usize,
    /// What is in force with a stand that was appended, whose own bytes come behind what it holds as durable.
    stand: Option<Generation>,
    stand_flushed: bool,
}

impl Model {
    /// A log that was never synced may also not exist; a base is in force only with all that came before
    /// its sync.
    fn allows(&self, held: &Recovered) -> bool {
        let whole = self
            .fresh
            .as_ref()
            .is_some_and(|fresh| fresh.base == held.base && fresh.appended == held.records);
        whole || self.now.allows(held) || self.stand.as_ref().is_some_and(|stand| stand.allows(held))
    }

    /// The fresh base, or the stand, is in force.
    fn synced(&mut self) {
        if let Some(next) = self.fresh.take().or(self.stand.take()) {
            self.now = next;
        }
        (self.stand, self.stand_flushed) = (None, false);
        self.now.durable = self.now.appended.len();
        self.now.flushed = self.now.durable;
    }

    fn last(&mut self) -> &mut Generation {
        self.fresh.as_mut().or(self.stand.as_mut()).unwrap_or(&mut self.now)
    }

    /// The process ends, and the machine does not.
    fn process_ends(&mut self) {
        self.now.durable = self.now.flushed;
        if self.stand_flushed
            && let Some(stand) = self.stand.take()
        {
            self.now = Generation { durable: stand.flushed, ..stand };
        }
    }
}

type Disk = FaultyDisk<MemoryDisk>;

enum Act {
    Append(u64),
    Flush,
    Sync,
    Housekeep,
    Base(u64, Vec<u64>),
    Place,
    StandOn(u64),
}

fn act(log: &mut Log<Disk>, model: &mut Model, act: &Act) -> Result<(), LogError> {
    match act {
        Act::Append(number) => {
            model.last().appended.push(record(*number));
            log.append(&record(*number))
        }
        Act::Flush => {
            log.flush()?;
            if model.fresh.is_none() {
                let last = model.last();
                last.flushed = last.appended.len();
                model.stand_flushed = model.stand.is_some();
            }
            Ok(())
        }
        Act::Housekeep => log.housekeep(),
        Act::Base(base, carried) => {
            let carried = records(carried.iter().copied());
            model.fresh =
                Some(Generation { base: Some(*base), appended: carried.clone(), ..Generation::default() });
            log.begin_base(*base, &carried)
        }
        Act::Place => {
            log.place()?;
            if model.fresh.is_some() {
                model.synced();
            }
            model.place = model.now.appended.len();
            Ok(())
        }
        Act::StandOn(base) => {
            let appended = model.now.appended[model.place..].to_vec();
            let (durable, flushed) = (appended.len(), 0);
            model.stand = Some(Generation { base: Some(*base), appended, durable, flushed });
            model.stand_flushed = false;
            log.stand_on(*base)
        }
        Act::Sync => {
            log.sync()?;
            model.synced();
            Ok(())
        }
    }
}

/// Everything a log does, more than once.
fn script() -> Vec<Act> {
    let mut acts = Vec::new();
    let mut next = 0;
    let mut group = |acts: &mut Vec<Act>, size| {
        for _ in 0..size {
            acts.push(Act::Append(next));
            next += 1;
        }
    };
    for round in 0..6 {
        group(&mut acts, 1 + round % 3);
        acts.push(Act::Flush);
        group(&mut acts, round % 2);
        acts.push(Act::Flush);
        acts.push(Act::Sync);
        if round % 2 == 1 {
            acts.push(Act::Housekeep);
        }
    }
    acts.push(Act::Base(40, vec![3, 5]));
    group(&mut acts, 2);
    acts.push(Act::Flush);
    acts.push(Act::Sync);
    group(&mut acts, 2);
    acts.push(Act::Flush);
    acts.push(Act::Base(60, (10..30).collect()));
    acts.push(Act::Sync);
    acts.push(Act::Housekeep);
    for round in 0..16 {
        group(&mut acts, 2);
        acts.push(Act::Sync);
        if round % 3 == 0 {
            acts.push(Act::Housekeep);
        }
    }
    // A place that segments lie behind, one in the very segment, and one behind which nothing came.
    for (base, between, behind) in [(70, 30, 2), (80, 2, 0), (90, 0, 3)] {
        acts.push(Act::Place);
        for number in 0..between {
            group(&mut acts, 1);
            acts.push(if number % 4 == 3 { Act::Sync } else { Act::Flush });
        }
        acts.push(Act::StandOn(base));
        group(&mut acts, behind);
        acts.push(Act::Flush);
        acts.push(Act::Sync);
        acts.push(Act::Housekeep);
        group(&mut acts, 1);
        acts.push(Act::Sync);
    }
    // A base that comes before the stand is durable, and a place before the base is.
    acts.push(Act::Place);
    group(&mut acts, 2);
    acts.push(Act::StandOn(100));
    acts.push(Act::Flush);
    acts.push(Act::Base(110, vec![4, 6]));
    group(&mut acts, 1);
    acts.push(Act::Place);
    group(&mut acts, 2);
    acts.push(Act::StandOn(120));
    acts.push(Act::Sync);
    acts.push(Act::Housekeep);
    group(&mut acts, 3);
    acts.push(Act::Flush);
    acts
}

/// Runs the script until the crash; gives back what may be found.
fn run(disk: &Disk) -> Model {
    let mut model = Model::default();
    let Ok((mut log, held)) = open(disk) else { return model };
    assert!(model.allows(&held));
    for step in script() {
        if act(&mut log, &mut model, &step).is_err() {
            assert!(disk.is_dead(), "only the crash stops it");
            break;
        }
    }
    model
}

/// Opens what the crash left, judges it, and shows that the log goes on.
fn judge(below: &MemoryDisk, model: &Model, context: &str) {
    let (mut log, held) = open(below).unwrap_or_else(|why| panic!("{context}: {why}"));
    assert!(model.allows(&held), "{context}: {held:?} after {model:?}");
    for number in [900, 901] {
        log.append(&record(number)).unwrap();
        log.sync().unwrap();
    }
    drop(log);
    let (_, again) = open(below).unwrap_or_else(|why| panic!("{context}, the second time: {why}"));
    let mut all = held.records;
    all.extend(records([900, 901]));
    assert_eq!((again.base, again.records, again.cut), (held.base, all, None), "{context}");
}

/// The number of calls of the whole script.
fn calls() -> u64 {
    let disk = FaultyDisk::new(MemoryDisk::default()).unwrap();
    run(&disk);
    disk.calls()
}

fn crashed_at(call: u64) -> (Disk, MemoryDisk, Model) {
    let below = MemoryDisk::default();
    let disk = FaultyDisk::new(below.clone()).unwrap();
    disk.crash_at(call);
    let model = run(&disk);
    (disk, below, model)
}

#[test]
fn every_crash_with_every_prefix_of_the_unsynced_bytes() {
    let calls = calls();
    assert!(calls >= 100, "the script does something: {calls}");
    let mut cases = 0;
    for call in 1..=calls {
        let unsynced = crashed_at(call).0.unsynced();
        for left in 0..=unsynced {
            let (disk, below, model) = crashed_at(call);
            disk.kill(Tear::Prefix(left)).unwrap();
            judge(&below, &model, &format!("call {call}, {left} of {unsynced} bytes"));
            cases += 1;
        }
    }
    assert!(cases > 5_000, "{cases} cases");
}

#[test]
fn every_crash_with_random_parts_of_the_unsynced_writes() {
    for call in 1..=calls() {
        for seed in 0..60 {
            let (disk, below, model) = crashed_at(call);
            disk.kill(Tear::Random(call * 1_000 + seed)).unwrap();
            judge(&below, &model, &format!("call {call}, seed {}", call * 1_000 + seed));
        }
    }
}

#[test]
fn every_crash_of_the_process_alone_keeps_what_was_flushed() {
    for call in 1..=calls() {
        let (disk, below, mut model) = crashed_at(call);
        disk.kill(Tear::Everything).unwrap();
        model.process_ends();
        judge(&below, &model, &format!("call {call}"));
    }
}

#[test]
fn what_opening_returns_is_durable_though_the_process_before_had_only_written_it() {
    for call in 1..=calls() {
        for tear in [Tear::Nothing, Tear::Random(call)] {
            let (disk, below, model) = crashed_at(call);
            disk.restart();
            let (log, held) = open(&disk).unwrap();
            assert!(model.allows(&held), "call {call}: {held:?} after {model:?}");
            drop(log);
            disk.kill(tear).unwrap();
            let (_, again) = open(&below).unwrap_or_else(|why| panic!("call {call}, {tear:?}: {why}"));
            assert_eq!((again.base, again.records), (held.base, held.records), "call {call}, {tear:?}");
        }
    }
}

#[test]
fn a_crash_while_a_crashed_log_is_opened() {
    for call in 1..=calls() {
        for seed in 0..4 {
            let (disk, first, model) = crashed_at(call);
            disk.kill(Tear::Random(seed)).unwrap();
            for open_call in 1.. {
                let below = first.copy();
                let disk = FaultyDisk::new(below.clone()).unwrap();
                disk.crash_at(open_call);
                let context = format!("call {call}, seed {seed}, call {open_call} of opening");
                let opened = match open(&disk) {
                    Ok((_, held)) => {
                        assert!(model.allows(&held), "{context}: {held:?} after {model:?}");
                        Some(held)
                    }
                    Err(_) => None,
                };
                let done = !disk.is_dead();
                disk.kill(Tear::Random(seed ^ 0xff)).unwrap();
                if let Some(held) = opened {
                    // What opening returned is durable.
                    assert_eq!(open(&below).unwrap().1.records, held.records, "{context}");
                }
                judge(&below, &model, &context);
                if done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_sync_that_is_skipped_is_caught_by_these_tests() {
    // The same judgement on a log whose sync only writes: the tests above would not pass.
    let mut lost = 0;
    for seed in 0..200 {
        let below = MemoryDisk::default();
        let disk = FaultyDisk::new(below.clone()).unwrap();
        let mut model = Model::default();
        let (mut log, _) = open(&disk).unwrap();
        for number in 0..5 {
            act(&mut log, &mut model, &Act::Append(number)).unwrap();
            log.flush().unwrap();
            model.now.durable = model.now.appended.len();
        }
        disk.kill(Tear::Random(seed)).unwrap();
        let held = open(&below).map(|(_, held)| held);
        lost += u32::from(!held.is_ok_and(|held| model.allows(&held)));
    }
    assert!(lost > 50, "{lost} of 200 losses were seen");
}
