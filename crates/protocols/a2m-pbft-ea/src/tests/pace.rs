//! A2MPBFTEA-P1 to P5: primaries that order too slowly for everybody, or for somebody; R19 and R20: proposals that a primary
//! keeps from some.

use super::harness::{Net, WALL, attested, covers, frame, r};
use crate::message::{Body, Message, PrePrepare, Status, Vote};
use crate::retransmission::SHARE;
use crate::{Config, Timer};
use troth_core::{Agreement, To, VerifiedFrame};
use troth_types::{Batch, Seq, Time, View};

const MS: u64 = 1_000;
/// No checkpoint comes in between, nor the end of the window.
const CONFIG: Config = Config { interval: 1 << 12, window: 1 << 13, ..Config::DEFAULT };
/// Who looks at the primary 0, whose messages the tests write, as they do those of backup 1.
const ME: u16 = 2;

/// Replica 2, correct, and what the others order for it.
struct Backup {
    net: Net,
    seq: u64,
    number: u64,
}

impl Backup {
    fn new() -> Self {
        let mut net = Net::with(1, CONFIG);
        for other in 0..ME {
            net.node_mut(other).down = true;
            net.node_mut(other).logs = super::harness::roomy(&net.group, r(other));
        }
        net.node_mut(ME).logs = super::harness::roomy(&net.group, r(ME));
        Self { net, seq: 0, number: 0 }
    }

    fn request(&mut self, client: u64) -> VerifiedFrame {
        self.number += 1;
        let frame = frame(client, self.number);
        self.net.request(&frame, [ME]);
        frame
    }

    /// Its timers that are due in so many microseconds, one after the other.
    fn pass(&mut self, micros: u64) {
        let end = self.net.now + micros;
        loop {
            let timers = self.net.node(ME).timers.iter();
            let due = timers.filter(|(_, at)| at.0 <= end).min_by_key(|(timer, at)| (at.0, **timer));
            let Some((timer, _)) = due.map(|(timer, at)| (*timer, *at)) else { break };
            self.net.fire(ME, timer);
            self.settle();
        }
        self.net.now = end;
    }

    /// Its messages reach nobody.
    fn settle(&mut self) {
        self.net.run_where(|_| false);
    }

    fn say(&mut self, by: u16, body: Body) -> Message {
        let group = self.net.group;
        attested(&group, &mut self.net.node_mut(by).logs, r(by), body)
    }

    fn tell(&mut self, by: u16, body: Body) {
        let message = self.say(by, body);
        self.net.tell(by, ME, message);
    }

    /// What the primary proposes next; it is not sent.
    fn proposal(&mut self, frames: &[&VerifiedFrame]) -> (Message, Vote) {
        self.seq += 1;
        let frames = frames.iter().map(|frame| frame.digest()).collect();
        let batch = Batch { time: Time(WALL + self.net.now), frames };
        let vote = Vote { view: View(0), seq: Seq(self.seq), digest: batch.digest() };
        (self.say(0, Body::PrePrepare(PrePrepare { view: vote.view, seq: vote.seq, batch })), vote)
    }

    /// What the primary proposes prepares here, with this replica's own vote.
    fn propose(&mut self, frames: &[&VerifiedFrame]) -> Vote {
        let (proposal, vote) = self.proposal(frames);
        self.net.tell(0, ME, proposal);
        self.settle();
        vote
    }

    fn commit(&mut self, by: u16, vote: Vote) {
        self.tell(by, Body::Commit(vote));
        self.settle();
    }

    /// Proposes and has it committed to so much later.
    fn order(&mut self, frame: &VerifiedFrame, agreement: u64) {
        let vote = self.propose(&[frame]);
        self.pass(agreement);
        self.commit(1, vote);
    }

    /// Requests of one client one after the other for so long, each proposed after `wait`.
    fn paced(&mut self, during: u64, wait: u64, agreement: u64) {
        let end = self.net.now + during;
        while self.net.now < end && !self.wishes() {
            let frame = self.request(1);
            self.pass(wait);
            self.order(&frame, agreement);
        }
    }

    fn wishes(&self) -> bool {
        self.net.node(ME).replica.wanting
    }

