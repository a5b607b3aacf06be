//! The messages of MinBFT §4: their form, what is certified of each, and what must be verified
//! before anybody acts on them.

use std::sync::Arc;
use troth_auth::{Authentic, Claim, Evidence, Ui};
use troth_trusted::CounterValue;
use troth_types::{
    Batch, Digest, GroupId, Hasher, Malformed, Reader, ReplicaId, Seq, Signature, View, Wire, put_list,
};

/// The most checkpoint messages in a certificate; a bound for the decoder.
const MAX_QUORUM: usize = 128;
/// The most own messages in a VIEW-CHANGE; a bound for the decoder.
const MAX_LOG: usize = 1 << 14;
/// The most batches a NEW-VIEW carries over; a bound for the decoder.
const MAX_CHOSEN: usize = 1 << 13;

/// PREPARE: the primary's proposal of a batch for a sequence number, and its own commitment to it.
/// The number is explicit and consecutive within the view: counter values cannot serve, because
/// CHECKPOINT and VIEW-CHANGE take values too (F-M2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepare {
    /// The view.
    pub view: View,
    /// The sequence number.
    pub seq: Seq,
    /// The frames, by digest, and their time.
    pub batch: Batch,
}

/// COMMIT: a backup's commitment to a PREPARE, which it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The PREPARE, as the primary certified it.
    pub prepare: Arc<Certified>,
}

/// CHECKPOINT: the sender executed everything up to a batch and this is its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The last executed batch.
    pub seq: Seq,
    /// The state's digest.
    pub digest: Digest,
}

/// f+1 equal CHECKPOINTs of distinct replicas; for the genesis state, none.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct StableProof {
    /// The CHECKPOINT messages.
    pub votes: Vec<Arc<Certified>>,
}

impl StableProof {
    /// Sequence number and digest, as the first vote has them; zero for genesis.
    #[must_use]
    pub fn target(&self) -> (Seq, Digest) {
        match self.votes.first().map(|vote| &vote.body) {
            Some(Body::Checkpoint(checkpoint)) => (checkpoint.seq, checkpoint.digest),
            _ => (Seq(0), Digest::ZERO),
        }
    }
}

/// REQ-VIEW-CHANGE: its sender waits too long in its view. Signed by the host: f+1 of them justify a
/// VIEW-CHANGE before third parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestViewChange {
    /// The view the sender wants.
    pub to: View,
}

/// A signed REQ-VIEW-CHANGE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedRequest {
    /// The sender.
    pub from: ReplicaId,
    /// What it wants.
    pub request: RequestViewChange,
    /// What the signature covers.
    pub digest: Digest,
    /// The sender's host signature.
    pub signature: Signature,
}

/// One own message in a VIEW-CHANGE's O. Messages that would nest without bound stand as stubs
/// (F-M4); their place in the counter says what they are, so a stub cannot hide anything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogEntry {
    /// PREPARE, COMMIT, CHECKPOINT or COMMIT(NEW-VIEW), whole.
    Whole(Arc<Certified>),
    /// A VIEW-CHANGE: its target, the digest of the rest, its identifier.
    ViewChange(View, Digest, Ui),
    /// A NEW-VIEW: its view, the digest of the rest, its identifier.
    NewView(View, Digest, Ui),
}

impl LogEntry {
    /// The entry's identifier.
    #[must_use]
    pub fn ui(&self) -> &Ui {
        match self {
            Self::Whole(message) => &message.ui,
            Self::ViewChange(_, _, ui) | Self::NewView(_, _, ui) => ui,
        }
    }
}

/// VIEW-CHANGE: ends the sender's old views and shows everything it certified since its anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// The view the sender moves to.
    pub to: View,
    /// The last stable checkpoint it knows (the paper's C_latest).
    pub stable: StableProof,
    /// Its own messages since its anchor, in counter order (the paper's O).
    pub log: Vec<LogEntry>,
    /// The f+1 REQ-VIEW-CHANGEs that justify it.
    pub requests: Vec<Arc<SignedRequest>>,
}

