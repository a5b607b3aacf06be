//! Appendix A, from the time-out to the new view.

use super::craft::{Bench, some_batch};
use super::harness::{Net, SMALL, batch, covers, frame, r};
use super::normal::is_commit;
use crate::Timer;
use crate::message::{Accept, Body, Message, NewView, StableProof, Status, ViewChange};
use troth_core::{Agreement, VerifiedFrame};
use troth_types::{Digest, Seq, View};

pub(super) fn kind(message: &Message) -> &'static str {
    match message {
        Message::Attested(message) => message.body.kind(),
        Message::Want(_) => "WANTVIEWCHANGE",
        Message::Status(_) => "STATUS",
        Message::Stable(_) => "STABLE",
        Message::FetchHistory(_) => "FETCH-HISTORY",
        Message::History(..) => "HISTORY",
        Message::FetchProposals(..) => "FETCH-PROPOSALS",
    }
}

fn all(net: &Net) -> Vec<u16> {
    net.group.all().map(|replica| replica.0).collect()
}

#[test]
fn a_silent_primary_is_replaced() {
    covers!("A2MPBFTEA-V1");
    covers!("A2MPBFTEA-V2");
    covers!("A2MPBFTEA-V12");
    covers!("A2MPBFTEA-V13");
    covers!("A2MPBFTEA-V14");
    covers!("A2MPBFTEA-V17");
    for f in 1..=3 {
        let mut net = Net::new(f);
        net.node_mut(0).down = true;
        let backups: Vec<u16> = all(&net).split_off(1);
        let one = frame(1, 1);
        net.request(&one, backups.clone());
        net.suspect(backups.clone());
        net.run();
        for replica in backups {
            assert_eq!(net.node(replica).view(), View(1), "f = {f}");
            assert_eq!(net.node(replica).history(), [one.digest()], "f = {f}, replica {replica}");
        }
    }
}

#[test]
fn f_replicas_alone_leave_no_view() {
    covers!("A2MPBFTEA-V3");
    let mut net = Net::new(2);
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..5);
    net.suspect([1, 2]);
    net.run();
    assert!((1..5).all(|replica| net.node(replica).view() == View(0)));
    net.suspect([3]);
    net.run();
    assert!((1..5).all(|replica| net.node(replica).view() == View(1)), "one that did not suspect follows");
}

/// All replicas' PREPAREs pass, and no COMMIT.
fn prepared_nowhere_committed(f: u16) -> (Net, Digest) {
    let mut net = Net::new(f);
    let one = frame(1, 1);
    let everybody = all(&net);
    net.request(&one, everybody);
    net.run_where(|flight| !is_commit(&flight.message));
    (net, one.digest())
}

#[test]
fn what_was_committed_to_is_carried_over() {
    covers!("A2MPBFTEA-V5");
    covers!("A2MPBFTEA-V7");
    covers!("A2MPBFTEA-V8");
    let (mut net, digest) = prepared_nowhere_committed(1);
    net.node_mut(0).down = true;
    net.suspect([1, 2]);
    net.run();
    for replica in [1, 2] {
        assert_eq!(net.node(replica).history(), [digest]);
        assert_eq!(net.node(replica).replica.started.end(), Seq(1));
    }
}

#[test]
fn nothing_carried_over_is_executed_before_f_plus_1_commit_to_it() {
    covers!("A2MPBFTEA-V14");
    let (mut net, digest) = prepared_nowhere_committed(2);
    net.node_mut(0).down = true;
    net.suspect(1..5);
    net.run_where(|flight| kind(&flight.message) != "COMMIT(NEWVIEW)");
    for replica in 1..5 {
        assert_eq!(net.node(replica).view(), View(1));
        assert!(net.node(replica).executed.is_empty(), "one commitment is no quorum");
    }
    net.compare_notes();
    assert!((1..5).all(|replica| net.node(replica).history() == [digest]));
}

#[test]
fn a_replica_that_left_votes_no_more_in_the_old_view() {
    covers!("A2MPBFTEA-V19");
    let (mut net, _) = prepared_nowhere_committed(1);
    net.suspect([1, 2]);
    // The WANTVIEWCHANGEs arrive, nothing else does.
    net.run_where(|flight| kind(&flight.message) == "WANTVIEWCHANGE");
    assert!(!net.node(1).replica.active);
    let two = frame(2, 1);
    net.request(&two, 0..3);
    net.run_where(|flight| flight.from == r(0) && flight.to == r(1));
    assert_eq!(net.sent(1, |message| matches!(kind(message), "PREPARE" | "COMMIT")), 0);
    // Nor could it: the slots are gone.
    let slot = crate::place::flattened(View(0), Seq(2));
    assert!(net.node(1).replica.last_filled(crate::place::COMMIT) > slot);
}

