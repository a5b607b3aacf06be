//! MINBFT-E4: who vouched for a checkpoint that shows a component replaced may hide that behind an own checkpoint of a later
//! view, and an older certificate. What that view started from, and so what the next one does, shows it all the same.

use super::harness::{SMALL, World, covers, r};
use super::paper_epochs::{after_admission, proof_with};
use super::replaced::{learns, step};
use crate::MinBft;
use crate::message::{Body, Certified, Message, StableProof};
use crate::place::Place;
use crate::state::Phase;
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_types::{Digest, ReplicaId, Seq, View};

/// Replica 3 of five has another component since a batch behind 12, and 24 is stable. Replica 0 is faulty: it knows that, and
/// accepted the start of view 1, which shows it.
struct Hidden {
    world: World,
    /// The start of view 1.
    start: Arc<Certified>,
    /// What 0 certified in view 1: a checkpoint so old that its log may begin there.
    anchor: Arc<Certified>,
    /// Its VIEW-CHANGE to view 2, which shows neither.
    hiding: Arc<Certified>,
    /// That of the component that 3 has no more.
    old: Arc<Certified>,
    /// What is known to be stable where nobody knows of the replacement.
    older: StableProof,
}

/// f+1 votes by components that begin nothing else.
fn proof(seq: u64, named: &[(ReplicaId, u64)]) -> StableProof {
    let mut scratch = World::with(5, SMALL, &[]);
    proof_with(&mut scratch, &[0, 1, 2], seq, named)
}

fn hidden(correct: u16, named: &[(ReplicaId, u64)]) -> Hidden {
    let mut world = World::with(5, SMALL, &[correct]);
    let (older, settled) = (proof(12, &[]), proof(24, named));
    let shows = [0, 1, 4].into_iter().filter(|by| *by != correct);
    let mut changes: Vec<Arc<Certified>> = shows
        .map(|by| {
            let body = world.change_body(by, 1, settled.clone());
            world.certify_change(by, body)
        })
        .collect();
    if changes.len() < 3 {
        changes.push(world.view_change(2, 1));
    }
    let primary_first: Vec<&Arc<Certified>> = [1, 0, 2].map(|at| &changes[at]).to_vec();
    let start = world.new_view(1, &primary_first, &[]);
    assert_eq!(start.new_view().expect("NEW-VIEW").base.0, Seq(24));
    world.accept(0, &start);
    let anchor = world.checkpoint(0, 4, Digest([7; 32]));
    let mut body = world.change_body(0, 2, older.clone());
    body.log = body.log.split_off(body.log.len() - 1);
    let hiding = world.certify_change(0, body);
    let old = world.view_change(3, 2);
    Hidden { world, start, anchor, hiding, old, older }
}

/// Replica 2 begins view 2 from its own VIEW-CHANGE, that of the component that 3 has no more, and the one that hides.
fn begun_from_the_hidden(it: &mut Hidden) -> Arc<Certified> {
    let own = it.world.view_change(2, 2);
    let body = it.world.new_view_body(2, &[&own, &it.old, &it.hiding], &[&it.start]);
    assert_eq!(body.base.0, Seq(24), "the start of view 1 rules");
    it.world.certify(2, Body::NewView(body))
}

/// Whether a replica that moves to view 2 enters it by that start, as its primary's next message or as evidence.
fn enters(it: &Hidden, minbft: &mut MinBft, message: &Arc<Certified>, as_evidence: bool) -> bool {
    let new_view = message.new_view().expect("NEW-VIEW");
    (minbft.view, minbft.phase, minbft.due_view_change) = (View(2), Phase::Changing, None);
    if as_evidence {
        minbft.known_views.hold(View(2), message.clone(), Some(View(1)));
        minbft.peer_mut(r(2)).gate.start_at(Place::of_start(View(2)));
    }
    step(&it.world, minbft, |minbft, cx| match as_evidence {
        true => minbft.try_enter_known(cx),
        false => drop(minbft.on_new_view(cx, message, new_view)),
    });
    minbft.active()
}

