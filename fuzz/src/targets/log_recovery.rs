//! Starting a replica from a log that says anything: records that were damaged, left out, repeated or moved, and
//! records that nobody wrote. It starts or it says why not.

use super::minbft::{COMMIT, PREPARE, REQUEST};
use crate::bytes::{Steps, damage};
use crate::world::{App, Kept, World};
use crate::{Bound, Target, samples};
use bytes::Bytes;
use troth_core::settle_slots;
use troth_trusted::a2m::{A2m, LOGS};
use troth_trusted::{Certifier, Epoch, Identity, MacKey, VolatileStore};
use troth_trusted_host::{InProcessLogs, TrustedLogs, log_room};
use troth_types::{GroupId, ReplicaId, Wire};

pub(super) const TARGET: Target = Target {
    name: "log-recovery",
    run,
    seeds,
    bound: Bound { fixed: 4 << 20, per_byte: 16 << 10 },
    longest: 4096,
};

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let mut world = World::new(ReplicaId(u16::from(steps.byte() % 3)));
    for _ in 0..steps.byte() % 32 {
        world.step(&mut steps);
    }
    let mut kept = world.kept.clone();
    change(&mut steps, &mut kept);
    // What a component with logs would be asked first.
    let (me, group) = (ReplicaId(0), GroupId([7; 16]));
    let identity = Identity { group: group.0, replica: me.0, epoch: Epoch(1) };
    let certifier = Certifier::Mac(MacKey::new(&[9; 32]));
    let mut logs = InProcessLogs::new(A2m::start(identity, certifier, VolatileStore, log_room([4; LOGS])));
    let _ = settle_slots::<App>(&kept.log, me, group, |operations| logs.call(operations));
    if world.restart(kept).is_ok() {
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

fn seeds() -> Vec<Vec<u8>> {
    let run = [REQUEST, PREPARE, COMMIT].concat();
    let mut seeds = vec![
        [&[1, 3][..], &run, &[0, 1, 5, 3, 0, 1]].concat(),
        [&[1, 3][..], &run, &[1, 0, 2, 1, 3, 2]].concat(),
    ];
    for record in samples::log_records() {
        let bytes = record.to_wire();
        if let Ok(length) = u8::try_from(bytes.len()) {
            seeds.push([&[1, 0, 0, 0, 0, length][..], &bytes].concat());
        }
    }
    seeds
}
