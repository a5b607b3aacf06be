//! MINBFT-P1 to P4: primaries that order too slowly for everybody, or for somebody.

use super::harness::{Kind, World, covers, r};
use crate::Config;
use std::collections::VecDeque;
use std::sync::Arc;
use troth_types::{Batch, Frame, Limits, View};

const MS: u64 = 1_000;
/// No checkpoint comes in between.
const CONFIG: Config = Config { interval: 1 << 15, window: 1 << 16, ..Config::DEFAULT };

/// Replica 2, correct, and what the puppets order for it.
struct Backup {
    world: World,
    seq: u64,
    number: u64,
}

impl Backup {
    fn new() -> Self {
        Self { world: World::with(3, CONFIG, &[2]), seq: 0, number: 0 }
    }

    fn request(&mut self, client: u64) -> Arc<Frame> {
        self.number += 1;
        let frame = self.world.frame(client, self.number, "op");
        self.world.request(&[2], &frame);
        frame
    }

    /// The primary of view 0 proposes; the other backup commits so much later.
    fn propose(&mut self, frame: &Arc<Frame>, agreement: u64) {
        self.propose_all(&[frame], agreement);
    }

    /// The same with a batch of several.
    fn propose_all(&mut self, frames: &[&Arc<Frame>], agreement: u64) {
        self.seq += 1;
        let prepare = self.world.prepare(0, self.seq, frames);
        self.world.say(2, &prepare);
        self.world.pass(agreement);
        let commit = self.world.commit(1, &prepare);
        self.world.say(2, &commit);
    }

    /// Requests of one client one after the other for so long, each proposed after `wait`.
    fn paced(&mut self, during: u64, wait: u64, agreement: u64) {
        let end = self.world.now + during;
        while self.world.now < end && self.wants() == 0 {
            let frame = self.request(1);
            self.world.pass(wait);
            self.propose(&frame, agreement);
        }
    }

    fn wants(&self) -> u64 {
        self.world.wanted(2)
    }
}

// MINBFT-P2 (guard) "A backup suspects a primary under which requests typically wait longer than so many agreements …"
#[test]
fn a_primary_that_is_slower_than_the_others_is_suspected() {
    covers!("MINBFT-P2");
    covers!("MINBFT-P1");
    // Far from the time-out of each request, and yet a group that orders far more slowly than it could.
    let mut slow = Backup::new();
    slow.paced(20_000 * MS, 90 * MS, MS);
    assert_eq!(slow.wants(), 1);
    assert!(slow.world.now < 3 * CONFIG.request_timeout, "{}", slow.world.now);
    // As fast as the others are: because it is, or because they are as slow.
    for (wait, agreement) in [(MS, MS), (7 * MS, MS), (50 * MS, 20 * MS), (200 * MS, 100 * MS)] {
        let mut fair = Backup::new();
        fair.paced(20_000 * MS, wait, agreement);
        assert_eq!(fair.wants(), 0, "{wait} beside {agreement}");
    }
}

/// For two seconds the primary proposes a full batch every 10 ms, of which the backup was sent one frame, so many batches
/// ago; the others agree in 9 ms.
fn busy(batches_ago: usize) -> u64 {
    let limits = Limits { batch_frames: 16, client_window: 256, ..CONFIG.limits };
    let config = Config { limits, ..CONFIG };
    let mut backup = Backup { world: World::with(3, config, &[2]), seq: 0, number: 0 };
    let mut queue = VecDeque::new();
    for step in 0..200 {
        let frames: Vec<_> =
            (0..16).map(|place| backup.world.frame(1 + place % 8, 1 + 2 * step + place / 8, "op")).collect();
        backup.world.request(&[2], &frames[(step % 8) as usize]);
        queue.push_back(frames);
        backup.world.pass(MS);
        let due = queue.len() > batches_ago;
        let prepare = due.then(|| {
            let frames = queue.pop_front().expect("more than none");
            let frames: Vec<_> = frames.iter().collect();
            backup.world.show(0, 2, &frames);
            backup.seq += 1;
            let prepare = backup.world.prepare(0, backup.seq, &frames);
            backup.world.say(2, &prepare);
            prepare
        });
        backup.world.pass(9 * MS);
        if let Some(prepare) = prepare {
            let commit = backup.world.commit(1, &prepare);
            backup.world.say(2, &commit);
        }
    }
    assert_eq!(backup.world.executed(2), backup.seq);
    backup.wants()
}

