//! The logs of trusted components in the simulated world, and what a faulty replica's hosts make of the one that they share.

use crate::component::{WireWatch, identity_of, key};
use crate::printed::Printed;
use std::collections::BTreeMap;
use troth_auth::HISTORY_LOG;
use troth_trusted::a2m::{
    A2m, Answer, Attestation, Claim, Content, LOGS, LogId, LogRefusal, Nonce, Operation, Request, Slot,
    chained, jumped,
};
use troth_trusted::{Certifier, CounterValue, Digest, Epoch, MacVerifier, Proof, RunProof, VolatileStore};
use troth_trusted_host::{AttestationVerifier, InProcessLogs, TrustedLogs, log_room};
use troth_types::{Group, ReplicaId};

/// The logs of one replica's component. A crash of the replica does not touch them.
pub type LogsComponent = Box<dyn TrustedLogs>;

/// Which digest an advance has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jumps {
    /// One that says so where the log held something before (A2M-L7).
    Told,
    /// That of an append, as the paper prints it (F-A6).
    AsPrinted,
}

/// The logs of a replica's component at the start of an epoch.
#[must_use]
pub fn logs_of(
    group: &Group,
    replica: ReplicaId,
    epoch: u64,
    room: [usize; LOGS],
    jumps: Jumps,
) -> LogsComponent {
    let (identity, certifier) = (identity_of(group, replica, epoch), Certifier::Mac(key()));
    match jumps {
        Jumps::Told => {
            Box::new(InProcessLogs::new(A2m::start(identity, certifier, VolatileStore, log_room(room))))
        }
        Jumps::AsPrinted => Box::new(Printed::new(identity, certifier, room)),
    }
}

/// What one host of a faulty replica believes of a log.
#[derive(Clone, Debug, Default)]
struct Belief {
    low: Slot,
    entries: BTreeMap<Slot, (Digest, Digest)>,
}

impl Belief {
    fn fill(&mut self, slot: Slot, value: Digest, previous: Option<Digest>, jumps: Jumps) {
        // After amnesia a host fills a slot a second time.
        drop(self.entries.split_off(&slot));
        let last = self.entries.last_key_value().map_or([0; 32], |(_, (_, digest))| *digest);
        let digest = match previous {
            Some(previous) if self.entries.is_empty() && self.low.0 == 0 => chained(slot, &value, &previous),
            Some(previous) if jumps == Jumps::AsPrinted => chained(slot, &value, &previous),
            Some(previous) => jumped(slot, &value, &previous),
            None => chained(slot, &value, &last),
        };
        self.entries.insert(slot, (value, digest));
    }

    fn content(&self, slot: Slot) -> Content {
        let high = self.entries.last_key_value().map_or(self.low, |(high, _)| *high);
        if slot < self.low || slot.0 == 0 {
            return Content::Forgotten { low: self.low };
        }
        match self.entries.range(slot..).next() {
            None => Content::Unassigned { high },
            Some((at, (value, digest))) if *at == slot => {
                Content::Assigned { value: *value, digest: *digest }
            }
            Some((end, (value, digest))) => Content::Skipped { end: *end, value: *value, digest: *digest },
        }
    }

    fn end(&self) -> Slot {
        self.entries.last_key_value().map_or(CounterValue(0), |(high, _)| *high)
    }
}

/// The one real component of a faulty replica, between hosts that each believe in logs of their own. Where the real logs
/// can be made to say what a host believes, they do, by advances if need be; where they cannot, the host gets an answer
/// that it believes and nobody else does.
pub struct Pretender {
    real: Vec<LogsComponent>,
    beliefs: Vec<BTreeMap<LogId, Belief>>,
    /// What the hosts believed when their states were kept.
    saved: Vec<BTreeMap<LogId, Belief>>,
    /// While nothing is to be forgotten: where each log is to begin afterwards.
    withheld: Option<BTreeMap<LogId, Slot>>,
    epoch: Epoch,
    jumps: Jumps,
}

