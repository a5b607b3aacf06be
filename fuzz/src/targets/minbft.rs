//! A replica among two that certify anything. It may come to a halt or to a wrong result, being one of three with
//! two faulty ones, but never to a crash, and it starts again from what it kept.

use crate::bytes::Steps;
use crate::world::World;
use crate::{Bound, Target, samples};
use troth_core::PeerMessage;
use troth_minbft::Message;
use troth_types::{ReplicaId, Wire};

pub(super) const TARGET: Target = Target {
    name: "minbft",
    run,
    seeds,
    // The replica, its log and every message that was certified.
    bound: Bound { fixed: 4 << 20, per_byte: 16 << 10 },
    longest: 4096,
};

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    let mut world = World::new(ReplicaId(u16::from(steps.byte() % 3)));
    for _ in 0..120 {
        if steps.is_over() {
            break;
        }
        world.step(&mut steps);
    }
}

/// A request with an operation that the service knows.
pub(super) const REQUEST: &[u8] = &[0, 0, 0, 0, 8, 0, 3, 0, 0, 0, b'k', b'e', b'y', 0];
/// As the primary of view 0: a PREPARE of the next number with one frame.
pub(super) const PREPARE: &[u8] = &[0, 8, 5, 1, 1, 0, 1, 0, 1];
/// A COMMIT to a PREPARE.
pub(super) const COMMIT: &[u8] = &[1, 10, 0, 0, 0, 1];

fn seeds() -> Vec<Vec<u8>> {
    // Both wish for the next view, time passes, and a faulty replica shows an honest VIEW-CHANGE.
    let wish = [&[0, 4, 0, 1][..], &[1, 4, 0, 1], &[0, 2, 255, 255]].concat();
    let change = [1, 13, 1, 1, 1, 1, 0, 1];
    let new_view = [1, 14, 0, 0, 0, 0, 1, 0, 1, 0, 1];
    let mut seeds = vec![
        [&[1][..], REQUEST, PREPARE, COMMIT, &[0, 2, 0, 4, 0, 6]].concat(),
        [&[0][..], REQUEST, COMMIT, COMMIT, &[0, 6]].concat(),
        [&[1][..], REQUEST, &wish, &change, &change, &new_view, &[0, 15, 0, 0, 0, 1]].concat(),
        [&[2][..], REQUEST, &wish, &change, &new_view, &[0, 3, 0], &[0, 6]].concat(),
        [&[1][..], &[0, 12, 0, 0, 1, 0, 1], &[1, 12, 0, 0, 1, 0, 1], &[0, 4, 2, 2, 0, 0]].concat(),
    ];
    let status = PeerMessage::Protocol(Message::Status(samples::status())).to_wire();
    let length = u8::try_from(status.len()).expect("short");
    seeds.push([&[1, 0, 5, length][..], &status].concat());
    seeds
}
