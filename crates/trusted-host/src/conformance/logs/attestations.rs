//! Rules on what an attestation proves, and what it does not.

use super::super::Outcome;
use super::probe::{
    M, NONCE, ONE, OTHER, Probe, Q, START, Seen, advance, append, end, lookup, require, slot,
};
use crate::conformance::certificates::altered_proofs;
use troth_trusted::a2m::{Attestation, Claim, Content, LogId, Nonce, Operation, Request};
use troth_trusted::agreement::PeerKey;
use troth_trusted::run::Tree;
use troth_trusted::{Epoch, MacVerifier, RunProof};

impl Probe<'_> {
    /// Whether the attestation passes as the answer to its own question, by lookup or by END.
    fn accepts(&self, replica: u16, made: &Attestation) -> bool {
        let Claim { log, slot, nonce, .. } = made.claim;
        self.verifier.lookup(replica, made, log, slot, &nonce).is_some()
            || self.verifier.end(replica, made, log, &nonce, &RunProof::SINGLE).is_some()
    }

    fn rejects(&self, forged: &Attestation, what: &str) -> Seen<()> {
        require(!self.accepts(self.replica, forged), format!("accepted with {what}: {forged:?}"))
    }
}

pub(super) fn many_nonces(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE)])?;
    let client_nonce = |client: u8| std::array::from_fn(|at| if at == 0 { !client } else { client });
    let nonces: Vec<Nonce> = (0..=255).map(client_nonce).collect();
    let mut tree = Tree::default();
    for count in [1, 2, 5, 256] {
        let root = tree.build(&nonces[..count]).ok_or("a tree of nonces was refused")?;
        let made = probe.attested(Operation::End { log: Q, nonce: root })?;
        for (index, nonce) in (0..).zip(&nonces[..count]) {
            let among = tree.proof(index).ok_or("a place of the tree was refused")?;
            let verified =
                |nonce, among: &RunProof| probe.verifier.end(probe.replica, &made, Q, nonce, among).is_some();
            require(verified(nonce, &among), format!("nonce {index} of {count} is not answered"))?;
            require(!verified(&NONCE, &among), format!("another nonce passes as {index} of {count}"))?;
            let moved = RunProof { index: index ^ 1, ..among };
            require(!verified(nonce, &moved), format!("nonce {index} of {count} passes elsewhere"))?;
        }
    }
    Ok(Outcome::Held)
}

pub(super) fn for_one_client(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE), advance(Q, 4, START, OTHER)])?;
    let keys = [[0x11; 32], [0x22; 32], [0x33; 32]]
        .map(|secret| (PeerKey::new(&secret).public(), probe.shared_with(&secret)));
    for number in [1, 2, 4, 9] {
        let to_all = probe.attested(lookup(Q, number))?;
        for (index, (peer, key)) in keys.iter().enumerate() {
            let asked = Operation::LookupFor { log: Q, slot: slot(number), nonce: NONCE, peer: *peer };
            let made = probe.attested(asked)?;
            require(made.claim == to_all.claim, format!("{made:?} is said to one and {to_all:?} to all"))?;
            let passes = |key: &MacVerifier, made: &Attestation| {
                probe.verifier.lookup_for(key, probe.replica, made, Q, slot(number), &NONCE).is_some()
            };
            require(passes(key, &made), format!("client {index} is not convinced by {made:?}"))?;
            require(!passes(key, &to_all), "what is said to all passes for what is said to one")?;
            let (_, other) = &keys[(index + 1) % keys.len()];
            require(!passes(other, &made), "another client is convinced")?;
            probe.rejects(&made, "a MAC for one client")?;
            for claim in altered_claims(&made.claim) {
                let altered = Attestation { claim, ..made.clone() };
                require(!passes(key, &altered), format!("passes with another claim: {altered:?}"))?;
            }
        }
    }
    Ok(Outcome::Held)
}

