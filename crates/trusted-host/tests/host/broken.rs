//! Components with one planted fault each: the suite must name the rule that catches it. A rule that
//! no fault trips is not trusted.

use crate::support::{IDENTITY, Memory, MemoryHome, VolatileHome, mac, verifier};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, Refusal, TrustedCore, VolatileStore,
};
use troth_trusted_host::conformance::{Home, Rule, conformance};
use troth_trusted_host::{Answer, Call, CertificateVerifier, TrustedComponent};

/// What a broken component does before or after the core that it hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Names itself as another replica.
    Misnamed,
    /// Drops the last answer of a batch.
    ShortAnswer,
    /// Answers a batch in reverse.
    Reversed,
    /// Stops at the first refusal.
    StopsAtRefusal,
    /// Makes a second certificate where the core refused the first.
    Equivocates,
    /// Refuses to repeat.
    NeverRepeats,
    /// Reports every refusal as one of an unknown counter.
    VagueRefusal,
    /// Refuses three moves together but makes the first of them.
    HalfMulti,
    /// Moves a counter when asked about one that is not there.
    MovesOnRefusal,
    /// Comes back from a restart with everything at zero.
    Amnesia,
    /// Comes back from the second restart as from the first.
    StaleRestart,
    /// Says that it keeps no blob, and moves all the same.
    MovesWithoutBlob,
    /// Keeps the blob of a move that it refused.
    KeepsRefusedBlob,
    /// Keeps the blobs of all moves it ever made.
    KeepsEveryBlob,
    /// Forgets the blob of the last move.
    LosesLastBlob,
    /// Comes back from a restart without its blobs.
    ForgetsBlobs,
    /// Goes on after its store failed.
    IgnoresStore,
    /// Certifies under the configured epoch, whatever its own.
    WrongEpoch,
}

/// A core behind a fault.
struct Broken {
    fault: Fault,
    inner: Box<dyn TrustedComponent>,
    /// Blobs that the core would not give back.
    more: Vec<Vec<u8>>,
}

fn attest(counter: CounterId, previous: CounterValue, new: CounterValue, digest: [u8; 32]) -> Call {
    Call::Attest { counter, previous, new, digest }
}

/// A certificate of any move, from a clone that nobody should have.
fn forged(call: &Call) -> Answer {
    let mut clone = VolatileHome(mac()).fresh(IDENTITY.epoch);
    if let Call::Attest { counter, previous, .. } = call
        && previous.0 > 0
    {
        clone.call(&[attest(*counter, CounterValue(0), *previous, [0; 32])]);
    }
    clone.call(std::slice::from_ref(call)).remove(0)
}

impl Broken {
    fn one(&mut self, call: &Call) -> Answer {
        match (self.fault, call) {
            (Fault::NeverRepeats, Call::Attest { counter, previous, new, .. }) => {
                match self.inner.call(&[Call::Read { counter: *counter }]).remove(0) {
                    Answer::Value(value) if value == *new && previous < new => {
                        Answer::Refused(Refusal::Elsewhere { counter: *counter, current: value })
                    }
                    _ => self.inner.call(std::slice::from_ref(call)).remove(0),
                }
            }
            _ => self.inner.call(std::slice::from_ref(call)).remove(0),
        }
    }

    fn distort(&mut self, call: &Call, answer: Answer) -> Answer {
        match (self.fault, &answer, call) {
            (Fault::Equivocates, Answer::Refused(Refusal::Elsewhere { .. }), Call::Attest { .. }) => {
                forged(call)
            }
            (Fault::VagueRefusal, Answer::Refused(Refusal::NotAhead { counter, .. }), _) => {
                Answer::Refused(Refusal::UnknownCounter(*counter))
            }
            (Fault::HalfMulti, Answer::Refused(_), Call::AttestMulti { moves, digest })
                if moves.as_slice().len() > 2 =>
            {
                let m = moves.as_slice()[0];
                self.inner.call(&[attest(m.counter, m.previous, m.new, *digest)]);
                answer
            }
            (Fault::MovesOnRefusal, Answer::Refused(Refusal::UnknownCounter(_)), _) => {
                self.inner.call(&[attest(CounterId(7), CounterValue(0), CounterValue(1), [0; 32])]);
                answer
            }
            (Fault::IgnoresStore, Answer::Refused(Refusal::Halted), _) => forged(call),
            (Fault::WrongEpoch, Answer::Attested(_), _) if self.inner.identity() != IDENTITY => {
                VolatileHome(mac()).fresh(IDENTITY.epoch).call(std::slice::from_ref(call)).remove(0)
            }
            _ => answer,
        }
    }
}

