//! What a VIEWCHANGE proves and what a view starts from, on the schedules of F-A1 to F-A5.

use super::craft::{Bench, some_batch};
use super::harness::{covers, r};
use crate::evidence::{certifies, evidence, shared_nonce, to_look_up};
use crate::message::{Body, Message, ViewChange, WantViewChange, Wanted};
use crate::place::{COMMIT, flattened};
use std::sync::Arc;
use troth_auth::Authentic as _;
use troth_types::{Seq, View};

fn judged(bench: &Bench, message: &crate::Attested) -> Result<(), &'static str> {
    evidence(&bench.group, &bench.config, message).map(|_| ())
}

#[test]
fn the_highest_view_left_decides() {
    covers!("A2MPBFTEA-V10");
    let mut bench = Bench::new(2);
    let (r0, r1) = (some_batch(1), some_batch(2));
    // View 0: 0, 1, 2 prepare r0; only 0 commits. View 1 starts from others and commits r1.
    let old = bench.prepare(0, 1, &r0, &[2, 3]);
    let old = bench.commit(0, &old);
    let changes = [1, 2, 4].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let start = bench.new_view(changes.to_vec(), None);
    assert!(start.new_view().expect("a NEWVIEW").chosen.is_empty());
    let accepted = [1, 2, 4].map(|from| bench.accept(from, &start));
    let new = bench.prepare(1, 1, &r1, &[2, 4]);
    let new = [1, 2, 4].map(|from| bench.commit(from, &new));
    let shown = [
        bench.view_change(0, 0, 2, None, vec![old]),
        bench.view_change(2, 1, 2, Some(accepted[1].clone()), vec![new[1].clone()]),
        bench.view_change(3, 0, 2, None, Vec::new()),
    ];
    assert_eq!(bench.choice(&shown, Some(&start)), Some(vec![r1.digest()]));
}

#[test]
fn what_a_view_started_with_is_carried_on() {
    covers!("A2MPBFTEA-V10");
    let mut bench = Bench::new(1);
    let r0 = some_batch(1);
    let old = bench.prepare(0, 1, &r0, &[1]);
    let old = bench.commit(1, &old);
    let changes =
        vec![bench.view_change(1, 0, 1, None, vec![old]), bench.view_change(2, 0, 1, None, Vec::new())];
    let start = bench.new_view(changes, None);
    let accepted = bench.accept(2, &start);
    // 2 entered view 1, 0 never left view 0: 2's word is enough.
    let shown = [
        bench.view_change(0, 0, 2, None, Vec::new()),
        bench.view_change(2, 1, 2, Some(accepted), Vec::new()),
    ];
    assert_eq!(bench.choice(&shown, Some(&start)), Some(vec![r0.digest()]));
}

/// F-A2: replica 3 committed r1 in view 1 and shows its older commitment of view 0 instead.
fn hidden_commitment(literally: bool) -> (Bench, Arc<crate::Attested>) {
    let mut bench = Bench::new(2);
    let (r0, r1) = (some_batch(1), some_batch(2));
    let old = bench.prepare(0, 1, &r0, &[3, 4]);
    let old = bench.commit(3, &old);
    let changes = [1, 2, 4].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
    let start = bench.new_view(changes.to_vec(), None);
    for from in [1, 2, 3] {
        bench.accept(from, &start);
    }
    let new = bench.prepare(1, 1, &r1, &[2, 3]);
    for from in [1, 2, 3] {
        bench.commit(from, &new);
    }
    #[cfg(feature = "literal")]
    if literally {
        bench.config.literal = Some(crate::Flaw::OneHighest);
    }
    let _ = literally;
    // What it says of itself: that it never entered view 1.
    bench.abandon(3, 3);
    let message = bench.view_change(3, 0, 3, None, vec![old]);
    (bench, message)
}

#[test]
fn a_newer_commitment_cannot_be_hidden_behind_an_older_one() {
    covers!("A2MPBFTEA-V6");
    covers!("A2MPBFTEA-V9");
    let (bench, message) = hidden_commitment(false);
    assert!(judged(&bench, &message).is_err());
}

#[test]
#[cfg(feature = "literal")]
fn one_number_for_all_views_hides_it() {
    let (mut bench, message) = hidden_commitment(true);
    assert_eq!(judged(&bench, &message), Ok(()));
    let others = [0, 4].map(|from| bench.view_change(from, 0, 3, None, Vec::new()));
    let shown = [others[0].clone(), message, others[1].clone()];
    assert_eq!(
        bench.choice(&shown, None),
        Some(vec![some_batch(1).digest()]),
        "r1 was committed and is gone"
    );
}

