//! A2M-PBFT-EA: a replica among two whose components attest anything, or two correct ones with one that does.

use super::log_recovery;
use super::machines::{ANOTHER, ARRIVES, LATER, Machine, REQUEST, RESTART, THIRD, machine};
use crate::world::{Auth, World};
use troth_a2m_pbft_ea::A2mPbftEa;

pub(super) const MACHINE: Machine =
    machine::<A2mPbftEa>("a2m-pbft-ea", "log-recovery-a2m-pbft-ea", seeds, || {
        let run = [REQUEST, AGREES, LEAVE, START].concat();
        let longer = [&run[..], ANOTHER, AGREES_AGAIN, AGREES_ON, AGREES_ON, VOUCHES].concat();
        log_recovery::seeds::<A2mPbftEa>(World::<A2mPbftEa>::cast(2, Auth::Signed, false), &run, 4, &longer)
    });

/// In view 0 the next batch, of one frame, with the votes of both.
const AGREES: &[u8] = &[0, 15, 1, 0, 1, 1, 0, 1, 1, 1];
/// The same with the third frame.
const AGREES_ON_THIRD: &[u8] = &[0, 15, 1, 2, 1, 1, 0, 1, 1, 1];
/// The same in view 1, whose start both commit to.
const AGREES_AGAIN: &[u8] = &[0, 15, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1];
/// The same where they have committed to it.
const AGREES_ON: &[u8] = &[0, 15, 1, 0, 1, 1, 0, 1, 1, 1];
/// Both vouch for the state that there is at the fourth batch, and for their histories.
const VOUCHES: &[u8] = &[0, 12, 1, 1, 0, 0, 1, 0, 1];
/// Both want the next view.
const WANT: &[u8] = &[0, 11, 1, 5, 0, 1, 1];
/// Both abandon this view and show it.
const LEAVE: &[u8] = &[0, 13, 1, 0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1];
/// The new primary begins it.
const START: &[u8] = &[0, 14, 0, 1, 1, 1, 1];

fn seeds() -> Vec<Vec<u8>> {
    let alone = |me| [World::<A2mPbftEa>::cast(me, Auth::Signed, false)];
    let together = |faulty| [World::<A2mPbftEa>::cast(faulty, Auth::Signed, true)];
    let batches = [REQUEST, AGREES, ANOTHER, AGREES, AGREES, AGREES].concat();
    vec![
        [&alone(2)[..], &batches, VOUCHES, THIRD, AGREES_ON_THIRD, RESTART, AGREES, &[0, 2, 0, 20]].concat(),
        [&alone(2)[..], REQUEST, AGREES, LEAVE, START, ANOTHER, AGREES_AGAIN, RESTART, AGREES_ON].concat(),
        // As primary it proposes, and begins a view.
        [&alone(0)[..], REQUEST, &[0, 10, 0, 0, 0, 1, 1], &[0, 10, 1, 0, 0, 1, 1]].concat(),
        [&alone(1)[..], REQUEST, AGREES, WANT, LEAVE, ANOTHER, &[0, 2, 255, 255], RESTART].concat(),
        // It asks for what it lacks, and is behind.
        [
            &alone(2)[..],
            REQUEST,
            VOUCHES,
            &[0, 2, 255, 255],
            &[0, 7, 0, 3, 1, 1, 0, 0],
            &[0, 4, 0, 1, 1, 1, 1, 0, 0, 1],
        ]
        .concat(),
        [
            &alone(1)[..],
            &[0, 1, 0, 0, 2, 5, 0, 0, 0, 0, 0],
            REQUEST,
            AGREES,
            &[0, 1, 0, 0, 4],
            &[0, 4, 4, 1, 1],
        ]
        .concat(),
        [&together(2)[..], REQUEST, ARRIVES, ARRIVES, ANOTHER, ARRIVES, LATER, &[248, 6, 1], ARRIVES]
            .concat(),
        [&together(0)[..], REQUEST, ARRIVES, LATER, ARRIVES, LATER, ARRIVES, ANOTHER, ARRIVES, LATER]
            .concat(),
        [&together(2)[..], REQUEST, ARRIVES, &[248, 11, 1, 5, 0, 1, 0], LATER, LATER, &[248, 6, 0], ARRIVES]
            .concat(),
    ]
}