#[test]
fn a_replica_that_missed_a_view_change_is_told_how_the_view_started() {
    covers!("A2MPBFTEA-V15");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..3);
    net.suspect([1, 2]);
    net.run();
    net.node_mut(0).down = false;
    (0..10).for_each(|_| net.compare_notes());
    assert_eq!(net.node(0).view(), View(1));
    // The frame comes as whoever has it shows it.
    net.request(&frame(1, 1), [0]);
    (0..3).for_each(|_| net.compare_notes());
    assert_eq!(net.node(0).history().len(), 1);
}

#[test]
fn f_plus_1_commitments_prove_a_start_that_nobody_can_judge() {
    covers!("A2MPBFTEA-V15");
    let mut bench = Bench::new(1);
    let changes = [0, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new())).to_vec();
    let first = bench.new_view(changes, None);
    let accepted = bench.accept(2, &first);
    let changes = vec![
        bench.view_change(1, 0, 2, None, Vec::new()),
        bench.view_change(2, 1, 2, Some(accepted), Vec::new()),
    ];
    let second = bench.new_view(changes, Some(&first));
    let accepts = [1, 2].map(|from| bench.accept(from, &second));
    // Replica 0 has not heard of view 1.
    let mut net = Net::new(1);
    net.tell(2, 0, Message::Attested(second));
    net.tell(1, 0, Message::Attested(accepts[0].clone()));
    assert_eq!(net.node(0).replica.entered, View(0), "one may be lying");
    assert_eq!(net.node(0).replica.known_views.lacks(&net.group), [View(1)].into());
    // What breaks a rule is not asked for in its place, nor is what another one says that it left.
    let bogus =
        NewView { view: View(4), changes: Vec::new(), base: (Seq(0), Digest::ZERO), chosen: Vec::new() };
    let bogus = bench.say(1, Body::NewView(bogus));
    net.tell(1, 0, Message::Attested(bogus));
    assert_eq!(net.node(0).replica.known_views.lacks(&net.group), [View(1)].into());
    net.step(r(0), |replica, _| replica.known_views.want(View(3), r(1)));
    let asked = |net: &Net, round| net.node(0).replica.known_views.asks_for(&net.group, round);
    assert_eq!([0, 1, 2].map(|round| asked(&net, round)), [1, 3, 1].map(|view| Some(View(view))));
    net.tell(2, 0, Message::Attested(accepts[1].clone()));
    assert_eq!(net.node(0).replica.entered, View(2));
}

#[test]
fn all_frames_of_a_start_are_asked_for_by_whoever_still_works_in_an_older_view() {
    covers!("A2MPBFTEA-R6");
    let mut bench = Bench::new(1);
    let last = SMALL.pipeline + 2;
    let certificates: Vec<_> = (1..=last).map(|seq| bench.prepare(0, seq, &some_batch(seq), &[1])).collect();
    let committed = certificates.iter().map(|certificate| bench.commit(1, certificate)).collect();
    let changes =
        vec![bench.view_change(1, 0, 1, None, committed), bench.view_change(2, 0, 1, None, Vec::new())];
    let start = bench.new_view(changes, None);
    let mut net = Net::new(1);
    net.tell(1, 0, Message::Attested(start));
    assert_eq!(net.node(0).replica.entered, View(0), "the frames are not here");
    net.fire(0, Timer::Fetch);
    let asked: Vec<Digest> = net.node(0).frames_asked.iter().flat_map(|(_, asked)| asked.clone()).collect();
    assert_eq!(asked.len() as u64, last);
    let frames = (1..=last).map(|client| frame(client, 1)).collect();
    net.step(r(0), |replica, cx| replica.on_requests(cx, frames));
    assert_eq!(net.node(0).replica.entered, View(1));
}

