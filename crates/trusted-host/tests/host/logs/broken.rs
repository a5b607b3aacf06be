//! Homes of attested logs with one planted fault each: the suite must name the rule that catches it. A rule
//! that no fault trips is not trusted.

use super::support::{Memory, MemoryHome, VolatileHome};
use crate::support::{IDENTITY, mac, pair, verifier};
use troth_trusted::a2m::{
    Answer, Attestation, Content, LogId, LogRefusal, MOST_OPERATIONS, Nonce, Operation, Slot, Unfit,
};
use troth_trusted::{CounterValue, Epoch, Identity, MacVerifier, RunProof};
use troth_trusted_host::conformance::logs::{LogHome, LogRule, log_conformance};
use troth_trusted_host::{AttestationVerifier, TrustedLogs};

/// What a broken component does before or after the core that it hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Names itself as another replica.
    Misnamed,
    /// Drops the last answer of a call.
    ShortAnswer,
    /// Answers a call in reverse.
    Reversed,
    /// Answers every END of a call as the logs are when the call ends.
    LateEnds,
    /// Fills a slot a second time, in a clone that nobody should have.
    Equivocates,
    /// Says of every advance that is refused that there is no such log.
    VagueRefusal,
    /// Chains an advance to the log's own digest instead of the one that is given.
    OwnChain,
    /// Fills the slots that an advance passes over.
    FillsSkipped,
    /// Says that it truncated, and did not.
    KeepsAll,
    /// Forgets its oldest entry where the log is full.
    DropsOldest,
    /// Does what comes before the operation that cannot be done.
    HalfCall,
    /// Does a call of too many operations in parts.
    Boundless,
    /// Answers with another nonce where it was asked for the root of many.
    OwnNonce,
    /// Comes back from a restart with empty logs.
    Amnesia,
    /// Comes back from every restart as from the third.
    StaleRestart,
    /// Goes on after its store failed.
    IgnoresStore,
    /// Attests under the configured epoch, whatever its own.
    WrongEpoch,
    /// Says to all what it should say to one client.
    ToAll,
    /// Says to one client what it should say to another.
    OtherClient,
}

/// A core behind a fault.
struct Broken {
    fault: Fault,
    inner: Box<dyn TrustedLogs>,
    /// What was done so far, to do it again elsewhere.
    history: Vec<Operation>,
}

/// A component with the same key that has done all this.
fn clone_after(history: &[Operation]) -> Box<dyn TrustedLogs> {
    let mut clone = VolatileHome(mac()).fresh(IDENTITY.epoch);
    for operation in history {
        let _ = clone.call(&[*operation]);
    }
    clone
}

impl Broken {
    fn new(fault: Fault, inner: Box<dyn TrustedLogs>) -> Self {
        Self { fault, inner, history: Vec::new() }
    }

    fn last(&mut self, log: LogId) -> (Slot, Content) {
        match self.inner.call(&[Operation::End { log, nonce: [0; 32] }]).as_deref() {
            Ok([Answer::Attested(Attestation { claim, .. })]) => (claim.slot, claim.content),
            other => panic!("END was answered {other:?}"),
        }
    }

    /// What is asked of the core in place of one operation.
    fn instead(&mut self, operation: Operation) -> Vec<Operation> {
        match (self.fault, operation) {
            (Fault::OwnChain, Operation::Advance { log, slot, value, nonce, .. }) if log.0 < 16 => {
                let previous = match self.last(log).1 {
                    Content::Assigned { digest, .. } => digest,
                    _ => [0; 32],
                };
                vec![Operation::Advance { log, slot, previous, value, nonce }]
            }
            (Fault::FillsSkipped, Operation::Advance { log, slot, value, .. })
                if log.0 < 16 && slot.0 > self.last(log).0.0.saturating_add(1) =>
            {
                let before = CounterValue(slot.0 - 1);
                let filler = Operation::Advance { log, slot: before, previous: [0; 32], value, nonce: None };
                vec![filler, operation]
            }
            (Fault::KeepsAll, Operation::Truncate { log, slot })
                if log.0 < 16 && slot.0 > 0 && slot <= self.last(log).0 =>
            {
                vec![]
            }
            (Fault::OwnNonce, Operation::End { log, nonce }) if nonce != [0x5a; 32] && nonce != [0; 32] => {
                vec![Operation::End { log, nonce: [9; 32] }]
            }
            (Fault::ToAll, Operation::LookupFor { log, slot, nonce, .. }) => {
                vec![Operation::Lookup { log, slot, nonce }]
            }
            (Fault::OtherClient, Operation::LookupFor { log, slot, nonce, .. }) => {
                vec![Operation::LookupFor { log, slot, nonce, peer: [9; 32] }]
            }
            _ => vec![operation],
        }
    }

