//! A correct client: the production client core under a random workload.

use crate::checks::{Call, Checks, ClientState};
use crate::{Options, Rng};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_auth::{Authenticators, Signer};
use troth_client::{Acceptance, ClientCore, Config, Output, Proven, Ticket, Timing};
use troth_kv::{Answer, Operation, Watch};
use troth_types::{ClientId, Group, Limits, ReplicaId, Time, ToClient, ToReplica, Wire};

/// Fresh requests that each client must have answered after the healing.
pub const FRESH: u64 = 10;

struct Submission {
    operations: Vec<Operation>,
    encoded: Vec<Bytes>,
    invoked: u64,
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
    keys: u64,
    reads_share: u64,
    made: u64,
    /// The last version seen of each key, for compare-and-swap.
    versions: BTreeMap<Bytes, u64>,
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
    ) -> Self {
        let timing = Timing {
            resend_first: options.resend_first,
            resend_longest: 400_000,
            full_wait: 3_000,
            read_wait: 10_000,
            deadline: options.client_deadline,
            unavailable_after: u64::MAX / 2,
        };
        let Proofs { acceptance, authenticators, history } = proofs;
        let config = Config { acceptance, limits, timing, authenticators, history, ..Config::new(group, id) };
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
            keys: options.keys,
            reads_share: options.reads,
            made: 0,
            versions: BTreeMap::new(),
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

    fn key(&mut self) -> Bytes {
        Bytes::from(format!("k{}", self.rng.below(self.keys)))
    }

    fn value(&mut self) -> Bytes {
        self.made += 1;
        Bytes::from(format!("{}.{}", self.id.0, self.made))
    }

    fn operation(&mut self) -> Operation {
        let key = self.key();
        match self.rng.below(100) {
            0..40 => Operation::Put { key, value: self.value() },
            40..58 => Operation::Get { key },
            58..72 => {
                let expected = self.versions.get(&key).copied();
                let value = (!self.rng.one_in(5)).then(|| self.value());
                Operation::CompareAndSwap { key, expected, value }
            }
            72..84 => Operation::Delete { key },
            84..90 => Operation::Scan {
                start: Bytes::from_static(b"k"),
                end: Some(Bytes::from_static(b"l")),
                limit: 100,
            },
            90..96 => Operation::Watch(if self.rng.one_in(3) {
                Watch::Prefix(Bytes::from_static(b"k"))
            } else {
                Watch::Key(key)
            }),
            _ => Operation::Unwatch(Watch::Key(key)),
        }
    }

    /// Submits what the workload wants now. Returns whether it wants to be asked again later.
    pub fn submit(&mut self, now: u64) {
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
            let operations: Vec<Operation> = if read {
                let key = self.key();
                vec![Operation::Get { key }]
            } else {
                (0..count).map(|_| self.operation()).collect()
            };
            let encoded: Vec<Bytes> = operations.iter().map(Wire::to_wire).collect();
            let taken = if read {
                self.core.read(Time(now), encoded[0].clone())
            } else {
                self.core.submit(Time(now), encoded.clone())
            };
            let Ok(ticket) = taken else { return };
            let submission = Submission { operations, encoded, invoked: now, read, fresh: self.healed };
            self.submissions.insert(ticket, submission);
            if !self.rng.one_in(16) {
                // One frame each, mostly.
                return;
            }
        }
    }

    /// Submits a fast read beside the workload.
    pub fn read(&mut self, now: u64) {
        let operations = vec![Operation::Get { key: self.key() }];
        let encoded: Vec<Bytes> = operations.iter().map(Wire::to_wire).collect();
        if let Ok(ticket) = self.core.read(Time(now), encoded[0].clone()) {
            let submission = Submission { operations, encoded, invoked: now, read: true, fresh: false };
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
                    }
                    send.push(Sending { to, message });
                }
                Output::Event(event) => {
                    let result = checks.events.delivered(&event, &checks.replies);
                    checks.judge("events", &[], result);
                    checks.events.told(now, &event);
                }
                Output::Done { ticket, result } => {
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
                &submission.encoded,
                results,
                submission.read,
                self.tentative,
            );
            checks.judge("reply integrity", &[], result);
            if !submission.read {
                let result = checks.events.shown(self.id, &submission.encoded, results, &checks.replies);
                checks.judge("events", &[], result);
                self.wanted = self.wanted.saturating_sub(1);
            } else {
                self.reads += 1;
            }
            if submission.fresh {
                checks.liveness.waited = checks.liveness.waited.max(now - submission.invoked);
                self.fresh += 1;
            }
        }
        for (index, operation) in submission.operations.iter().enumerate() {
            let answer = results.as_ref().and_then(|results| Answer::from_wire(results.get(index)?).ok());
            self.remember(operation, answer.as_ref());
            if let Some(answer) = &answer {
                let result = checks.events.answered(self.id, submission.invoked, operation, answer);
                checks.judge("events", &[], result);
            }
            record(checks, submission.invoked, results.as_ref().map(|_| now), operation, answer, self.keys);
        }
    }

    /// Everything still without an outcome counts as unknown in the histories.
    pub fn finish(&mut self, checks: &mut Checks) {
        for submission in std::mem::take(&mut self.submissions).into_values() {
            for operation in &submission.operations {
                record(checks, submission.invoked, None, operation, None, self.keys);
            }
        }
    }

    fn remember(&mut self, operation: &Operation, answer: Option<&Answer>) {
        let (Operation::Get { key }
        | Operation::Put { key, .. }
        | Operation::Delete { key }
        | Operation::CompareAndSwap { key, .. }) = operation
        else {
            return;
        };
        match answer {
            Some(Answer::Value { version, .. } | Answer::Written { version }) => {
                self.versions.insert(key.clone(), *version);
            }
            Some(Answer::Mismatch { current: Some(version) }) => {
                self.versions.insert(key.clone(), *version);
            }
            Some(Answer::NotFound | Answer::Deleted { .. } | Answer::Mismatch { current: None }) => {
                self.versions.remove(key);
            }
            _ => {}
        }
    }
    /// How long it thinks before the next request.
    pub fn pause(&mut self) -> u64 {
        if self.think == 0 { 0 } else { self.rng.exponential(self.think) }
    }
}

/// Puts an operation into the histories of the keys it touches.
fn record(
    checks: &mut Checks,
    invoked: u64,
    returned: Option<u64>,
    operation: &Operation,
    answer: Option<Answer>,
    keys: u64,
) {
    match operation {
        Operation::Get { key }
        | Operation::Put { key, .. }
        | Operation::Delete { key }
        | Operation::CompareAndSwap { key, .. } => {
            let call = Call { invoked, returned, operation: operation.clone(), answer };
            checks.linear.add(key.clone(), call);
        }
        Operation::Scan { .. } => {
            let Some(Answer::Entries { entries, .. }) = answer else { return };
            for key in (0..keys).map(|key| Bytes::from(format!("k{key}"))) {
                let found = entries.iter().find(|entry| entry.key == key);
                let answer = found.map_or(Answer::NotFound, |entry| Answer::Value {
                    version: entry.version,
                    value: entry.value.clone(),
                });
                let operation = Operation::Get { key: key.clone() };
                checks.linear.add(key, Call { invoked, returned, operation, answer: Some(answer) });
            }
        }
        Operation::Watch(_) | Operation::Unwatch(_) => {}
    }
}