// "… pending is what waits here or, where that is more, what must wait at the primary alone …"
#[test]
fn what_waits_at_the_primary_alone_takes_it_time_too() {
    covers!("MINBFT-P2");
    assert_eq!(busy(6), 0, "six batches before each, as fast as the others agree");
    assert_eq!(busy(60), 1, "its own backlog excuses no more than eight");
}

// "… were executed …": a batch may name as often as it has places what was executed before, which is no work.
#[test]
fn a_full_batch_of_what_was_executed_excuses_nobody() {
    covers!("MINBFT-P2");
    let mut backup = Backup::new();
    let old = backup.request(1);
    backup.propose(&old, MS);
    for _ in 0..200 {
        let frame = backup.request(1);
        backup.world.pass(90 * MS);
        let mut frames = vec![&old; CONFIG.limits.batch_frames];
        frames[0] = &frame;
        backup.propose_all(&frames, MS);
        if backup.wants() > 0 {
            break;
        }
    }
    assert_eq!(backup.wants(), 1);
}

// MINBFT-P1 "… those that are proposed already do not" wait: no longer than until they are executed.
#[test]
fn what_a_view_started_with_is_not_proposed_for_ever() {
    let mut world = World::with(5, CONFIG, &[4]);
    let frames = world.frames_held(3, &[4]);
    for prepare in world.ordered_by_puppet(&[], &frames) {
        world.commit(1, &prepare);
    }
    world.wishes(&[0, 1, 2], 4, 1);
    let changes: Vec<_> = [0, 1, 2].map(|by| world.view_change(by, 1)).into();
    let new_view = world.new_view(1, &[&changes[1], &changes[0], &changes[2]], &[]);
    for message in world.said(1) {
        world.say(4, &message);
    }
    assert!(world.works_in(4, 1));
    assert_eq!((world.executed(4), world.minbft(4).proposed().count()), (0, 3), "carried over");
    world.accept(2, &new_view);
    for message in world.said(2) {
        world.say(4, &message);
    }
    assert_eq!((world.executed(4), world.minbft(4).proposed().count()), (3, 0));
}

// "… in two of the last four looks"
#[test]
fn a_primary_that_is_slow_now_and_then_is_not_suspected() {
    covers!("MINBFT-P2");
    let mut backup = Backup::new();
    for _ in 0..20 {
        backup.paced(250 * MS, 90 * MS, MS);
        backup.paced(2_000 * MS, MS, MS);
    }
    assert_eq!(backup.wants(), 0);
}

/// Whether a primary is suspected that is fast but for one pause, which begins so long after the others.
fn pauses(offset: u64, pause: u64) -> bool {
    let mut backup = Backup::new();
    backup.paced((2_000 + offset) * MS, MS, MS);
    let waiting: Vec<_> = (1..=4).map(|client| backup.request(client)).collect();
    backup.world.pass(pause);
    for frame in &waiting {
        backup.propose(frame, MS);
    }
    backup.paced(2_000 * MS, MS, MS);
    backup.wants() > 0
}

// MINBFT-P1 "… nor, unless they wait for longer than a quarter in all, those that were there at the end of the look before …"
#[test]
fn one_pause_counts_once_unless_it_is_longer_than_a_look() {
    covers!("MINBFT-P1");
    // Wherever the looks are: some of these pauses go on through the end of one.
    for offset in (0..250).step_by(10) {
        assert!(!pauses(offset, 200 * MS), "{offset}");
        assert!(pauses(offset, 400 * MS), "{offset}");
    }
}

