//! PBFT, with frames that are signed, with authenticators, and with everything signed; and A2M-PBFT-E, which orders as
//! it does: a replica among three that say anything, or three correct ones with one that does.

use super::log_recovery;
use super::machines::{ANOTHER, ARRIVES, LATER, Machine, REQUEST, RESTART, THIRD, machine};
use crate::world::{Auth, Fuzzed, World};
use troth_a2m_pbft_e::A2mPbftE;
use troth_pbft::Pbft;

pub(super) const PBFT: Machine = machine::<Pbft>(
    "pbft",
    "log-recovery-pbft",
    || {
        let auths = [Auth::Signed, Auth::Mac, Auth::AllSigned];
        auths.into_iter().flat_map(|auth| seeds::<Pbft>(auth, &VOUCHES)).collect()
    },
    || {
        let auths = [Auth::Signed, Auth::AllSigned];
        auths.into_iter().flat_map(|auth| logs::<Pbft>(auth, &VOUCHES)).collect()
    },
);

pub(super) const A2M_PBFT_E: Machine = machine::<A2mPbftE>(
    "a2m-pbft-e",
    "log-recovery-a2m-pbft-e",
    || seeds::<A2mPbftE>(Auth::Signed, &VOUCHES_WITH_HISTORIES),
    || logs::<A2mPbftE>(Auth::Signed, &VOUCHES_WITH_HISTORIES),
);

/// The next batch, of one frame, with everybody's votes.
const AGREES: &[u8] = &[0, 15, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1];
/// The same with the third frame.
const AGREES_ON_THIRD: &[u8] = &[0, 15, 1, 2, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1];
/// All three vouch for the state that there is at the fourth batch.
const VOUCHES: [u8; 8] = [0, 12, 1, 1, 0, 1, 1, 1];
/// The same with the histories that their components attest.
const VOUCHES_WITH_HISTORIES: [u8; 11] = [0, 12, 1, 1, 0, 0, 1, 0, 1, 0, 1];
/// All three move to the next view.
const LEAVE: &[u8] = &[0, 13, 1, 1, 7, 0, 1, 1, 1];
/// The new primary begins it.
const START: &[u8] = &[0, 14, 0, 1, 1, 1, 1];

/// Where clients may show authenticators, how this one vouches comes before its wish.
fn request(auth: Auth, request: &[u8], how: u8) -> Vec<u8> {
    let (frame, wish) = request.split_at(request.len() - 1);
    let how = if auth == Auth::Mac { vec![how] } else { Vec::new() };
    [frame, &how, wish].concat()
}

fn seeds<P: Fuzzed>(auth: Auth, vouches: &[u8]) -> Vec<Vec<u8>> {
    let alone = |me| [World::<P>::cast(me, auth, false)];
    let together = |faulty| [World::<P>::cast(faulty, auth, true)];
    let (one, other) = (request(auth, REQUEST, 1), request(auth, ANOTHER, 5));
    let third = [request(auth, THIRD, 1), AGREES_ON_THIRD.to_vec()].concat();
    let batches = [&one[..], AGREES, &other, AGREES, AGREES, AGREES].concat();
    vec![
        [&alone(2)[..], &batches, vouches, &third, RESTART, AGREES, &[0, 2, 0, 20]].concat(),
        [&alone(2)[..], &one, AGREES, LEAVE, START, &other, AGREES, RESTART, AGREES].concat(),
        // As primary it proposes, and begins a view.
        [&alone(0)[..], &one, &[0, 10, 0, 0, 0, 1, 0, 1, 0, 1], &[0, 11, 0, 0, 0, 1, 0, 1, 0, 1]].concat(),
        [&alone(1)[..], &one, AGREES, LEAVE, &other, &[0, 2, 255, 255], RESTART].concat(),
        // It asks for what it lacks, and is behind.
        [
            &alone(2)[..],
            &one,
            vouches,
            &[0, 2, 255, 255],
            &[0, 7, 0, 3, 1, 1, 0, 0],
            &[0, 4, 0, 1, 1, 1, 1, 0, 0, 1],
        ]
        .concat(),
        [&alone(3)[..], &[0, 1, 0, 0, 2, 5, 0, 0, 0, 0, 0], &one, AGREES, &[0, 1, 0, 0, 4]].concat(),
        [&together(3)[..], &one, ARRIVES, ARRIVES, &other, ARRIVES, LATER, &[248, 6, 1], ARRIVES].concat(),
        [&together(0)[..], &one, ARRIVES, LATER, ARRIVES, LATER, ARRIVES, &other, ARRIVES, LATER].concat(),
        [&together(3)[..], &one, ARRIVES, &[248, 13, 1, 1, 7, 0, 1, 0], LATER, LATER, &[248, 6, 2], ARRIVES]
            .concat(),
    ]
}

fn logs<P: Fuzzed>(auth: Auth, vouches: &[u8]) -> Vec<Vec<u8>> {
    let run = [REQUEST, AGREES, LEAVE, START].concat();
    let longer = [&run[..], ANOTHER, AGREES, AGREES, AGREES, vouches, AGREES].concat();
    log_recovery::seeds::<P>(World::<P>::cast(2, auth, false), &run, 4, &longer)
}
