//! MINBFT-E4: who vouched for a checkpoint that shows a component replaced may hide that behind an own checkpoint of a later
//! view, and an older certificate. The start of that view shows it all the same.

use super::harness::{SMALL, World, covers, r};
use super::paper_epochs::proof_with;
use crate::known_views::{Ground, ground_of};
use crate::message::{Body, Certified, Message, StableProof};
use crate::view_change::Judgement;
use std::sync::Arc;
use troth_types::{ReplicaId, Seq, View};

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
    /// Those of the component that 3 has no more, and of 1, which knows of nothing.
    old: Arc<Certified>,
    honest: Arc<Certified>,
    /// What is known to be stable where nobody knows of the replacement.
    older: StableProof,
}

/// f+1 votes by components that begin nothing else.
fn proof(seq: u64, named: &[(ReplicaId, u64)]) -> StableProof {
    let mut scratch = World::with(5, SMALL, &[]);
    proof_with(&mut scratch, &[0, 1, 4], seq, named)
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
    let anchor = world.checkpoint(0, 4, troth_types::Digest([7; 32]));
    let mut body = world.change_body(0, 2, older.clone());
    body.log = body.log.split_off(body.log.len() - 1);
    let hiding = world.certify_change(0, body);
    let (old, honest) = (world.view_change(3, 2), world.view_change(1, 2));
    Hidden { world, start, anchor, hiding, old, honest, older }
}

fn ground(world: &World, start: &Certified) -> Ground {
    ground_of(&world.group, &world.configuration, &world.config, start)
}

// MINBFT-E4 "… nor the start of the highest view that one of them shows, or one that it rests on".
#[test]
fn a_view_does_not_begin_with_a_component_that_the_ruling_start_shows_replaced() {
    covers!("MINBFT-E4");
    for named in [false, true] {
        let epochs = if named { vec![(r(3), 2)] } else { Vec::new() };
        let mut it = hidden(4, &epochs);
        let own = it.world.view_change(2, 2);
        let body = it.world.new_view_body(2, &[&own, &it.old, &it.hiding], &[&it.start]);
        assert_eq!(body.base.0, Seq(24), "the start of view 1 rules");
        let message = it.world.certify(2, Body::NewView(body.clone()));
        let mut minbft = it.world.minbft(4).clone();
        assert!(matches!(minbft.judge_new_view(&message, &body), Judgement::Needs(View(1))));
        let ground = ground(&it.world, &it.start);
        minbft.known_views.hold(View(1), it.start.clone(), ground);
        let judged = minbft.judge_new_view(&message, &body);
        match named {
            false => assert!(matches!(judged, Judgement::Valid(_))),
            // Its sender need not be faulty: it may know that start by f+1 commitments, and nothing of those before.
            true => assert!(matches!(judged, Judgement::Open)),
        }
    }
}

// MINBFT-E4: what a start shows is known of the ones that rest on it, too.
#[test]
fn what_a_start_shows_is_known_of_those_that_rest_on_it() {
    let mut it = hidden(4, &[(r(3), 2)]);
    let own = it.world.view_change(2, 2);
    let next = it.world.new_view(2, &[&own, &it.hiding, &it.honest], &[&it.start]);
    let mut minbft = it.world.minbft(4).clone();
    let first = ground(&it.world, &it.start);
    minbft.known_views.hold(View(1), it.start.clone(), first);
    let second = ground(&it.world, &next);
    assert_eq!(second.rests_on, Some(View(1)));
    minbft.known_views.hold(View(2), next, second);
    assert_eq!(minbft.known_views.epochs(View(2)).and_then(|epochs| epochs.get(&r(3))), Some(&2));
}

// MINBFT-E4: nor does a primary begin one so.
#[test]
fn a_primary_begins_with_no_component_that_the_ruling_start_shows_replaced() {
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
        assert!(it.world.minbft(2).known_views.get(View(1)).is_some());
        let begun = it.world.new_view_of(2);
        assert_eq!(begun.is_none(), named, "{:?}", begun.map(|begun| begun.body.clone()));
        assert!(it.world.accused_nobody(2));
    }
}

// MINBFT-E4 "… it would keep whom that lies about out of all later views".
#[test]
fn what_a_log_inside_a_start_says_is_one_replica_s_word() {
    let mut world = World::with(5, SMALL, &[4]);
    let lie =
        crate::Checkpoint { seq: Seq(4), digest: troth_types::Digest([7; 32]), epochs: vec![(r(3), 9)] };
    world.certify(0, Body::Checkpoint(lie));
    let changes = [1, 0, 2].map(|by| world.view_change(by, 1));
    let start = world.new_view(1, &[&changes[0], &changes[1], &changes[2]], &[]);
    assert!(ground(&world, &start).epochs.is_empty());
}

// MINBFT-E4: a liar that had a part in a start keeps nobody out of the views that rest on it.
#[test]
fn a_liar_in_a_start_keeps_nobody_out_of_the_next() {
    covers!("MINBFT-E4");
    let mut world = World::with(5, SMALL, &[2]);
    let lie =
        crate::Checkpoint { seq: Seq(4), digest: troth_types::Digest([7; 32]), epochs: vec![(r(2), 9)] };
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

// MINBFT-E4: nor do f faulty replicas with a replaced component, which vouch for what was before its replacement.
#[test]
fn a_component_that_never_was_keeps_nobody_out_who_is_known() {
    covers!("MINBFT-E4");
    let mut it = hidden(4, &[(r(3), 2)]);
    let ground = ground(&it.world, &it.start);
    let mut minbft = it.world.minbft(4).clone();
    minbft.known_views.hold(View(1), it.start.clone(), ground);
    let judge = |minbft: &crate::MinBft| {
        let configuration = &it.world.configuration;
        let shown = crate::evidence::evidence(&it.world.group, configuration, &it.world.config, &it.hiding);
        minbft.with_its_start(shown.expect("it is as it should be")).epochs
    };
    assert_eq!(judge(&minbft).get(&r(3)), Some(&2), "it may not know of it yet");
    minbft.reached.seq = Seq(24);
    assert_eq!(
        judge(&minbft).get(&r(3)),
        None,
        "it has executed all that the start rests on, and there was none"
    );
    it.world.configuration = Arc::new(super::paper_epochs::after_admission(&it.world, 3, 13));
    super::replaced::learns(&it.world, &mut minbft, (*it.world.configuration).clone());
    let shown =
        crate::evidence::evidence(&it.world.group, &it.world.configuration, &it.world.config, &it.hiding);
    assert_eq!(minbft.with_its_start(shown.expect("as before")).epochs.get(&r(3)), Some(&2));
}