// MINBFT-E4 "… nor does the checkpoint that the view starts from".
#[test]
fn no_view_is_entered_with_a_component_that_its_base_shows_replaced() {
    covers!("MINBFT-E4");
    for (named, as_evidence) in [(false, false), (true, false), (false, true), (true, true)] {
        let epochs = if named { vec![(r(3), 2)] } else { Vec::new() };
        let mut it = hidden(4, &epochs);
        let message = begun_from_the_hidden(&mut it);
        let mut minbft = it.world.minbft(4).clone();
        minbft.known_views.hold(View(1), it.start.clone(), None);
        // Nor does it rule a later start as evidence.
        let judged = minbft.judge_new_view(&message, message.new_view().expect("NEW-VIEW"));
        assert_eq!(matches!(judged, Judgement::Open), named);
        assert_eq!(matches!(judged, Judgement::Valid { .. }), !named);
        assert_eq!(enters(&it, &mut minbft, &message, as_evidence), !named, "{named} {as_evidence}");
    }
}

// MINBFT-E4: what is known of the base alone counts, whoever knows more; and where that is in doubt it is waited for.
#[test]
fn a_later_replacement_speaks_against_no_view_whose_base_is_executed() {
    covers!("MINBFT-E4");
    let it = hidden(4, &[]);
    let changes = [it.old.clone()];
    let mut minbft = it.world.minbft(4).clone();
    (minbft.stable, minbft.stable_proof) = ((Seq(48), Digest([7; 32])), Arc::new(proof(48, &[(r(3), 2)])));
    assert!(!minbft.base_allows(Seq(24), &changes), "it may have been replaced before, or in that very view");
    assert!(!minbft.base_allows(Seq(48), &changes));
    assert!(minbft.base_allows(Seq(24), std::slice::from_ref(&it.hiding)), "nobody replaced 0");
    learns(&it.world, &mut minbft, after_admission(&it.world, 3, 30));
    minbft.reached.seq = Seq(48);
    assert!(minbft.base_allows(Seq(24), &changes), "it was replaced in batch 30, as was executed");
    assert!(!minbft.base_allows(Seq(36), &changes));
    let fresh = it.world.minbft(4).clone();
    assert!(!fresh.base_allows(Seq(24), &changes), "nothing shows the base");
    assert!(
        fresh.base_allows(Seq(0), &changes) && fresh.base_allows(Seq(12), std::slice::from_ref(&it.hiding))
    );
}

// MINBFT-E4: nor does a primary begin one so.
#[test]
fn a_primary_begins_with_no_component_that_its_base_shows_replaced() {
    covers!("MINBFT-E4");
    for named in [false, true] {
        let epochs = if named { vec![(r(3), 2)] } else { Vec::new() };
        let mut it = hidden(2, &epochs);
        it.world.inject(1, 2, Message::Stable(Arc::new(it.older.clone())));
        assert_eq!(it.world.stable(2), Seq(12));
        it.world.wishes(&[0, 1, 3], 2, 2);
        for message in [&it.anchor, &it.hiding, &it.old] {
            it.world.say(2, message);
        }
        it.world.inject(0, 2, Message::Evidence(it.start.clone()));
        assert_eq!(it.world.stable(2), Seq(24), "the base is known before anything is proposed");
        let begun = it.world.new_view_of(2);
        assert_eq!(begun.is_none(), named, "{:?}", begun.map(|begun| begun.body.clone()));
        assert!(it.world.accused_nobody(2));
    }
}

// MINBFT-E4: a liar that had a part in a start keeps nobody out of the views that rest on it.
#[test]
fn a_liar_in_a_start_keeps_nobody_out_of_the_next() {
    covers!("MINBFT-E4");
    let mut world = World::with(5, SMALL, &[2]);
    let lie =
        crate::Checkpoint { seq: Seq(4), digest: Digest([7; 32]), epochs: vec![(r(2), 9)], given: false };
    world.certify(0, Body::Checkpoint(lie));
    let changes = [1, 0, 3].map(|by| world.view_change(by, 1));
    let start = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
    world.accept(3, &start);
    let next = [1, 3].map(|by| world.view_change(by, 2));
    world.wishes(&[0, 1, 3], 2, 2);
    for by in [1, 3] {
        world.said(by).iter().for_each(|message| world.say(2, message));
    }
    assert_eq!(world.minbft(2).known_views.get(View(1)).map(|known| known.digest), Some(start.digest));
    let begun = world.new_view_of(2).expect("the three others begin");
    let senders: Vec<ReplicaId> =
        begun.new_view().expect("NEW-VIEW").changes.iter().map(|change| change.from).collect();
    assert_eq!((senders, next.len()), (vec![r(2), r(1), r(3)], 2));
}

