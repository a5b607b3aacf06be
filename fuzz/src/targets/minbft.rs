//! MinBFT: a replica among two that certify anything, or two correct ones with one that does. Of three with two faulty
//! ones it may come to a halt or to a wrong result, but never to a crash, and it starts again from what it kept.

use super::log_recovery;
use super::machines::{ARRIVES, LATER, Machine, REQUEST, RESTART, machine};
use crate::samples;
use crate::world::{Auth, World};
use troth_core::PeerMessage;
use troth_minbft::{Message, MinBft};
use troth_types::Wire;

pub(super) const MACHINE: Machine = machine::<MinBft>("minbft", "log-recovery-minbft", seeds, || {
    let run = [REQUEST, PREPARE, COMMIT].concat();
    log_recovery::seeds::<MinBft>(1, &run, 3, &[&run[..], WISHES, CHANGE].concat())
});

/// As the primary of view 0: a PREPARE of the next number with one frame.
const PREPARE: &[u8] = &[0, 8, 5, 1, 1, 0, 1, 0, 1];
/// A COMMIT to a PREPARE.
const COMMIT: &[u8] = &[1, 10, 0, 0, 0, 1];
/// Both wish for the next view, and time passes.
const WISHES: &[u8] = &[0, 4, 0, 1, 1, 4, 0, 1, 0, 2, 255, 255];
/// A faulty replica shows an honest VIEW-CHANGE.
const CHANGE: &[u8] = &[1, 13, 1, 1, 1, 1, 0, 1];
const NEW_VIEW: &[u8] = &[1, 14, 0, 0, 0, 0, 1, 0, 1, 0, 1];

fn seeds() -> Vec<Vec<u8>> {
    let together = World::<MinBft>::cast(2, Auth::Signed, true);
    let mut seeds = vec![
        [&[1][..], REQUEST, PREPARE, COMMIT, &[0, 2, 0, 4], RESTART].concat(),
        [&[0][..], REQUEST, COMMIT, COMMIT, RESTART].concat(),
        [&[1][..], REQUEST, WISHES, CHANGE, CHANGE, NEW_VIEW, &[0, 15, 0, 0, 0, 1]].concat(),
        [&[2][..], REQUEST, WISHES, CHANGE, NEW_VIEW, &[0, 3, 0], RESTART].concat(),
        [&[1][..], &[0, 12, 0, 0, 1, 0, 1], &[1, 12, 0, 0, 1, 0, 1], &[0, 4, 2, 2, 0, 0]].concat(),
        [&[together][..], REQUEST, ARRIVES, ARRIVES, LATER, ARRIVES, &[248, 6, 1], ARRIVES].concat(),
    ];
    let status = PeerMessage::Protocol(Message::Status(samples::status())).to_wire();
    let length = u8::try_from(status.len()).expect("short");
    seeds.push([&[1, 0, 5, length][..], &status].concat());
    seeds
}
