//! The shared vocabulary: what clients and replicas say, the configuration, certificates, the log's records.

use crate::samples;
use crate::wire::{Decoder, of, one_of, seed};
use crate::{Bound, Target};
use std::sync::Arc;
use troth_auth::Ui;
use troth_core::LogRecord;
use troth_link::PeerId;
use troth_types::{
    Admission, Batch, Change, ChangeAnswer, ClientEntry, ClientId, ComponentKey, Configuration, Digest,
    Frame, GroupId, HistoryEnd, HostKeys, Member, Place, ReadReply, RefusalReason, Renewed, ReplicaId, Reply,
    ReplyBody, Seq, Signature, StateFetch, StatePiece, Time, ToClient, ToReplica, View,
};

pub(super) const TARGET: Target = Target {
    name: "wire-types",
    run: |input| one_of(GROUP, input),
    seeds,
    bound: Bound::DECODER,
    longest: 4096,
};

pub(super) const GROUP: &[Decoder] = &[
    of::<Change>(),
    of::<ChangeAnswer>(),
    of::<StateFetch>(),
    of::<StatePiece>(),
    of::<Batch>(),
    of::<Digest>(),
    of::<ComponentKey>(),
    of::<Admission>(),
    of::<HostKeys>(),
    of::<Member>(),
    of::<ClientEntry>(),
    of::<Configuration>(),
    of::<ToReplica>(),
    of::<ReplyBody>(),
    of::<RefusalReason>(),
    of::<ToClient>(),
    of::<GroupId>(),
    of::<Frame>(),
    of::<Signature>(),
    of::<ReplicaId>(),
    of::<ClientId>(),
    of::<Seq>(),
    of::<View>(),
    of::<Time>(),
    of::<Ui>(),
    of::<PeerId>(),
    of::<LogRecord>(),
    of::<u128>(),
    of::<bool>(),
    of::<Option<u64>>(),
    of::<Arc<u16>>(),
    of::<(u8, u32)>(),
    of::<()>(),
    of::<Reply>(),
    of::<Place>(),
    of::<ReadReply>(),
    of::<HistoryEnd>(),
    of::<Renewed>(),
];

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    seeds.extend(samples::changes().iter().map(|value| seed(GROUP, value)));
    seeds.extend(samples::change_answers().iter().map(|value| seed(GROUP, value)));
    seeds.extend(samples::to_replica().iter().map(|value| seed(GROUP, value)));
    seeds.extend(samples::to_client().iter().map(|value| seed(GROUP, value)));
    seeds.extend(samples::log_records().iter().map(|value| seed(GROUP, value)));
    seeds.extend(samples::identifiers().iter().map(|value| seed(GROUP, value)));
    seeds.extend([
        seed(GROUP, &samples::configuration()),
        seed(GROUP, &*samples::frame(1, 1)),
        seed(GROUP, &*samples::tagged_frame()),
        seed(GROUP, &samples::batch()),
        seed(GROUP, &samples::state_fetch()),
        seed(GROUP, &samples::state_piece()),
        seed(GROUP, &PeerId::Replica(ReplicaId(1))),
        seed(GROUP, &PeerId::Client(ClientId(7))),
    ]);
    seeds
}
