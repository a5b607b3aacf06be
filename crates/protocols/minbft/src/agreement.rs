//! MinBFT as an [`Agreement`]: where each event goes.

use crate::Flaw;
use crate::message::{Body, Message, Record};
use crate::state::{MinBft, Timer};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{Agreement, Cx, Outcome, Reached, Start, Status, To, VerifiedFrame, Voucher, rule};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{ClientId, Configuration, Digest, GroupId, ReplicaId, Seq, View};

impl Agreement for MinBft {
    const NAME: &'static str = "minbft";
    const MESSAGE_KINDS: u8 = 5;
    const PRIMARY_SHOWS: bool = true;
    type Body = Body;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;

    fn digest(body: &Body, group: GroupId, from: ReplicaId) -> Digest {
        body.digest(group, from)
    }

    fn voucher(body: &Body) -> Voucher {
        match body {
            Body::RequestViewChange(_) => Voucher::Host,
            _ => Voucher::Counter,
        }
    }

    fn seal(body: Body, digest: Digest, from: ReplicaId, seal: Seal) -> Message {
        match seal {
            Seal::Ui(ui) => Message::Certified(Arc::new(crate::Certified { from, body, digest, ui })),
            Seal::Slot(_) => unreachable!("MinBFT fills no slots"),
            Seal::Signature(signature) => {
                let Body::RequestViewChange(request) = body else {
                    unreachable!("MinBFT signs nothing but REQ-VIEW-CHANGE")
                };
                Message::RequestViewChange(Arc::new(crate::SignedRequest {
                    from,
                    request,
                    digest,
                    signature,
                }))
            }
        }
    }

    fn position(message: &Message) -> Option<(CounterId, CounterValue)> {
        match message {
            Message::Certified(message) => Some((message.ui.certificate.counter, message.value())),
            _ => None,
        }
    }

