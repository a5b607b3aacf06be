//! A correct client: the production client core under a random workload.

use super::workload::{Called, Workload};
use crate::checks::{Checks, ClientState};
use crate::{Options, Rng};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_auth::{Authenticators, Signer};
use troth_client::{Acceptance, ClientCore, Config, Output, Proven, SubmitError, Ticket, Timing};
use troth_types::{ClientId, Group, Limits, ReplicaId, Seq, Time, ToClient, ToReplica};

/// Fresh requests that each client must have answered after the healing.
pub const FRESH: u64 = 10;

struct Submission {
    operations: Vec<Bytes>,
    invoked: u64,
    /// What anybody had been shown of the order then.
    since: Seq,
    read: bool,
    fresh: bool,
}

/// A correct client.
pub struct Client {
    /// Its number.
    pub id: ClientId,
    core: ClientCore,
    /// Whether it believes tentative replies.
    tentative: bool,
    rng: Rng,
    submissions: BTreeMap<Ticket, Submission>,
    /// Answered requests still wanted before the healing.
    wanted: u64,
    healed: bool,
    /// Answered since the healing, and wanted then: what was still open and the fresh ones.
    fresh: u64,
    fresh_wanted: u64,
    outstanding: usize,
    think: u64,
    reads_share: u64,
    /// Whether its reads need not show the present.
    recent: bool,
    /// The last place of the order of which it was told itself, by what was ordered for it and by events.
    told: Seq,
    workload: Box<dyn Workload>,
    known_frames: BTreeSet<(u64, bool)>,
    /// When it wants to be woken, as scheduled.
    pub wake_at: Option<u64>,
    /// Reads answered, from the current state or in their place of the order.
    pub reads: u64,
}

/// What convinces replicas of a client's requests, and a client of replicas' answers.
pub struct Proofs {
    /// Which answers prove an outcome.
    pub acceptance: Acceptance,
    /// Whether the primary is sent small frames that nobody else is.
    pub primary_shows: bool,
    /// The keys it shares with the replicas, where it sends authenticators.
    pub authenticators: Option<Authenticators>,
    /// How it checks histories, where replies prove their place in one.
    pub history: Option<Proven>,
}

/// What a client wants done.
pub struct Sending {
    /// To whom.
    pub to: ReplicaId,
    /// What.
    pub message: ToReplica,
}

impl Client {
    /// A client of a seed's world.
    #[must_use]
    pub fn new(
        options: &Options,
        group: Group,
        limits: Limits,
        id: ClientId,
        signer: Arc<dyn Signer>,
        proofs: Proofs,
        workload: Box<dyn Workload>,
    ) -> Self {
        let timing = Timing {
            resend_first: options.resend_first,
            resend_longest: 400_000,
            full_wait: 3_000,
            read_wait: 10_000,
            deadline: options.client_deadline,
            unavailable_after: u64::MAX / 2,
        };
        let Proofs { acceptance, primary_shows, authenticators, history } = proofs;
        let config = Config {
            acceptance,
            primary_shows,
            limits,
            timing,
            authenticators,
            history,
            ..Config::new(group, id)
        };
        Self {
            id,
            core: ClientCore::new(config, signer),
            tentative: acceptance.tentative,
            rng: Rng::stream(options.seed, "workload", id.0),
            submissions: BTreeMap::new(),
            wanted: options.requests,
            healed: false,
            fresh: 0,
            fresh_wanted: FRESH,
            outstanding: options.outstanding,
            think: options.think,
            reads_share: options.reads,
            recent: options.recent,
            told: Seq(0),
            workload,
            known_frames: BTreeSet::new(),
            wake_at: None,
            reads: 0,
        }
    }

    /// Whether it has had all its requests answered.
    #[must_use]
    pub fn satisfied(&self) -> bool {
        self.wanted == 0 && self.submissions.is_empty()
    }

    /// Reads answered without being ordered.
    #[must_use]
    pub fn fast_reads(&self) -> u64 {
        self.core.fast_reads()
    }

    /// Where it stands after the healing.
    #[must_use]
    pub fn state(&self) -> ClientState {
        let old = self.submissions.values().filter(|submission| !submission.fresh).count();
        ClientState { client: self.id.0, old, fresh: (self.fresh, self.fresh_wanted) }
    }

    /// The faults are over: fresh requests begin, beside what is left of the old workload.
    pub fn heal(&mut self) {
        self.healed = true;
        self.fresh_wanted = FRESH + self.wanted;
        self.think = self.think.min(500);
    }

    /// Another round of fresh requests.
    pub fn more(&mut self) {
        self.fresh_wanted += FRESH;
    }

