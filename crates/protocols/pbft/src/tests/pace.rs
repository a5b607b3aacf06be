//! PBFT-P1 to P4: primaries that order too slowly for everybody, or for somebody.

use super::authenticators::tagged;
use super::harness::{Net, batch, covers, frame, r};
use crate::choose::{Shown, choose};
use crate::message::{Body, Message, NewView, PrePrepare, Signed, StableProof, Status, ViewChange, Vote};
use crate::{Config, Timer};
use std::sync::Arc;
use troth_core::VerifiedFrame;
use troth_types::{Batch, Digest, Seq, View};

const MS: u64 = 1_000;
/// No checkpoint comes in between, nor the end of the window, 8192 batches.
const CONFIG: Config = Config { interval: 1 << 12, window: 1 << 13, ..Config::DEFAULT };
/// Who looks at the primaries 0, 1 and 2, whose messages the tests write.
const ME: u16 = 3;

/// Replica 3, correct, and what the others order for it.
struct Backup {
    net: Net,
    view: u64,
    seq: u64,
    number: u64,
}

impl Backup {
    fn new() -> Self {
        let mut net = Net::with(1, CONFIG);
        for other in 0..ME {
            net.node_mut(other).down = true;
        }
        Self { net, view: 0, seq: 0, number: 0 }
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

    /// Its own messages come back to it; the others' hear nothing.
    fn settle(&mut self) {
        self.net.run_where(|flight| flight.from == r(ME) && flight.to == r(ME));
    }

    /// What the primary proposes prepares here; the batch's digest.
    fn propose(&mut self, batch: Batch) -> Vote {
        self.seq += 1;
        let primary = self.view as u16;
        let vote = Vote { view: View(self.view), seq: Seq(self.seq), digest: batch.digest() };
        let proposal = PrePrepare { view: vote.view, seq: vote.seq, batch };
        self.net.tell(primary, ME, Message::PrePrepare(proposal));
        for backup in (0..ME).filter(|other| *other != primary) {
            self.net.tell(backup, ME, Message::Prepare(vote));
        }
        self.settle();
        vote
    }

    fn commit(&mut self, by: u16, vote: Vote) {
        self.net.tell(by, ME, Message::Commit(vote));
        self.settle();
    }

    /// Proposes and has it committed to: by the primary at once, by a backup so much later.
    fn order(&mut self, frame: &VerifiedFrame, agreement: u64) {
        let vote = self.propose(batch(&[frame]));
        self.commit(self.view as u16, vote);
        self.pass(agreement);
        self.commit(if self.view == 2 { 1 } else { 2 }, vote);
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
        self.net.node(ME).pbft.wishes()
    }

    /// Another one says what it thinks of the primary.
    fn status(&mut self, from: u16, view: u64, active: bool, wishes: bool) {
        let (stable, executed, slots) = (Seq(0), Seq(0), Vec::new());
        let status = Status { view: View(view), active, stable, executed, slots, changes: 0, wishes };
        self.net.tell(from, ME, Message::Status(status));
        self.settle();
    }

    /// Its VIEW-CHANGE goes into a NEW-VIEW whose other VIEW-CHANGEs say the same.
    fn enter(&mut self, view: u64) {
        let own = self.net.node(ME).pbft.changes[&r(ME)].clone();
        let change = own.view_change().cloned().expect("it has left the view");
        assert_eq!(change.to, View(view));
        let signed = |from: u16| match self.net.signed(from, Body::ViewChange(change.clone())) {
            Message::Signed(signed) => signed,
            _ => unreachable!("a body becomes a signed message"),
        };
        let changes: Vec<Arc<Signed>> = (0..=ME).map(signed).collect();
        let shown: Vec<Shown<'_>> = changes
            .iter()
            .map(|signed| {
                let change: &ViewChange = signed.view_change().expect("as above");
                Shown::new(&self.net.group, &CONFIG, signed.from, change).expect("it is one")
            })
            .collect();
        let choice = choose(&self.net.group, &CONFIG, &shown).expect("all say the same");
        let batch = |digest: &Digest| self.net.node(ME).pbft.batch(digest).expect("it was executed");
        let chosen = choice.chosen.iter().map(batch).collect();
        let new_view = NewView { view: View(view), changes, base: choice.base, chosen };
        let new_view = self.net.signed(view as u16, Body::NewView(new_view));
        self.net.tell(view as u16, ME, new_view);
        self.settle();
        self.view = view;
        assert!(self.net.node(ME).pbft.active, "it works in view {view}");
    }
}

// PBFT-P2 (guard)
#[test]
fn a_primary_under_which_everything_takes_longer_than_the_others_do_is_found_wanting() {
    covers!("PBFT-P1");
    covers!("PBFT-P2");
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
    covers!("PBFT-P2");
    let mut backup = Backup::new();
    for _ in 0..10 {
        backup.paced(250 * MS, 90 * MS, MS);
        backup.paced(1_500 * MS, MS, MS);
    }
    assert!(!backup.wishes());
}

// PBFT-P1 "… until they were ordered …": a proposal that is shown to some only, and late to the rest, orders nothing.
#[test]
fn a_primary_whose_proposals_come_at_once_and_commit_late_is_found_wanting() {
    covers!("PBFT-P1");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let frame = backup.request(1);
        let vote = backup.propose(batch(&[&frame]));
        // So many can commit as it takes to tell how long the others need, and one too few to execute.
        backup.commit(2, vote);
        backup.pass(90 * MS);
        backup.commit(0, vote);
    }
    assert!(backup.wishes());
}