/// NEW-VIEW: the new primary's choice of what the new view starts from, with its grounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewView {
    /// The view.
    pub view: View,
    /// f+1 VIEW-CHANGEs for it, of distinct replicas, the primary's own among them (V_vc).
    pub changes: Vec<Arc<Certified>>,
    /// The checkpoint it starts from.
    pub base: (Seq, Digest),
    /// The batches of base+1, base+2, … (S).
    pub chosen: Vec<Batch>,
}

/// COMMIT(NEW-VIEW): the sender accepted the NEW-VIEW and commits to all that it carries over (the
/// fix of F-M1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptNewView {
    /// The view.
    pub view: View,
    /// The digest certified for the NEW-VIEW.
    pub new_view: Digest,
}

/// What a replica has certified or signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// PREPARE.
    Prepare(Prepare),
    /// COMMIT.
    Commit(Commit),
    /// CHECKPOINT.
    Checkpoint(Checkpoint),
    /// VIEW-CHANGE.
    ViewChange(ViewChange),
    /// NEW-VIEW.
    NewView(NewView),
    /// COMMIT(NEW-VIEW).
    AcceptNewView(AcceptNewView),
    /// REQ-VIEW-CHANGE; signed, not certified.
    RequestViewChange(RequestViewChange),
}

/// A body with its unique identifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// The sender.
    pub from: ReplicaId,
    /// What it says.
    pub body: Body,
    /// What the identifier covers.
    pub digest: Digest,
    /// The identifier.
    pub ui: Ui,
}

impl Certified {
    /// Its counter value.
    #[must_use]
    pub fn value(&self) -> CounterValue {
        self.ui.value()
    }

    /// The PREPARE it is, if it is one.
    #[must_use]
    pub fn prepare(&self) -> Option<&Prepare> {
        match &self.body {
            Body::Prepare(prepare) => Some(prepare),
            _ => None,
        }
    }

    /// The VIEW-CHANGE it is, if it is one.
    #[must_use]
    pub fn view_change(&self) -> Option<&ViewChange> {
        match &self.body {
            Body::ViewChange(change) => Some(change),
            _ => None,
        }
    }

    /// The NEW-VIEW it is, if it is one.
    #[must_use]
    pub fn new_view(&self) -> Option<&NewView> {
        match &self.body {
            Body::NewView(new_view) => Some(new_view),
            _ => None,
        }
    }

    /// The entry that stands for it in a VIEW-CHANGE.
    #[must_use]
    pub fn log_entry(self: &Arc<Self>) -> LogEntry {
        match &self.body {
            Body::ViewChange(change) => {
                LogEntry::ViewChange(change.to, view_change_rest(change), self.ui.clone())
            }
            Body::NewView(new_view) => {
                LogEntry::NewView(new_view.view, new_view_rest(new_view), self.ui.clone())
            }
            _ => LogEntry::Whole(self.clone()),
        }
    }
}

/// What a replica processed of the others, and what it lacks: the one mechanism for filling gaps,
/// retransmission until stable and finding out that one is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Its view.
    pub view: View,
    /// The value of the last message processed of each replica, by number.
    pub processed: Vec<u128>,
    /// Its last stable checkpoint.
    pub stable: Seq,
    /// Its last executed batch.
    pub executed: Seq,
    /// Counts its status messages; the others take turns by it in re-serving third parties' messages.
    pub round: u64,
    /// A NEW-VIEW that it needs as evidence.
    pub wants: Option<View>,
}

/// What replicas send each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A certified message.
    Certified(Arc<Certified>),
    /// A REQ-VIEW-CHANGE.
    RequestViewChange(Arc<SignedRequest>),
    /// A status.
    Status(Status),
    /// The proof of a stable checkpoint, for one who is behind.
    Stable(Arc<StableProof>),
    /// A NEW-VIEW of an earlier view, or a commitment to it, as evidence.
    Evidence(Arc<Certified>),
}

fn hasher(tag: &'static str, group: GroupId, from: ReplicaId) -> Hasher {
    let mut hasher = Hasher::new(tag);
    hasher.fixed(&group.0).number(u64::from(from.0));
    hasher
}

