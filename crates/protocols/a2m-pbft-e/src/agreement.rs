//! A2M-PBFT-E as an [`Agreement`]: where each event goes.

use crate::{A2mPbftE, Body, Message, Record, Timer};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{
    Agreement, Cx, Outcome, Proven, Reached, Start, Status, Ticket, VerifiedFrame, Voucher, rule,
};
use troth_pbft::Pbft;
use troth_trusted::a2m::{Answer, Nonce};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{ClientId, Configuration, Digest, GroupId, ReplicaId, Seq, View};

impl Agreement for A2mPbftE {
    const NAME: &'static str = "a2m-pbft-e";
    const MESSAGE_KINDS: u8 = 11;
    const PROVES_REPLIES: bool = true;
    type Body = Body;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;

    fn digest(body: &Body, group: GroupId, from: ReplicaId) -> Digest {
        Pbft::digest(body, group, from)
    }

    fn voucher(body: &Body) -> Voucher {
        Pbft::voucher(body)
    }

    fn seal(body: Body, digest: Digest, from: ReplicaId, seal: Seal) -> Message {
        Pbft::seal(body, digest, from, seal)
    }

    fn position(_: &Message) -> Option<(CounterId, CounterValue)> {
        None
    }

    fn on_start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>) {
        self.start(cx, start);
    }

    fn on_requests(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.order(cx, |pbft, cx| pbft.on_requests(cx, frames));
    }

    fn on_requests_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.order_again(cx, frames);
    }

    fn on_shown_again(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        let (favours, known) = self.favours_of(cx, from, frames);
        self.order_again(cx, favours);
        self.on_known_frames(cx, known);
    }

    fn on_known_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.order(cx, |pbft, cx| pbft.on_known_frames(cx, frames));
    }

    fn on_message(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, message: Verified<Message>) {
        match &*message {
            Message::FetchHistory(at) => self.show_history(cx, from, *at),
            Message::History(at, values) => self.take_history(cx, from, *at, values),
            Message::Signed(signed) if !self.vouches(signed) => {
                cx.ignore(from, "a CHECKPOINT by a component that does not count there");
            }
            Message::Signed(signed) if self.is_sought(signed) => {
                self.keep_sought(cx, std::slice::from_ref(signed));
            }
            Message::Stable(proof) if proof.votes.iter().any(|vote| self.is_sought(vote)) => {
                self.keep_sought(cx, &proof.votes);
                self.order(cx, |pbft, cx| pbft.on_message(cx, from, message));
            }
            _ => self.order(cx, |pbft, cx| pbft.on_message(cx, from, message)),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, timer: Timer) {
        self.order(cx, |pbft, cx| pbft.on_timer(cx, timer));
        if timer == Timer::Status {
            self.fetch_history(cx);
        }
    }

    fn on_trusted(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, answers: Vec<Answer>) {
        self.attested(cx, ticket, answers);
    }

    fn on_executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        self.append(cx, reached, outcome);
        self.order(cx, |pbft, cx| pbft.on_executed(cx, reached, outcome));
    }

    fn on_configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        self.configured(cx, configuration);
        self.order(cx, |pbft, cx| pbft.on_configured(cx, configuration));
    }

    fn on_checkpoint(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest) {
        self.order(cx, |pbft, cx| pbft.on_checkpoint(cx, seq, digest));
    }

    fn on_installed(
        &mut self,
        cx: &mut Cx<'_, Self>,
        reached: Reached,
        digest: Digest,
        executed: &dyn Fn(ClientId, u64) -> bool,
    ) {
        rule!("A2MPBFTE-T1");
        self.history.log.installed(reached.seq);
        if self.history.log.is_to_begin() {
            rule!("A2MPBFTE-N8");
            self.pbft.doubt_executed(reached.seq);
        }
        self.order(cx, |pbft, cx| pbft.on_installed(cx, reached, digest, executed));
    }

    fn frame(&self, digest: &Digest) -> Option<VerifiedFrame> {
        self.pbft.frame(digest)
    }

    fn proven(&self, seq: Seq) -> Proven {
        rule!("A2MPBFTE-H3");
        self.history.log.proven(seq)
    }

    fn broken(&self) -> u64 {
        self.pbft.broken()
    }

    fn is_worth_checking(&self, message: &Self::Message) -> bool {
        let (counts, sought) = match message {
            Message::Signed(signed) => (self.vouches(signed), self.is_sought(signed)),
            Message::Stable(proof) => (true, proof.votes.iter().any(|vote| self.is_sought(vote))),
            _ => (true, false),
        };
        counts && (sought || self.pbft.is_worth_checking(message))
    }

    fn may_answer_reads(&self) -> bool {
        self.pbft.may_answer_reads()
    }

    fn attest_end(&mut self, cx: &mut Cx<'_, Self>, executed: Seq, nonce: Nonce) -> bool {
        self.ask_end(cx, executed, nonce)
    }

    fn retained(&self) -> (Vec<Message>, Vec<Record>) {
        let (own, mut records) = self.pbft.retained();
        rule!("A2MPBFTE-R4");
        let kept = self.history.log.kept();
        records.extend(kept.into_iter().map(|(from, values)| Record::History(from, values)));
        (own, records)
    }

    fn view(&self) -> View {
        self.pbft.view()
    }

    fn progress(&self) -> Option<u128> {
        rule!("A2MPBFTE-R5");
        Agreement::progress(&self.pbft).map(|agreed| agreed.wrapping_add(u128::from(self.useful)))
    }

    fn status(&self) -> Status {
        let ordering = self.pbft.status();
        // Where it cannot prove what it executes, its word counts for no client.
        let proves = !self.history.log.is_to_begin() && self.history.log.lacks().is_none();
        Status { votes: ordering.votes && proves, ..ordering }
    }

    fn describe(&self) -> String {
        format!("{} history {:?}", self.pbft.describe(), self.history.log.describe())
    }

    fn invariants(&self) {
        self.pbft.invariants();
    }
}