/// Replica 4 in view 2, which starts from 24, once 3 has another component since batch `at`.
fn works_beside(it: &Hidden, at: u64) -> MinBft {
    let mut minbft = it.world.minbft(4).clone();
    learns(&it.world, &mut minbft, after_admission(&it.world, 3, at));
    (minbft.view, minbft.phase, minbft.started.base) = (View(2), Phase::Active, Seq(24));
    minbft.peer_mut(r(3)).gate.start_at(Place::of_start(View(2)));
    minbft
}

// MINBFT-E11: what an admitted component says counts in no view that starts below n_r + L.
#[test]
fn an_admitted_component_counts_in_no_view_that_its_predecessor_may_have_begun() {
    covers!("MINBFT-E11");
    let it = hidden(4, &[]);
    for (at, counts) in [(16, true), (17, false)] {
        let mut minbft = works_beside(&it, at);
        assert_eq!(minbft.counts(r(3), Seq(30)), counts, "a window of 8 behind {at}");
        assert!(minbft.counts(r(1), Seq(30)));
        minbft.started.accepted = [0, 3, 4].map(r).into_iter().collect();
        assert_eq!(minbft.view_agreed(), counts);
        minbft.started.accepted.insert(r(1));
        assert!(minbft.view_agreed());
    }
}

// MINBFT-E11: nor does it enter one, by whatever way it learns of it.
#[test]
fn an_admitted_component_enters_no_view_that_its_predecessor_may_have_begun() {
    covers!("MINBFT-E11");
    for (at, as_evidence) in [(16, false), (17, false), (16, true), (17, true)] {
        let mut it = hidden(4, &[]);
        let message = begun_from_the_hidden(&mut it);
        let mut minbft = it.world.minbft(4).clone();
        minbft.own_epoch = Some(2);
        learns(&it.world, &mut minbft, after_admission(&it.world, 4, at));
        minbft.known_views.hold(View(1), it.start.clone(), None);
        assert_eq!(enters(&it, &mut minbft, &message, as_evidence), at == 16, "{at} {as_evidence}");
    }
}

// MINBFT-E8: who has begun, and is kept out of the view by E11, is followed out of it, too, ever more seldom.
#[test]
fn an_admitted_component_that_may_not_work_in_a_view_is_followed_out_of_it() {
    covers!("MINBFT-E8");
    let it = hidden(4, &[]);
    // What it can begin on (E3) is not asked of who has begun.
    let mut of_no_view = proof(28, &[(r(3), 2)]);
    for vote in &mut of_no_view.votes {
        if let Body::Checkpoint(checkpoint) = &mut Arc::make_mut(vote).body {
            checkpoint.given = true;
        }
    }
    assert_eq!(of_no_view.view(), View(u64::MAX));
    let plain = proof(28, &[(r(3), 2)]);
    for (at, welcome, known) in [(16, false, &plain), (17, true, &plain), (17, true, &of_no_view)] {
        let mut minbft = works_beside(&it, at);
        (minbft.stable, minbft.stable_proof) = ((Seq(28), Digest([7; 32])), Arc::new(known.clone()));
        assert_eq!(minbft.may_be_welcomed(r(3)), welcome);
        let wish = it.world.wish(3, 3);
        let said = step(&it.world, &mut minbft, |minbft, cx| minbft.welcome(cx, &wish));
        assert_eq!((said.len(), minbft.wanted_view), if welcome { (1, View(3)) } else { (0, View(0)) });
        assert!(!minbft.may_be_welcomed(r(3)), "once, and again after a pause");
    }
}

// MINBFT-V13: what a primary has certified its own log refers to, whatever it learns before that comes back.
#[test]
fn a_primary_holds_the_start_that_it_has_certified() {
    covers!("MINBFT-V13");
    for of_its_own in [true, false] {
        let mut it = hidden(if of_its_own { 2 } else { 4 }, &[(r(3), 2)]);
        let message = begun_from_the_hidden(&mut it);
        let mut minbft = it.world.minbft(if of_its_own { 2 } else { 4 }).clone();
        minbft.known_views.hold(View(1), it.start.clone(), None);
        minbft.view = View(3);
        step(&it.world, &mut minbft, |minbft, cx| {
            minbft.on_new_view(cx, &message, message.new_view().expect("NEW-VIEW"));
        });
        assert_eq!(minbft.known_views.get(View(2)).is_some(), of_its_own);
    }
}