// PBFT-P1 "… those that wait still count with their age …"
#[test]
fn a_primary_that_stops_is_found_wanting_before_the_time_out() {
    covers!("PBFT-P1");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    backup.pass(CONFIG.request_timeout * 3 / 4);
    assert!(backup.wishes());
}

// "… of the clients the middle one …"
#[test]
fn clients_that_show_their_frames_to_backups_alone_get_nobody_found_wanting() {
    covers!("PBFT-P1");
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

// PBFT-P1 "… of one without signature only from its proposal on …": nobody could show it to the primary.
#[test]
fn what_came_without_signature_waits_for_a_primary_from_its_proposal_on() {
    covers!("PBFT-P1");
    for named_late in [true, false] {
        let mut backup = Backup::new();
        for number in 1..=40 {
            let frame = tagged(3, number);
            backup.net.request(&frame, [ME]);
            if named_late {
                // Its client gives it to the primary only now.
                backup.pass(90 * MS);
                backup.order(&frame, MS);
            } else {
                let vote = backup.propose(batch(&[&frame]));
                backup.commit(2, vote);
                backup.pass(90 * MS);
                backup.commit(0, vote);
            }
        }
        assert_eq!(backup.wishes(), !named_late);
    }
}

// PBFT-P1 "… that had not done so before …"
#[test]
fn a_backup_that_commits_to_what_did_not_prepare_makes_no_primary_look_slow() {
    covers!("PBFT-P1");
    let mut backup = Backup::new();
    for _ in 0..100 {
        let frame = backup.request(1);
        // As long as two phases take.
        backup.pass(40 * MS);
        let vote = Vote { view: View(0), seq: Seq(backup.seq + 1), digest: batch(&[&frame]).digest() };
        let proposal = PrePrepare { view: vote.view, seq: vote.seq, batch: batch(&[&frame]) };
        backup.net.tell(0, ME, Message::PrePrepare(proposal));
        backup.commit(1, vote);
        backup.propose(batch(&[&frame]));
        backup.commit(1, vote);
        backup.pass(20 * MS);
        backup.commit(2, vote);
        backup.commit(0, vote);
    }
    let pbft = &backup.net.node(ME).pbft;
    assert_eq!((backup.wishes(), pbft.pace.agreement()), (false, Some(20 * MS)));
}

#[test]
fn who_cannot_tell_how_fast_the_others_are_judges_nobody() {
    covers!("PBFT-P2");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let frame = backup.request(1);
        backup.pass(300 * MS);
        let vote = backup.propose(batch(&[&frame]));
        // The primary and one faulty backup: no other one is heard of.
        backup.commit(0, vote);
    }
    let pbft = &backup.net.node(ME).pbft;
    assert_eq!((pbft.wanting, pbft.impatient), (false, true), "it waits, and does not know for whom");
}

// PBFT-P2 "… and no phase is faster than this replica itself …"
#[test]
fn who_comes_late_to_everything_blames_nobody_for_it() {
    covers!("PBFT-P2");
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
        assert_eq!(backup.net.node(ME).pbft.wanting, !late);
    }
}