/// F-A2 with three replicas: it takes no second faulty one, only the backup that hides what it committed to last.
#[test]
#[cfg(feature = "literal")]
fn one_number_for_all_views_hides_it_among_three_replicas_too() {
    let schedule = |literally: bool| {
        let mut bench = Bench::new(1);
        bench.config.literal = literally.then_some(crate::Flaw::OneHighest);
        let (r0, r1) = (some_batch(1), some_batch(2));
        // View 0: 2 has r0 prepared by the primary's PREPREPARE and its own PREPARE, commits to it and tells nobody.
        let old = bench.prepare(0, 1, &r0, &[2]);
        let old = bench.commit(2, &old);
        // View 1 starts from 0 and 1, who know of no vote of 2. Without 0, the two others commit to r1: 1 executes it.
        let changes = [0, 1].map(|from| bench.view_change(from, 0, 1, None, Vec::new()));
        let start = bench.new_view(changes.to_vec(), None);
        assert!(start.new_view().expect("a NEWVIEW").chosen.is_empty());
        for from in [1, 2] {
            bench.accept(from, &start);
        }
        let new = bench.prepare(1, 1, &r1, &[2]);
        for from in [1, 2] {
            bench.commit(from, &new);
        }
        // View 2 starts from 0, who never entered view 1, and 2, who says the same of itself.
        let shown =
            [bench.view_change(0, 0, 2, None, Vec::new()), bench.view_change(2, 0, 2, None, vec![old])];
        assert_eq!(judged(&bench, &shown[0]), Ok(()));
        (judged(&bench, &shown[1]).is_ok(), bench.choice(&shown, None), r0.digest())
    };
    let (valid, start, r0) = schedule(true);
    assert!(valid);
    assert_eq!(start, Some(vec![r0]), "r1 was executed at 1 and is gone");
    let (valid, start, _) = schedule(false);
    assert!(!valid, "V6 has it show that it left view 1");
    assert_eq!(start, None);
}

fn valid(bench: &mut Bench) -> ViewChange {
    let certificates: Vec<_> = (1..=2).map(|seq| bench.prepare(0, seq, &some_batch(seq), &[1])).collect();
    let committed = certificates.iter().map(|it| bench.commit(1, it)).collect();
    bench.change(1, 0, 2, None, committed)
}

/// What a rule of form makes of a VIEWCHANGE that was changed like this.
fn changed(label: &str, change: impl FnOnce(&mut Bench, &mut ViewChange)) {
    let mut bench = Bench::new(1);
    let mut body = valid(&mut bench);
    change(&mut bench, &mut body);
    let message = bench.say(1, Body::ViewChange(body));
    assert!(judged(&bench, &message).is_err(), "{label}");
}

#[test]
fn a_viewchange_that_keeps_all_rules_is_valid() {
    let mut bench = Bench::new(1);
    let body = valid(&mut bench);
    let message = bench.say(1, Body::ViewChange(body));
    assert_eq!(judged(&bench, &message), Ok(()));
}

#[test]
fn a_viewchange_shows_a_certificate_of_wants_for_its_view() {
    covers!("A2MPBFTEA-V3");
    changed("too few", |_, it| drop(it.wanted.pop()));
    changed("for another view", |bench, it| it.wanted = bench.wanted(3));
    let bench = Bench::new(1);
    let mut twice = bench.wanted(2);
    twice[1] = twice[0].clone();
    assert!(!certifies(&bench.group, &twice, View(2)));
    let mut backwards = bench.wanted(2);
    backwards.reverse();
    assert!(!certifies(&bench.group, &backwards, View(2)));
}

#[test]
fn a_signature_of_a_want_is_for_its_own_view() {
    covers!("A2MPBFTEA-V2");
    let bench = Bench::new(1);
    let wanted = bench.wanted(2).swap_remove(0);
    let holds = |wanted: &Wanted| {
        let message = Message::Want(Arc::new(wanted.clone()));
        message.claims(bench.group.id(), &mut Vec::new()).is_ok()
    };
    assert!(holds(&wanted));
    let want = WantViewChange { to: View(3), ..wanted.want };
    assert!(!holds(&Wanted { want, ..(*wanted).clone() }), "what was signed is for view 2");
}

#[test]
fn lookups_are_under_the_nonce_of_all_who_want() {
    covers!("A2MPBFTEA-V4");
    changed("an older nonce", |bench, it| {
        it.abandoned[0] = bench.look_up(1, it.abandoned[0].claim.slot, [0; 32]);
    });
    let bench = Bench::new(1);
    assert_ne!(shared_nonce(&bench.wanted(2)), shared_nonce(&bench.wanted(2)[..1]));
}