    /// Submits what the workload wants now. Returns whether it wants to be asked again later.
    pub fn submit(&mut self, now: u64, since: Seq) {
        while self.submissions.len() < self.outstanding {
            let ordered = self.submissions.values().filter(|submission| !submission.read).count() as u64;
            let more = if self.healed {
                let waiting = self.submissions.values().filter(|submission| submission.fresh).count();
                self.fresh + (waiting as u64) < self.fresh_wanted
            } else {
                ordered < self.wanted
            };
            if !more {
                return;
            }
            let read = !self.healed && self.rng.below(100) < self.reads_share;
            let count = if self.rng.one_in(10) { 2 } else { 1 };
            let operations = if read {
                vec![self.workload.read(now, &mut self.rng)]
            } else {
                self.workload.operations(now, &mut self.rng, count)
            };
            let taken = if read {
                self.ask(now, operations[0].clone())
            } else {
                self.core.submit(Time(now), operations.clone())
            };
            let Ok(ticket) = taken else { return };
            let since = self.must_show(since, read);
            let submission = Submission { operations, invoked: now, since, read, fresh: self.healed };
            self.submissions.insert(ticket, submission);
            if !self.rng.one_in(16) {
                // One frame each, mostly.
                return;
            }
        }
    }

    fn ask(&mut self, now: u64, operation: Bytes) -> Result<Ticket, SubmitError> {
        match self.recent {
            true => self.core.read_recent(Time(now), operation),
            false => self.core.read(Time(now), operation),
        }
    }

    /// What it is shown must show this at least.
    fn must_show(&self, since: Seq, read: bool) -> Seq {
        if self.recent && read { self.told } else { since }
    }

    /// Submits a fast read beside the workload.
    pub fn read(&mut self, now: u64, since: Seq) {
        let operation = self.workload.read(now, &mut self.rng);
        if let Ok(ticket) = self.ask(now, operation.clone()) {
            let (operations, since) = (vec![operation], self.must_show(since, true));
            let submission = Submission { operations, invoked: now, since, read: true, fresh: false };
            self.submissions.insert(ticket, submission);
        }
    }

    /// Whether the workload could submit more at once.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.submissions.len() < self.outstanding
            && (if self.healed { self.fresh < self.fresh_wanted } else { self.wanted > 0 })
    }

    /// A replica's message arrives.
    pub fn hear(&mut self, now: u64, from: ReplicaId, message: ToClient) {
        self.core.on_message(Time(now), from, message);
    }

    /// Time passes.
    pub fn wake(&mut self, now: u64) {
        self.core.on_timer(Time(now));
    }

    /// When time matters next.
    #[must_use]
    pub fn next_wake(&self) -> Option<u64> {
        self.core.next_wake().map(|time| time.0)
    }

    /// Takes out what the client wants sent. Returns how many submissions ended.
    pub fn drain(&mut self, now: u64, checks: &mut Checks, send: &mut Vec<Sending>) -> u64 {
        let mut ended = 0;
        while let Some(output) = self.core.poll() {
            match output {
                Output::Send { to, message } => {
                    if let ToReplica::Request { frame, .. } = &message
                        && self.known_frames.insert((frame.number(), frame.is_signed()))
                    {
                        checks.validity.signed(frame);
                        checks.replies.model.sends(frame.client(), frame.number(), now);
                    }
                    send.push(Sending { to, message });
                }
                Output::Event(event) => {
                    let result = checks.events.delivered(&event, &checks.replies);
                    checks.judge("events", &[], result);
                    let known = checks.replies.model.events.get(&event.client);
                    let known = known.and_then(|events| events.get(event.index as usize - 1));
                    self.told = self.told.max(known.map_or(Seq(0), |(seq, _)| *seq));
                    self.workload.told(now, &event, checks);
                }
                Output::Done { ticket, result, .. } => {
                    ended += 1;
                    self.done(now, ticket, result.ok(), checks);
                }
            }
        }
        ended
    }

    fn done(&mut self, now: u64, ticket: Ticket, results: Option<Vec<Bytes>>, checks: &mut Checks) {
        let submission = self.submissions.remove(&ticket).expect("a ticket ends once");
        if let Some(results) = &results {
            let result = checks.replies.accepted(
                self.id,
                &submission.operations,
                results,
                submission.read,
                self.tentative,
            );
            checks.judge("reply integrity", &[], result);
            if !submission.read {
                let result = checks.events.shown(self.id, &submission.operations, results, &checks.replies);
                checks.judge("events", &[], result);
                let places = checks.replies.matching(self.id, &submission.operations, results);
                self.told = self.told.max(places.map(|done| done.seq).min().unwrap_or_default());
                self.wanted = self.wanted.saturating_sub(1);
            } else {
                self.reads += 1;
            }
            if submission.fresh {
                checks.liveness.waited = checks.liveness.waited.max(now - submission.invoked);
                self.fresh += 1;
            }
        }
        self.close(now, &submission, results.as_deref(), checks);
    }

    /// The workload learns what came of a submission.
    fn close(&mut self, now: u64, submission: &Submission, results: Option<&[Bytes]>, checks: &mut Checks) {
        let Submission { operations, invoked, since, read, .. } = submission;
        let called = Called {
            client: self.id,
            operations,
            results,
            invoked: *invoked,
            now,
            since: *since,
            read: *read,
            tentative: self.tentative,
        };
        self.workload.done(&called, checks);
    }

    /// Everything still without an outcome counts as unknown in the histories.
    pub fn finish(&mut self, now: u64, checks: &mut Checks) {
        for submission in std::mem::take(&mut self.submissions).into_values() {
            self.close(now, &submission, None, checks);
        }
    }

    /// How long it thinks before the next request.
    pub fn pause(&mut self) -> u64 {
        if self.think == 0 { 0 } else { self.rng.exponential(self.think) }
    }
}