pub(super) fn epoch_binding(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let ours = probe.attested(append(Q, 1, ONE))?;
    probe.next_epoch();
    for operation in [append(Q, 1, ONE), lookup(Q, 1), end(Q), lookup(Q, 2)] {
        let theirs = probe.attested(operation)?;
        require(theirs.epoch != ours.epoch, "a component of the next epoch attests under the last")?;
        probe.rejects(&theirs, "another epoch")?;
        probe.rejects(&Attestation { epoch: ours.epoch, ..theirs }, "its epoch rewritten")?;
    }
    Ok(Outcome::Held)
}

pub(super) fn tampered_attestation(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE), advance(Q, 4, START, OTHER), append(M, 1, ONE)])?;
    for asked in [lookup(Q, 1), lookup(Q, 3), lookup(Q, 9), lookup(Q, 0), end(Q)] {
        let made = probe.attested(asked)?;
        require(
            probe.accepts(probe.replica, &made),
            format!("a genuine attestation was rejected: {made:?}"),
        )?;
        for claim in altered_claims(&made.claim) {
            probe.rejects(&Attestation { claim, ..made.clone() }, "another claim")?;
        }
        for bit in 0..64 {
            let epoch = Epoch(made.epoch.0 ^ (1 << bit));
            probe.rejects(&Attestation { epoch, ..made.clone() }, "another epoch")?;
        }
        for proof in altered_proofs(&made.proof) {
            probe.rejects(&Attestation { proof, ..made.clone() }, "another proof")?;
        }
        for other in [probe.replica.wrapping_add(1), probe.replica ^ 0x100] {
            let passes = probe.accepts(other, &made);
            require(!passes, format!("an attestation passed for one of replica {other}"))?;
        }
    }
    other_questions(probe)?;
    Ok(Outcome::Held)
}

/// Genuine attestations do not answer what was not asked.
fn other_questions(probe: &mut Probe<'_>) -> Seen<()> {
    let (looked, ended) = (probe.attested(lookup(Q, 4))?, probe.attested(end(Q))?);
    let (verifier, replica, alone) = (probe.verifier, probe.replica, &RunProof::SINGLE);
    for (passes, what) in [
        (verifier.lookup(replica, &ended, Q, slot(4), &NONCE).is_some(), "an END passed for a lookup"),
        (verifier.end(replica, &looked, Q, &NONCE, alone).is_some(), "a lookup passed for an END"),
        (verifier.lookup(replica, &looked, M, slot(4), &NONCE).is_some(), "a lookup passed for another log"),
        (verifier.lookup(replica, &looked, Q, slot(3), &NONCE).is_some(), "a lookup passed for another slot"),
        (
            verifier.lookup(replica, &looked, Q, slot(4), &START).is_some(),
            "a lookup passed for another nonce",
        ),
        (verifier.end(replica, &ended, M, &NONCE, alone).is_some(), "an END passed for another log"),
        (verifier.end(replica, &ended, Q, &START, alone).is_some(), "an END passed for another nonce"),
    ] {
        require(!passes, what)?;
    }
    Ok(())
}

/// Claims that differ from a given one in one field.
fn altered_claims(claim: &Claim) -> Vec<Claim> {
    let request = match claim.request {
        Request::Lookup => Request::End,
        Request::End => Request::Lookup,
    };
    let mut nonce = claim.nonce;
    nonce[31] ^= 1;
    let mut all = vec![Claim { request, ..*claim }, Claim { nonce, ..*claim }];
    all.extend((0..16).map(|bit| Claim { log: LogId(claim.log.0 ^ (1 << bit)), ..*claim }));
    all.extend((0..128).map(|bit| Claim { slot: slot(claim.slot.0 ^ (1 << bit)), ..*claim }));
    let (value, digest, other) = (ONE, START, slot(4));
    let contents = [
        Content::Assigned { value, digest },
        Content::Skipped { end: other, value, digest },
        Content::Unassigned { high: other },
        Content::Forgotten { low: other },
    ];
    all.extend(
        contents
            .into_iter()
            .filter(|content| *content != claim.content)
            .map(|content| Claim { content, ..*claim }),
    );
    all
}