    /// Another one says what it thinks of the primary.
    fn status(&mut self, from: u16, view: u64, active: bool, wishes: bool) {
        let status = Status {
            view: View(view),
            active,
            stable: Seq(0),
            executed: Seq(0),
            slots: Vec::new(),
            changes: 0,
            accepts: 0,
            lacks: None,
            wishes,
        };
        self.net.tell(from, ME, Message::Status(status));
    }

    /// Whether it has said that it wants the next view since the wire was cleared last.
    fn wants(&self) -> bool {
        self.net.sent(ME, |message| matches!(message, Message::Want(_))) > 0
    }

    /// Whom it asks for which proposals.
    fn asked(&self) -> Vec<(u16, Vec<u64>)> {
        let asks = self.net.wire.iter().filter_map(|flight| match &flight.message {
            Message::FetchProposals(_, seqs) => Some((flight.to.0, seqs.iter().map(|seq| seq.0).collect())),
            _ => None,
        });
        asks.collect()
    }
}

// A2MPBFTEA-P2 (guard)
#[test]
fn a_primary_under_which_everything_takes_longer_than_the_others_do_is_found_wanting() {
    covers!("A2MPBFTEA-P1");
    covers!("A2MPBFTEA-P2");
    // Far from the time-out of each request, and yet a group that orders far more slowly than it could.
    let mut slow = Backup::new();
    slow.paced(20_000 * MS, 90 * MS, MS);
    assert!(slow.wishes() && slow.net.now < 3 * CONFIG.request_timeout, "{}", slow.net.now);
    // As fast as the others are: because it is, or because they are as slow.
    for (wait, agreement) in [(MS, MS), (7 * MS, MS), (50 * MS, 20 * MS), (200 * MS, 100 * MS)] {
        let mut fair = Backup::new();
        fair.paced(10_000 * MS, wait, agreement);
        assert!(!fair.wishes(), "{wait} beside {agreement}");
    }
}

// "… in two of the last four looks"
#[test]
fn a_primary_that_is_slow_now_and_then_is_not_found_wanting() {
    covers!("A2MPBFTEA-P2");
    let mut backup = Backup::new();
    for _ in 0..10 {
        backup.paced(250 * MS, 90 * MS, MS);
        backup.paced(1_500 * MS, MS, MS);
    }
    assert!(!backup.wishes());
}

// P1 "… those that wait still count with their age …"
#[test]
fn a_primary_that_stops_is_found_wanting_before_the_time_out() {
    covers!("A2MPBFTEA-P1");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    backup.pass(CONFIG.request_timeout * 3 / 4);
    assert!(backup.wishes());
}

// P1 "… the last one to hear of it, too …": all f+1 correct backups are needed, so that one must measure something.
#[test]
fn who_always_hears_of_a_batch_last_finds_a_slow_primary_wanting() {
    covers!("A2MPBFTEA-P1");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let frame = backup.request(1);
        backup.pass(90 * MS);
        let (proposal, vote) = backup.proposal(&[&frame]);
        backup.tell(1, Body::Prepare(vote));
        backup.commit(1, vote);
        backup.net.tell(0, ME, proposal);
        backup.settle();
    }
    assert!(backup.wishes());
}

#[test]
fn clients_that_show_their_frames_to_backups_alone_get_nobody_found_wanting() {
    covers!("A2MPBFTEA-P1");
    let mut backup = Backup::new();
    for _ in 0..400 {
        // Two honest clients, and one whose frames the primary sees late.
        let hidden = backup.request(3);
        for client in [1, 2] {
            let frame = backup.request(client);
            backup.pass(MS);
            backup.order(&frame, MS);
        }
        backup.pass(20 * MS);
        backup.order(&hidden, MS);
    }
    assert!(!backup.wishes());
}

#[test]
fn who_cannot_tell_how_fast_the_others_are_judges_nobody() {
    covers!("A2MPBFTEA-P2");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let frame = backup.request(1);
        backup.pass(200 * MS);
        let vote = backup.propose(&[&frame]);
        // The other backup is down.
        backup.commit(0, vote);
    }
    assert!(!backup.wishes());
}

