//! A2M-PBFT-EA as an [`Agreement`]: where each event goes.

use crate::message::{Attested, Body, Message, Record, Wanted};
use crate::place;
use crate::state::{A2mPbftEa, Asked, Timer};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{
    Agreement, Cx, Outcome, Proven, Reached, Start, Status, Ticket, VerifiedFrame, Voucher, rule,
};
use troth_trusted::a2m::{Answer, LogId, Nonce, Slot};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{ClientId, Configuration, Digest, GroupId, ReplicaId, Seq, View};

impl Agreement for A2mPbftEa {
    const NAME: &'static str = "a2m-pbft-ea";
    const MESSAGE_KINDS: u8 = 7;
    const PROVES_REPLIES: bool = true;
    type Body = Body;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;

    fn digest(body: &Body, group: GroupId, from: ReplicaId) -> Digest {
        body.digest(group, from)
    }

    fn voucher(body: &Body) -> Voucher {
        match body {
            Body::Want(_) => Voucher::Host,
            _ => Voucher::Slot,
        }
    }

    fn seal(body: Body, digest: Digest, from: ReplicaId, seal: Seal) -> Message {
        match (body, seal) {
            (Body::Want(want), Seal::Signature(signature)) => {
                Message::Want(Arc::new(Wanted { from, want, digest, signature }))
            }
            (body, Seal::Slot(attestation)) => {
                Message::Attested(Arc::new(Attested { from, body, digest, attestation }))
            }
            _ => unreachable!("a WANTVIEWCHANGE is signed, and all else attested"),
        }
    }

    fn position(_: &Message) -> Option<(CounterId, CounterValue)> {
        None
    }

    fn slot(message: &Message) -> Option<(LogId, Slot)> {
        match message {
            Message::Attested(message) => place::of(&message.body),
            _ => None,
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>) {
        match start {
            Start::Fresh => self.ask_history(cx, Seq(0), Vec::new()),
            Start::Recovered { own, records, snapshot, reached } => {
                self.recover(cx, own, records, snapshot, reached);
                self.watch_deadline(cx);
                self.progress(cx);
            }
        }
        self.watch_status(cx);
    }

    fn on_requests(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            self.admit(cx, frame);
        }
        self.progress(cx);
    }

    fn on_requests_again(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        self.order_again(cx, frames);
        self.progress(cx);
    }

    fn on_shown_again(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        let (favours, known) = self.favours_of(cx, from, frames);
        self.order_again(cx, favours);
        self.on_known_frames(cx, known);
    }