impl TrustedComponent for Broken {
    fn identity(&self) -> Identity {
        let identity = self.inner.identity();
        match self.fault {
            Fault::Misnamed => Identity { replica: identity.replica + 1, ..identity },
            _ => identity,
        }
    }

    fn call(&mut self, calls: &[Call]) -> Vec<Answer> {
        let mut answers = Vec::new();
        let mut stopped = false;
        for call in calls {
            let answer = if stopped { Answer::Refused(Refusal::Halted) } else { self.one(call) };
            let answer = self.distort(call, answer);
            stopped |= self.fault == Fault::StopsAtRefusal && matches!(answer, Answer::Refused(_));
            answers.push(answer);
        }
        match self.fault {
            Fault::ShortAnswer => drop(answers.pop()),
            Fault::Reversed => answers.reverse(),
            _ => {}
        }
        answers
    }

    fn attest_beside(&mut self, call: &Call, blob: &[u8]) -> Option<Answer> {
        let answer = self.inner.attest_beside(call, blob);
        match (self.fault, &answer) {
            // Not at once, or it would count as one that keeps none at all.
            (Fault::MovesWithoutBlob, Some(_)) if blob.len() > 100 => return None,
            (Fault::KeepsRefusedBlob, Some(Answer::Refused(_))) => self.more.push(blob.to_vec()),
            _ => {}
        }
        answer
    }

    fn blobs(&mut self) -> Vec<Vec<u8>> {
        let mut blobs = self.inner.blobs();
        match self.fault {
            Fault::LosesLastBlob => drop(blobs.pop()),
            Fault::KeepsEveryBlob => {
                self.more.extend(blobs);
                self.more.dedup();
                return self.more.clone();
            }
            _ => blobs.extend(self.more.clone()),
        }
        blobs
    }
}

/// A durable home whose components have a fault.
struct BrokenHome {
    fault: Fault,
    sound: MemoryHome,
    /// What the first restart found, for [`Fault::StaleRestart`].
    first_found: Option<Memory>,
}

impl BrokenHome {
    fn new(fault: Fault) -> Self {
        Self { fault, sound: MemoryHome::new(mac()), first_found: None }
    }
}

impl Home for BrokenHome {
    fn identity(&self) -> Identity {
        IDENTITY
    }

    fn fresh(&mut self, epoch: Epoch) -> Box<dyn TrustedComponent> {
        self.first_found = None;
        Box::new(Broken { fault: self.fault, inner: self.sound.fresh(epoch), more: Vec::new() })
    }

    fn restart(&mut self) -> Option<Box<dyn TrustedComponent>> {
        if self.fault == Fault::Amnesia {
            return Some(self.sound.fresh(IDENTITY.epoch));
        }
        if self.fault == Fault::StaleRestart {
            let now = self.sound.store.with(|memory| memory.clone());
            let first = self.first_found.get_or_insert(now).clone();
            self.sound.store.with(|memory| *memory = first);
        }
        if self.fault == Fault::ForgetsBlobs {
            self.sound.store.with(|memory| memory.blobs.clear());
        }
        let inner = self.sound.restart()?;
        Some(Box::new(Broken { fault: self.fault, inner, more: Vec::new() }))
    }

    fn break_store(&mut self) -> bool {
        self.sound.break_store()
    }
}

fn caught_by(fault: Fault) -> Rule {
    let mut home = BrokenHome::new(fault);
    let report = conformance(&mut home, &verifier(&mac()));
    report.expect_err("the suite sees every planted fault").rule
}