    fn on_start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>) {
        match start {
            Start::Fresh => {}
            Start::Recovered { own, records, snapshot, reached } => {
                self.recover(cx, own, records, snapshot, reached);
                if !self.active() {
                    self.watch_new_view(cx);
                }
                self.watch_deadline(cx);
                self.recheck = true;
                self.settle(cx);
            }
        }
        let at = self.after(cx, self.config.status_interval);
        cx.set_timer(Timer::Status, at);
    }

    fn on_requests(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            let (client, number) = (frame.client(), frame.number());
            self.admit(cx, frame);
            rule!("MINBFT-P5");
            self.pool.came(client, number, false, cx.now());
        }
        self.settle(cx);
    }

    fn on_requests_alone(
        &mut self,
        cx: &mut Cx<'_, Self>,
        alone: Vec<VerifiedFrame>,
        others: Vec<VerifiedFrame>,
    ) {
        rule!("MINBFT-N14");
        let passes_on = self.active() && !self.is_primary();
        let mut passed_on = Vec::new();
        for frame in alone {
            let (client, number, digest) = (frame.client(), frame.number(), frame.digest());
            let known = self.pool.has(client, number);
            self.admit(cx, frame.clone());
            if known || !self.pool.has(client, number) {
                continue;
            }
            let small = self.frames.is_alone(&digest);
            if passes_on && small {
                self.pool.came(client, number, true, cx.now());
                passed_on.push(frame);
            }
        }
        if !passed_on.is_empty() {
            // Their clients take this one for the primary.
            cx.show_frames(To::One(self.primary()), passed_on);
        }
        self.on_requests(cx, others);
    }

    fn on_shown(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, frames: Vec<VerifiedFrame>) {
        let by_primary = from == self.primary();
        for frame in frames {
            let (client, number, digest) = (frame.client(), frame.number(), frame.digest());
            let known = self.pool.has(client, number);
            self.admit(cx, frame.clone());
            let is_unnamed = |other: &Digest| self.frames.is_unnamed(other);
            if by_primary
                && self.frames.get(&digest).is_none()
                && self.pool.keeps_beside(client, number, digest, is_unnamed)
            {
                // Its client showed the primary another than this replica, or this one is behind: it will be named.
                rule!("MINBFT-N14");
                self.frames.keep_for_now(frame);
            }
            if by_primary && !known {
                rule!("MINBFT-P5");
                self.pool.came(client, number, true, cx.now());
            }
            if self.is_primary() && !known {
                self.frames.is_alone(&digest);
            }
        }
        self.settle(cx);
    }

    fn on_known_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            if self.frames.wants(&frame.digest(), self.wants_up_to()) {
                self.frames.insert(frame, false);
                self.asked_up_to = Seq(0);
                self.recheck = true;
            }
        }
        if self.recheck {
            self.settle(cx);
        }
    }

    fn on_message(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, message: Verified<Message>) {
        match message.into_inner() {
            Message::Certified(message) if !self.knows_all(&message) => {
                cx.ignore(from, "it rests on a component that this replica does not know yet");
            }
            Message::Evidence(message) if !self.knows_all(&message) => {
                cx.ignore(from, "evidence of a component that this replica does not know yet");
            }
            Message::Certified(message) => {
                self.note_repetition(from, &message);
                self.accept(cx, message);
            }
            Message::RequestViewChange(request) => {
                if from == self.me {
                    self.peer_mut(from).asked = Some(Arc::clone(&request));
                }
                self.on_request_view_change(cx, &request);
            }
            Message::Status(status) => self.on_status(cx, from, &status),
            Message::Stable(proof) => {
                self.adopt_stable(cx, &proof);
                self.settle(cx);
            }
            Message::Evidence(message) => self.on_evidence(cx, &message),
        }
    }

    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Forward => self.show_oldest(cx),
            Timer::Request => self.on_request_timeout(cx),
            Timer::NewView => self.on_new_view_timeout(cx),
            Timer::Status => self.on_status_timer(cx),
            Timer::Behind => self.on_behind(cx),
            Timer::Deadline => self.progress(cx),
            Timer::Overdue => self.on_overdue(cx),
            Timer::Fetch => self.on_fetch_timer(cx),
            Timer::Pace => self.on_pace_timer(cx),
            Timer::Overtaken => self.on_overtaken_timer(cx),
        }
    }

    fn on_executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        self.executed(cx, reached, outcome);
    }

    fn on_configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        self.configured(cx, configuration);
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

    fn is_worth_checking(&self, message: &Message) -> bool {
        rule!("MINBFT-R14");
        match message {
            Message::Certified(message) => self.may_bring(message) && self.fits_the_group(message),
            // A view has one start, at a value of its own: one at another value is none, and there are as many as you like.
            Message::Evidence(message) => {
                self.fits_the_group(message)
                    && crate::evidence::misplaced(&self.group, &self.config, message).is_none()
                    && self.known_views.lacks(message)
            }
            Message::Stable(proof) => proof.votes.len() <= self.group.n(),
            Message::RequestViewChange(request) => self.may_move(request),
            Message::Status(_) => true,
        }
    }

    fn waits_here(&self, message: &Message) -> bool {
        match message {
            Message::Certified(message) => self.holds_back(message),
            // All are asked, and each that answers did as it should.
            Message::Evidence(message) => self.known_views.was_asked(message),
            _ => false,
        }
    }

    fn author_of_dear(&self, message: &Message) -> Option<ReplicaId> {
        rule!("MINBFT-R18");
        let Message::Certified(message) = message else { return None };
        let is_dear = matches!(message.body, Body::ViewChange(_) | Body::NewView(_));
        (is_dear && self.group.contains(message.from)).then_some(message.from)
    }

    fn turns(&self, author: ReplicaId) -> u128 {
        let gate = &self.peer(author).gate;
        // Also when the next one has come that waits for something else: it is in its turn.
        gate.processed().0.rotate_left(1) ^ u128::from(gate.next().is_some())
    }

    fn frame(&self, digest: &Digest) -> Option<VerifiedFrame> {
        self.frames.get(digest).cloned()
    }

    fn may_answer_reads(&self) -> bool {
        if self.config.follows(Flaw::StaleRead) {
            return true;
        }
        rule!("MINBFT-R5");
        self.reached.seq >= self.read_barrier && self.is_settled()
    }

    fn retained(&self) -> (Vec<Message>, Vec<Record>) {
        let mine = self.peer(self.me);
        let processed = mine.log.iter().map(|logged| &logged.message);
        // A certified message may wait for its turn, its own NEW-VIEW for a clock: it binds all the same.
        let own = processed.chain(mine.gate.waiting()).cloned().map(Message::Certified).collect();
        let stable = [Some(&self.stable_proof), self.lowest_proof.as_ref()].into_iter().flatten();
        let mut records: Vec<Record> = stable.cloned().map(Record::Stable).collect();
        records.extend(self.frames.logged().into_iter().map(|frame| Record::Frame(frame.into_inner())));
        // Only what was certified binds; what was merely asked for may never be.
        records.extend(mine.walk.last.map(|(view, seq)| Record::Committed(view, seq)));
        records.extend(self.decided.iter().map(|(seq, batch)| Record::Executed(*seq, batch.clone())));
        records.extend(self.known_views.all().cloned().map(Record::NewView));
        records.extend(self.known_views.accepts().cloned().map(Record::Accepted));
        records.extend(self.peers.iter().filter_map(|peer| peer.first.clone()).map(Record::First));
        (own, records)
    }

    fn view(&self) -> View {
        self.view
    }

    fn can_wait(&self, message: &Message, to: ReplicaId) -> bool {
        match message {
            Message::Certified(message) => self.can_wait_for(message, to),
            _ => false,
        }
    }

    fn progress(&self) -> Option<u128> {
        if self.lag.is_watched() || self.repairing || !self.active() {
            return None;
        }
        let processed = self.peers.iter().flat_map(|peer| [peer.gate.processed().0, peer.repeated.0]);
        Some(processed.fold(u128::from(self.stable.0.0), u128::wrapping_add))
    }

    fn status(&self) -> Status {
        let accused = self.group.all().filter(|replica| self.peer(*replica).condemned.is_some()).collect();
        Status {
            view: self.view,
            active: self.active(),
            primary: self.primary(),
            executed: self.reached.seq,
            stable: self.stable.0,
            pending: self.pool.len(),
            votes: self.has_joined(),
            accused,
            suspicions: self.suspicions,
            primary_wait: self.pace.waited(),
            agreement: self.pace.agreement(),
        }
    }

    fn describe(&self) -> String {
        let peers: Vec<String> = self
            .peers
            .iter()
            .map(|peer| {
                let at = peer.gate.processed();
                let next = peer.gate.next().map(|message| message.body.kind());
                format!("{}.{}+{} next {next:?}", at.view(), at.count(), peer.gate.held())
            })
            .collect();
        format!(
            "{} view {} {:?} primary {} committed {} delivered {} stable {} own checkpoint {} slots {:?} \
             start {}..{} accepted {} requested {}.{} due change {} changes {:?} wants {:?} peers {peers:?}",
            self.me,
            self.view,
            self.phase,
            self.primary(),
            self.committed,
            self.delivered,
            self.stable.0,
            self.own_checkpoint.seq,
            self.slots.keys().collect::<Vec<_>>(),
            self.started.base,
            self.started.end(),
            self.started.accepted.count(),
            self.requested.view(),
            self.requested.count(),
            self.due_view_change.is_some(),
            self.changes.iter().map(|(from, change)| (*from, change.value().view())).collect::<Vec<_>>(),
            self.known_views.wanted(0),
        )
    }

    fn invariants(&self) {
        assert!(self.reached.seq <= self.delivered, "nothing is executed that was not delivered");
        let slots = u64::try_from(self.slots.len()).expect("a length fits");
        assert!(slots <= 2 * self.config.window + 2, "slots stay within the window");
        for peer in &self.peers {
            let held = u64::try_from(peer.gate.held()).expect("a length fits");
            assert!(held <= 4 * self.config.window + 64, "the hold-back is bounded");
        }
    }
}
