//! Values that are valid, for the inputs that a search begins with.

use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{ModelSigner, Signer, Ui};
use troth_core::LogRecord;
use troth_minbft::{
    AcceptNewView, Body, Certified, Checkpoint, Commit, NewView, Prepare, RequestViewChange, SignedRequest,
    StableProof, Status, ViewChange,
};
use troth_trusted::run::Path;
use troth_trusted::{Certificate, CounterId, CounterValue, Epoch, Proof, RunProof};
use troth_types::{
    AttestedRead, AttestedReply, Batch, Change, ChangeAnswer, ClientEntry, ClientId, ComponentKey,
    Configuration, Digest, Event, Frame, FrameDraft, FrameProof, GroupId, HistoryEnd, HostKeys, Member,
    OPERATOR, Place, Read, ReadReply, Refusal, RefusalReason, Renewed, ReplicaId, Reply, ReplyBody, Seq,
    StateFetch, StatePiece, Tag, Time, ToClient, ToReplica, View, Wire, Wish,
};

/// The group of all samples.
pub(crate) const GROUP: GroupId = GroupId(*b"fuzzed-group....");

fn host(number: u8) -> HostKeys {
    HostKeys { signing: [number; 32], link: [number + 1; 32], address: format!("127.0.0.1:{number}") }
}

pub(crate) fn changes() -> Vec<Change> {
    let replica = ReplicaId(1);
    vec![
        Change::Admit { replica, epoch: 2, component: ComponentKey::Ed25519([3; 32]), host: Some(host(9)) },
        Change::Admit { replica, epoch: 2, component: ComponentKey::Group, host: None },
        Change::Renew {
            replica,
            epoch: 2,
            component: ComponentKey::Ed25519([3; 32]),
            shown: Digest([7; 32]),
        },
        Change::Rekey { replica, host: host(8) },
        Change::AddClient { client: ClientId(7), key: [4; 32], link: [5; 32] },
        Change::RemoveClient(ClientId(7)),
        Change::Show,
        Change::Announce { replica },
    ]
}

pub(crate) fn configuration() -> Configuration {
    let members = (0..3).map(|number| Member::new(1, ComponentKey::Group, host(number))).collect();
    let entry = |number| ClientEntry { key: [number; 32], link: [number + 1; 32], removed: number > 2 };
    let clients = [(ClientId(1), entry(1)), (ClientId(2), entry(3)), (OPERATOR, entry(2))];
    let mut configuration = Configuration::new(members, clients.into_iter().collect());
    for (change, at) in changes().iter().zip(1..) {
        // Those that contradict each other are refused, which changes nothing.
        let _ = configuration.apply(change, Seq(at), 10, 1);
    }
    configuration
}

pub(crate) fn change_answers() -> Vec<ChangeAnswer> {
    vec![ChangeAnswer::Done(Seq(3), configuration()), ChangeAnswer::Refused("no".to_owned())]
}

/// A frame that its client signed, as the model signs.
pub(crate) fn frame(client: u64, number: u64) -> Arc<Frame> {
    let operations = vec![Bytes::from_static(b"\x00\x03\0\0\0key"), Bytes::from_static(b"echo")];
    frame_of(client, number, operations)
}

pub(crate) fn frame_of(client: u64, number: u64, operations: Vec<Bytes>) -> Arc<Frame> {
    let draft =
        FrameDraft { group: GROUP, client: ClientId(client), number, events_seen: number - 1, operations };
    let signature = ModelSigner::new(client).sign(&draft.signing_digest());
    Arc::new(draft.sign(signature))
}

/// One with an authenticator in the place of its signature.
pub(crate) fn tagged_frame() -> Arc<Frame> {
    let draft = frame(1, 1).draft();
    Arc::new(draft.prove(FrameProof::Authenticator([Tag([1; 16]), Tag([2; 16])].into())))
}

pub(crate) fn batch() -> Batch {
    Batch { time: Time(1_000), frames: vec![frame(1, 1).digest(), frame(2, 1).digest()] }
}

pub(crate) fn state_fetch() -> StateFetch {
    StateFetch { seq: Seq(4), digest: Digest([1; 32]), path: Bytes::from_static(&[2, 0x3a, 255]) }
}

pub(crate) fn state_piece() -> StatePiece {
    let StateFetch { seq, digest, path } = state_fetch();
    StatePiece { seq, digest, path, content: Bytes::from_static(b"\x04\0\0\0node") }
}

pub(crate) fn to_replica() -> Vec<ToReplica> {
    let read = Read {
        client: ClientId(1),
        number: 3,
        nonce: None,
        least: None,
        operation: Bytes::from_static(b"\0\x01\0\0\0k"),
    };
    let recent = Read { least: Some(Seq(2)), ..read.clone() };
    vec![
        ToReplica::Request { frame: frame(1, 1), wish: Wish::Full },
        ToReplica::Request { frame: frame(1, 1), wish: Wish::Nothing },
        ToReplica::Request { frame: frame(1, 1), wish: Wish::Alone },
        ToReplica::Read(read),
        ToReplica::Read(recent),
    ]
}