fn wire_digest(tag: &'static str, encode: impl FnOnce(&mut Vec<u8>)) -> Digest {
    let mut out = Vec::new();
    encode(&mut out);
    let mut hasher = Hasher::new(tag);
    hasher.bytes(&out);
    hasher.finish()
}

/// The digest of all of a VIEW-CHANGE but its target. Nested messages enter by what their
/// identifiers cover, so the digest names them without their bytes.
pub(crate) fn view_change_rest(change: &ViewChange) -> Digest {
    wire_digest("troth/minbft/view-change-rest/v1", |out| {
        encode_names(&change.stable.votes, out);
        u32::try_from(change.log.len()).expect("bounded by the log").encode(out);
        for entry in &change.log {
            match entry {
                LogEntry::Whole(message) => encode_name(message, out),
                LogEntry::ViewChange(view, rest, ui) | LogEntry::NewView(view, rest, ui) => {
                    view.encode(out);
                    rest.encode(out);
                    ui.value().0.encode(out);
                }
            }
        }
        for request in &change.requests {
            request.digest.encode(out);
            request.signature.encode(out);
        }
    })
}

/// The digest of all of a NEW-VIEW but its view.
pub(crate) fn new_view_rest(new_view: &NewView) -> Digest {
    wire_digest("troth/minbft/new-view-rest/v1", |out| {
        encode_names(&new_view.changes, out);
        new_view.base.encode(out);
        for batch in &new_view.chosen {
            batch.digest().encode(out);
        }
    })
}

fn encode_name(message: &Certified, out: &mut Vec<u8>) {
    message.from.encode(out);
    message.digest.encode(out);
    message.value().0.encode(out);
}

fn encode_names(messages: &[Arc<Certified>], out: &mut Vec<u8>) {
    u32::try_from(messages.len()).expect("bounded by the group").encode(out);
    for message in messages {
        encode_name(message, out);
    }
}

fn nested_digest(tag: &'static str, group: GroupId, from: ReplicaId, view: View, rest: &Digest) -> Digest {
    let mut hasher = hasher(tag, group, from);
    hasher.number(view.0).digest(rest);
    hasher.finish()
}

const VIEW_CHANGE: &str = "troth/minbft/view-change/v1";
const NEW_VIEW: &str = "troth/minbft/new-view/v1";

impl Body {
    /// The message's name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Prepare(_) => "PREPARE",
            Self::Commit(_) => "COMMIT",
            Self::Checkpoint(_) => "CHECKPOINT",
            Self::ViewChange(_) => "VIEW-CHANGE",
            Self::NewView(_) => "NEW-VIEW",
            Self::AcceptNewView(_) => "COMMIT(NEW-VIEW)",
            Self::RequestViewChange(_) => "REQ-VIEW-CHANGE",
        }
    }

    /// What is certified or signed of this body.
    #[must_use]
    pub fn digest(&self, group: GroupId, from: ReplicaId) -> Digest {
        match self {
            Self::Prepare(prepare) => {
                let mut hasher = hasher("troth/minbft/prepare/v1", group, from);
                hasher.number(prepare.view.0).number(prepare.seq.0).digest(&prepare.batch.digest());
                hasher.finish()
            }
            Self::Commit(commit) => {
                let mut hasher = hasher("troth/minbft/commit/v1", group, from);
                hasher.digest(&commit.prepare.digest).fixed(&commit.prepare.value().0.to_le_bytes());
                hasher.number(u64::from(commit.prepare.from.0));
                hasher.finish()
            }
            Self::Checkpoint(checkpoint) => {
                let mut hasher = hasher("troth/minbft/checkpoint/v1", group, from);
                hasher.number(checkpoint.seq.0).digest(&checkpoint.digest);
                hasher.finish()
            }
            Self::ViewChange(change) => {
                nested_digest(VIEW_CHANGE, group, from, change.to, &view_change_rest(change))
            }
            Self::NewView(new_view) => {
                nested_digest(NEW_VIEW, group, from, new_view.view, &new_view_rest(new_view))
            }
            Self::AcceptNewView(accept) => {
                let mut hasher = hasher("troth/minbft/accept-new-view/v1", group, from);
                hasher.number(accept.view.0).digest(&accept.new_view);
                hasher.finish()
            }
            Self::RequestViewChange(request) => {
                let mut hasher = hasher("troth/minbft/request-view-change/v1", group, from);
                hasher.number(request.to.0);
                hasher.finish()
            }
        }
    }
}

