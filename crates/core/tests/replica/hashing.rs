//! Checkpoints are worked on in slices, a few at each reading of the clock: a turn that takes in a hundred messages
//! with one reading must not hash a hundred times, and what is left must be gone on with.

use crate::stubs::{Installer, Wanting};
use troth_core::{Env, Input, Machine as _, Output, Replica, ReplicaTimer};
use troth_types::{Group, GroupId, ReplicaId, Time};

type Hasher = Replica<Wanting, Installer>;

/// Has the replica take in so many timers at one reading of the clock; gives the slices of that, and when it wants to
/// go on.
fn turn(replica: &mut Hasher, now: u64, inputs: usize) -> (u32, Option<u64>) {
    let (before, mut next) = (replica.execution().slices, None);
    for _ in 0..inputs {
        let mut out = Vec::new();
        let env = Env { now: Time(now), wall: Time(now) };
        replica.input(env, Input::Timer(ReplicaTimer::Protocol(())), &mut out);
        for output in out {
            if let Output::SetTimer { timer: ReplicaTimer::Hashing, at } = output {
                next = Some(at.0);
            }
        }
    }
    (replica.execution().slices - before, next)
}

#[test]
fn a_turn_of_many_messages_hashes_a_few_slices_and_goes_on_in_the_next() {
    let group = Group::hybrid(GroupId([1; 16]), 3).unwrap();
    let agreement = Wanting { sources: Vec::new(), newer: 0, installed: Vec::new() };
    let mut endless = Installer::default();
    endless.endless = true;
    let mut replica = Hasher::new(ReplicaId(0), group, agreement, endless);
    assert_eq!(turn(&mut replica, 1_000, 1), (1, Some(1_000)), "it goes on at once");
    assert_eq!(turn(&mut replica, 2_000, 100), (2, Some(2_001)), "and not before the clock was read again");
    assert_eq!(turn(&mut replica, 2_001, 100), (2, Some(2_002)));
    let idle = Installer::default();
    let agreement = Wanting { sources: Vec::new(), newer: 0, installed: Vec::new() };
    let mut replica = Hasher::new(ReplicaId(0), group, agreement, idle);
    assert_eq!(turn(&mut replica, 1_000, 1), (1, None), "nothing is left");
}