#[test]
fn who_lacks_a_start_that_others_let_go_is_shown_what_ended_the_way_back() {
    covers!("A2MPBFTEA-V15");
    let mut bench = Bench::new(1);
    let changes = [0, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new())).to_vec();
    let first = bench.new_view(changes, None);
    let accepted = bench.accept(2, &first);
    let changes = vec![
        bench.view_change(1, 0, 2, None, Vec::new()),
        bench.view_change(2, 1, 2, Some(accepted), Vec::new()),
    ];
    let second = bench.new_view(changes, Some(&first));
    let mut net = Net::new(1);
    net.tell(2, 0, Message::Attested(second.clone()));
    for from in [1, 2] {
        net.tell(from, 0, Message::Attested(bench.accept(from, &second)));
    }
    assert_eq!(net.node(0).replica.entered, View(2));
    assert!(net.node(0).replica.known_views.get(View(1)).is_none());
    // Replica 1 goes back from a later view's start to that of view 1, which it lacks.
    let status = Status {
        view: View(3),
        active: false,
        stable: Seq(0),
        executed: Seq(0),
        slots: Vec::new(),
        changes: 0,
        accepts: 0,
        lacks: Some(View(1)),
        wishes: false,
    };
    net.tell(1, 0, Message::Status(status));
    let shows = |name: &str| net.sent(0, |message| kind(message) == name);
    assert!(shows("NEWVIEW") > 0 && shows("COMMIT(NEWVIEW)") >= 2);
}

#[test]
fn views_may_be_left_from_different_ones() {
    covers!("A2MPBFTEA-V10");
    covers!("A2MPBFTEA-V12");
    let mut net = Net::new(2);
    net.node_mut(0).down = true;
    let one = frame(1, 1);
    net.request(&one, 1..5);
    net.suspect(1..5);
    // View 1 starts at 1 and 2 only.
    net.run_where(|flight| kind(&flight.message) != "NEWVIEW" || flight.to == r(2));
    assert_eq!((net.node(1).view(), net.node(3).replica.entered), (View(1), View(0)));
    net.node_mut(1).down = true;
    net.request(&frame(2, 1), 2..5);
    net.fire(2, Timer::Request);
    for replica in [3, 4] {
        net.fire(replica, Timer::NewView);
    }
    net.run();
    (0..4).for_each(|_| net.compare_notes());
    for replica in 2..5 {
        assert_eq!(net.node(replica).view(), View(2));
        assert_eq!(net.node(replica).history().len(), 2);
    }
}

#[test]
fn a_lost_viewchange_is_sent_again() {
    covers!("A2MPBFTEA-V18");
    let mut net = Net::new(1);
    net.node_mut(0).down = true;
    net.request(&frame(1, 1), 1..3);
    net.suspect([1, 2]);
    net.run_where(|flight| kind(&flight.message) != "VIEWCHANGE");
    assert!(!net.node(1).replica.active && !net.node(2).replica.active);
    net.compare_notes();
    assert!(net.node(1).replica.active && net.node(2).replica.active);
}

#[test]
fn the_primary_of_a_view_that_starts_wrongly_is_condemned() {
    covers!("A2MPBFTEA-V12");
    let mut net = Net::new(1);
    let mut bench = Bench::new(1);
    let changes: Vec<_> = [0, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new())).to_vec();
    let base = (Seq(0), Digest::ZERO);
    let wrong = |changes: Vec<_>, chosen| Body::NewView(NewView { view: View(1), changes, base, chosen });
    let invented = bench.say(1, wrong(changes.clone(), vec![some_batch(1)]));
    net.tell(1, 2, Message::Attested(invented));
    assert_eq!(net.node(2).accused(), [r(1)]);
    let mut net = Net::new(1);
    let mut bench = Bench::new(1);
    let changes: Vec<_> = [0, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new())).to_vec();
    let few = bench.say(1, wrong(vec![changes[0].clone()], Vec::new()));
    net.tell(1, 2, Message::Attested(few));
    assert_eq!(net.node(2).accused(), [r(1)]);
    let mut bench = Bench::new(1);
    let changes: Vec<_> = [0, 2].map(|from| bench.view_change(from, 0, 1, None, Vec::new())).to_vec();
    let backup = bench.say(2, wrong(changes, Vec::new()));
    let mut net = Net::new(1);
    net.tell(2, 0, Message::Attested(backup));
    assert_eq!(net.node(0).accused(), [r(2)]);
}