/// The digest with which a real log ends.
fn ends_with(real: &mut LogsComponent, log: LogId) -> Digest {
    let end = Operation::End { log, nonce: [0; 32] };
    match real.call(&[end]).ok().and_then(|mut answers| answers.pop()) {
        Some(Answer::Attested(Attestation {
            claim: Claim { content: Content::Assigned { digest, .. }, .. },
            ..
        })) => digest,
        _ => [0; 32],
    }
}

impl Pretender {
    /// Between this component and so many hosts; where there are more components, each host has its own: clones.
    #[must_use]
    pub fn new(real: Vec<LogsComponent>, hosts: usize, jumps: Jumps) -> Self {
        let epoch = real.first().map_or(Epoch(0), |real| real.identity().epoch);
        let beliefs = vec![BTreeMap::new(); hosts];
        Self { real, saved: beliefs.clone(), beliefs, withheld: None, epoch, jumps }
    }

    /// A clone of a host is kept.
    pub fn save(&mut self, host: usize) {
        self.saved[host] = self.beliefs[host].clone();
    }

    /// The clone takes the host's place: it believes what it did then.
    pub fn restore(&mut self, host: usize) {
        self.beliefs[host] = self.saved[host].clone();
    }

    /// From now on the real logs forget nothing, whatever their hosts ask for, so that who goes back can show what it held;
    /// or they do again, and what was put off is done.
    pub fn forget_nothing(&mut self, whether: bool) {
        if whether {
            self.withheld.get_or_insert_default();
            return;
        }
        for (log, slot) in self.withheld.take().unwrap_or_default() {
            let _ = self.ask(&[Operation::Truncate { log, slot }]);
        }
    }

    /// The operator takes it for lost and admits another one: the hosts have both.
    pub fn renew(&mut self, logs: LogsComponent) {
        self.real.push(logs);
    }

    /// Whether it has got another one.
    #[must_use]
    pub fn is_renewed(&self) -> bool {
        self.real.last().is_some_and(|real| real.identity().epoch != self.epoch)
    }

    /// Asks the real component.
    pub fn ask(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
        self.real[0].call(operations)
    }

    /// Answers a host.
    pub fn call(&mut self, host: usize, operations: &[Operation]) -> Vec<Answer> {
        operations.iter().map(|operation| self.one(host, *operation)).collect()
    }

    fn one(&mut self, host: usize, operation: Operation) -> Answer {
        let log = operation.log();
        let belief = self.beliefs[host].entry(log).or_default();
        let (request, slot, nonce) = match operation {
            Operation::Append { slot, value, nonce, .. } => {
                belief.fill(slot, value, None, self.jumps);
                (Request::Lookup, slot, nonce)
            }
            Operation::Advance { slot, previous, value, nonce, .. } => {
                belief.fill(slot, value, Some(previous), self.jumps);
                (Request::Lookup, slot, nonce)
            }
            Operation::Truncate { slot, .. } => {
                belief.low = belief.low.max(slot);
                belief.entries = belief.entries.split_off(&slot);
                (Request::Lookup, slot, None)
            }
            Operation::Lookup { slot, nonce, .. } | Operation::LookupFor { slot, nonce, .. } => {
                (Request::Lookup, slot, Some(nonce))
            }
            Operation::End { nonce, .. } => (Request::End, belief.end(), Some(nonce)),
        };
        let content = belief.content(slot);
        let before = belief.entries.range(..slot).next_back().map_or([0; 32], |(_, (_, digest))| *digest);
        // Of several hosts the first one keeps the first component.
        let newest = self.real.len() - 1;
        let real = if self.beliefs.len() == 1 { newest } else { host.min(newest) };
        let real = &mut self.real[real];
        match operation {
            Operation::Append { slot, value, .. } => {
                let brought = Operation::Advance { log, slot, previous: before, value, nonce: None };
                // Where another host had the log filled, an append would go on from that one's history.
                let fill = if ends_with(real, log) == before { operation } else { brought };
                let _ = real.call(&[fill]).or_else(|_| real.call(&[brought]));
            }
            Operation::Truncate { slot, .. } if let Some(withheld) = &mut self.withheld => {
                let due = withheld.entry(log).or_default();
                *due = (*due).max(slot);
            }
            Operation::Advance { .. } | Operation::Truncate { .. } => drop(real.call(&[operation])),
            Operation::Lookup { .. } | Operation::LookupFor { .. } | Operation::End { .. } => {}
        }
        let Some(nonce) = nonce else { return Answer::Done };
        let question = match (request, operation) {
            (_, Operation::LookupFor { peer, .. }) => Operation::LookupFor { log, slot, nonce, peer },
            (Request::Lookup, _) => Operation::Lookup { log, slot, nonce },
            (Request::End, _) => Operation::End { log, nonce },
        };
        let claim = Claim { request, log, slot, nonce, content };
        let said = real.call(&[question]).ok().and_then(|mut answers| answers.pop());
        match said {
            Some(Answer::Attested(said)) if serves(&said.claim, &claim) => Answer::Attested(said),
            _ => Answer::Attested(Attestation { epoch: self.epoch, claim, proof: Proof::Mac([0; 32]) }),
        }
    }
}

