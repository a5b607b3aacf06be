//! What replicas say to each other, and what they keep of it.

use crate::samples;
use crate::wire::{Decoder, of, one_of, seed};
use crate::{Bound, Target};
use std::sync::Arc;
use troth_core::PeerMessage;
use troth_minbft::{Body, Certified, LogEntry, Message, Record, SignedRequest, StableProof, Status};
use troth_types::{Seq, View};

pub(super) const TARGET: Target = Target {
    name: "wire-minbft",
    run: |input| one_of(GROUP, input),
    seeds,
    bound: Bound::DECODER,
    longest: 8192,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<PeerMessage<Message>>(),
    of::<Message>(),
    of::<Body>(),
    of::<Certified>(),
    of::<StableProof>(),
    of::<LogEntry>(),
    of::<SignedRequest>(),
    of::<Status>(),
    of::<Record>(),
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for body in samples::bodies() {
        let certified = samples::certified(body.clone());
        let whole = Arc::new(certified.clone());
        seeds.push(seed(GROUP, &body));
        seeds.push(seed(GROUP, &certified));
        seeds.push(seed(GROUP, &whole.log_entry()));
        seeds.push(seed(GROUP, &PeerMessage::Protocol(Message::Certified(whole.clone()))));
        seeds.push(seed(GROUP, &Record::NewView(whole)));
    }
    let proof = samples::stable_proof();
    let status = samples::status();
    seeds.extend([
        seed(GROUP, &proof),
        seed(GROUP, &samples::request()),
        seed(GROUP, &status),
        seed(GROUP, &Message::Status(status)),
        seed(GROUP, &Message::Stable(Arc::new(proof.clone()))),
        seed(GROUP, &Message::RequestViewChange(Arc::new(samples::request()))),
        seed(GROUP, &Record::Frame(samples::frame(1, 1))),
        seed(GROUP, &Record::Stable(Arc::new(proof))),
        seed(GROUP, &Record::Executed(Seq(3), samples::batch())),
        seed(GROUP, &Record::Committed(View(1), Seq(3))),
        seed(GROUP, &PeerMessage::<Message>::FetchFrames(samples::batch().frames)),
        seed(GROUP, &PeerMessage::<Message>::Frames(vec![samples::frame(1, 1), samples::frame(2, 1)])),
        seed(GROUP, &PeerMessage::<Message>::FetchState(samples::state_fetch())),
        seed(GROUP, &PeerMessage::<Message>::StatePiece(samples::state_piece())),
    ]);
    seeds
}