#[test]
fn a_viewchange_that_hides_a_commitment_condemns_its_sender() {
    covers!("A2MPBFTEA-V9");
    let mut bench = Bench::new(1);
    let certificate = bench.prepare(0, 1, &some_batch(1), &[1]);
    bench.commit(1, &certificate);
    let message = bench.view_change(1, 0, 1, None, Vec::new());
    let mut net = Net::new(1);
    // The lookup says that the slot is filled: no skipped slot is to be seen, so nobody takes it for one.
    assert!(!super::harness::authentic(&net.group, &Message::Attested(message.clone())));
    net.step(r(2), |replica, cx| replica.on_view_change(cx, &message));
    assert_eq!(net.node(2).accused(), [r(1)]);
}

#[test]
fn the_deadline_of_the_application_has_a_timer() {
    covers!("A2MPBFTEA-V16");
    let mut net = Net::new(1);
    net.node_mut(1).deadline = Some(troth_types::Time(super::harness::WALL + 50_000));
    net.order(&frame(1, 1));
    net.now += 10_000_000;
    net.fire(1, Timer::Overdue);
    assert_eq!(net.node(1).replica.wanted_view, View(1));
}

/// Replica 0 has the NEWVIEW of view 1, which carries over a batch of these frames.
fn told_of_a_start_with(frames: &[&VerifiedFrame]) -> Net {
    let mut bench = Bench::new(1);
    let certificate = bench.prepare(0, 1, &batch(frames), &[1]);
    let committed = bench.commit(1, &certificate);
    let changes =
        vec![bench.view_change(1, 0, 1, None, vec![committed]), bench.view_change(2, 0, 1, None, Vec::new())];
    let start = bench.new_view(changes, None);
    let mut net = Net::new(1);
    net.tell(1, 0, Message::Attested(start));
    net
}

#[test]
fn frames_that_a_start_names_are_fetched_before_anybody_commits_to_it() {
    covers!("A2MPBFTEA-V13");
    let one = frame(1, 1);
    let mut net = told_of_a_start_with(&[&one]);
    assert_eq!(net.node(0).replica.entered, View(0));
    net.request(&one, [0]);
    assert_eq!(net.node(0).replica.entered, View(1));
    assert_eq!(net.sent(0, |message| kind(message) == "COMMIT(NEWVIEW)"), 2);
}

#[test]
fn a_start_is_looked_at_again_when_its_last_frame_has_come() {
    covers!("A2MPBFTEA-V13");
    let frames: Vec<_> = (1..=3).map(|client| frame(client, 1)).collect();
    let mut net = told_of_a_start_with(&frames.iter().collect::<Vec<_>>());
    for (at, shown) in frames.iter().enumerate() {
        assert_eq!(net.node(0).replica.entered, View(0));
        net.step(r(0), |replica, cx| {
            replica.admit(cx, shown.clone());
            assert_eq!(replica.reconsider, at == 2, "frame {at}");
            replica.progress(cx);
        });
    }
    assert_eq!(net.node(0).replica.entered, View(1));
}

/// A NEWVIEW by its primary that says to rest on the start of this view, which none of that number can.
fn resting_on(bench: &mut Bench, view: u64, left: u64) -> Message {
    let primary = bench.group.primary(View(view)).0;
    let change = ViewChange {
        left: View(left),
        to: View(view),
        stable: StableProof::default(),
        accepted: None,
        committed: Vec::new(),
        wanted: Vec::new(),
        abandoned: Vec::new(),
    };
    let changes = vec![bench.say(primary, Body::ViewChange(change))];
    let base = (Seq(0), Digest::ZERO);
    let new_view = NewView { view: View(view), changes, base, chosen: Vec::new() };
    Message::Attested(bench.say(primary, Body::NewView(new_view)))
}

#[test]
fn a_newview_that_rests_on_itself_or_in_a_circle_holds_nobody_up() {
    covers!("A2MPBFTEA-V12");
    for circle in [vec![(4, 4)], vec![(1, 4), (4, 1)]] {
        let (mut net, mut bench) = (Net::new(1), Bench::new(1));
        // Until its component has said where its logs end, a replica that starts judges nothing.
        net.node_mut(0).replica.knows_logs = false;
        for (view, left) in circle.iter().copied().map(|(view, left)| (view, View(left))) {
            let message = resting_on(&mut bench, view, left.0);
            net.tell(1, 0, message);
            let known = net.node(0).replica.known_views.rests_on(View(view));
            assert_eq!(known, Some(left).filter(|left| *left < View(view)), "{circle:?}");
        }
        net.fire(0, Timer::Status);
        net.node_mut(0).replica.knows_logs = true;
        net.fire(0, Timer::Status);
        assert_eq!(net.node(0).accused(), [r(1)], "{circle:?}");
    }
}