#[test]
fn every_planted_fault_of_a_component_is_caught_by_its_rule() {
    for (fault, rule) in [
        (Fault::Misnamed, Rule::FreshStart),
        (Fault::ShortAnswer, Rule::FreshStart),
        (Fault::Reversed, Rule::BatchOrder),
        (Fault::StopsAtRefusal, Rule::BatchOrder),
        (Fault::Equivocates, Rule::Uniqueness),
        (Fault::NeverRepeats, Rule::IdempotentRepeat),
        (Fault::VagueRefusal, Rule::CompareAndSet),
        (Fault::HalfMulti, Rule::MultiAtomicity),
        (Fault::MovesOnRefusal, Rule::RefusalChangesNothing),
        (Fault::Amnesia, Rule::ResumeAfterRestart),
        (Fault::StaleRestart, Rule::ResumeAfterEveryRestart),
        (Fault::MovesWithoutBlob, Rule::BlobBesideMove),
        (Fault::KeepsRefusedBlob, Rule::BlobBesideMove),
        (Fault::KeepsEveryBlob, Rule::BlobBesideMove),
        (Fault::LosesLastBlob, Rule::BlobBesideMove),
        (Fault::ForgetsBlobs, Rule::BlobBesideMove),
        (Fault::IgnoresStore, Rule::HaltedAfterFailingStore),
        (Fault::WrongEpoch, Rule::EpochBinding),
    ] {
        assert_eq!(caught_by(fault), rule, "{fault:?}");
    }
}

/// What a broken verifier overlooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Blind {
    Epoch,
    Replica,
    Digest,
    MultiDigest,
    Proof,
}

struct BlindVerifier {
    blind: Blind,
    component: Certifier,
}

impl BlindVerifier {
    /// The certificate that a genuine component would make, to compare all but one field with.
    fn genuine(&self, epoch: Epoch) -> TrustedCore<VolatileStore> {
        TrustedCore::start(Identity { epoch, ..IDENTITY }, self.component.clone(), VolatileStore)
    }
}

impl CertificateVerifier for BlindVerifier {
    fn verify(&self, replica: u16, c: &troth_trusted::Certificate, digest: &[u8; 32]) -> bool {
        let sound = verifier(&self.component);
        match self.blind {
            Blind::Epoch => {
                let mut core = self.genuine(c.epoch);
                core.attest(c.counter, CounterValue(0), c.new, digest)
                    .is_ok_and(|genuine| c.previous.0 == 0 && genuine == *c)
                    || sound.verify(replica, c, digest)
            }
            Blind::Replica => sound.verify(IDENTITY.replica, c, digest),
            Blind::Digest => [[1; 32], [2; 32]].iter().any(|d| sound.verify(replica, c, d)),
            Blind::Proof => c.counter == CounterId(3) || sound.verify(replica, c, digest),
            Blind::MultiDigest => sound.verify(replica, c, digest),
        }
    }

    fn verify_multi(&self, replica: u16, c: &troth_trusted::MultiCertificate, digest: &[u8; 32]) -> bool {
        let sound = verifier(&self.component);
        match self.blind {
            Blind::MultiDigest => [[1; 32], [2; 32]].iter().any(|d| sound.verify_multi(replica, c, d)),
            _ => sound.verify_multi(replica, c, digest),
        }
    }
}

#[test]
fn every_planted_fault_of_a_verifier_is_caught_by_its_rule() {
    for (blind, rule) in [
        (Blind::Epoch, Rule::EpochBinding),
        (Blind::Replica, Rule::DomainSeparation),
        (Blind::Digest, Rule::TamperedCertificate),
        (Blind::MultiDigest, Rule::TamperedCertificate),
        (Blind::Proof, Rule::TamperedCertificate),
    ] {
        let blind_verifier = BlindVerifier { blind, component: mac() };
        let report = conformance(&mut MemoryHome::new(mac()), &blind_verifier);
        assert_eq!(report.expect_err("a blind verifier is seen").rule, rule, "{blind:?}");
    }
}

#[test]
fn a_violation_names_its_rule_and_what_was_seen() {
    let mut home = BrokenHome::new(Fault::Misnamed);
    let violation = conformance(&mut home, &verifier(&mac())).expect_err("misnamed");
    assert_eq!(violation.to_string(), "FreshStart: the component names another identity than its home");
}
