//! The encoding: everything comes back as it was, and what nobody would write is refused.

use super::craft::{Bench, some_batch};
use super::harness::covers;
use crate::message::{Body, Message, Record, StableProof, Status, WantViewChange};
use bytes::Bytes;
use proptest::prelude::*;
use std::sync::Arc;
use troth_auth::Authentic;
use troth_types::{Digest, GroupId, ReplicaId, Seq, View, Wire};

fn samples() -> Vec<Message> {
    let mut bench = Bench::new(1);
    let certificate = bench.prepare(0, 1, &some_batch(1), &[1]);
    let committed = bench.commit(1, &certificate);
    let one = bench.view_change(1, 0, 1, None, vec![committed.clone()]);
    let two = bench.view_change(2, 0, 1, None, Vec::new());
    let start = bench.new_view(vec![one.clone(), two], None);
    let accepted = bench.accept(1, &start);
    let later = bench.view_change(1, 1, 3, Some(accepted.clone()), Vec::new());
    let votes = vec![bench.checkpoint(0, 4, 3, 1), bench.checkpoint(1, 4, 3, 1)];
    let status = Status {
        view: View(3),
        active: true,
        stable: Seq(4),
        executed: Seq(5),
        slots: vec![1, 7],
        changes: 5,
        accepts: 3,
        lacks: Some(View(2)),
        wishes: true,
    };
    let attested = [certificate.0, certificate.1[0].clone(), committed.commit, one, start, accepted, later];
    let mut messages: Vec<Message> = attested.into_iter().map(Message::Attested).collect();
    messages.push(Message::Want(bench.wanted(2)[0].clone()));
    messages.push(Message::Status(status));
    messages.push(Message::Stable(Arc::new(StableProof { votes })));
    messages.push(Message::FetchHistory(Seq(3)));
    messages.push(Message::FetchProposals(View(3), vec![Seq(4), Seq(6)]));
    messages.push(Message::History(Seq(3), vec![Digest([5; 32]), Digest([6; 32])]));
    messages
}

#[test]
fn messages_come_back_as_they_were() {
    for message in samples() {
        assert_eq!(Message::from_wire(&message.to_wire()), Ok(message));
    }
}

#[test]
fn records_come_back_as_they_were() {
    let bench = Bench::new(1);
    for message in samples() {
        let Message::Attested(message) = message else { continue };
        let records =
            [Record::Proposal(message.clone()), Record::NewView(message.clone()), Record::Accepted(message)];
        for record in records {
            assert_eq!(Record::from_wire(&record.to_wire()), Ok(record));
        }
    }
    let leaving = Record::Leaving(bench.wanted(2));
    assert_eq!(Record::from_wire(&leaving.to_wire()), Ok(leaving));
    let filled = Record::Filled(vec![(1, 1 << 65), (2, 7)]);
    assert_eq!(Record::from_wire(&filled.to_wire()), Ok(filled));
    let history = Record::History(Seq(3), vec![Digest([5; 32]); 3]);
    assert_eq!(Record::from_wire(&history.to_wire()), Ok(history));
    let executed = Record::Executed(Seq(3), some_batch(1));
    assert_eq!(Record::from_wire(&executed.to_wire()), Ok(executed));
}

#[test]
fn nothing_stands_inside_itself() {
    let body = Body::Want(WantViewChange { to: View(1), nonce: [0; 32] });
    assert_eq!(Body::from_wire(&body.to_wire()), Ok(body));
    // A NEWVIEW whose VIEWCHANGE is a NEWVIEW.
    let mut bytes = vec![0u8; 2];
    bytes.push(6);
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 6]);
    bytes.extend_from_slice(&[0; 200]);
    assert!(crate::Attested::from_wire(&Bytes::from(bytes)).is_err());
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(at in 0usize..4000, byte in any::<u8>(), which in 0usize..12) {
        let all = samples();
        let mut bytes = all[which % all.len()].to_wire().to_vec();
        let at = at % bytes.len();
        bytes[at] = byte;
        let bytes = Bytes::from(bytes);
        if let Ok(message) = Message::from_wire(&bytes) {
            prop_assert_eq!(message.to_wire(), bytes);
        }
    }
}

fn claims(group: GroupId, message: &Message) -> usize {
    let mut claims = Vec::new();
    message.claims(group, &mut claims).expect("as correct replicas make them");
    claims.len()
}

// A2MPBFTEA-L1 (guard)
#[test]
fn what_is_attested_is_checked_with_all_that_it_rests_on() {
    covers!("A2MPBFTEA-L1");
    let group = Bench::new(1).group.id();
    let (mut changes, mut starts) = (0, 0);
    for message in samples() {
        let found = claims(group, &message);
        let Message::Attested(attested) = &message else { continue };
        let wanted = match &attested.body {
            Body::ViewChange(change) => {
                changes += 1;
                let votes: usize =
                    change.committed.iter().map(|committed| committed.prepares.len() + 2).sum();
                let stable = claims(group, &Message::Stable(Arc::new(change.stable.clone())));
                let entered = usize::from(change.accepted.is_some());
                stable + entered + votes + change.wanted.len() + change.abandoned.len()
            }
            Body::NewView(start) => {
                starts += 1;
                start.changes.iter().map(|change| claims(group, &Message::Attested(change.clone()))).sum()
            }
            _ => 0,
        };
        assert_eq!(found, 1 + wanted, "{}", attested.body.kind());
        let by = |from| attested.body.digest(group, ReplicaId(from));
        assert_ne!(by(0), by(1), "a digest names its sender");
    }
    assert_eq!((changes, starts), (2, 1));
}