impl Certified {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        if self.digest != self.body.digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the body's"));
        }
        claims.push(Claim { by: self.from, digest: self.digest, evidence: Evidence::Ui(&self.ui) });
        match &self.body {
            Body::Prepare(_) | Body::Checkpoint(_) | Body::AcceptNewView(_) => Ok(()),
            Body::Commit(commit) => match commit.prepare.body {
                Body::Prepare(_) => commit.prepare.claims(group, claims),
                _ => Err(Malformed::Invalid("a COMMIT must carry a PREPARE")),
            },
            Body::ViewChange(change) => change.claims(self.from, group, claims),
            Body::NewView(new_view) => new_view.changes.iter().try_for_each(|change| match change.body {
                Body::ViewChange(_) => change.claims(group, claims),
                _ => Err(Malformed::Invalid("a NEW-VIEW rests on VIEW-CHANGEs")),
            }),
            Body::RequestViewChange(_) => {
                Err(Malformed::Invalid("a REQ-VIEW-CHANGE is signed, not certified"))
            }
        }
    }
}

impl StableProof {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        self.votes.iter().try_for_each(|vote| match vote.body {
            Body::Checkpoint(_) => vote.claims(group, claims),
            _ => Err(Malformed::Invalid("a stable checkpoint rests on CHECKPOINTs")),
        })
    }
}

impl SignedRequest {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        if self.digest != Body::RequestViewChange(self.request.clone()).digest(group, self.from) {
            return Err(Malformed::Invalid("a digest that is not the request's"));
        }
        claims.push(Claim {
            by: self.from,
            digest: self.digest,
            evidence: Evidence::Signature(&self.signature),
        });
        Ok(())
    }
}

impl ViewChange {
    fn claims<'a>(
        &'a self,
        from: ReplicaId,
        group: GroupId,
        claims: &mut Vec<Claim<'a>>,
    ) -> Result<(), Malformed> {
        self.stable.claims(group, claims)?;
        for request in &self.requests {
            request.claims(group, claims)?;
        }
        for entry in &self.log {
            let (tag, view, rest, ui) = match entry {
                LogEntry::Whole(message) => {
                    if message.from != from {
                        return Err(Malformed::Invalid("a VIEW-CHANGE lists its sender's messages"));
                    }
                    match message.body {
                        Body::ViewChange(_) | Body::NewView(_) => {
                            return Err(Malformed::Invalid(
                                "nested VIEW-CHANGEs and NEW-VIEWs stand as stubs",
                            ));
                        }
                        _ => message.claims(group, claims)?,
                    }
                    continue;
                }
                LogEntry::ViewChange(view, rest, ui) => (VIEW_CHANGE, view, rest, ui),
                LogEntry::NewView(view, rest, ui) => (NEW_VIEW, view, rest, ui),
            };
            let digest = nested_digest(tag, group, from, *view, rest);
            claims.push(Claim { by: from, digest, evidence: Evidence::Ui(ui) });
        }
        Ok(())
    }
}

impl Authentic for Message {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        match self {
            Self::Certified(message) => message.claims(group, claims),
            Self::RequestViewChange(request) => request.claims(group, claims),
            Self::Status(_) => Ok(()),
            Self::Stable(proof) => proof.claims(group, claims),
            Self::Evidence(message) => match message.body {
                Body::NewView(_) | Body::AcceptNewView(_) => message.claims(group, claims),
                _ => Err(Malformed::Invalid("evidence is a NEW-VIEW or a commitment to one")),
            },
        }
    }
}