// PBFT-P3 (guard)
#[test]
fn a_primary_that_leaves_one_client_out_is_found_wanting() {
    covers!("PBFT-P3");
    for left_out in [true, false] {
        let mut backup = Backup::new();
        backup.paced(700 * MS, MS, MS);
        let starved = backup.request(2);
        // Shown after 25 ms and again after 50; what was shown once may have been lost.
        backup.paced(if left_out { 200 * MS } else { 60 * MS }, MS, MS);
        let shown = &backup.net.node(ME).frames_shown;
        assert!(!shown.is_empty() && shown.iter().all(|(to, _)| *to == r(0)), "shown to the primary");
        assert_eq!(backup.wishes(), left_out);
        // When it is found wanting it is shown once more at the same moment.
        assert!(!left_out || shown.len() > 2, "what was shown once may have been lost");
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
    covers!("PBFT-V1");
    let mut backup = Backup::new();
    backup.paced(800 * MS, MS, MS);
    let frame = backup.request(2);
    backup.pass(200 * MS);
    assert!(!backup.wishes());
    let shown = backup.net.node(ME).frames_shown.len();
    assert!(shown > 2, "shown again and again, for what was shown may be lost: {shown}");
    backup.order(&frame, MS);
    assert!(!backup.wishes());
}

// P3 "… once they have waited half its patience …": which may have grown since the timer was set.
#[test]
fn what_was_not_due_to_be_shown_any_more_is_shown_later() {
    let mut backup = Backup::new();
    backup.request(1);
    backup.net.step(r(ME), |pbft, cx| {
        // An agreement that took long.
        pbft.pace.prepared(Seq(9), cx.now(), std::iter::empty());
        pbft.pace.committed(Seq(9), r(1), cx.now().after(20 * MS), 1);
        pbft.pace.look(cx.now(), None, 1, 0);
    });
    backup.pass(CONFIG.request_timeout / 4);
    assert!(backup.net.node(ME).frames_shown.is_empty(), "it bears more now");
    backup.pass(CONFIG.request_timeout / 2);
    assert!(!backup.net.node(ME).frames_shown.is_empty());
}

// PBFT-P4
#[test]
fn who_finds_a_primary_wanting_says_so_and_goes_on_with_it() {
    covers!("PBFT-P4");
    let mut backup = Backup::new();
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert!(backup.wishes());
    let frame = backup.request(1);
    backup.net.fire(ME, Timer::Status);
    let says = |message: &Message| matches!(message, Message::Status(status) if status.wishes);
    assert_eq!(backup.net.sent(ME, says), 3, "to the three others, with every status");
    backup.order(&frame, MS);
    assert_eq!(backup.net.node(ME).view(), View(0));
    assert!(backup.net.node(ME).history().contains(&frame.digest()), "it goes on");
}

// "… until a look finds it good again …"
#[test]
fn who_finds_it_good_again_takes_its_word_back() {
    covers!("PBFT-P4");
    let mut backup = Backup::new();
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert!(backup.wishes());
    for _ in 0..400 {
        let frame = backup.request(1);
        backup.order(&frame, MS);
    }
    assert!(!backup.wishes());
}

// "… the backup bears twice as much …"
#[test]
fn primaries_that_cannot_all_be_faulty_double_what_is_borne() {
    covers!("PBFT-P4");
    let mut backup = Backup::new();
    let bears = |backup: &Backup| backup.net.node(ME).pbft.pace.doubt().bears(1);
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert_eq!((backup.wishes(), bears(&backup)), (true, 1));
    backup.status(1, 0, true, true);
    backup.enter(1);
    assert!(!backup.wishes(), "a new primary begins with a clean slate");
    // It is as slow.
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert_eq!((backup.wishes(), bears(&backup)), (true, 2));
}

// PBFT-V17 (guard)
#[test]
fn a_view_is_left_when_one_correct_replica_at_least_wishes_it() {
    covers!("PBFT-V17");
    let mut backup = Backup::new();
    backup.request(1);
    // Of f there may be none correct, however often they say it.
    for _ in 0..3 {
        backup.status(2, 0, true, true);
    }
    // Nor is it this view's primary that these would rather not have.
    backup.status(1, 1, true, true);
    backup.status(1, 0, false, true);
    backup.status(0, 0, true, false);
    assert!(backup.net.node(ME).pbft.active);
    // What was taken back does not count.
    backup.status(2, 0, true, false);
    backup.status(1, 0, true, true);
    assert!(backup.net.node(ME).pbft.active);
    backup.status(2, 0, true, true);
    let pbft = &backup.net.node(ME).pbft;
    assert_eq!((pbft.view, pbft.active), (View(1), false));
}

// "… passes over one look, and no second one …"
#[test]
fn a_primary_that_has_a_backup_behind_before_each_look_is_found_wanting() {
    covers!("PBFT-P2");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    for _ in 0..CONFIG.request_timeout * 2 / (10 * MS) {
        backup.net.step(r(ME), |pbft, _| pbft.lagged = true);
        backup.pass(10 * MS);
    }
    assert!(backup.net.node(ME).pbft.wanting);
}

// "… one that is behind looks as soon as it is not …"
#[test]
fn a_backup_that_is_behind_looks_soon_after_and_at_what_waited_since() {
    covers!("PBFT-P2");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    backup.net.step(r(ME), |pbft, _| pbft.repairing = true);
    backup.pass(CONFIG.request_timeout);
    assert!(!backup.net.node(ME).pbft.wanting, "it waits for itself");
    let due = backup.net.node(ME).timers[&Timer::Pace];
    assert!(due.0 <= backup.net.now + CONFIG.status_interval / 4);
}

// PBFT-V17 "… or have moved to a later one"
#[test]
fn who_has_left_the_view_wishes_for_another_primary() {
    covers!("PBFT-V17");
    let mut backup = Backup::new();
    backup.request(1);
    let left = Body::ViewChange(ViewChange {
        to: View(1),
        stable: StableProof::default(),
        prepared: Vec::new(),
        pre_prepared: Vec::new(),
    });
    let left = backup.net.signed(2, left);
    backup.net.tell(2, ME, left);
    backup.settle();
    assert!(backup.net.node(ME).pbft.active, "one may be faulty");
    backup.net.fire(ME, Timer::Request);
    backup.settle();
    assert_eq!(backup.net.node(ME).view(), View(1));
}

// P3, as MINBFT-P3: "What waits in the slot of a request that a batch executes, for the first time, waits from then on …"
#[test]
fn an_old_request_that_is_ordered_again_has_nobody_wait_anew() {
    covers!("PBFT-P3");
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
