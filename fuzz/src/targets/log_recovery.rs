//! Starting a replica from a log that says anything: records that were damaged, left out, repeated or moved, and
//! records that nobody wrote. It starts, or it says why not, at once or when its component does not go along.

use crate::bytes::{Steps, damage};
use crate::samples;
use crate::world::{Fuzzed, Kept, World};
use bytes::Bytes;
use std::collections::BTreeSet;
use troth_types::Wire;

/// Records of a replica that seeds hold.
const RECORDS: usize = 24;

pub(super) fn run<P: Fuzzed>(input: &[u8]) {
    let mut steps = Steps::new(input);
    let mut world = World::<P>::of_one(steps.byte());
    for _ in 0..steps.byte() % 32 {
        world.step(&mut steps);
    }
    let mut kept = world.kept().clone();
    change(&mut steps, &mut kept);
    world.may_halt = true;
    if world.restart(0, kept).is_ok() {
        for _ in 0..8 {
            world.step(&mut steps);
        }
    }
}

fn change(steps: &mut Steps<'_>, kept: &mut Kept) {
    let log = &mut kept.log;
    for _ in 0..1 + steps.byte() % 4 {
        let at = steps.below(log.len() + 1);
        match steps.byte() % 6 {
            0 => log.insert(at, Bytes::copy_from_slice(steps.chunk())),
            1 => log.truncate(at),
            2 if at < log.len() => drop(log.remove(at)),
            3 if at < log.len() => {
                let record = log[at].clone();
                let to = steps.below(log.len() + 1);
                log.insert(to, record);
            }
            4 => kept.snapshot = None,
            _ if at < log.len() => {
                let mut bytes = log[at].to_vec();
                damage(steps, &mut bytes);
                log[at] = Bytes::from(bytes);
            }
            _ => {}
        }
    }
}

/// Starts after so many steps of a run, with records changed, and starts from the records alone that a replica wrote in
/// a longer run.
pub(super) fn seeds<P: Fuzzed>(cast: u8, run: &[u8], count: u8, longer: &[u8]) -> Vec<Vec<u8>> {
    let mut seeds = vec![
        [&[cast, count][..], run, &[0, 1, 5, 3, 0, 1]].concat(),
        [&[cast, count][..], run, &[1, 0, 2, 1, 3, 2]].concat(),
        [&[cast, count][..], run, &[0, 200, 4]].concat(),
    ];
    let mut world = World::<P>::of_one(cast);
    let mut steps = Steps::new(longer);
    let mut records: BTreeSet<Bytes> = samples::log_records().iter().map(Wire::to_wire).collect();
    let mut own: BTreeSet<Bytes> = BTreeSet::new();
    while !steps.is_over() && own.len() < RECORDS {
        world.step(&mut steps);
        own.extend(world.kept().log.iter().cloned());
    }
    records.extend(own);
    for record in records {
        if let Ok(length) = u8::try_from(record.len()) {
            seeds.push([&[cast, 0, 0, 0, 0, length][..], &record].concat());
        }
    }
    seeds
}