    fn distorted(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
        let answered = self.inner.call(operations);
        let (first, refusal) = match (&answered, operations) {
            (Err(refusal), [first, ..]) => (*first, *refusal),
            _ => return answered,
        };
        match (self.fault, refusal) {
            (Fault::Equivocates, LogRefusal::Operation { why: Unfit::Elsewhere { .. }, .. }) => {
                let log = first.log();
                let others: Vec<_> = self.history.iter().filter(|o| o.log() != log).copied().collect();
                clone_after(&others).call(operations).or(answered)
            }
            (Fault::VagueRefusal, LogRefusal::Operation { index, why: Unfit::NotAhead { .. } }) => {
                Err(LogRefusal::Operation { index, why: Unfit::NoSuchLog })
            }
            (Fault::DropsOldest, LogRefusal::Operation { why: Unfit::Full, .. }) => {
                let (log, high) = (first.log(), self.last(first.log()).0);
                self.inner.call(&[Operation::Truncate { log, slot: high }])?;
                self.inner.call(operations)
            }
            (Fault::HalfCall, LogRefusal::Operation { index, .. }) => {
                let _ = self.inner.call(&operations[..index]);
                answered
            }
            (Fault::Boundless, LogRefusal::TooMany) => {
                let parts = operations.chunks(MOST_OPERATIONS).map(|part| self.inner.call(part));
                parts.collect::<Result<Vec<_>, _>>().map(|parts| parts.concat())
            }
            (Fault::IgnoresStore, LogRefusal::Halted) => clone_after(&self.history).call(operations),
            _ => answered,
        }
    }
}

impl TrustedLogs for Broken {
    fn identity(&self) -> Identity {
        let identity = self.inner.identity();
        match self.fault {
            Fault::Misnamed => Identity { replica: identity.replica + 1, ..identity },
            _ => identity,
        }
    }

    fn call(&mut self, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
        if self.fault == Fault::WrongEpoch && self.inner.identity() != IDENTITY {
            let answers = clone_after(&self.history).call(operations);
            self.history.extend(operations);
            return answers;
        }
        let asked: Vec<_> = operations.iter().map(|operation| self.instead(*operation)).collect();
        let mut answers = self.distorted(&asked.concat())?;
        // One answer for each that was asked: the last of those in its place.
        for (index, instead) in asked.iter().enumerate() {
            match instead.len() {
                0 => answers.insert(index, Answer::Done),
                length => drop(answers.drain(index..index + length - 1)),
            }
        }
        self.history.extend(operations);
        match self.fault {
            Fault::ShortAnswer => drop(answers.pop()),
            Fault::Reversed => answers.reverse(),
            Fault::LateEnds => {
                for (operation, answer) in operations.iter().zip(&mut answers) {
                    if let Operation::End { .. } = operation {
                        *answer = self.inner.call(&[*operation])?.remove(0);
                    }
                }
            }
            _ => {}
        }
        Ok(answers)
    }
}

/// A durable home whose components have a fault.
struct BrokenHome {
    fault: Fault,
    sound: MemoryHome,
    /// How often it was started, and what the third start found, for [`Fault::StaleRestart`].
    starts: usize,
    third: Option<Memory>,
}

impl LogHome for BrokenHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedLogs> {
        (self.starts, self.third) = (0, None);
        Box::new(Broken::new(self.fault, self.sound.fresh(epoch)))
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedLogs>> {
        self.starts += 1;
        if self.fault == Fault::Amnesia {
            return Some(self.sound.fresh(IDENTITY.epoch));
        }
        if self.fault == Fault::StaleRestart && self.starts >= 3 {
            let now = self.sound.store.with(|memory| memory.clone());
            let third = self.third.get_or_insert(now).clone();
            self.sound.store.with(|memory| *memory = third);
        }
        Some(Box::new(Broken::new(self.fault, self.sound.restart()?)))
    }

    fn break_store(&mut self) -> bool {
        self.sound.break_store()
    }

    fn shared_with(&self, secret: &[u8; 32]) -> MacVerifier {
        pair(&mac(), secret)
    }
}

fn caught_by(fault: Fault) -> LogRule {
    let mut home = BrokenHome { fault, sound: MemoryHome::new(mac()), starts: 0, third: None };
    let report = log_conformance(&mut home, &verifier(&mac()));
    report.expect_err("the suite sees every planted fault").rule
}

#[test]
fn every_planted_fault_of_logs_is_caught_by_its_rule() {
    for (fault, rule) in [
        (Fault::Misnamed, LogRule::FreshStart),
        (Fault::ShortAnswer, LogRule::FreshStart),
        (Fault::Equivocates, LogRule::AppendOnly),
        (Fault::VagueRefusal, LogRule::AppendOnly),
        (Fault::OwnChain, LogRule::Contents),
        (Fault::FillsSkipped, LogRule::Contents),
        (Fault::KeepsAll, LogRule::Truncation),
        (Fault::DropsOldest, LogRule::FullLog),
        (Fault::HalfCall, LogRule::AllOrNothing),
        (Fault::Boundless, LogRule::AllOrNothing),
        (Fault::Reversed, LogRule::CallOrder),
        (Fault::LateEnds, LogRule::CallOrder),
        (Fault::OwnNonce, LogRule::ManyNonces),
        (Fault::Amnesia, LogRule::SameAfterRestart),
        (Fault::StaleRestart, LogRule::SameAfterEveryRestart),
        (Fault::IgnoresStore, LogRule::HaltedAfterFailingStore),
        (Fault::WrongEpoch, LogRule::EpochBinding),
        (Fault::ToAll, LogRule::ForOneClient),
        (Fault::OtherClient, LogRule::ForOneClient),
    ] {
        assert_eq!(caught_by(fault), rule, "{fault:?}");
    }
}