// P2 "… longer by as much as this replica came late …"
#[test]
fn who_comes_late_to_everything_blames_nobody_for_it() {
    covers!("A2MPBFTEA-P2");
    for late in [true, false] {
        let mut backup = Backup::new();
        for _ in 0..40 {
            let frame = backup.request(1);
            // Others have the machine for 70 ms, and again: what is due waits, and so does what has come.
            for _ in 0..4 {
                if late {
                    backup.net.now += 70 * MS;
                    backup.pass(0);
                } else {
                    backup.pass(70 * MS);
                }
            }
            backup.order(&frame, MS);
        }
        assert_eq!(backup.wishes(), !late);
    }
}

// A2MPBFTEA-P3 (guard)
#[test]
fn a_primary_that_leaves_one_client_out_is_found_wanting() {
    covers!("A2MPBFTEA-P3");
    for left_out in [true, false] {
        let mut backup = Backup::new();
        backup.paced(700 * MS, MS, MS);
        let starved = backup.request(2);
        // Shown after 25 ms and again after 50; what was shown once may have been lost.
        backup.paced(if left_out { 200 * MS } else { 60 * MS }, MS, MS);
        assert!(!backup.net.node(ME).shown.is_empty(), "shown to the primary");
        assert_eq!(backup.wishes(), left_out);
        // When it is found wanting it is shown once more at the same moment.
        let shown = backup.net.node(ME).shown.len();
        assert!(!left_out || shown > 2, "what was shown once may have been lost");
        if !left_out {
            // Its client had not sent it to the primary, which proposes it once it is shown.
            backup.order(&starved, MS);
            backup.paced(5_000 * MS, MS, MS);
            assert!(!backup.wishes());
        }
    }
}

#[test]
fn who_waits_while_nobody_overtakes_is_not_left_out() {
    covers!("A2MPBFTEA-V1");
    let mut backup = Backup::new();
    backup.paced(800 * MS, MS, MS);
    let frame = backup.request(2);
    backup.pass(200 * MS);
    assert!(!backup.wishes());
    let shown = backup.net.node(ME).shown.len();
    assert!(shown > 2, "shown again and again, for what was shown may be lost: {shown}");
    backup.order(&frame, MS);
    assert!(!backup.wishes());
}

// P3 "… while it has yet to execute what it knows to be stable it shows nothing …", V1 "… after as long again in any case …"
#[test]
fn one_that_is_behind_shows_nothing_and_bears_its_primary_twice_as_long() {
    covers!("A2MPBFTEA-P3");
    covers!("A2MPBFTEA-V1");
    let mut backup = Backup::new();
    backup.request(1);
    backup.net.step(r(ME), |ea, _| ea.repairing = true);
    backup.pass(CONFIG.request_timeout * 3 / 2);
    assert!(backup.net.node(ME).shown.is_empty());
    assert_eq!(backup.net.node(ME).replica.wanted_view, View(0), "it waits for itself");
    let mut caught_up = Backup::new();
    caught_up.request(1);
    caught_up.net.step(r(ME), |ea, _| ea.repairing = true);
    caught_up.pass(CONFIG.request_timeout * 3 / 2);
    caught_up.net.step(r(ME), |ea, cx| {
        ea.repairing = false;
        ea.progress(cx);
    });
    caught_up.pass(0);
    assert_eq!(caught_up.net.node(ME).replica.wanted_view, View(1), "the time ran on all the same");
    // Kept behind for ever it would be missing to those who want the next view.
    backup.pass(CONFIG.request_timeout);
    assert_eq!(backup.net.node(ME).replica.wanted_view, View(1));
}

// V1 "… however often it catches up for a moment …"
#[test]
fn one_that_catches_up_for_a_moment_bears_its_primary_no_longer() {
    covers!("A2MPBFTEA-V1");
    let mut backup = Backup::new();
    backup.request(1);
    backup.net.step(r(ME), |ea, _| ea.repairing = true);
    backup.pass(CONFIG.request_timeout * 3 / 2);
    // Before its timer fires it is behind again.
    backup.net.step(r(ME), |ea, cx| {
        ea.repairing = false;
        ea.progress(cx);
        ea.repairing = true;
    });
    backup.pass(0);
    assert_eq!(backup.net.node(ME).replica.wanted_view, View(1));
}

