//! TOCS §3.2.4: the decision procedure, on VIEW-CHANGEs made by hand.

use super::harness::{Net, SMALL, covers, r};
use crate::choose::{Choice, Shown, choose, null};
use crate::message::{Body, Checkpoint, Entry, Message, StableProof, ViewChange};
use troth_types::{Digest, Seq, View};

const TO: View = View(9);

fn entry(seq: u64, digest: u8, view: u64) -> Entry {
    Entry { seq: Seq(seq), digest: Digest([digest; 32]), view: View(view) }
}

/// A VIEW-CHANGE of one that prepared and pre-prepared these.
fn change(prepared: &[Entry], pre_prepared: &[Entry]) -> ViewChange {
    let mut pre_prepared = pre_prepared.to_vec();
    pre_prepared.sort_by_key(|entry| (entry.seq, entry.digest));
    let prepared = prepared.to_vec();
    ViewChange { to: TO, stable: StableProof::default(), prepared, pre_prepared }
}

/// The same of one whose checkpoint at `seq` is stable.
fn change_at(seq: u64, prepared: &[Entry], pre_prepared: &[Entry]) -> ViewChange {
    let net = Net::new(1);
    let vote = Body::Checkpoint(Checkpoint { seq: Seq(seq), digest: Digest([seq as u8; 32]) });
    let votes = (0..3).map(|from| match net.signed(from, vote.clone()) {
        Message::Signed(message) => message,
        _ => unreachable!("a body becomes a signed message"),
    });
    ViewChange { stable: StableProof { votes: votes.collect() }, ..change(prepared, pre_prepared) }
}

fn chosen(changes: &[ViewChange]) -> Option<Choice> {
    let net = Net::new(1);
    let shown = (0..).zip(changes).map(|(from, change)| {
        Shown::new(&net.group, &SMALL, r(from), change).expect("the sets keep the rules")
    });
    choose(&net.group, &SMALL, &shown.collect::<Vec<_>>())
}

fn start(digests: &[Digest]) -> Option<Choice> {
    Some(Choice { base: (Seq(0), Digest::ZERO), chosen: digests.to_vec() })
}

#[test]
fn sets_that_break_a_rule_of_form_make_no_view_change() {
    covers!("PBFT-V5");
    let net = Net::new(1);
    let good = |change: &ViewChange| Shown::new(&net.group, &SMALL, r(1), change).is_some();
    assert!(good(&change(&[entry(1, 1, 8)], &[entry(1, 1, 8), entry(1, 2, 3)])));
    assert!(!good(&change(&[entry(1, 1, 9)], &[])), "a view that is not below the one it is for");
    assert!(!good(&change(&[], &[entry(1, 1, 9)])));
    assert!(!good(&change(&[entry(SMALL.window + 1, 1, 0)], &[])), "beyond the window");
    assert!(!good(&change(&[entry(0, 1, 0)], &[])), "not above the checkpoint");
    assert!(!good(&change_at(4, &[entry(4, 1, 0)], &[])), "not above the checkpoint");
    assert!(!good(&change(&[entry(1, 1, 0), entry(1, 2, 1)], &[])), "two prepared at one number");
    assert!(!good(&change(&[], &[entry(1, 1, 0), entry(1, 1, 1)])), "one entry twice");
    let mut unproven = change_at(4, &[], &[]);
    unproven.stable.votes.pop();
    assert!(!good(&unproven), "a checkpoint that 2f replicas signed");
}

#[test]
fn a_view_starts_from_the_highest_checkpoint_that_is_proven() {
    covers!("PBFT-V6");
    let changes = [change(&[], &[]), change_at(4, &[], &[]), change(&[], &[])];
    let expected = Choice { base: (Seq(4), Digest([4; 32])), chosen: Vec::new() };
    assert_eq!(chosen(&changes), Some(expected));
}