#[test]
fn what_can_bring_nothing_is_passed_over_before_it_is_checked() {
    covers!("A2MPBFTEA-R18");
    let mut bench = Bench::new(1);
    let mut net = Net::new(1);
    let worth = |net: &Net, message: &Message| net.node(0).replica.is_worth_checking(message);
    let change = bench.change(2, 0, 1, None, Vec::new());
    let attested = Message::Attested(bench.say(2, Body::ViewChange(change.clone())));
    assert!(worth(&net, &attested));
    net.tell(2, 0, attested.clone());
    assert!(!worth(&net, &attested), "it is known");
    // More than a window of commitments, or more than f PREPAREs for one.
    let certificate = bench.prepare(0, 1, &some_batch(1), &[1, 2]);
    let mut one = bench.commit(1, &certificate);
    let shows = |committed| ViewChange { to: View(5), committed, ..change.clone() };
    let two_prepares = shows(vec![one.clone()]);
    assert_eq!(one.prepares.len(), 2);
    one.prepares.pop();
    let window = SMALL.window as usize;
    let (whole, more) = (shows(vec![one.clone(); window]), shows(vec![one.clone(); window + 1]));
    let all = [(whole, true), (more, false), (two_prepares, false)];
    for (at, (change, expected)) in all.into_iter().enumerate() {
        let to = View(5 + at as u64);
        let attested = bench.say(1, Body::ViewChange(ViewChange { to, ..change }));
        let view = View(7 + 3 * at as u64);
        let changes = vec![attested.clone()];
        let start = NewView { view, changes, base: (Seq(0), Digest::ZERO), chosen: Vec::new() };
        let start = bench.say(1, Body::NewView(start));
        assert_eq!(worth(&net, &Message::Attested(attested)), expected);
        assert_eq!(worth(&net, &Message::Attested(start)), expected);
    }
    (bench, net) = (Bench::new(1), Net::new(1));
    let changes = [0, 1].map(|from| bench.view_change(from, 0, 2, None, Vec::new())).to_vec();
    let start = Message::Attested(bench.new_view(changes, None));
    assert!(worth(&net, &start));
    net.tell(2, 0, start.clone());
    assert_eq!(net.node(0).replica.entered, View(2));
    assert!(!worth(&net, &start), "it is here");
    // A commitment to it may decide something once, and one to a start that is not here nothing.
    let Message::Attested(start) = start else { unreachable!("it is attested") };
    let unknown = Accept { view: View(4), new_view: Digest([4; 32]) };
    let (accept, unknown) = (bench.accept(1, &start), bench.say(1, Body::Accept(unknown)));
    for (accept, expected) in [(&accept, true), (&accept, false), (&unknown, false)] {
        net.step(r(0), |replica, cx| {
            let Body::Accept(said) = accept.body else { unreachable!("a COMMIT(NEWVIEW)") };
            replica.on_accept(cx, accept, said);
            assert_eq!(std::mem::take(&mut replica.reconsider), expected);
        });
    }
    // What breaks a rule is counted, each time.
    let backup =
        NewView { view: View(4), changes: Vec::new(), base: (Seq(0), Digest::ZERO), chosen: Vec::new() };
    let backup = Message::Attested(bench.say(2, Body::NewView(backup)));
    for count in 1..=2 {
        net.tell(2, 0, backup.clone());
        assert_eq!(net.node(0).replica.broken(), count);
    }
}

#[test]
fn a_proposal_far_ahead_asks_for_nothing_while_views_change() {
    covers!("A2MPBFTEA-R6");
    let mut bench = Bench::new(1);
    let mut net = Net::new(1);
    let change = bench.view_change(0, 0, 2, None, Vec::new());
    net.tell(0, 1, Message::Attested(change));
    assert!(!net.node(1).replica.active);
    let far = SMALL.pipeline.max(4) + 1;
    for (seq, wanted) in [(1, true), (far, false)] {
        let (proposal, _) = bench.prepare(0, seq, &some_batch(seq), &[]);
        net.tell(0, 1, Message::Attested(proposal));
        let frame = some_batch(seq).frames[0];
        assert_eq!(net.node(1).replica.frames.wants(&frame, Seq(u64::MAX)), wanted, "{seq}");
    }
}