/// What a broken verifier overlooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blind {
    /// Takes the epoch that the attestation says for the configured one.
    Epoch,
    Replica,
    Request,
    Log,
    Slot,
    Nonce,
    Place,
    Proof,
    /// For whom a MAC was made.
    Client,
}

struct BlindVerifier(Blind);

/// A verifier that knows the component in this epoch.
fn knowing(epoch: Epoch) -> troth_trusted_host::GroupVerifier {
    let troth_trusted::Certifier::Mac(key) = mac() else { panic!("the test's key is a MAC key") };
    let member = (Identity { epoch, ..IDENTITY }, key.verifier().into());
    troth_trusted_host::GroupVerifier::new([member]).expect("one member")
}

impl AttestationVerifier for BlindVerifier {
    fn lookup(
        &self,
        replica: u16,
        made: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        let sound = verifier(&mac());
        let content = made.claim.content;
        match self.0 {
            Blind::Epoch => knowing(made.epoch).lookup(replica, made, log, slot, nonce),
            Blind::Replica => sound.lookup(IDENTITY.replica, made, log, slot, nonce),
            Blind::Log => sound.lookup(replica, made, made.claim.log, slot, nonce),
            Blind::Slot => sound.lookup(replica, made, log, made.claim.slot, nonce),
            Blind::Nonce => sound.lookup(replica, made, log, slot, &made.claim.nonce),
            Blind::Proof => Some(content),
            Blind::Request => sound.lookup(replica, made, log, slot, nonce).or_else(|| {
                sound.end(replica, made, log, nonce, &RunProof::SINGLE).map(|(_, content)| content)
            }),
            Blind::Place | Blind::Client => sound.lookup(replica, made, log, slot, nonce),
        }
    }

    fn lookup_for(
        &self,
        key: &MacVerifier,
        replica: u16,
        made: &Attestation,
        log: LogId,
        slot: Slot,
        nonce: &Nonce,
    ) -> Option<Content> {
        match self.0 {
            Blind::Client => Some(made.claim.content),
            _ => verifier(&mac()).lookup_for(key, replica, made, log, slot, nonce),
        }
    }

    fn end(
        &self,
        replica: u16,
        made: &Attestation,
        log: LogId,
        nonce: &Nonce,
        among: &RunProof,
    ) -> Option<(Slot, Content)> {
        let sound = verifier(&mac());
        let as_it_says = || sound.end(replica, made, log, &made.claim.nonce, &RunProof::SINGLE);
        match self.0 {
            Blind::Epoch => knowing(made.epoch).end(replica, made, log, nonce, among),
            Blind::Replica => sound.end(IDENTITY.replica, made, log, nonce, among),
            Blind::Place if among.count > 1 => as_it_says(),
            Blind::Log => sound.end(replica, made, made.claim.log, nonce, among),
            _ => sound.end(replica, made, log, nonce, among),
        }
    }
}

#[test]
fn every_planted_fault_of_a_verifier_of_logs_is_caught_by_its_rule() {
    for (blind, rule) in [
        (Blind::Place, LogRule::ManyNonces),
        (Blind::Client, LogRule::ForOneClient),
        (Blind::Epoch, LogRule::EpochBinding),
        (Blind::Replica, LogRule::TamperedAttestation),
        (Blind::Request, LogRule::TamperedAttestation),
        (Blind::Log, LogRule::TamperedAttestation),
        (Blind::Slot, LogRule::TamperedAttestation),
        (Blind::Nonce, LogRule::TamperedAttestation),
        (Blind::Proof, LogRule::ForOneClient),
    ] {
        let report = log_conformance(&mut MemoryHome::new(mac()), &BlindVerifier(blind));
        assert_eq!(report.expect_err("a blind verifier is seen").rule, rule, "{blind:?}");
    }
}

#[test]
fn a_violation_of_the_rules_of_logs_names_its_rule_and_what_was_seen() {
    let fault = Fault::Misnamed;
    let mut home = BrokenHome { fault, sound: MemoryHome::new(mac()), starts: 0, third: None };
    let violation = log_conformance(&mut home, &verifier(&mac())).expect_err("misnamed");
    assert_eq!(violation.to_string(), "FreshStart: the component names another identity than its home");
}
