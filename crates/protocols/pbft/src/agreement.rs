//! PBFT as an [`Agreement`]: where each event goes.

use crate::message::{Body, Message, Phase, Record, Signed};
use crate::state::{Pbft, Timer};
use std::sync::Arc;
use troth_auth::{Seal, Verified};
use troth_core::{Agreement, Cx, Outcome, Reached, Start, Status, VerifiedFrame, Voucher, rule};
use troth_trusted::{CounterId, CounterValue};
use troth_types::{ClientId, Configuration, Digest, Frame, GroupId, ReplicaId, Seq, View};

/// Executed batches that the invariants look at, from either end.
const LOOKED_AT: usize = 16;

impl Agreement for Pbft {
    const NAME: &'static str = "pbft";
    const MESSAGE_KINDS: u8 = 11;
    type Body = Body;
    type Message = Message;
    type Timer = Timer;
    type Record = Record;

    fn digest(body: &Body, group: GroupId, from: ReplicaId) -> Digest {
        body.digest(group, from)
    }

    fn voucher(_: &Body) -> Voucher {
        Voucher::Host
    }

    fn seal(body: Body, digest: Digest, from: ReplicaId, seal: Seal) -> Message {
        let Seal::Signature(signature) = seal else { unreachable!("PBFT has nothing certified") };
        Message::Signed(Arc::new(Signed { from, body, digest, signature }))
    }

    fn position(_: &Message) -> Option<(CounterId, CounterValue)> {
        None
    }

    fn on_start(&mut self, cx: &mut Cx<'_, Self>, start: Start<Self>) {
        self.begun = true;
        if let Start::Recovered { own: _, records, snapshot, reached } = start {
            self.recover(cx, records, snapshot, reached);
            self.watch_deadline(cx);
            self.progress(cx);
        }
        self.watch_status(cx);
    }

    fn on_requests(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        for frame in frames {
            self.admit(cx, frame);
        }
        self.progress(cx);
    }