pub(crate) fn to_client() -> Vec<ToClient> {
    let client = ClientId(1);
    let body = ReplyBody::Full(vec![Bytes::from_static(b"one"), Bytes::new()]);
    let reply = Reply { client, number: 1, seq: Seq(2), view: View(3), events_up_to: 1, body: body.clone() };
    let digest = ReplyBody::Digest(Reply::results_digest(&[Bytes::from_static(b"one"), Bytes::new()]));
    let read = ReadReply { client, number: 1, events_up_to: 0, body };
    let component = ComponentKey::Ed25519([6; 32]);
    let renewed = vec![Renewed { replica: ReplicaId(1), epoch: 2, component }];
    let place = Place {
        attestation: Bytes::from_static(b"attestation"),
        time: Time(9),
        index: 1,
        count: 2,
        path: vec![Digest([3; 32])],
    };
    let end = HistoryEnd {
        attestation: Bytes::from_static(b"attestation"),
        index: 1,
        count: 2,
        path: vec![Digest([3; 32])],
    };
    vec![
        ToClient::Reply(reply.clone()),
        ToClient::Reply(Reply { body: digest, ..reply.clone() }),
        ToClient::Tentative(reply.clone()),
        ToClient::Attested(AttestedReply { reply: reply.clone(), place: place.clone(), renewed: Vec::new() }),
        ToClient::Attested(AttestedReply { reply, place, renewed: renewed.clone() }),
        ToClient::ReadReply(read.clone()),
        ToClient::AttestedRead(AttestedRead { reply: read.clone(), end: end.clone(), renewed: Vec::new() }),
        ToClient::AttestedRead(AttestedRead { reply: read, end, renewed }),
        ToClient::Event(Event { client, index: 1, seq: Seq(2), payload: Bytes::from_static(b"event") }),
        ToClient::Refusal(Refusal { client, number: 1, read: false, reason: RefusalReason::TooOld }),
    ]
}

fn certificate(proof: Proof) -> Certificate {
    let (previous, new) = (CounterValue::new(0, 1), CounterValue::new(0, 2));
    Certificate { epoch: Epoch(1), counter: CounterId(0), previous, new, proof }
}

pub(crate) fn identifiers() -> Vec<Ui> {
    let path = Path::new(&[[1; 32], [2; 32]]).expect("two siblings");
    vec![
        Ui { certificate: certificate(Proof::Mac([7; 32])), run: None },
        Ui {
            certificate: certificate(Proof::Signature([7; 64])),
            run: Some(Box::new(RunProof { index: 1, count: 3, path })),
        },
    ]
}

pub(crate) fn log_records() -> Vec<LogRecord> {
    let body = configuration().to_wire();
    vec![
        LogRecord::Own {
            counter: CounterId(0),
            previous: CounterValue::new(0, 1),
            new: CounterValue::new(0, 2),
            body: body.clone(),
        },
        LogRecord::Certified(certificate(Proof::Mac([7; 32]))),
        LogRecord::Sealed(body.clone()),
        LogRecord::Machine(body),
    ]
}

/// A message with this body, by replica 0; its certificate is no component's.
pub(crate) fn certified(body: Body) -> Certified {
    let from = ReplicaId(0);
    let digest = body.digest(GROUP, from);
    Certified { from, body, digest, ui: identifiers().swap_remove(0) }
}

pub(crate) fn stable_proof() -> StableProof {
    let vote = Arc::new(certified(checkpoint(Vec::new(), false)));
    StableProof { votes: vec![vote.clone(), vote] }
}

fn checkpoint(epochs: Vec<(ReplicaId, u64)>, given: bool) -> Body {
    Body::Checkpoint(Checkpoint { seq: Seq(4), digest: Digest([2; 32]), epochs, given })
}

pub(crate) fn request() -> SignedRequest {
    let (from, request) = (ReplicaId(1), RequestViewChange { to: View(1) });
    let digest = Body::RequestViewChange(request.clone()).digest(GROUP, from);
    SignedRequest { from, request, digest, signature: ModelSigner::new(1001).sign(&digest) }
}

pub(crate) fn status() -> Status {
    Status {
        view: View(1),
        processed: vec![CounterValue::new(0, 2).0; 3],
        stable: Seq(4),
        executed: Seq(5),
        round: 1,
        wants: Some(View(2)),
    }
}

/// A body of each kind.
pub(crate) fn bodies() -> Vec<Body> {
    let prepare = Body::Prepare(Prepare { view: View(0), seq: Seq(1), batch: batch() });
    let prepared = Arc::new(certified(prepare.clone()));
    let commit = Body::Commit(Commit { prepare: prepared.clone() });
    let committed = Arc::new(certified(commit.clone()));
    let change = Body::ViewChange(ViewChange {
        to: View(1),
        stable: stable_proof(),
        log: vec![prepared.log_entry(), committed.log_entry()],
        requests: vec![Arc::new(request()), Arc::new(request())],
    });
    let changed = Arc::new(certified(change.clone()));
    let new_view = Body::NewView(NewView {
        view: View(1),
        changes: vec![changed; 2],
        base: (Seq(4), Digest([2; 32])),
        chosen: vec![batch(), Batch::default()],
    });
    vec![
        prepare,
        commit,
        checkpoint(Vec::new(), false),
        checkpoint(vec![(ReplicaId(1), 2)], false),
        checkpoint(vec![(ReplicaId(1), 2)], true),
        change,
        new_view,
        Body::AcceptNewView(AcceptNewView { view: View(1), new_view: Digest([3; 32]) }),
        Body::RequestViewChange(RequestViewChange { to: View(1) }),
    ]
}