/// Eight clients with two requests each, proposed every 20 ms, of which the backup is sent one in five times; once it is sent
/// all, and these wait for so long, as all others do where it is not the only time.
fn remembered(wait: u64, once: bool) -> u64 {
    let mut backup = Backup::new();
    for step in 0..150 {
        let frames: Vec<_> =
            (0..16).map(|place| backup.world.frame(1 + place % 8, 1 + 2 * step + place / 8, "op")).collect();
        if step == 75 {
            backup.world.requests(2, &frames);
        } else if step % 5 == 0 {
            backup.world.request(&[2], &frames[(step / 5 % 8) as usize]);
        }
        backup.world.pass(if once && step != 75 { MS } else { wait });
        let frames: Vec<_> = frames.iter().collect();
        backup.world.show(0, 2, &frames);
        backup.propose_all(&frames, MS);
        backup.world.pass(18 * MS);
        if backup.wants() > 0 {
            break;
        }
    }
    backup.wants()
}

// MINBFT-P5 "After a look that found the primary slow none says anything before half of the clients were measured anew …"
#[test]
fn a_hiccup_is_not_found_again_in_what_is_remembered() {
    covers!("MINBFT-P5");
    assert_eq!(remembered(90 * MS, false), 1);
    assert_eq!(remembered(90 * MS, true), 0);
}

// "… a batch counts as proposed when this replica commits to it …"
#[test]
fn a_primary_that_proposes_at_once_what_nobody_can_commit_to_is_slow() {
    covers!("MINBFT-P1");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    for _ in 0..10 {
        let frame = backup.request(1);
        // A time that is ahead of everybody's clock for a good part of a second.
        let time = backup.world.wall().after(CONFIG.clock_bound + 400 * MS);
        backup.seq += 1;
        let batch = Batch { time, frames: vec![frame.digest()] };
        let prepare = backup.world.prepare_batch(0, backup.seq, batch);
        backup.world.say(2, &prepare);
        backup.world.pass(400 * MS);
        // Any message makes the replica look again.
        let commit = backup.world.commit(1, &prepare);
        backup.world.say(2, &commit);
        backup.world.pass(MS);
    }
    assert_eq!(backup.wants(), 1);
}

// "… a backup that committed before this one counts."
#[test]
fn a_backup_that_hears_of_proposals_from_another_one_judges_all_the_same() {
    covers!("MINBFT-P1");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let frame = backup.request(1);
        backup.world.pass(90 * MS);
        backup.seq += 1;
        let prepare = backup.world.prepare(0, backup.seq, &[&frame]);
        let commit = backup.world.commit(1, &prepare);
        backup.world.say(2, &commit);
        backup.world.pass(MS);
    }
    assert_eq!((backup.world.executed(2) > 4, backup.wants()), (true, 1));
}

// MINBFT-P1 "… those that wait still count with their age …"
#[test]
fn a_primary_that_stops_is_suspected_before_the_time_out() {
    covers!("MINBFT-P1");
    let mut backup = Backup::new();
    backup.paced(1_000 * MS, MS, MS);
    backup.request(1);
    backup.world.pass(CONFIG.request_timeout * 3 / 4);
    assert_eq!(backup.wants(), 1);
}

// "… of the clients the middle one …"
#[test]
fn clients_that_show_their_frames_to_backups_alone_do_not_get_a_primary_suspected() {
    covers!("MINBFT-P1");
    let mut backup = Backup::new();
    for _ in 0..400 {
        // Two honest clients, and one whose frames the primary sees late.
        let hidden = backup.request(3);
        for client in [1, 2] {
            let frame = backup.request(client);
            backup.world.pass(MS);
            backup.propose(&frame, MS);
        }
        backup.world.pass(20 * MS);
        backup.propose(&hidden, MS);
    }
    assert_eq!(backup.wants(), 0);
}

