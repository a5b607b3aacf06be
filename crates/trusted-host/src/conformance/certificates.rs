//! Rules on what a certificate proves, and what it does not.

use super::Outcome;
use super::probe::{ONE, OTHER, Probe, Seen, require, step};
use troth_trusted::{
    Certificate, CounterId, CounterValue, Digest, Epoch, Move, Moves, MultiCertificate, Proof,
};

impl Probe<'_> {
    fn rejects(&self, forged: &Certificate, digest: &Digest, what: &str) -> Seen<()> {
        let accepted = self.verifier.verify(self.replica, forged, digest);
        require(!accepted, format!("accepted with {what}: {forged:?}"))
    }

    fn rejects_multi(&self, forged: &MultiCertificate, digest: &Digest, what: &str) -> Seen<()> {
        let accepted = self.verifier.verify_multi(self.replica, forged, digest);
        require(!accepted, format!("accepted with {what}: {forged:?}"))
    }
}

pub(super) fn epoch_binding(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let ours = probe.attested(step(0, 0, 1), ONE)?;
    probe.next_epoch();
    let calls = [
        super::probe::attest(step(0, 0, 1), ONE),
        super::probe::attest_multi(&[step(1, 0, 1), step(2, 0, 1)], ONE),
    ];
    let answers = probe.batch(&calls)?;
    let [crate::Answer::Attested(alone), crate::Answer::AttestedMulti(together)] = answers.as_slice() else {
        return Err(format!("a component of the next epoch answered {answers:?}"));
    };
    require(alone.epoch != ours.epoch, "a component of the next epoch certifies under the last")?;
    probe.rejects(alone, &ONE, "another epoch")?;
    probe.rejects(&Certificate { epoch: ours.epoch, ..alone.clone() }, &ONE, "its epoch rewritten")?;
    probe.rejects_multi(together, &ONE, "another epoch")?;
    let rewritten = MultiCertificate { epoch: ours.epoch, ..(**together).clone() };
    probe.rejects_multi(&rewritten, &ONE, "its epoch rewritten")?;
    Ok(Outcome::Held)
}

pub(super) fn domain_separation(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let alone = probe.attested(step(0, 0, 1), ONE)?;
    let moves = [step(0, 1, 2), step(1, 0, 1)];
    let together = probe.attested_multi(&moves, ONE)?;
    for m in moves {
        let cut = Certificate {
            epoch: together.epoch,
            counter: m.counter,
            previous: m.previous,
            new: m.new,
            proof: together.proof.clone(),
        };
        probe.rejects(&cut, &ONE, "the proof of a move together")?;
    }
    let with_other = Moves::new(&[alone.moved(), step(1, 0, 1)]).ok_or("two moves were refused")?;
    let joined = MultiCertificate { epoch: alone.epoch, moves: with_other, proof: alone.proof.clone() };
    probe.rejects_multi(&joined, &ONE, "the proof of a move alone")?;
    for other in [probe.replica.wrapping_add(1), probe.replica ^ 0x100] {
        let accepted =
            probe.verifier.verify(other, &alone, &ONE) || probe.verifier.verify_multi(other, &together, &ONE);
        require(!accepted, format!("a certificate passed for one of replica {other}"))?;
    }
    Ok(Outcome::Held)
}

pub(super) fn tampered_certificate(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let alone = probe.attested(step(3, 0, 5), ONE)?;
    let moves = [step(3, 5, 6), step(4, 0, 1)];
    let together = probe.attested_multi(&moves, ONE)?;
    probe.rejects(&alone, &OTHER, "another digest")?;
    probe.rejects_multi(&together, &OTHER, "another digest")?;
    for bit in 0..64 {
        let epoch = Epoch(alone.epoch.0 ^ (1 << bit));
        probe.rejects(&Certificate { epoch, ..alone.clone() }, &ONE, "another epoch")?;
        probe.rejects_multi(&MultiCertificate { epoch, ..together.clone() }, &ONE, "another epoch")?;
    }
    for bit in 0..16 {
        let counter = CounterId(alone.counter.0 ^ (1 << bit));
        probe.rejects(&Certificate { counter, ..alone.clone() }, &ONE, "another counter")?;
    }
    for bit in 0..128 {
        let previous = CounterValue(alone.previous.0 ^ (1 << bit));
        probe.rejects(&Certificate { previous, ..alone.clone() }, &ONE, "another previous value")?;
        let new = CounterValue(alone.new.0 ^ (1 << bit));
        probe.rejects(&Certificate { new, ..alone.clone() }, &ONE, "another new value")?;
    }
    for altered in altered_moves(&moves) {
        let moves = Moves::new(&altered).ok_or("altered moves were refused")?;
        probe.rejects_multi(&MultiCertificate { moves, ..together.clone() }, &ONE, "other moves")?;
    }
    for proof in altered_proofs(&alone.proof) {
        probe.rejects(&Certificate { proof, ..alone.clone() }, &ONE, "another proof")?;
    }
    for proof in altered_proofs(&together.proof) {
        probe.rejects_multi(&MultiCertificate { proof, ..together.clone() }, &ONE, "another proof")?;
    }
    Ok(Outcome::Held)
}

/// Sets of moves that differ from two given ones in one place.
fn altered_moves(moves: &[Move; 2]) -> Vec<Vec<Move>> {
    let [first, second] = *moves;
    vec![
        vec![Move { counter: CounterId(first.counter.0 - 1), ..first }, second],
        vec![first, Move { counter: CounterId(second.counter.0 + 1), ..second }],
        vec![Move { previous: CounterValue(first.previous.0 ^ 1), ..first }, second],
        vec![first, Move { new: CounterValue(second.new.0 ^ (1 << 127)), ..second }],
        vec![first, second, step(5, 0, 1)],
        vec![first, second, step(7, 0, 0)],
    ]
}

/// Proofs that differ from a given one in one bit or in their kind.
pub(super) fn altered_proofs(proof: &Proof) -> Vec<Proof> {
    let flipped = |bytes: &mut [u8], bit: usize| bytes[bit / 8] ^= 1 << (bit % 8);
    match proof {
        Proof::Mac(tag) => {
            let other_kind = std::iter::once(Proof::Signature([tag[0]; 64]));
            let bits = (0..256).map(|bit| {
                let mut tag = *tag;
                flipped(&mut tag, bit);
                Proof::Mac(tag)
            });
            other_kind.chain(bits).collect()
        }
        Proof::Signature(bytes) => {
            let other_kind = std::iter::once(Proof::Mac([bytes[0]; 32]));
            // Every bit of a signature costs a verification; each byte once covers both halves.
            let bits = (0..64).map(|byte| {
                let mut bytes = *bytes;
                flipped(&mut bytes, byte * 8 + byte % 8);
                Proof::Signature(bytes)
            });
            other_kind.chain(bits).collect()
        }
    }
}