impl Wire for Body {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Prepare(prepare) => {
                out.push(0);
                prepare.view.encode(out);
                prepare.seq.encode(out);
                prepare.batch.encode(out);
            }
            Self::Commit(commit) => {
                out.push(1);
                commit.prepare.encode(out);
            }
            Self::Checkpoint(checkpoint) => {
                out.push(2);
                checkpoint.seq.encode(out);
                checkpoint.digest.encode(out);
            }
            Self::ViewChange(change) => {
                out.push(3);
                change.to.encode(out);
                change.stable.encode(out);
                put_list(out, &change.log);
                put_list(out, &change.requests);
            }
            Self::NewView(new_view) => {
                out.push(4);
                new_view.view.encode(out);
                put_list(out, &new_view.changes);
                new_view.base.encode(out);
                put_list(out, &new_view.chosen);
            }
            Self::AcceptNewView(accept) => {
                out.push(5);
                accept.view.encode(out);
                accept.new_view.encode(out);
            }
            Self::RequestViewChange(request) => {
                out.push(6);
                request.to.encode(out);
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::decode_nested(reader, 0)
    }
}

impl Body {
    /// Messages nest four deep at most (NEW-VIEW, VIEW-CHANGE, COMMIT, PREPARE); the depth bounds the
    /// decoder's stack whatever the bytes say.
    fn decode_nested(reader: &mut Reader<'_>, depth: u8) -> Result<Self, Malformed> {
        let tag = u8::decode(reader)?;
        let allowed = match depth {
            0 => tag <= 6,
            1 => matches!(tag, 0 | 2 | 3),
            _ => matches!(tag, 0 | 1 | 2 | 5),
        };
        if !allowed || depth > 3 {
            return Err(Malformed::Tag("a body here", u64::from(tag)));
        }
        Ok(match tag {
            0 => Self::Prepare(Prepare {
                view: Wire::decode(reader)?,
                seq: Wire::decode(reader)?,
                batch: Wire::decode(reader)?,
            }),
            1 => Self::Commit(Commit { prepare: Certified::decode_nested(reader, depth.max(1) + 1)? }),
            2 => Self::Checkpoint(Checkpoint { seq: Wire::decode(reader)?, digest: Wire::decode(reader)? }),
            3 => {
                let to = Wire::decode(reader)?;
                let votes = decode_list(reader, "a stable proof", MAX_QUORUM, 3)?;
                let count = u32::decode(reader)? as usize;
                if count > MAX_LOG {
                    return Err(Malformed::TooLong("a VIEW-CHANGE's log", count as u64));
                }
                let mut log = Vec::new();
                for _ in 0..count {
                    log.push(LogEntry::decode(reader)?);
                }
                let requests = reader.list("REQ-VIEW-CHANGEs", MAX_QUORUM)?;
                Self::ViewChange(ViewChange { to, stable: StableProof { votes }, log, requests })
            }
            4 => Self::NewView(NewView {
                view: Wire::decode(reader)?,
                changes: decode_list(reader, "VIEW-CHANGEs", MAX_QUORUM, 1)?,
                base: Wire::decode(reader)?,
                chosen: reader.list("chosen batches", MAX_CHOSEN)?,
            }),
            5 => Self::AcceptNewView(AcceptNewView {
                view: Wire::decode(reader)?,
                new_view: Wire::decode(reader)?,
            }),
            _ => Self::RequestViewChange(RequestViewChange { to: Wire::decode(reader)? }),
        })
    }
}

fn decode_list(
    reader: &mut Reader<'_>,
    field: &'static str,
    max: usize,
    depth: u8,
) -> Result<Vec<Arc<Certified>>, Malformed> {
    let count = u32::decode(reader)? as usize;
    if count > max {
        return Err(Malformed::TooLong(field, count as u64));
    }
    (0..count).map(|_| Certified::decode_nested(reader, depth)).collect()
}

impl Certified {
    fn decode_nested(reader: &mut Reader<'_>, depth: u8) -> Result<Arc<Self>, Malformed> {
        let from = Wire::decode(reader)?;
        let body = Body::decode_nested(reader, depth)?;
        Ok(Arc::new(Self { from, body, digest: Wire::decode(reader)?, ui: Wire::decode(reader)? }))
    }
}