// V17 "… that this replica has executed …"
#[test]
fn what_others_make_stable_is_no_progress_of_one_that_is_behind() {
    let mut backup = Backup::new();
    backup.request(1);
    let bears = |backup: &Backup| backup.net.node(ME).replica.back_off.of(1);
    backup.net.step(r(ME), |ea, cx| {
        ea.back_off.failed();
        ea.back_off.failed();
        (ea.repairing, ea.advanced) = (true, true);
        ea.progress(cx);
    });
    let before = bears(&backup);
    backup.net.step(r(ME), |ea, cx| {
        ea.repairing = false;
        ea.progress(cx);
    });
    assert_eq!(bears(&backup), before / 2);
}

// P3 "… once they have waited half its patience …": which may have grown since the timer was set.
#[test]
fn what_was_not_due_to_be_shown_any_more_is_shown_later() {
    let mut backup = Backup::new();
    backup.request(1);
    backup.net.step(r(ME), |ea, cx| {
        // An agreement that took long.
        ea.pace.prepared(Seq(9), cx.now(), std::iter::empty());
        ea.pace.committed(Seq(9), r(1), cx.now().after(20 * MS), 1);
        ea.pace.look(cx.now(), None, 1, 0);
    });
    backup.pass(CONFIG.request_timeout / 4);
    assert!(backup.net.node(ME).shown.is_empty(), "it bears more now");
    backup.pass(CONFIG.request_timeout / 2);
    assert!(!backup.net.node(ME).shown.is_empty());
}

// A2MPBFTEA-P4 (guard)
#[test]
fn who_finds_a_primary_wanting_says_so_and_goes_on_with_it() {
    covers!("A2MPBFTEA-P4");
    let mut backup = Backup::new();
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert!(backup.wishes());
    let frame = backup.request(1);
    backup.net.fire(ME, Timer::Status);
    let says = |message: &Message| matches!(message, Message::Status(status) if status.wishes);
    assert_eq!(backup.net.sent(ME, says), 2, "to the two others, with every status");
    assert!(!backup.wants());
    backup.order(&frame, MS);
    let node = backup.net.node(ME);
    assert_eq!(node.replica.view(), View(0));
    assert_eq!(node.executed_up_to(), Seq(backup.seq), "it goes on");
}

// "… until a look finds it good again …"
#[test]
fn who_finds_it_good_again_takes_its_word_back() {
    covers!("A2MPBFTEA-P4");
    let mut backup = Backup::new();
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert!(backup.wishes());
    for _ in 0..400 {
        let frame = backup.request(1);
        backup.order(&frame, MS);
    }
    assert!(!backup.wishes());
}

// "… it bears twice as much …"
#[test]
fn primaries_that_cannot_all_be_faulty_double_what_is_borne() {
    covers!("A2MPBFTEA-P4");
    let mut backup = Backup::new();
    let bears = |backup: &Backup| backup.net.node(ME).replica.pace.doubt().bears(1);
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert_eq!((backup.wishes(), bears(&backup)), (true, 1));
    // The next primary is backup 1, and as slow.
    backup.net.step(r(ME), |ea, cx| {
        ea.forget_pace(cx);
        ea.begin_pace(cx);
        (ea.view, ea.entered) = (View(1), View(1));
    });
    assert!(!backup.wishes(), "a new primary begins with a clean slate");
    backup.net.step(r(ME), |ea, cx| ea.find_wanting(cx, "it is as slow"));
    assert_eq!((backup.wishes(), bears(&backup)), (true, 2));
}

// A2MPBFTEA-P5 (guard)
#[test]
fn the_next_view_is_wanted_when_one_correct_replica_at_least_wishes_it() {
    covers!("A2MPBFTEA-P5");
    let mut backup = Backup::new();
    backup.request(1);
    // Of f there may be none correct, however often they say it.
    for _ in 0..3 {
        backup.status(1, 0, true, true);
    }
    // Nor is it this view's primary that these would rather not have.
    backup.status(0, 1, true, true);
    backup.status(0, 0, false, true);
    assert!(!backup.wants());
    // What was taken back does not count.
    backup.status(1, 0, true, false);
    backup.status(0, 0, true, true);
    assert!(!backup.wants());
    backup.status(1, 0, true, true);
    assert!(backup.wants());
    assert!(backup.net.node(ME).replica.active, "and leaves with what f+1 want, no sooner");
}