// "… where f+1 backups have been timed …"
#[test]
fn who_cannot_tell_how_fast_the_others_are_judges_nobody() {
    covers!("MINBFT-P2");
    let mut world = World::with(3, CONFIG, &[2]);
    for number in 1..=40 {
        // Replica 1 is down: the one fault that the group bears.
        let frame = world.frame(1, number, "op");
        world.request(&[2], &frame);
        world.pass(300 * MS);
        let prepare = world.prepare(0, number, &[&frame]);
        world.say(2, &prepare);
    }
    assert_eq!((world.executed(2), world.wanted(2)), (40, 0));
}

// "… where one or two clients have a say, a primary is not blamed for what a request may wait that it was not sent."
#[test]
fn one_client_that_shows_its_frames_to_backups_alone_gets_nobody_suspected() {
    covers!("MINBFT-P2");
    let mut backup = Backup::new();
    for _ in 0..40 {
        let hidden: Vec<_> = (0..8).map(|_| backup.request(3)).collect();
        // Shown to the primary together once they have waited half the patience, and ordered at once.
        backup.world.pass(CONFIG.request_timeout / 40 + MS);
        for frame in &hidden {
            backup.propose(frame, MS / 4);
        }
    }
    assert_eq!(backup.wants(), 0);
    let shown = backup.world.sent.iter().filter(|flight| flight.kind() == Kind::Frames);
    assert!((30..=50).contains(&shown.count()), "all of them at once");
}

// MINBFT-P3 (guard) "A backup suspects a primary that lets a request wait while it proposes others that came after
// this backup had shown it."
#[test]
fn a_primary_that_leaves_one_client_out_is_suspected() {
    covers!("MINBFT-P3");
    for left_out in [true, false] {
        let mut backup = Backup::new();
        backup.paced(100 * MS, MS, MS);
        backup.paced(600 * MS, MS, MS);
        let starved = backup.request(2);
        let began = backup.world.now;
        // Shown after 25 ms and again after 50; what was shown once may have been lost.
        backup.paced(if left_out { 200 * MS } else { 60 * MS }, MS, MS);
        assert!(left_out || backup.wants() == 0, "blamed before it was shown twice");
        let shown = backup.world.sent.iter().filter(|flight| flight.kind() == Kind::Frames);
        assert!(shown.clone().count() > 0 && shown.clone().all(|flight| flight.to == r(0)), "shown first");
        if left_out {
            assert_eq!(backup.wants(), 1, "after {} ms", (backup.world.now - began) / MS);
        } else {
            // Its client had not sent it to the primary, which proposes it once it is shown.
            backup.propose(&starved, MS);
            backup.paced(5_000 * MS, MS, MS);
            assert_eq!(backup.wants(), 0);
        }
    }
}

// P3 "… one client's large requests keep another's out of sight for no longer than one of them takes."
#[test]
fn one_client_s_large_requests_hide_nobody_whom_the_primary_leaves_out() {
    covers!("MINBFT-P3");
    let mut backup = Backup::new();
    backup.paced(600 * MS, MS, MS);
    let text = "x".repeat(200 << 10);
    let large: Vec<_> = (1..=16).map(|number| backup.world.frame(7, number, &text)).collect();
    for frame in &large {
        backup.world.request(&[2], frame);
    }
    backup.request(2);
    let began = backup.world.now;
    // The primary orders each of them as late as it may, others at once, and the small one never.
    for frame in &large {
        backup.paced(60 * MS, MS, MS);
        if backup.wants() > 0 {
            break;
        }
        backup.propose(frame, MS);
    }
    let waited = (backup.world.now - began) / MS;
    assert!(backup.wants() == 1 && waited <= 200, "after {waited} ms");
}

// P3 "… once they have waited half its patience …": which may have grown since the timer was set.
#[test]
fn what_was_not_due_to_be_shown_any_more_is_shown_later() {
    let mut backup = Backup::new();
    for _ in 0..12 {
        let frame = backup.request(1);
        backup.propose(&frame, 20 * MS);
    }
    // A look comes before it would be shown.
    backup.request(2);
    backup.world.pass(40 * MS);
    let shown = |backup: &Backup| {
        backup.world.sent.iter().filter(|flight| flight.kind() == Kind::Frames && flight.to == r(0)).count()
    };
    assert_eq!(shown(&backup), 0, "it bears more now");
    backup.world.pass(320 * MS);
    assert!(shown(&backup) > 0);
}