    fn on_known_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<VerifiedFrame>) {
        let mut came = Vec::new();
        for frame in frames {
            let digest = frame.digest();
            if self.frames.wants(&digest, self.wants_up_to()) {
                self.frames.insert(frame, false);
                came.push(digest);
            }
        }
        if !came.is_empty() {
            self.frames_came(&came);
            self.progress(cx);
        }
    }

    fn on_doubtful_frames(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<Arc<Frame>>) {
        self.doubt(cx, frames);
        self.progress(cx);
    }

    fn wants_unsigned(&self, digest: &Digest) -> bool {
        self.wants_shown(digest)
    }

    fn on_message(&mut self, cx: &mut Cx<'_, Self>, from: ReplicaId, message: Verified<Message>) {
        match message.into_inner() {
            Message::PrePrepare(proposal) => self.on_phase(cx, from, Phase::PrePrepare(proposal), false),
            Message::Prepare(vote) => self.on_phase(cx, from, Phase::Prepare(vote), false),
            Message::Commit(vote) => self.on_phase(cx, from, Phase::Commit(vote), false),
            Message::Signed(message) => match &message.body {
                Body::Phase(phase) => self.on_phase(cx, message.from, phase.clone(), true),
                Body::Checkpoint(_) | Body::Attested(_) => self.on_checkpoint_vote(cx, &message),
                Body::ViewChange(_) => self.on_view_change(cx, &message),
                Body::NewView(_) => self.on_new_view(cx, &message),
            },
            Message::Status(status) => self.on_status(cx, from, &status),
            Message::Stable(proof) => self.adopt_stable(cx, &proof),
            Message::FetchBatches(digests) => self.on_fetch_batches(cx, from, &digests),
            Message::Batches(batches) => self.on_batches(cx, from, batches),
            Message::WrongTags(digests) => self.on_wrong_tags(from, &digests),
            // Whoever keeps a history takes these before they come here.
            Message::FetchHistory(_) | Message::History(..) => {
                cx.ignore(from, "a history, where none is kept");
            }
        }
        self.progress(cx);
    }

    fn on_timer(&mut self, cx: &mut Cx<'_, Self>, timer: Timer) {
        match timer {
            Timer::Forward => self.show_oldest(cx),
            Timer::Request => self.on_request_timeout(cx),
            Timer::NewView => self.on_new_view_timeout(cx),
            Timer::Status => self.on_status_timer(cx),
            Timer::Behind => self.on_behind(cx),
            Timer::Deadline => {}
            Timer::Overdue => self.on_overdue(cx),
            Timer::Fetch => self.on_fetch_timer(cx),
            Timer::Pace => self.on_pace_timer(cx),
            Timer::Overtaken => self.on_overtaken_timer(cx),
        }
        self.progress(cx);
    }

    fn on_executed(&mut self, cx: &mut Cx<'_, Self>, reached: Reached, outcome: &Outcome) {
        self.executed(cx, reached, outcome);
    }

    fn on_configured(&mut self, cx: &mut Cx<'_, Self>, configuration: &Arc<Configuration>) {
        self.configured(configuration);
        // Nobody waits any more for what was a removed client's.
        self.watch_oldest(cx);
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

    fn may_use(&self, frame: &Frame) -> bool {
        self.may_wait(frame) || self.frames.wants(&frame.digest(), self.wants_up_to())
    }

    fn frame(&self, digest: &Digest) -> Option<VerifiedFrame> {
        self.frames.get(digest).cloned()
    }

    fn may_answer_reads(&self) -> bool {
        self.config.fast_reads && !self.repairing
    }

    fn reads_from(&self) -> Seq {
        self.vouched_up_to()
    }

    fn retained(&self) -> (Vec<Message>, Vec<Record>) {
        // A crash may leave any beginning of these behind the log before them: the view comes first, as no promise may
        // be of a later one than the replica knows that it is in.
        rule!("PBFT-R9");
        let mut records: Vec<Record> = self.started.by.clone().map(Record::NewView).into_iter().collect();
        let mine = self.changes.get(&self.me).and_then(|mine| mine.view_change());
        records.extend(mine.filter(|_| !self.active).cloned().map(Record::Leaving));
        records.push(Record::Stable(self.stable_proof.clone()));
        records.extend(self.frames.logged().into_iter().map(|frame| Record::Frame(frame.into_inner())));
        for (seq, at) in &self.pre_prepared {
            for (digest, view) in at {
                let batch = self.batch(digest);
                records.extend(batch.map(|batch| Record::PrePrepared(*view, *seq, batch)));
            }
        }
        records.extend(self.prepared.values().map(|entry| Record::Prepared(*entry)));
        records.extend(self.decided.iter().map(|(seq, batch)| Record::Executed(*seq, batch.clone())));
        (Vec::new(), records)
    }

    fn broken(&self) -> u64 {
        rule!("PBFT-R14");
        self.broken + self.in_vain
    }

    fn is_worth_checking(&self, message: &Message) -> bool {
        rule!("PBFT-R14");
        let signed = match message {
            Message::Signed(signed) => signed,
            Message::Stable(proof) => return self.brings_stable(proof),
            _ => return true,
        };
        match &signed.body {
            Body::ViewChange(change) => self.brings_view_change(signed.from, change.to),
            Body::NewView(new_view) => self.brings_view(new_view.view) || self.teaches(new_view),
            Body::Checkpoint(_) | Body::Attested(_) => self.brings_checkpoint(signed),
            Body::Phase(phase) => self.config.signs_phases && self.brings_phase(signed.from, phase),
        }
    }

    fn view(&self) -> View {
        self.view
    }

    fn progress(&self) -> Option<u128> {
        rule!("PBFT-R13");
        (self.active && !self.lags()).then(|| u128::from(self.useful))
    }

    fn status(&self) -> Status {
        Status {
            view: self.view,
            active: self.active,
            primary: self.primary(),
            executed: self.reached.seq,
            stable: self.stable.0,
            pending: self.pool.len(),
            votes: true,
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
            .filter_map(|(from, message)| message.view_change().map(|change| (*from, change.to)))
            .collect();
        let slots: Vec<_> = self
            .slots
            .range(self.delivered.next()..)
            .take(8)
            .map(|(seq, slot)| {
                let proposed = slot.proposal.as_ref().map(|(digest, _)| *digest);
                (seq.0, proposed, slot.pre_prepared, slot.prepares.len(), slot.prepared, slot.commits.len())
            })
            .collect();
        format!(
            "{} view {} active {} primary {} proposed {} delivered {} tentative {} stable {} start {} slots {slots:?} \
             changes {changes:?} lacking {:?} missing {:?} pending {}",
            self.me,
            self.view,
            self.active,
            self.primary(),
            self.proposed,
            self.delivered,
            self.tentative.len(),
            self.stable.0,
            self.started.end,
            self.lacking,
            self.frames.missing(4, 0, Seq(u64::MAX)),
            self.pool.len(),
        )
    }

    fn invariants(&self) {
        assert!(self.reached.seq <= self.delivered, "nothing is executed that was not delivered");
        let tentative = self.tentative.keys().copied();
        assert!(
            tentative.eq((self.delivered.0 + 1..).map(Seq).take(self.tentative.len())),
            "it follows what is final"
        );
        assert!(self.tentative.is_empty() || self.active, "what is tentative ends with its view");
        // F-P3: whoever was left out gets from here what was executed here, until it is stable.
        // The oldest and the newest of it, as a window may be long.
        let first = self.stable.0.next();
        let executed = self.decided.range(first..self.delivered.next().max(first));
        for (seq, batch) in executed.clone().take(LOOKED_AT).chain(executed.rev().take(LOOKED_AT)) {
            let whole = batch.frames.iter().all(|frame| self.frames.get(frame).is_some());
            assert!(whole && self.batch(&batch.digest()).is_some(), "{seq} was executed and cannot be shown");
        }
        let slots = u64::try_from(self.slots.len()).expect("a length fits");
        assert!(slots <= 3 * self.config.window + 2, "slots stay within the window");
        assert!(self.passed.len() <= self.batches.len(), "what was passed on goes with what is stable");
        let prepared = u64::try_from(self.prepared.len()).expect("a length fits");
        assert!(prepared <= self.config.window, "P stays within the window");
    }
}
