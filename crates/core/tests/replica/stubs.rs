//! A protocol that wants a state and nothing else, and an executor that takes what a piece's content says of it.

use bytes::Bytes;
use std::ops::RangeInclusive;
use std::sync::Arc;
use troth_auth::{Authentic, Claim, Seal, Verified};
use troth_core::{
    Agreement, Cx, Execution, Installing, Lookup, Ordered, Outcome, Reached, Start, Status, VerifiedFrame,
    Voucher,
};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{
    ClientId, Configuration, Digest, Event, GroupId, Malformed, Read, ReadReply, Reader, ReplicaId, Seq,
    StateFetch, StatePiece, Time, View, Wire,
};

/// The state that is wanted.
pub const SEQ: Seq = Seq(64);
pub const DIGEST: Digest = Digest([7; 32]);

/// No message at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence;

impl Wire for Silence {
    fn encode(&self, _: &mut Vec<u8>) {}
    fn decode(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self)
    }
}

impl Authentic for Silence {
    fn claims<'a>(&'a self, _: GroupId, _: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Wants the state from these, as soon as it starts, and with each message a newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanting {
    pub sources: Vec<ReplicaId>,
    /// How many newer ones it has wanted.
    pub newer: u64,
    /// The states that it was told are in force.
    pub installed: Vec<Seq>,
}

impl Agreement for Wanting {
    const NAME: &'static str = "wanting";
    type Body = ();
    type Message = Silence;
    type Timer = ();
    type Record = ();

    fn digest((): &(), _: GroupId, _: ReplicaId) -> Digest {
        Digest::ZERO
    }
    fn voucher((): &()) -> Voucher {
        Voucher::Host
    }
    fn seal((): (), _: Digest, _: ReplicaId, _: Seal) -> Silence {
        Silence
    }
    fn position(_: &Silence) -> Option<(CounterId, CounterValue)> {
        None
    }
    fn on_start(&mut self, cx: &mut Cx<'_, Self>, _: Start<Self>) {
        cx.fetch_state(SEQ, DIGEST, self.sources.clone());
    }
    fn on_requests(&mut self, _: &mut Cx<'_, Self>, _: Vec<VerifiedFrame>) {}
    fn on_known_frames(&mut self, _: &mut Cx<'_, Self>, _: Vec<VerifiedFrame>) {}
    fn on_message(&mut self, cx: &mut Cx<'_, Self>, _: ReplicaId, _: Verified<Silence>) {
        self.newer += 1;
        // In another order: who vouches first may be anybody's choice.
        if self.sources.len() > 1 {
            self.sources.swap(0, 1);
        }
        cx.fetch_state(Seq(SEQ.0 + self.newer), DIGEST, self.sources.clone());
    }
    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, (): ()) {
        cx.checkpoint();
    }
    fn on_executed(&mut self, _: &mut Cx<'_, Self>, _: Reached, _: &Outcome) {}
    fn on_configured(&mut self, _: &mut Cx<'_, Self>, _: &Arc<Configuration>) {}
    fn on_checkpoint(&mut self, _: &mut Cx<'_, Self>, _: Seq, _: Digest) {}
    fn on_installed(
        &mut self,
        _: &mut Cx<'_, Self>,
        reached: Reached,
        _: Digest,
        _: &dyn Fn(ClientId, u64) -> bool,
    ) {
        self.installed.push(reached.seq);
    }
    fn frame(&self, _: &Digest) -> Option<VerifiedFrame> {
        None
    }
    fn may_answer_reads(&self) -> bool {
        true
    }
    fn retained(&self) -> (Vec<Silence>, Vec<()>) {
        (Vec::new(), Vec::new())
    }
    fn view(&self) -> View {
        View(0)
    }
    fn status(&self) -> Status {
        Status::default()
    }
}

/// Needs two pieces: `head`, then `tail`. Everything else does not verify.
#[derive(Clone, Debug, Default)]
pub struct Installer {
    /// Whether checkpoints are never done with.
    pub endless: bool,
    /// Slices of checkpoints worked on so far.
    pub slices: u32,
    executed: Seq,
    has_head: bool,
    configuration: Arc<Configuration>,
}

impl Installer {
    fn fetch(&self) -> StateFetch {
        let path = if self.has_head { Bytes::from_static(b"tail") } else { Bytes::new() };
        StateFetch { seq: SEQ, digest: DIGEST, path }
    }
}

impl Execution for Installer {
    type Snapshot = ();

    fn executed(&self) -> Seq {
        self.executed
    }
    fn configuration(&self) -> &Arc<Configuration> {
        &self.configuration
    }
    fn last_time(&self) -> Time {
        Time(0)
    }
    fn next_deadline(&self) -> Option<Time> {
        None
    }
    fn lookup(&self, _: ClientId, _: u64) -> Lookup {
        Lookup::New
    }
    fn execute(&mut self, _: &Ordered) -> Outcome {
        Outcome::default()
    }
    fn execute_tentatively(&mut self, _: &Ordered) -> Outcome {
        unreachable!("nothing is executed")
    }
    fn commit(&mut self, _: Seq) {
        unreachable!("nothing is executed")
    }
    fn roll_back(&mut self, _: Seq) {
        unreachable!("nothing is executed")
    }
    fn query(&self, _: &Read) -> ReadReply {
        unreachable!("nobody reads")
    }
    fn outbox(&self, _: ClientId) -> RangeInclusive<u64> {
        RangeInclusive::new(1, 0)
    }
    fn event(&self, _: ClientId, _: u64) -> Event {
        unreachable!("there is none")
    }
    fn checkpoint(&mut self) {}
    fn poll_checkpoint(&mut self, _: usize) -> Option<(Seq, Digest)> {
        self.slices += 1;
        None
    }
    fn hashing(&self) -> bool {
        self.endless
    }
    fn stable(&mut self, _: Seq) {}
    fn serve(&self, _: &StateFetch) -> Option<StatePiece> {
        None
    }
    fn abandon_install(&mut self) {}
    fn begin_install(&mut self, _: Seq, _: Digest) -> Vec<StateFetch> {
        self.wanted()
    }
    fn on_piece(&mut self, piece: &StatePiece) -> Installing {
        match &piece.content[..] {
            b"head" => {
                self.has_head = true;
                Installing::Wants(self.wanted())
            }
            b"tail" if self.has_head => {
                self.executed = piece.seq;
                Installing::Done
            }
            _ => Installing::Rejected,
        }
    }
    fn wanted(&mut self) -> Vec<StateFetch> {
        vec![self.fetch()]
    }
    fn snapshot(&self, _: Seq) -> Option<()> {
        None
    }
    fn restore(&mut self, (): ()) -> (Seq, Digest) {
        (Seq(0), Digest::ZERO)
    }
}