#[test]
fn who_waits_while_nobody_overtakes_is_not_left_out() {
    covers!("MINBFT-V1");
    let mut backup = Backup::new();
    backup.paced(800 * MS, MS, MS);
    let frame = backup.request(2);
    backup.world.pass(200 * MS);
    assert_eq!(backup.wants(), 0);
    backup.propose(&frame, MS);
    assert_eq!(backup.wants(), 0);
}

// MINBFT-P4 "Once f+1 primaries were suspected for one of these, one of them was correct: the backup bears twice as
// much …"
#[test]
fn primaries_that_cannot_all_be_faulty_double_what_is_borne() {
    covers!("MINBFT-P4");
    let mut backup = Backup::new();
    backup.paced(20_000 * MS, 90 * MS, MS);
    assert_eq!(backup.wants(), 1);
    let bears = |backup: &Backup| backup.world.minbft(2).pace.doubt().bears(1);
    assert_eq!(bears(&backup), 1);
    // The next primary is as slow.
    let world = &mut backup.world;
    world.wishes(&[0, 1], 2, 1);
    let changes: Vec<_> = [0, 1].map(|by| world.view_change(by, 1)).into();
    let own = world.sent_by(2, Kind::ViewChange).remove(0);
    for change in &changes {
        world.say(2, change);
    }
    let new_view = world.new_view(1, &[&changes[1], &own], &[]);
    world.say(2, &new_view);
    assert!(world.works_in(2, 1), "{:?}", world.minbft(2).view);
    let accept = world.accept(0, &new_view);
    world.say(2, &accept);
    let start = world.minbft(2).started.end().0;
    for step in 1..=40 {
        if world.wanted(2) > 1 {
            break;
        }
        let frame = world.frame(4, step, "op");
        world.request(&[2], &frame);
        world.pass(90 * MS);
        let prepare = world.prepare(1, start + step, &[&frame]);
        world.say(2, &prepare);
        world.pass(MS);
        let commit = world.commit(0, &prepare);
        world.say(2, &commit);
    }
    assert_eq!((world.wanted(2), world.minbft(2).view), (2, View(1)));
    assert_eq!(bears(&backup), 2);
}

/// Numbers of one slot of a client's window.
fn later(number: u64) -> u64 {
    number + CONFIG.limits.client_window
}

// P3 "What waits in the slot of a request that a batch executes, for the first time, waits from then on …"
#[test]
fn a_client_that_leaves_a_primary_no_room_does_not_have_it_suspected() {
    let mut backup = Backup::new();
    backup.paced(700 * MS, MS, MS);
    // The primary is shown the numbers of this slot one after the other, and the backup only the last of all.
    let last = backup.world.frame(2, later(1 << 20), "last");
    backup.world.request(&[2], &last);
    for number in (1..=200).map(|step| step * CONFIG.limits.client_window) {
        let before = backup.world.frame(2, number, "before");
        backup.world.show(0, 2, &[&before]);
        backup.propose(&before, MS);
        backup.paced(10 * MS, MS, MS);
        assert_eq!(backup.wants(), 0, "{number}");
    }
    assert_eq!(backup.world.journal(2).iter().filter(|done| *done == "before").count(), 200);
}

#[test]
fn a_primary_that_orders_an_old_request_again_and_again_is_suspected_for_the_next() {
    covers!("MINBFT-P3");
    let mut backup = Backup::new();
    backup.paced(700 * MS, MS, MS);
    let old = backup.world.frame(2, 1, "old");
    backup.world.request(&[2], &old);
    backup.propose(&old, MS);
    let next = backup.world.frame(2, later(1), "next");
    backup.world.request(&[2], &next);
    for _ in 0..40 {
        backup.propose(&old, MS);
        backup.paced(10 * MS, MS, MS);
    }
    assert_eq!(backup.wants(), 1);
}