// P5 "… its WANTVIEWCHANGE for a later view says so, too …"
#[test]
fn who_wants_a_later_view_wishes_for_another_primary() {
    covers!("A2MPBFTEA-P5");
    for found_wanting in [true, false] {
        let mut backup = Backup::new();
        if found_wanting {
            backup.paced(20_000 * MS, 90 * MS, MS);
        }
        let body = Body::Want(crate::WantViewChange { to: View(1), nonce: [9; 32] });
        let digest = crate::A2mPbftEa::digest(&body, backup.net.group.id(), r(1));
        let seal = troth_auth::Seal::Signature(super::harness::signature(r(1)));
        backup.net.tell(1, ME, crate::A2mPbftEa::seal(body, digest, r(1), seal));
        assert_eq!(backup.wants(), found_wanting);
        assert_eq!(backup.net.node(ME).replica.active, !found_wanting, "f+1 want the next view");
    }
}

// "… passes over one look, and no second one …"
#[test]
fn a_primary_that_has_a_backup_behind_before_each_look_is_found_wanting() {
    covers!("A2MPBFTEA-P2");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    for _ in 0..CONFIG.request_timeout * 2 / (10 * MS) {
        backup.net.step(r(ME), |ea, _| ea.lagged = true);
        backup.pass(10 * MS);
    }
    assert!(backup.wishes());
}

// "… one that is behind looks as soon as it is not …"
#[test]
fn a_backup_that_is_behind_looks_soon_after_and_at_what_waited_since() {
    covers!("A2MPBFTEA-P2");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    backup.net.step(r(ME), |ea, _| ea.repairing = true);
    backup.pass(CONFIG.request_timeout);
    assert!(!backup.wishes(), "it waits for itself");
    let due = backup.net.node(ME).timers[&Timer::Pace];
    assert!(due.0 <= backup.net.now + CONFIG.status_interval / 4);
}

// A2MPBFTEA-R19 (guard)
#[test]
fn who_hears_votes_for_what_it_was_not_shown_asks_a_voter_soon() {
    covers!("A2MPBFTEA-R19");
    let mut backup = Backup::new();
    let frames: Vec<VerifiedFrame> = (0..2).map(|_| backup.request(1)).collect();
    let withheld: Vec<(Message, Vote)> = frames.iter().map(|frame| backup.proposal(&[frame])).collect();
    for (_, vote) in &withheld {
        backup.tell(1, Body::Prepare(*vote));
        backup.tell(0, Body::Commit(*vote));
    }
    assert_eq!(backup.asked(), [], "the proposals may be on their way");
    let soon = CONFIG.status_interval / 32;
    assert_eq!(backup.net.node(ME).timers[&Timer::Fetch].0, backup.net.now + soon);
    backup.net.fire(ME, Timer::Fetch);
    assert_eq!(backup.asked(), [(1, vec![1, 2])], "the backup that voted, and not the primary");
    // An attested proposal convinces whoever shows it.
    for (proposal, _) in withheld {
        backup.net.tell(1, ME, proposal);
    }
    assert_eq!(backup.net.node(ME).replica.prepared_up_to, Seq(2));
    // What nobody has is asked for a few times, and then with every status.
    backup.net.wire.clear();
    let third = Vote { view: View(0), seq: Seq(3), digest: Batch::default().digest() };
    backup.tell(1, Body::Prepare(third));
    backup.tell(0, Body::Commit(third));
    for _ in 0..10 {
        if backup.net.node(ME).timers.contains_key(&Timer::Fetch) {
            backup.net.fire(ME, Timer::Fetch);
        }
    }
    assert_eq!(backup.asked(), [(1, vec![3]), (1, vec![3])]);
}

#[test]
fn a_primary_that_leaves_a_backup_out_does_not_hold_it_up() {
    covers!("A2MPBFTEA-R19");
    let mut net = Net::new(1);
    let kept = |flight: &super::harness::Flight| {
        let proposes = matches!(&flight.message, Message::Attested(it) if it.pre_prepare().is_some());
        !(proposes && flight.from == r(0) && flight.to == r(2))
    };
    for number in 1..=3 {
        let frame = frame(1, number);
        net.request(&frame, [0, 1, 2]);
        net.run_where(kept);
        if number == 1 {
            assert_eq!(net.node(2).executed_up_to(), Seq(0));
            net.fire(2, Timer::Fetch);
            net.run_where(kept);
        }
        assert_eq!(net.node(2).executed_up_to(), Seq(number));
    }
}