#[test]
fn what_prepared_and_was_pre_prepared_by_a_correct_replica_is_carried_over() {
    covers!("PBFT-V7");
    covers!("PBFT-V9");
    let p = entry(1, 1, 3);
    let changes = [change(&[p], &[p]), change(&[], &[p]), change(&[], &[])];
    assert_eq!(chosen(&changes), start(&[p.digest]));
    // A2: only the one that claims that it prepared says that it was ever proposed.
    let changes = [change(&[p], &[p]), change(&[], &[]), change(&[], &[])];
    assert_eq!(chosen(&changes), None, "nor do 2f+1 say that nothing prepared");
    let more = [changes.to_vec(), vec![change(&[], &[])]].concat();
    assert_eq!(chosen(&more), start(&[]), "now they do");
}

#[test]
fn it_takes_a_witness_of_that_view_or_a_later_one() {
    covers!("PBFT-V7");
    let p = entry(1, 1, 3);
    let early = entry(1, 1, 2);
    let changes = [change(&[p], &[p]), change(&[], &[early]), change(&[], &[])];
    assert_eq!(chosen(&changes), None);
    let late = entry(1, 1, 4);
    let changes = [change(&[p], &[p]), change(&[], &[late]), change(&[], &[])];
    assert_eq!(chosen(&changes), start(&[p.digest]));
}

#[test]
fn what_prepared_in_the_latest_view_counts() {
    covers!("PBFT-V7");
    let (old, new) = (entry(1, 1, 3), entry(1, 2, 5));
    let changes = [change(&[old], &[old, new]), change(&[new], &[old, new]), change(&[], &[])];
    assert_eq!(chosen(&changes), start(&[new.digest]));
    // Two that claim different things of one view: one lies, and a third who agrees with either decides nothing alone.
    let other = entry(1, 3, 5);
    let changes = [change(&[other], &[other]), change(&[new], &[new]), change(&[], &[new, other])];
    assert_eq!(chosen(&changes), None);
    let all = [changes.to_vec(), vec![change(&[new], &[new])]].concat();
    assert_eq!(chosen(&all), start(&[new.digest]));
}

#[test]
fn an_older_batch_does_not_take_the_place_of_one_that_lacks_a_witness() {
    covers!("PBFT-V7");
    let (old, new) = (entry(1, 1, 3), entry(1, 2, 5));
    let changes = [change(&[old], &[old]), change(&[new], &[new]), change(&[], &[old])];
    assert_eq!(chosen(&changes), None, "the later one may have committed");
}

#[test]
fn a_number_of_which_a_quorum_prepared_nothing_gets_a_null_request() {
    covers!("PBFT-V8");
    covers!("PBFT-V9");
    let p = entry(3, 1, 0);
    let changes = [change(&[p], &[p]), change(&[p], &[p]), change(&[], &[])];
    assert_eq!(chosen(&changes), start(&[null(), null(), p.digest]));
    assert_eq!(chosen(&changes[..2]), None, "two do not decide");
}

#[test]
fn a_null_request_that_prepared_may_have_committed_and_stays() {
    covers!("PBFT-V9");
    // Carried over in an earlier view between batches, it was executed somewhere; what followed it never prepared.
    let p = Entry { seq: Seq(1), digest: null(), view: View(1) };
    let changes = [change(&[p], &[p]), change(&[p], &[p]), change(&[], &[])];
    assert_eq!(chosen(&changes), start(&[null()]));
}

#[test]
fn more_batches_for_a_number_than_a_correct_sender_keeps_make_no_view_change() {
    covers!("PBFT-V5");
    let net = Net::new(1);
    let good = |count: u8| {
        let entries: Vec<Entry> = (0..count).map(|digest| entry(1, digest, 0)).collect();
        Shown::new(&net.group, &SMALL, r(1), &change(&[], &entries)).is_some()
    };
    assert!(good(16) && !good(17));
}

#[test]
fn numbers_up_to_the_base_are_behind_the_view() {
    covers!("PBFT-V6");
    let (below, above) = (entry(4, 1, 0), entry(5, 2, 0));
    let changes = [
        change(&[below, above], &[below, above]),
        change_at(4, &[above], &[above]),
        change_at(4, &[], &[above]),
    ];
    let expected = Choice { base: (Seq(4), Digest([4; 32])), chosen: vec![above.digest] };
    assert_eq!(chosen(&changes), Some(expected));
}