    fn on_known_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            let digest = frame.digest();
            if self.frames.wants(&digest, self.wants_up_to()) {
                self.frames.insert(frame, false);
                self.frame_came(&digest);
            }
        }
        self.progress(cx);
    }

    fn on_message(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, message: Verified<Message>) {
        match message.into_inner() {
            Message::Attested(message) => self.on_attested(cx, from, &message),
            Message::Want(wanted) => self.on_want(&wanted),
            Message::Status(status) => self.on_status(cx, from, &status),
            Message::Stable(proof) => self.adopt_stable(cx, &proof),
            Message::FetchHistory(at) => self.show_history(cx, from, at),
            Message::History(at, values) => self.take_history(cx, from, at, &values),
            Message::FetchProposals(view, asked) => self.show_proposals(cx, from, view, &asked),
        }
        self.progress(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Forward => self.show_oldest(cx),
            Timer::Request => self.on_request_timeout(cx),
            Timer::NewView => self.on_new_view_timeout(cx),
            Timer::Status => {
                self.on_status_timer(cx);
                self.fetch_history(cx);
            }
            Timer::Behind => self.on_behind(cx),
            Timer::Deadline => {}
            Timer::Overdue => self.on_overdue(cx),
            Timer::Fetch => self.on_fetch_timer(cx),
            Timer::Pace => self.on_pace_timer(cx),
            Timer::Overtaken => self.on_overtaken_timer(cx),
        }
        self.progress(cx);
    }

    fn on_trusted(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, answers: Vec<Answer>) {
        match self.asked.remove(&ticket) {
            None if self.history.log.asked(ticket) => self.appended(cx, ticket, answers),
            Some(Asked::Abandon(to)) => {
                let shown = answers.into_iter().filter_map(|answer| match answer {
                    Answer::Attested(attestation) => Some(attestation),
                    Answer::Done => None,
                });
                self.abandoned(cx, to, shown.collect());
            }
            Some(Asked::Standing) => self.standing(cx, &answers),
            Some(Asked::Truncate | Asked::Nonce(_)) | None => {}
        }
        self.progress(cx);
    }

    fn on_drawn(&mut self, cx: &mut Cx<'_, Self>, ticket: Ticket, nonce: Nonce) {
        if let Some(Asked::Nonce(to)) = self.asked.remove(&ticket) {
            self.want(cx, to, nonce);
        }
        self.progress(cx);
    }

    fn on_executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        self.executed(cx, reached, outcome);
    }

    fn on_configured(&mut self, _: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        self.configured(configuration);
    }

    fn on_checkpoint(&mut self, cx: &mut Cx<'_, Self>, seq: Seq, digest: Digest) {
        self.checkpoint_taken(cx, seq, digest);
    }

    fn on_installed(
        &mut self,
        cx: &mut Cx<'_, Self>,
        reached: Reached,
        digest: Digest,
        executed: &dyn Fn(ClientId, u64) -> bool,
    ) {
        self.installed(cx, reached, digest, executed);
    }

    fn frame(&self, digest: &Digest) -> Option<VerifiedFrame> {
        self.frames.get(digest).cloned()
    }

    fn proven(&self, seq: Seq) -> Proven {
        rule!("A2MPBFTEA-H3");
        self.history.log.proven(seq)
    }

    fn broken(&self) -> u64 {
        rule!("A2MPBFTEA-R18");
        self.broken
    }

    fn is_worth_checking(&self, message: &Message) -> bool {
        rule!("A2MPBFTEA-R18");
        let message = match message {
            Message::Attested(message) => message,
            Message::Stable(proof) => return self.brings_stable(proof),
            _ => return true,
        };
        match &message.body {
            Body::Checkpoint(vote) => self.brings_checkpoint(message.from, vote.seq),
            Body::ViewChange(change) => {
                self.may_be_whole(change) && self.brings_view_change(message.from, change.to)
            }
            Body::NewView(new_view) => {
                let changes = new_view.changes.iter().filter_map(|change| change.view_change());
                let by_primary = message.from == self.group.primary(new_view.view);
                new_view.changes.len() <= self.group.n()
                    && changes.into_iter().all(|change| self.may_be_whole(change))
                    && (!by_primary || self.brings_start(new_view.view))
            }
            Body::Prepare(vote) | Body::Commit(vote) => !self.has_vote(message, vote.seq),
            _ => true,
        }
    }

    fn waits_here(&self, message: &Message) -> bool {
        matches!(message, Message::Attested(message) if self.waits_with(message))
    }

    fn may_answer_reads(&self) -> bool {
        !self.repairing
    }

    fn attest_end(&mut self, cx: &mut Cx<'_, Self>, executed: Seq, nonce: Nonce) -> bool {
        self.ask_end(cx, executed, nonce)
    }

    fn retained(&self) -> (Vec<Message>, Vec<Record>) {
        rule!("A2MPBFTEA-R10");
        let (starts, accepts) = self.known_views.all();
        let mine = accepts.iter().filter(|accept| accept.from == self.me).cloned();
        let own_start = starts.iter().filter(|start| start.from == self.me).cloned();
        let votes = self.slots.values().flat_map(|slot| {
            let proposal = slot.proposal.iter().filter(|proposal| proposal.from == self.me);
            proposal.chain(slot.prepares.get(&self.me)).chain(slot.commits.get(&self.me))
        });
        let checkpoints = self.checkpoint_votes.values().filter_map(|votes| votes.get(&self.me));
        let stable = self.stable_proof.votes.iter().filter(|vote| vote.from == self.me);
        let change = self.changes.get(&self.me).filter(|_| !self.active);
        let kept = votes.chain(checkpoints).chain(stable).chain(change).cloned().chain(mine).chain(own_start);
        let mut messages: Vec<Message> = kept.map(Message::Attested).collect();
        messages.sort_by_key(<Self as Agreement>::slot);

        let mut records: Vec<Record> = starts.into_iter().map(Record::NewView).collect();
        records.extend(accepts.into_iter().map(Record::Accepted));
        if !self.active {
            records.push(Record::Leaving(self.certificate.clone()));
        }
        records.push(Record::Filled(self.attested.iter().map(|(log, slot)| (log.0, slot.0)).collect()));
        records.push(Record::Stable(self.stable_proof.clone()));
        records.extend(self.frames.logged().into_iter().map(|frame| Record::Frame(frame.into_inner())));
        // What was asked for may be attested by the time that these are needed.
        for (seq, slot) in &self.slots {
            if *seq <= self.prepared_up_to {
                records.extend(slot.proposal.clone().map(Record::Proposal));
            }
            if let Some(digest) = slot.proposed().filter(|_| *seq <= self.committed_up_to) {
                let same = |vote: &&Arc<Attested>| vote.voted().is_some_and(|vote| vote.digest == digest);
                records.push(Record::Prepared(slot.prepares.values().filter(same).cloned().collect()));
            }
        }
        records.extend(self.decided.iter().map(|(seq, batch)| Record::Executed(*seq, batch.clone())));
        rule!("A2MPBFTEA-R16");
        let kept = self.history.log.kept();
        records.extend(kept.into_iter().map(|(from, values)| Record::History(from, values)));
        (messages, records)
    }

    fn view(&self) -> View {
        self.view
    }

    fn progress(&self) -> Option<u128> {
        self.brought_further()
    }

    fn status(&self) -> Status {
        Status {
            view: self.view,
            active: self.active,
            primary: self.primary(),
            executed: self.reached.seq,
            stable: self.stable.0,
            pending: self.pool.len(),
            // Where it cannot prove what it executes, its word counts for no client and for no checkpoint.
            votes: self.history.log.lacks().is_none(),
            accused: self.group.all().filter(|replica| self.accused.contains(*replica)).collect(),
            suspicions: self.suspicions,
            primary_wait: self.pace.waited(),
            agreement: self.pace.agreement(),
        }
    }

    fn describe(&self) -> String {
        let changes: Vec<_> = self
            .changes
            .iter()
            .filter_map(|(from, message)| message.view_change().map(|change| (*from, change.left, change.to)))
            .collect();
        let wants: Vec<_> = self.wants.iter().map(|(from, wanted)| (*from, wanted.want.to)).collect();
        let slots: Vec<_> = self
            .slots
            .range(self.delivered.next()..)
            .take(8)
            .map(|(seq, slot)| (seq.0, slot.proposed(), slot.prepares.len(), slot.commits.len()))
            .collect();
        format!(
            "{} view {} active {} entered {} primary {} voted {} committed {} delivered {} stable {} start {} \
             history {} slots {slots:?} changes {changes:?} wants {wants:?} lacks {:?} asked {:?} missing {:?} pending {}",
            self.me,
            self.view,
            self.active,
            self.entered,
            self.primary(),
            self.prepared_up_to,
            self.committed_up_to,
            self.delivered,
            self.stable.0,
            self.started.end(),
            self.history.log.describe(),
            self.known_views.lacks(&self.group),
            self.asked,
            self.frames.missing(4, 0, Seq(u64::MAX)),
            self.pool.len(),
        )
    }

    fn invariants(&self) {
        assert!(self.reached.seq <= self.delivered, "nothing is executed that was not delivered");
        assert!(self.entered <= self.view, "no view is entered ahead of the present one");
        assert!(!self.active || self.entered == self.view, "it works in the view that it entered");
        let slots = u64::try_from(self.slots.len()).expect("a length fits");
        assert!(slots <= 3 * self.config.window + 2, "slots stay within the window");
        assert!(
            self.known_views.loose() <= self.group.n(),
            "of each one commitment to a start that is not here"
        );
    }
}

impl A2mPbftEa {
    /// An attested message, whoever shows it.
    fn on_attested(&mut self, cx: &mut Cx<'_, Self>, by: ReplicaId, message: &Arc<Attested>) {
        if let Some((log, slot)) = place::of(&message.body).filter(|_| message.from == self.me) {
            let last = self.attested.get(&log).copied().unwrap_or_default().max(slot);
            self.attested.insert(log, last);
        }
        match &message.body {
            Body::PrePrepare(proposal) => self.on_pre_prepare(cx, by, message, proposal),
            Body::Prepare(vote) => self.on_prepare(cx, message, *vote),
            Body::Commit(vote) => self.on_commit(cx, message, *vote),
            Body::Accept(accept) => self.on_accept(cx, message, *accept),
            Body::Checkpoint(checkpoint) => self.on_checkpoint_vote(cx, message, checkpoint),
            Body::ViewChange(_) => self.on_view_change(cx, message),
            Body::NewView(_) => self.on_new_view(cx, message),
            Body::Want(_) => cx.ignore(message.from, "a WANTVIEWCHANGE is signed, not attested"),
        }
    }
}