/// Whether what the real component says serves a host that believes this: it is the same, or both say that the slot was
/// passed over, or that it holds the same value, where nobody looks at what came before. A host that shows so to others
/// can use it, however the log went on in truth.
fn serves(said: &Claim, believed: &Claim) -> bool {
    let same = (said.request, said.log, said.slot, said.nonce);
    let asked = same == (believed.request, believed.log, believed.slot, believed.nonce);
    let alike = match (said.content, believed.content) {
        (Content::Skipped { .. }, Content::Skipped { .. }) => true,
        (Content::Assigned { value: one, .. }, Content::Assigned { value: other, .. }) => {
            one == other && said.log != HISTORY_LOG
        }
        _ => false,
    };
    said == believed || (asked && alike)
}

/// What good attestations said of slots.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    filled: BTreeMap<(u16, Epoch, LogId, Slot), (Digest, Digest)>,
    /// Two things said of one slot, if there ever were.
    pub(crate) clash: Option<String>,
}

impl Shown {
    fn note(&mut self, replica: u16, attestation: &Attestation) {
        let Claim { log, slot, content, .. } = attestation.claim;
        let name = |slot| (replica, attestation.epoch, log, slot);
        let clash = match content {
            Content::Assigned { value, digest } => {
                let said = *self.filled.entry(name(slot)).or_insert((value, digest));
                said != (value, digest)
            }
            Content::Skipped { end, value, digest } => {
                let said = *self.filled.entry(name(end)).or_insert((value, digest));
                said != (value, digest) || self.filled.range(name(slot)..name(end)).next().is_some()
            }
            Content::Unassigned { .. } | Content::Forgotten { .. } => false,
        };
        if clash {
            let told = format!("slot {:x} of log {} of replica {replica} is two things", slot.0, log.0);
            self.clash.get_or_insert(told);
        }
    }
}

impl AttestationVerifier for WireWatch {
    fn lookup(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let content = self.group().lookup(replica, attestation, log, slot, nonce)?;
        self.shown(|shown| shown.note(replica, attestation));
        Some(content)
    }

    fn lookup_for(
        &self,
        key: &MacVerifier,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let content = self.group().lookup_for(key, replica, attestation, log, slot, nonce)?;
        self.shown(|shown| shown.note(replica, attestation));
        Some(content)
    }

    fn end(
        &self,
        replica: u16,
        attestation: &Attestation,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)> {
        let last = self.group().end(replica, attestation, log, nonce, among)?;
        self.shown(|shown| shown.note(replica, attestation));
        Some(last)
    }
}
