//! The wire: every message there and back, nothing that bytes from outside can break, and the encodings
//! and certified digests of this version, pinned.

use super::harness::{SMALL, World, r};
use crate::message::{
    Body, Certified, Checkpoint, Commit, LogEntry, Message, NewView, Prepare, Record, StableProof, Status,
    ViewChange,
};
use proptest::prelude::*;
use std::sync::Arc;
use troth_auth::{Authentic, MessageError};
use troth_core::PeerMessage;
use troth_trusted::CounterValue;
use troth_types::{Batch, Digest, Hasher, Malformed, Reader, Seq, StateFetch, StatePiece, Time, View, Wire};

/// One message of each kind, as replicas of a group really make them. All of them are deterministic.
struct Samples {
    world: World,
    bodies: Vec<(&'static str, Arc<Certified>)>,
}

fn samples() -> Samples {
    let mut world = World::with(3, SMALL, &[]);
    let (one, two) = (world.frame(1, 1, "one"), world.frame(2, 1, "two"));
    let batch = Batch { time: Time(77), frames: vec![one.digest(), two.digest()] };
    let prepare = world.prepare_batch(0, 1, batch.clone());
    let commit = world.commit(1, &prepare);
    let checkpoint = world.checkpoint(1, 4, Digest([4; 32]));
    let other = world.checkpoint(2, 4, Digest([4; 32]));
    let stable = StableProof { votes: vec![checkpoint.clone(), other] };
    let body = world.change_body(1, 1, stable);
    let change = world.certify_change(1, body);
    let empty = world.view_change(0, 1);
    let new_view = NewView {
        view: View(1),
        changes: vec![change.clone(), empty],
        base: (Seq(4), Digest([4; 32])),
        chosen: vec![batch, Batch::default()],
    };
    let new_view = world.certify(1, Body::NewView(new_view));
    // The next VIEW-CHANGE holds stubs of both.
    let stubs = world.view_change(1, 2);
    world.view_change(2, 1);
    let accept = world.accept(2, &new_view);
    let body = Checkpoint { seq: Seq(8), digest: Digest([8; 32]), epochs: vec![(r(1), 2)], given: false };
    let replaced = world.certify(0, Body::Checkpoint(body.clone()));
    let given = world.certify(2, Body::Checkpoint(Checkpoint { given: true, ..body }));
    let bodies = vec![
        ("prepare", prepare),
        ("commit", commit),
        ("checkpoint", checkpoint),
        ("view-change", change),
        ("new-view", new_view),
        ("view-change with stubs", stubs),
        ("accept-new-view", accept),
        ("checkpoint with epochs", replaced),
        ("checkpoint of a given state", given),
    ];
    Samples { world, bodies }
}

fn messages(samples: &Samples) -> Vec<(&'static str, Message)> {
    let mut all: Vec<_> =
        samples.bodies.iter().map(|(name, message)| (*name, Message::Certified(message.clone()))).collect();
    let find =
        |wanted| samples.bodies.iter().find(|(name, _)| *name == wanted).expect("it is there").1.clone();
    let Body::ViewChange(change) = find("view-change").body.clone() else { panic!("a VIEW-CHANGE") };
    let status = |wants| {
        Message::Status(Status {
            view: View(3),
            processed: vec![1, u128::MAX, CounterValue::new(2, 7).0],
            stable: Seq(4),
            executed: Seq(6),
            round: 9,
            wants,
        })
    };
    all.push(("request-view-change", Message::RequestViewChange(samples.world.wish(2, 5))));
    all.push(("status", status(None)));
    all.push(("status that wants", status(Some(View(2)))));
    all.push(("stable", Message::Stable(Arc::new(change.stable))));
    all.push(("evidence", Message::Evidence(find("new-view"))));
    all
}

fn records(samples: &Samples) -> Vec<(&'static str, Record)> {
    let find =
        |wanted| samples.bodies.iter().find(|(name, _)| *name == wanted).expect("it is there").1.clone();
    vec![
        ("frame", Record::Frame(samples.world.frame(1, 1, "one"))),
        ("new-view", Record::NewView(find("new-view"))),
        ("stable", Record::Stable(Arc::new(StableProof { votes: vec![find("checkpoint")] }))),
        ("accepted", Record::Accepted(find("accept-new-view"))),
        ("first", Record::First(find("view-change"))),
        ("executed", Record::Executed(Seq(3), Batch { time: Time(5), frames: vec![Digest([1; 32])] })),
    ]
}

fn there_and_back<T: Wire + PartialEq + std::fmt::Debug>(name: &str, value: &T) {
    let bytes = value.to_wire();
    assert_eq!(T::from_wire(&bytes).as_ref(), Ok(value), "{name}");
    for end in 0..bytes.len() {
        assert!(T::from_wire(&bytes.slice(..end)).is_err(), "{name} cut at {end}");
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    assert_eq!(T::from_wire(&longer.into()), Err(Malformed::Trailing), "{name}");
}

#[test]
fn everything_goes_there_and_back() {
    let samples = samples();
    for (name, message) in &samples.bodies {
        there_and_back(name, &message.body);
        there_and_back(name, &**message);
    }
    for (name, message) in messages(&samples) {
        there_and_back(name, &message);
        there_and_back(name, &PeerMessage::Protocol(message));
    }
    for (name, record) in records(&samples) {
        there_and_back(name, &record);
    }
    there_and_back("request", &Body::RequestViewChange(crate::RequestViewChange { to: View(7) }));
    let (seq, digest, path) = (Seq(4), Digest([4; 32]), bytes::Bytes::from_static(b"path"));
    let others: Vec<PeerMessage<Message>> = vec![
        PeerMessage::FetchFrames(vec![Digest([1; 32]), Digest([2; 32])]),
        PeerMessage::Frames(vec![samples.world.frame(1, 1, "one")]),
        PeerMessage::FetchState(StateFetch { seq, digest, path: path.clone() }),
        PeerMessage::StatePiece(StatePiece { seq, digest, path, content: "content".into() }),
    ];
    for other in others {
        there_and_back("a replica's message", &other);
    }
}

#[test]
fn what_replicas_make_is_authentic() {
    let samples = samples();
    for (name, message) in messages(&samples) {
        assert!(samples.world.authentic(&message).is_ok(), "{name}");
    }
}

#[test]
fn unknown_tags_mean_nothing() {
    for tag in 7..=255u8 {
        assert!(Body::from_wire(&vec![tag].into()).is_err());
    }
    for tag in 5..=255u8 {
        assert!(Message::from_wire(&vec![tag].into()).is_err());
        assert!(Record::from_wire(&vec![tag].into()).is_err());
        assert!(LogEntry::from_wire(&vec![tag].into()).is_err());
    }
}

#[test]
fn lists_are_bounded_before_they_are_read() {
    // A VIEW-CHANGE: its target, then the votes of its proof, its log and its requests.
    let huge = u32::MAX.to_le_bytes();
    for lists in 0..3 {
        let mut bytes = vec![3];
        View(1).encode(&mut bytes);
        for _ in 0..lists {
            0u32.encode(&mut bytes);
        }
        bytes.extend(huge);
        assert!(matches!(Body::from_wire(&bytes.into()), Err(Malformed::TooLong(_, _))), "list {lists}");
    }
    // A NEW-VIEW: its changes, then its base and its batches.
    let mut changes = vec![4];
    View(1).encode(&mut changes);
    let mut chosen = changes.clone();
    changes.extend(huge);
    assert!(matches!(Body::from_wire(&changes.into()), Err(Malformed::TooLong(_, _))));
    0u32.encode(&mut chosen);
    (Seq(0), Digest::ZERO).encode(&mut chosen);
    chosen.extend(huge);
    assert!(matches!(Body::from_wire(&chosen.into()), Err(Malformed::TooLong(_, _))));
}

#[test]
fn deep_nesting_is_refused() {
    // COMMITs in COMMITs, as deep as a megabyte goes.
    let mut commits = vec![0];
    for _ in 0..300_000 {
        commits.extend([0, 0, 1]);
    }
    assert!(Message::from_wire(&commits.into()).is_err());
    // NEW-VIEWs of one VIEW-CHANGE each that is a NEW-VIEW.
    let mut new_views = vec![0];
    for _ in 0..50_000 {
        new_views.extend([0, 0, 4]);
        View(1).encode(&mut new_views);
        1u32.encode(&mut new_views);
    }
    assert!(Message::from_wire(&new_views.into()).is_err());
}

#[test]
fn only_what_may_nest_is_nested() {
    let samples = samples();
    let find =
        |wanted| samples.bodies.iter().find(|(name, _)| *name == wanted).expect("it is there").1.clone();
    let names = ["prepare", "commit", "checkpoint", "view-change", "new-view", "accept-new-view"];
    let refused = |body: Body| -> bool {
        // Refused by the decoder or, where the decoder does not look so closely, by the claims.
        let bytes = body.to_wire();
        let decoded = Body::decode(&mut Reader::new(&bytes)).is_ok();
        let certified = Certified { body, ..(*find("commit")).clone() };
        let digest = certified.body.digest(samples.world.group.id(), certified.from);
        let certified = Arc::new(Certified { digest, ..certified });
        let mut claims = Vec::new();
        let message = Message::Certified(certified);
        !decoded || message.claims(samples.world.group.id(), &mut claims).is_err()
    };
    for name in names {
        let inner = find(name);
        let commit = Body::Commit(Commit { prepare: inner.clone() });
        assert_eq!(refused(commit), name != "prepare", "a COMMIT that carries {name}");
        let new_view = Body::NewView(NewView {
            view: View(1),
            changes: vec![inner.clone()],
            base: (Seq(0), Digest::ZERO),
            chosen: Vec::new(),
        });
        assert_eq!(refused(new_view), name != "view-change", "a NEW-VIEW on {name}");
        let change = |stable: StableProof, log| {
            Body::ViewChange(ViewChange { to: View(1), stable, log, requests: Vec::new() })
        };
        let proof = StableProof { votes: vec![inner.clone()] };
        assert_eq!(refused(change(proof, Vec::new())), name != "checkpoint", "a certificate of {name}");
        if inner.from == find("commit").from {
            let good = matches!(name, "prepare" | "commit" | "checkpoint" | "accept-new-view");
            let whole = LogEntry::Whole(inner.clone());
            assert_eq!(refused(change(StableProof::default(), vec![whole])), !good, "a log with {name}");
        }
    }
    let other = find("prepare");
    assert_ne!(other.from, find("commit").from);
    let log = vec![LogEntry::Whole(other)];
    let stable = StableProof::default();
    let foreign = Body::ViewChange(ViewChange { to: View(1), stable, log, requests: Vec::new() });
    assert!(refused(foreign), "a log with another replica's message");
    assert!(refused(Body::RequestViewChange(crate::RequestViewChange { to: View(1) })), "it is signed");
}

#[test]
fn a_digest_binds_every_field() {
    let samples = samples();
    let group = samples.world.group.id();
    let mut seen = std::collections::BTreeSet::new();
    let mut fresh = |body: Body| {
        for from in [0, 1] {
            assert!(seen.insert(body.digest(group, r(from)).0), "{body:?} by {from}");
        }
    };
    let find =
        |wanted| samples.bodies.iter().find(|(name, _)| *name == wanted).expect("it is there").1.clone();
    let prepare = |view, seq, time, frames: &[u8]| {
        let frames = frames.iter().map(|byte| Digest([*byte; 32])).collect();
        Body::Prepare(Prepare { view: View(view), seq: Seq(seq), batch: Batch { time: Time(time), frames } })
    };
    fresh(prepare(0, 1, 1, &[1, 2]));
    fresh(prepare(1, 1, 1, &[1, 2]));
    fresh(prepare(0, 2, 1, &[1, 2]));
    fresh(prepare(0, 1, 2, &[1, 2]));
    fresh(prepare(0, 1, 1, &[2, 1]));
    fresh(prepare(0, 1, 1, &[1]));
    let inner = find("prepare");
    let mut moved = (*inner).clone();
    moved.ui.certificate.new = CounterValue(9);
    fresh(Body::Commit(Commit { prepare: inner }));
    fresh(Body::Commit(Commit { prepare: Arc::new(moved) }));
    for (seq, byte) in [(4, 1), (5, 1), (4, 2)] {
        fresh(Body::Checkpoint(Checkpoint {
            seq: Seq(seq),
            digest: Digest([byte; 32]),
            epochs: Vec::new(),
            given: false,
        }));
    }
    for (epochs, given) in [(vec![(r(1), 2)], false), (vec![(r(1), 3)], false), (vec![(r(1), 2)], true)] {
        fresh(Body::Checkpoint(Checkpoint { seq: Seq(4), digest: Digest([1; 32]), epochs, given }));
    }
    for to in [1, 2] {
        fresh(Body::RequestViewChange(crate::RequestViewChange { to: View(to) }));
    }
    for (view, byte) in [(1, 1), (2, 1), (1, 2)] {
        let new_view = Digest([byte; 32]);
        fresh(Body::AcceptNewView(crate::AcceptNewView { view: View(view), new_view }));
    }
    let Body::ViewChange(change) = find("view-change").body.clone() else { panic!("a VIEW-CHANGE") };
    fresh(Body::ViewChange(change.clone()));
    fresh(Body::ViewChange(ViewChange { to: View(2), ..change.clone() }));
    fresh(Body::ViewChange(ViewChange { stable: StableProof::default(), ..change.clone() }));
    fresh(Body::ViewChange(ViewChange { log: change.log[1..].to_vec(), ..change.clone() }));
    fresh(Body::ViewChange(ViewChange { requests: change.requests[1..].to_vec(), ..change }));
    let Body::NewView(new_view) = find("new-view").body.clone() else { panic!("a NEW-VIEW") };
    fresh(Body::NewView(new_view.clone()));
    fresh(Body::NewView(NewView { view: View(4), ..new_view.clone() }));
    fresh(Body::NewView(NewView { base: (Seq(5), new_view.base.1), ..new_view.clone() }));
    fresh(Body::NewView(NewView { base: (new_view.base.0, Digest([9; 32])), ..new_view.clone() }));
    fresh(Body::NewView(NewView { changes: new_view.changes[1..].to_vec(), ..new_view.clone() }));
    fresh(Body::NewView(NewView { chosen: new_view.chosen[1..].to_vec(), ..new_view }));
}

#[test]
fn another_group_means_nothing() {
    let samples = samples();
    for (name, message) in messages(&samples) {
        let mut claims = Vec::new();
        let other = troth_types::GroupId(*b"another-group-00");
        let judged = message.claims(other, &mut claims);
        assert_eq!(judged.is_ok(), name.starts_with("status"), "{name}");
    }
}

#[test]
fn a_changed_body_does_not_verify() {
    let samples = samples();
    for (name, message) in &samples.bodies {
        let mut forged = (**message).clone();
        forged.from = r((forged.from.0 + 1) % 3);
        let as_it_is = samples.world.authentic(&Message::Certified(Arc::new(forged.clone())));
        assert!(matches!(as_it_is, Err(MessageError::Malformed(_))), "{name}: the digest is not its own");
        forged.digest = forged.body.digest(samples.world.group.id(), forged.from);
        assert!(samples.world.authentic(&Message::Certified(Arc::new(forged))).is_err(), "{name}");
    }
}

/// The encodings and certified digests of this version: name, hash of the encoding, certified digest.
/// Whoever changes them changes the protocol's version in the hashers' tags.
#[test]
fn encodings_and_digests_are_pinned() {
    let samples = samples();
    let hash = |bytes: &bytes::Bytes| {
        let mut hasher = Hasher::new("fixture");
        hasher.bytes(bytes);
        hex(&hasher.finish())
    };
    let mut found = Vec::new();
    for (name, message) in &samples.bodies {
        found.push(format!("{name} {} {}", hash(&message.to_wire()), hex(&message.digest)));
    }
    for (name, message) in messages(&samples).iter().skip(samples.bodies.len()) {
        found.push(format!("{name} {}", hash(&message.to_wire())));
    }
    for (name, record) in records(&samples) {
        found.push(format!("record of {name} {}", hash(&record.to_wire())));
    }
    let request = samples.world.wish(2, 5);
    found.push(format!("request {}", hex(&request.digest)));
    assert_eq!(found, PINNED, "{found:#?}");
}

fn hex(digest: &Digest) -> String {
    digest.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

const PINNED: &[&str] = &[
    "prepare 7eabb73d2f7f9de4 194fb8d8ad621599",
    "commit 8ada2c9a2345037b e0ef77f00fcbc344",
    "checkpoint 2676b65a467f5856 50e4efbb9efc6658",
    "view-change d777d85bcfffb48e b99e216ffa14532b",
    "new-view 1f30276a0b8b10a4 09e61fa24b7ecf40",
    "view-change with stubs ea3f41b25ae61511 74c4eb0b9d19018d",
    "accept-new-view a93b32670549e134 2c5d1c289b1477db",
    "checkpoint with epochs 463e44143eaca77f fd8ce70c3f2f6760",
    "checkpoint of a given state e0cfad840f9a418b 6f1b1ff86368676d",
    "request-view-change 45f02b17a92f4e18",
    "status 6a47756ee934ee12",
    "status that wants 03168f20ccb0d09e",
    "stable e9c03a06f3c553a5",
    "evidence 40dcc0853ab0a8db",
    "record of frame 0d991f9662a122c6",
    "record of new-view ef5de922c6336001",
    "record of stable 5e88b89ce200b839",
    "record of accepted a2dad8a5443cdd48",
    "record of first 3a86a86af2498a17",
    "record of executed 4429a7ad9c301853",
    "request 75d36409484489fc",
];

fn encodings() -> Vec<Vec<u8>> {
    let samples = samples();
    messages(&samples).iter().map(|(_, message)| message.to_wire().to_vec()).collect()
}

// MINBFT-E12: the mark changes nothing of which bytes are a CHECKPOINT. Logs hold what releases took that know of none.
#[test]
fn a_mark_is_one_more_epoch_of_nobody_to_who_does_not_know_it() {
    let nobody = (troth_types::ReplicaId(u16::MAX), 0);
    let many = |count: u16| (0..count).map(|number| (r(number), 2)).collect::<Vec<_>>();
    let marked = |mut epochs: Vec<_>| {
        epochs.push(nobody);
        epochs
    };
    for (listed, taken) in [
        (vec![(r(1), 2)], Some((vec![(r(1), 2)], false))),
        (marked(many(1)), Some((many(1), true))),
        (marked(many(127)), Some((many(127), true))),
        (many(128), Some((many(128), false))),
        (vec![nobody], Some((vec![nobody], false))),
        (vec![(r(1), 2), (nobody.0, 1)], Some((vec![(r(1), 2), (nobody.0, 1)], false))),
        (vec![], None),
        (marked(many(128)), None),
        (marked(marked(many(1))), None),
        (vec![nobody, (r(1), 2)], None),
        (vec![(r(2), 2), (r(1), 2), nobody], None),
    ] {
        let mut bytes = vec![7];
        Seq(4).encode(&mut bytes);
        Digest([1; 32]).encode(&mut bytes);
        troth_types::put_list(&mut bytes, &listed);
        let bytes = bytes::Bytes::from(bytes);
        let body = Body::from_wire(&bytes).ok();
        let read = body.as_ref().map(|body| match body {
            Body::Checkpoint(checkpoint) => (checkpoint.epochs.clone(), checkpoint.given),
            other => panic!("{other:?}"),
        });
        assert_eq!(read, taken, "{listed:?}");
        assert!(body.is_none_or(|body| body.to_wire() == bytes));
    }
    // Nor is one written where nobody is named.
    let bare = Body::Checkpoint(Checkpoint { given: true, ..Checkpoint::default() });
    let plain = Body::Checkpoint(Checkpoint::default());
    assert_eq!(bare.to_wire(), plain.to_wire());
    let digest = |body: &Body| body.digest(troth_types::GroupId([1; 16]), r(0));
    assert_eq!(digest(&bare), digest(&plain));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Bytes that were changed decode to something or nothing, never to a panic; and what decodes has no
    /// other encoding. Whatever decodes is judged by its claims without a panic.
    #[test]
    fn changed_bytes_never_panic(
        which in 0usize..32,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<Option<prop::sample::Index>>(),
    ) {
        thread_local!(static SAMPLES: Vec<Vec<u8>> = encodings());
        let mut bytes = SAMPLES.with(|samples| samples[which % samples.len()].clone());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let bytes = bytes::Bytes::from(bytes);
        if let Ok(message) = Message::from_wire(&bytes) {
            prop_assert_eq!(message.to_wire(), bytes);
            let _ = message.claims(troth_types::GroupId(*b"minbft-test-grp\0"), &mut Vec::new());
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let bytes = bytes::Bytes::from(bytes);
        let _ = Message::from_wire(&bytes);
        let _ = Record::from_wire(&bytes);
        let _ = PeerMessage::<Message>::from_wire(&bytes);
    }
}
