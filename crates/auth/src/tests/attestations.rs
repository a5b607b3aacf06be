//! Attestations as evidence: every field counts.

use crate::*;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use troth_trusted::a2m::{A2m, Answer, Attestation, Content, LOGS, LogId, Operation, Slot, slot_nonce};
use troth_trusted::{Certifier, CounterValue, Epoch, Identity, MacKey, VolatileStore};
use troth_trusted_host::{GroupVerifier, InProcessLogs, MemberKey, TrustedLogs, log_room};
use troth_types::{
    ComponentKey, Configuration, Digest, GroupId, HostKeys, Malformed, Member, Reader, ReplicaId,
};

const GROUP: GroupId = GroupId([9; 16]);
const LOG: LogId = LogId(3);

fn key() -> MacKey {
    MacKey::new(&[4; 32])
}

fn identity(replica: u16) -> Identity {
    Identity { group: GROUP.0, replica, epoch: Epoch(1) }
}

fn slot(number: u128) -> Slot {
    CounterValue(number)
}

/// A claim that stands for a message.
#[derive(Clone, Debug)]
struct Said {
    by: ReplicaId,
    digest: Digest,
    skipped: bool,
    slot: Slot,
    attestation: Attestation,
}

impl Authentic for Said {
    fn claims<'a>(&'a self, _: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        let looked = Looked::settled(LOG, self.slot, &self.attestation);
        let evidence = if self.skipped { Evidence::Skipped(looked) } else { Evidence::Assigned(looked) };
        claims.push(Claim { by: self.by, digest: self.digest, evidence });
        Ok(())
    }
}

/// Replica 1's log: slot 5 holds twos, those before are skipped.
fn attested(number: u128) -> Said {
    let mut logs = InProcessLogs::new(A2m::start(
        identity(1),
        Certifier::Mac(key()),
        VolatileStore,
        log_room([4; LOGS]),
    ));
    let fill = Operation::Advance { log: LOG, slot: slot(5), previous: [0; 32], value: [2; 32], nonce: None };
    let look = Operation::Lookup { log: LOG, slot: slot(number), nonce: slot_nonce(slot(number)) };
    let mut answers = logs.call(&[fill, look]).expect("done");
    let Some(Answer::Attested(attestation)) = answers.pop() else { panic!("a lookup is answered") };
    Said { by: ReplicaId(1), digest: Digest([2; 32]), skipped: number < 5, slot: slot(number), attestation }
}

fn verifier() -> MessageVerifier {
    let member = || Member::new(1, ComponentKey::Group, HostKeys::default());
    let configuration = Configuration::new(vec![member(), member(), member()], BTreeMap::new());
    let directory = Directory::new(GROUP, Arc::new(configuration));
    let members = (0..3).map(|replica| (identity(replica), MemberKey::Mac(key().verifier())));
    let group = Arc::new(GroupVerifier::new(members).expect("each once"));
    MessageVerifier::new(Arc::new(directory), Arc::new(Ed25519), group.clone()).with_attestations(group)
}

#[test]
fn an_attestation_is_evidence_of_just_what_was_asked() {
    let verifier = verifier();
    let (filled, skipped) = (attested(5), attested(4));
    assert!(verifier.verify(filled.clone()).is_ok());
    assert!(verifier.verify(skipped.clone()).is_ok());
    let change = |edit: &dyn Fn(&mut Said)| {
        [filled.clone(), skipped.clone()].map(|mut said| {
            edit(&mut said);
            verifier.verify(said).map(drop)
        })
    };
    let claim =
        |edit: &dyn Fn(&mut troth_trusted::a2m::Claim)| change(&|said| edit(&mut said.attestation.claim));
    let wrong = [
        change(&|said| said.digest = Digest([3; 32])),
        change(&|said| said.skipped = !said.skipped),
        change(&|said| said.slot = slot(6)),
        change(&|said| said.by = ReplicaId(2)),
        claim(&|claim| claim.slot = slot(6)),
        claim(&|claim| claim.log = LogId(2)),
        claim(&|claim| claim.nonce = [0; 32]),
        claim(&|claim| claim.request = troth_trusted::a2m::Request::End),
        claim(&|claim| claim.content = Content::Unassigned { high: slot(5) }),
        claim(&|claim| claim.content = Content::Assigned { value: [2; 32], digest: [0; 32] }),
        claim(&|claim| claim.content = Content::Skipped { end: slot(9), value: [2; 32], digest: [0; 32] }),
    ];
    for (at, [one, other]) in wrong.into_iter().enumerate() {
        assert!(one.is_err() && other.is_err(), "change {at}: {one:?} {other:?}");
    }
    let other_epoch = change(&|said| said.attestation.epoch = Epoch(2));
    assert!(other_epoch.iter().all(|result| *result == Err(MessageError::UnknownEpoch(ReplicaId(1), 2))));
}

#[test]
fn without_a_verifier_of_attestations_none_convinces() {
    let with = verifier();
    let without = MessageVerifier { attestations: None, ..with };
    assert_eq!(without.verify(attested(5)).map(drop), Err(MessageError::Forged(ReplicaId(1))));
}

#[test]
fn the_epochs_of_attestations_are_named() {
    assert_eq!(epochs_in(&attested(5), GROUP), [(ReplicaId(1), 1)]);
}

#[test]
fn attestations_survive_their_encoding_and_nothing_else_decodes() {
    for number in [0, 4, 5, 6] {
        let attestation = attested(number).attestation;
        let mut bytes = Vec::new();
        encode_attestation(&attestation, &mut bytes);
        let whole = Bytes::from(bytes.clone());
        let mut reader = Reader::new(&whole);
        assert_eq!(decode_attestation(&mut reader), Ok(attestation));
        assert!(reader.finish().is_ok());
        let torn = whole.slice(..whole.len() - 1);
        assert!(decode_attestation(&mut Reader::new(&torn)).is_err());
        bytes[8] = 2;
        assert!(decode_attestation(&mut Reader::new(&Bytes::from(bytes))).is_err());
    }
}
