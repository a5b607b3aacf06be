//! The account of a history log by itself, with a component that says what a test wants.

use super::at;
use crate::HistoryLog;
use troth_auth::HISTORY_LOG;
use troth_trusted::a2m::{Answer, Attestation, Claim, Content, Request, Slot, slot_nonce};
use troth_trusted::{Epoch, Proof};
use troth_types::{Batch, Digest, GroupId, Seq, Time};

fn said(request: Request, slot: Slot, content: Content) -> Answer {
    let claim = Claim { request, log: HISTORY_LOG, slot, nonce: slot_nonce(slot), content };
    Answer::Attested(Attestation { epoch: Epoch(1), claim, proof: Proof::Mac([0; 32]) })
}

fn batch(number: u64) -> Batch {
    Batch { time: Time(number), frames: vec![Digest([1; 32])] }
}

/// The account of an empty log, whose component has said so.
fn fresh() -> HistoryLog {
    let mut log = HistoryLog::new(GroupId(*b"tests-of-blocks-"));
    let (ticket, _) = log.start(Seq(0), Seq(0));
    assert!(log.asked(ticket));
    let nothing = Content::Forgotten { low: at(0) };
    let answers = vec![said(Request::End, at(0), nothing), said(Request::Lookup, at(0), nothing)];
    assert_eq!(log.answered(ticket, answers), Ok(Vec::new()));
    log
}

#[test]
fn a_gap_that_nobody_fills_makes_nobody_keep_everything() {
    let mut log = fresh();
    log.installed(Seq(100));
    for number in 101..=9_500 {
        log.executed(Seq(number), &batch(number), &[]).expect("a small batch");
    }
    assert_eq!(log.lacks(), Some(Seq(1)));
    assert_eq!(log.calls(), None, "nothing is appended over a gap");
    assert_eq!(log.len(), 4096);
    let (from, values) = log.kept();
    assert_eq!((from, values.len()), (Seq(9_500 - 8_191), 8_192));
}

#[test]
fn batches_are_appended_and_their_answers_belong_to_their_own_questions() {
    let mut log = fresh();
    log.executed(Seq(1), &batch(1), &[]).expect("a small batch");
    let (ticket, operations) = log.calls().expect("it appends");
    assert_eq!(operations.len(), 1);
    log.executed(Seq(2), &batch(2), &[]).expect("a small batch");
    let (later, _) = log.calls().expect("it appends the next");
    assert_ne!(ticket, later);
    // What somebody else asked for is none of it.
    assert!(!log.asked(troth_core::Ticket(1)));
    assert_eq!(log.answered(troth_core::Ticket(1), Vec::new()), Ok(Vec::new()));
    assert!(log.asked(ticket) && log.asked(later));
}