impl Wire for Certified {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.body.encode(out);
        self.digest.encode(out);
        self.ui.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let message = Self::decode_nested(reader, 0)?;
        Ok(Arc::unwrap_or_clone(message))
    }
}

impl Wire for StableProof {
    fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.votes);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { votes: decode_list(reader, "a stable proof", MAX_QUORUM, 3)? })
    }
}

impl Wire for LogEntry {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Whole(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::ViewChange(view, rest, ui) => {
                out.push(1);
                view.encode(out);
                rest.encode(out);
                ui.encode(out);
            }
            Self::NewView(view, rest, ui) => {
                out.push(2);
                view.encode(out);
                rest.encode(out);
                ui.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Whole(Certified::decode_nested(reader, 2)?),
            1 => Self::ViewChange(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?),
            2 => Self::NewView(Wire::decode(reader)?, Wire::decode(reader)?, Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a log entry", u64::from(other))),
        })
    }
}

impl Wire for SignedRequest {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.request.to.encode(out);
        self.digest.encode(out);
        self.signature.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            request: RequestViewChange { to: Wire::decode(reader)? },
            digest: Wire::decode(reader)?,
            signature: Wire::decode(reader)?,
        })
    }
}

impl Wire for Status {
    fn encode(&self, out: &mut Vec<u8>) {
        self.view.encode(out);
        put_list(out, &self.processed);
        self.stable.encode(out);
        self.executed.encode(out);
        self.round.encode(out);
        self.wants.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            view: Wire::decode(reader)?,
            processed: reader.list("processed counter values", 2 * MAX_QUORUM)?,
            stable: Wire::decode(reader)?,
            executed: Wire::decode(reader)?,
            round: Wire::decode(reader)?,
            wants: Wire::decode(reader)?,
        })
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Certified(message) => {
                out.push(0);
                message.encode(out);
            }
            Self::RequestViewChange(request) => {
                out.push(1);
                request.encode(out);
            }
            Self::Status(status) => {
                out.push(2);
                status.encode(out);
            }
            Self::Stable(proof) => {
                out.push(3);
                proof.encode(out);
            }
            Self::Evidence(message) => {
                out.push(4);
                message.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Certified(Wire::decode(reader)?),
            1 => Self::RequestViewChange(Wire::decode(reader)?),
            2 => Self::Status(Wire::decode(reader)?),
            3 => Self::Stable(Wire::decode(reader)?),
            4 => Self::Evidence(Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a MinBFT message", u64::from(other))),
        })
    }
}

/// What must survive a crash besides certified messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A frame that this replica is about to commit to: its body must not be lost with it.
    Frame(Arc<troth_types::Frame>),
    /// The NEW-VIEW that this replica is about to accept.
    NewView(Arc<Certified>),
    /// The proof of the last stable checkpoint.
    Stable(Arc<StableProof>),
    /// A commitment to a NEW-VIEW that this replica keeps.
    Accepted(Arc<Certified>),
    /// A batch that this replica executed: it is decided, so a restart executes it again.
    Executed(Seq, Batch),
}

impl Wire for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Frame(frame) => {
                out.push(0);
                frame.encode(out);
            }
            Self::NewView(message) => {
                out.push(1);
                message.encode(out);
            }
            Self::Stable(proof) => {
                out.push(2);
                proof.encode(out);
            }
            Self::Accepted(message) => {
                out.push(3);
                message.encode(out);
            }
            Self::Executed(seq, batch) => {
                out.push(4);
                seq.encode(out);
                batch.encode(out);
            }
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match u8::decode(reader)? {
            0 => Self::Frame(Wire::decode(reader)?),
            1 => Self::NewView(Wire::decode(reader)?),
            2 => Self::Stable(Wire::decode(reader)?),
            3 => Self::Accepted(Wire::decode(reader)?),
            4 => Self::Executed(Wire::decode(reader)?, Wire::decode(reader)?),
            other => return Err(Malformed::Tag("a MinBFT record", u64::from(other))),
        })
    }
}

/// The view that a VIEW-CHANGE is for.
pub(crate) fn target(message: &Certified) -> Option<View> {
    message.view_change().map(|change| change.to)
}