#[test]
fn a_viewchange_shows_how_its_view_was_entered() {
    covers!("A2MPBFTEA-V5");
    changed("view 0 is not entered", |bench, it| {
        let start = bench.say(
            2,
            Body::NewView(crate::NewView {
                view: View(2),
                changes: Vec::new(),
                base: (Seq(0), troth_types::Digest::ZERO),
                chosen: Vec::new(),
            }),
        );
        it.accepted = Some(bench.accept(1, &start));
    });
    let mut bench = Bench::new(1);
    let message = bench.view_change(1, 1, 2, None, Vec::new());
    assert!(judged(&bench, &message).is_err(), "view 1 is entered by a commitment");
}

#[test]
fn every_commitment_has_its_prepared_certificate() {
    covers!("A2MPBFTEA-V7");
    changed("nobody prepared", |_, it| it.committed[0].prepares.clear());
    changed("the primary did not propose", |_, it| {
        it.committed[0].proposal = it.committed[0].prepares[0].clone()
    });
    changed("another's commitment", |bench, it| {
        let vote = it.committed[1].commit.voted().expect("a COMMIT");
        it.committed[1].commit = bench.say(2, Body::Commit(vote));
    });
    changed("another batch", |_, it| it.committed[0].proposal = it.committed[1].proposal.clone());
}

#[test]
fn commitments_follow_each_other() {
    covers!("A2MPBFTEA-V8");
    changed("backwards", |_, it| it.committed.reverse());
    changed("the last one left out", |_, it| drop(it.committed.pop()));
    let mut bench = Bench::new(1);
    let certificates = [1, 3].map(|seq| bench.prepare(0, seq, &some_batch(seq), &[1]));
    let committed = certificates.iter().map(|it| bench.commit(1, it)).collect();
    let message = bench.view_change(1, 0, 2, None, committed);
    assert!(judged(&bench, &message).is_err(), "a gap");
}

#[test]
fn a_first_commitment_left_out_is_noticed_where_the_view_started() {
    covers!("A2MPBFTEA-V11");
    let mut bench = Bench::new(1);
    let mut body = valid(&mut bench);
    body.committed.remove(0);
    let message = bench.say(1, Body::ViewChange(body));
    assert_eq!(judged(&bench, &message), Ok(()), "the form alone does not tell");
    let other = bench.view_change(2, 0, 2, None, Vec::new());
    assert_eq!(bench.choice(&[message, other], None), None);
}

#[test]
fn every_view_left_is_shown_to_its_end() {
    covers!("A2MPBFTEA-V9");
    changed("one view too few", |_, it| it.abandoned.truncate(1));
    changed("another slot", |bench, it| {
        let nonce = it.abandoned[0].claim.nonce;
        it.abandoned[0] = bench.look_up(1, flattened(View(0), Seq(9)), nonce);
    });
    changed("the slot of a commitment", |bench, it| {
        let nonce = it.abandoned[0].claim.nonce;
        it.abandoned[0] = bench.look_up(1, flattened(View(0), Seq(2)), nonce);
    });
    changed("another log", |_, it| it.abandoned[0].claim.log = crate::place::PREPARE);
    // A replica that did not abandon: the slots are unassigned.
    let mut bench = Bench::new(1);
    let wanted = bench.wanted(1);
    let nonce = shared_nonce(&wanted);
    let slot = to_look_up(&bench.config, View(0), View(1), Seq(0))[0];
    let abandoned = vec![bench.look_up(2, slot, nonce)];
    let body = ViewChange {
        left: View(0),
        to: View(1),
        stable: Default::default(),
        accepted: None,
        committed: Vec::new(),
        wanted,
        abandoned,
    };
    let message = bench.say(2, Body::ViewChange(body));
    assert!(judged(&bench, &message).is_err(), "nothing was abandoned");
    assert_eq!(message.view_change().expect("it is one").abandoned[0].claim.log, COMMIT);
    assert_eq!(message.from, r(2));
}

#[test]
fn a_view_entered_meanwhile_cannot_be_left_out() {
    covers!("A2MPBFTEA-V6");
    let mut bench = Bench::new(1);
    let changes =
        vec![bench.view_change(0, 0, 1, None, Vec::new()), bench.view_change(2, 0, 1, None, Vec::new())];
    let start = bench.new_view(changes, None);
    bench.accept(2, &start);
    // It committed to nothing but the start of view 1, and says that it was in view 0 all the time.
    let message = bench.view_change(2, 0, 3, None, Vec::new());
    assert!(judged(&bench, &message).is_err());
}

#[test]
fn a_slot_skipped_by_a_later_commitment_is_no_abandonment() {
    covers!("A2MPBFTEA-V9");
    let mut bench = Bench::new(1);
    let certificates = [1, 3].map(|seq| bench.prepare(0, seq, &some_batch(seq), &[1]));
    let first = bench.commit(1, &certificates[0]);
    bench.commit(1, &certificates[1]);
    // [0|2] is skipped, to [0|3] and not to the end of the view.
    let message = bench.view_change(1, 0, 1, None, vec![first]);
    assert!(judged(&bench, &message).is_err());
}