// "Who had to ask asks the one that helped at once from then on …"
#[test]
fn who_was_helped_asks_its_helper_at_once() {
    covers!("A2MPBFTEA-R19");
    let mut backup = Backup::new();
    let left_out = |backup: &mut Backup, shown_by: u16| {
        let frame = backup.request(1);
        let (proposal, vote) = backup.proposal(&[&frame]);
        backup.net.wire.clear();
        backup.tell(1, Body::Prepare(vote));
        let asked = backup.asked();
        if asked.is_empty() {
            backup.pass(CONFIG.status_interval / 32);
        }
        backup.net.tell(shown_by, ME, proposal);
        backup.settle();
        backup.commit(1, vote);
        asked
    };
    assert_eq!(left_out(&mut backup, 1), []);
    assert_eq!(left_out(&mut backup, 1), [(1, vec![2])]);
    // A primary that leaves it out now and then has it wait for nothing.
    for seq in 3..3 + 64 {
        assert_eq!(left_out(&mut backup, 0), [(1, vec![seq])]);
    }
    assert_eq!(left_out(&mut backup, 0), []);
}

// R19 "… one who votes for what is not proposed yet must not use up what the others may be asked …"
#[test]
fn each_voter_is_asked_whoever_voted_first() {
    covers!("A2MPBFTEA-R19");
    let mut net = Net::new(2);
    let mut logs: Vec<_> = (0..5).map(|replica| super::harness::logs(&net.group, r(replica))).collect();
    let (group, digest) = (net.group, Batch::default().digest());
    let vote = Vote { view: View(0), seq: Seq(1), digest };
    let mut tell = |net: &mut Net, by: u16| {
        let message = attested(&group, &mut logs[usize::from(by)], r(by), Body::Prepare(vote));
        net.tell(by, 4, message);
    };
    let asked = |net: &mut Net| {
        let mut asked = Vec::new();
        while net.node(4).timers.contains_key(&Timer::Fetch) && asked.len() < 9 {
            net.fire(4, Timer::Fetch);
            asked.extend(
                net.wire
                    .drain(..)
                    .filter(|flight| matches!(flight.message, Message::FetchProposals(..)))
                    .map(|flight| flight.to.0),
            );
        }
        asked
    };
    tell(&mut net, 1);
    assert_eq!(asked(&mut net), [1, 1]);
    tell(&mut net, 2);
    tell(&mut net, 3);
    assert_eq!(asked(&mut net), [2, 3, 2, 3]);
}

// A2MPBFTEA-R7
#[test]
fn frames_that_the_primary_does_not_send_are_asked_of_all_soon_after() {
    covers!("A2MPBFTEA-R7");
    let mut backup = Backup::new();
    let hidden = frame(7, 1);
    let (proposal, _) = backup.proposal(&[&hidden]);
    backup.net.tell(0, ME, proposal);
    backup.net.fire(ME, Timer::Fetch);
    backup.net.fire(ME, Timer::Fetch);
    let asked = &backup.net.node(ME).frames_asked;
    let digests = vec![hidden.digest()];
    assert_eq!(asked[..], [(To::One(r(0)), digests.clone()), (To::Others, digests)]);
    for _ in 0..10 {
        backup.net.fire(ME, Timer::Fetch);
    }
    assert_eq!(backup.net.node(ME).frames_asked.len(), 2, "and with the next status");
}

// A2MPBFTEA-R20 (guard)
#[test]
fn proposals_are_shown_only_so_fast_to_one_replica() {
    covers!("A2MPBFTEA-R20");
    let mut backup = Backup::new();
    for _ in 0..3 {
        let frame = backup.request(1);
        backup.order(&frame, MS);
    }
    let shown = |backup: &mut Backup, from: u16, view: u64, seqs: &[u64]| {
        backup.net.wire.clear();
        let seqs = seqs.iter().map(|seq| Seq(*seq)).collect();
        backup.net.tell(from, ME, Message::FetchProposals(View(view), seqs));
        backup.net.wire.len()
    };
    assert_eq!(shown(&mut backup, 1, 1, &[1]), 0, "of another view");
    assert_eq!(shown(&mut backup, 1, 0, &[9]), 0, "it is not here");
    assert_eq!(shown(&mut backup, 1, 0, &[1, 2, 2, 2]), 2, "each once");
    let mut more = 0;
    while shown(&mut backup, 1, 0, &[3]) == 1 {
        more += 1;
        assert!(more < SHARE + 32, "it has had its share");
    }
    assert!(more >= SHARE - 8);
    assert_eq!(shown(&mut backup, 0, 0, &[3]), 1, "another one has its own");
    backup.pass(CONFIG.status_interval / 4 / SHARE + 1);
    assert_eq!(shown(&mut backup, 1, 0, &[3]), 1);
    assert_eq!(shown(&mut backup, 1, 0, &[3]), 0);
}

// R19 "… which passes on what comes in the next interval …"
#[test]
fn who_helped_passes_on_what_comes_next() {
    covers!("A2MPBFTEA-R19");
    let mut backup = Backup::new();
    let passed = |backup: &mut Backup| {
        let frame = backup.request(1);
        let (proposal, vote) = backup.proposal(&[&frame]);
        backup.net.wire.clear();
        backup.net.tell(0, ME, proposal);
        let is_proposal =
            |message: &Message| matches!(message, Message::Attested(it) if it.pre_prepare().is_some());
        let to: Vec<u16> = (0..3)
            .filter(|to| backup.net.wire.iter().any(|it| it.to == r(*to) && is_proposal(&it.message)))
            .collect();
        backup.settle();
        backup.commit(1, vote);
        to
    };
    assert_eq!(passed(&mut backup), []);
    for by in [0, 1] {
        backup.net.tell(by, ME, Message::FetchProposals(View(0), vec![Seq(1)]));
    }
    assert_eq!(passed(&mut backup), [1], "to the backup that asked, not to the primary");
    backup.pass(CONFIG.status_interval);
    assert_eq!(passed(&mut backup), []);
}

// R17 "… a PREPREPARE that is here once more …"
#[test]
fn who_was_asked_for_proposals_is_not_charged_for_those_that_are_here() {
    covers!("A2MPBFTEA-R17");
    let mut backup = Backup::new();
    let useful = |backup: &Backup| backup.net.node(ME).replica.useful;
    for asked in [false, true] {
        let frame = backup.request(1);
        let (proposal, vote) = backup.proposal(&[&frame]);
        if asked {
            backup.tell(1, Body::Prepare(vote));
            backup.net.fire(ME, Timer::Fetch);
        }
        backup.net.tell(0, ME, proposal.clone());
        backup.settle();
        for (at, by) in [(0, 1), (1, 1)] {
            let before = useful(&backup);
            backup.net.tell(by, ME, proposal.clone());
            assert_eq!(useful(&backup) > before, asked && at == 0, "asked {asked}, copy {at}");
        }
        let before = useful(&backup);
        backup.net.tell(0, ME, proposal);
        assert_eq!(useful(&backup), before, "nor is the primary's own of use twice");
        if !asked {
            backup.tell(1, Body::Prepare(vote));
        }
        backup.commit(1, vote);
    }
}

#[test]
fn a_primary_is_not_charged_for_what_another_passed_on_before() {
    covers!("A2MPBFTEA-R17");
    let mut backup = Backup::new();
    let frame = backup.request(1);
    let (proposal, _) = backup.proposal(&[&frame]);
    backup.net.tell(1, ME, proposal.clone());
    for news in [true, false] {
        let before = backup.net.node(ME).replica.useful;
        backup.net.tell(0, ME, proposal.clone());
        assert_eq!(backup.net.node(ME).replica.useful > before, news);
    }
}

// P3, as MINBFT-P3: "What waits in the slot of a request that a batch executes, for the first time, waits from then on …"
#[test]
fn an_old_request_that_is_ordered_again_has_nobody_wait_anew() {
    covers!("A2MPBFTEA-P3");
    let mut backup = Backup::new();
    backup.paced(700 * MS, MS, MS);
    let (old, next) = (frame(2, 1), frame(2, 1 + CONFIG.limits.client_window));
    backup.net.request(&old, [ME]);
    backup.order(&old, MS);
    backup.net.request(&next, [ME]);
    for _ in 0..40 {
        backup.order(&old, MS);
        backup.paced(10 * MS, MS, MS);
    }
    assert!(backup.wishes());
}
