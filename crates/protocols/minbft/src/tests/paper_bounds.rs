//! What a faulty primary, client or peer may make a replica hold and send.

use super::craft::batch;
use super::harness::{Fate, Flight, Kind, SMALL, World, covers, r};
use crate::Config;
use crate::message::{Body, Certified, Message, NewView, StableProof, Status, ViewChange};
use crate::place::Place;
use std::sync::Arc;
use troth_core::{Agreement as _, PeerMessage};
use troth_types::{Digest, Limits, Seq, View};

/// Batches of at most 4 KiB where they name more than one frame.
const TIGHT: Config = Config {
    window: 1 << 16,
    limits: Limits { frame_bytes: 4096, client_bytes: 1 << 20, ..Limits::DEFAULT },
    ..SMALL
};

// MINBFT-N10 (guard) "A primary ends a batch before its frames exceed the window's share of the bytes that frames
// may take until a checkpoint is stable, …"
#[test]
fn a_primary_ends_a_batch_before_it_is_too_large() {
    covers!("MINBFT-N10");
    assert_eq!(TIGHT.batch_bytes(), 4096);
    let mut world = World::with(3, Config { pipeline: 1, ..TIGHT }, &[0]);
    for number in 1..=8 {
        let frame = world.frame(1, number, &"x".repeat(1500));
        world.request(&[0], &frame);
    }
    // The first went alone; while it is under way the others wait.
    let first = world.sent_by(0, Kind::Prepare).remove(0);
    for backup in [1, 2] {
        let commit = world.commit(backup, &first);
        world.say(0, &commit);
    }
    let sizes: Vec<usize> = world
        .sent_by(0, Kind::Prepare)
        .iter()
        .filter_map(|message| Some(message.prepare()?.batch.frames.len()))
        .collect();
    assert_eq!(sizes[..2], [1, 2], "two of 1.6 KB and not three");
}

// "… and a backup commits to a larger one only where f+1 others have."
#[test]
fn a_backup_commits_to_no_batch_that_is_too_large() {
    covers!("MINBFT-N10");
    for (count, sound) in [(2, true), (3, false)] {
        let mut world = World::with(3, TIGHT, &[2]);
        let frames: Vec<_> = (1..=count).map(|number| world.frame(1, number, &"x".repeat(1500))).collect();
        for frame in &frames {
            world.request(&[2], frame);
        }
        let named: Vec<_> = frames.iter().collect();
        let prepare = world.prepare_batch(0, 1, batch(world.wall(), &named));
        world.say(2, &prepare);
        assert_eq!(world.commits(2).len(), usize::from(sound), "{count} frames");
        let commit = world.commit(1, &prepare);
        world.say(2, &commit);
        assert_eq!(world.commits(2), [1], "f+1 with the primary vouch for it");
        assert!(world.accused_nobody(2));
    }
}

#[test]
fn one_frame_is_never_too_large() {
    covers!("MINBFT-N10");
    let mut world = World::with(3, TIGHT, &[2]);
    let frame = world.frame(1, 1, &"x".repeat(3900));
    world.request(&[2], &frame);
    let prepare = world.prepare(0, 1, &[&frame]);
    world.say(2, &prepare);
    assert_eq!(world.commits(2), [1]);
}

// MINBFT-R8 (guard) "In an agreed view frames are wanted of the batches up to a pipeline's depth above the last
// commitment and of the view's start, and no further."
#[test]
fn frames_of_batches_far_ahead_are_not_wanted_yet() {
    covers!("MINBFT-R8");
    let mut world = World::with(3, SMALL, &[2]);
    // One client may show as many frames of one number as it likes.
    let frames: Vec<_> = (0..6).map(|number| world.frame(1, 1, &format!("{number}"))).collect();
    for (seq, frame) in (1..).zip(&frames) {
        let prepare = world.prepare(0, seq, &[frame]);
        world.say(2, &prepare);
    }
    world.pass(SMALL.status_interval);
    let asked = |world: &World| -> Vec<usize> {
        let of = |message: &PeerMessage<Message>| match message {
            PeerMessage::FetchFrames(digests) => digests.clone(),
            _ => Vec::new(),
        };
        let all: Vec<_> = world.sent.iter().flat_map(|flight| of(&flight.message)).collect();
        (0..frames.len()).filter(|index| all.contains(&frames[*index].digest())).collect()
    };
    assert_eq!(asked(&world), [0, 1, 2, 3]);
    // What is shown all the same finds no place beside the one that is pending.
    let shown: Vec<_> = frames.iter().collect();
    world.show(1, 2, &shown[5..]);
    world.show(1, 2, &shown[4..5]);
    assert!(world.minbft(2).frames.get(&frames[4].digest()).is_none());
    world.show(1, 2, &shown[..1]);
    assert_eq!(world.commits(2), [1]);
    world.pass(SMALL.status_interval);
    assert!(asked(&world).contains(&4), "it is near now");
}

// MINBFT-R9 "Where frames of a PREPARE have not come soon after it, its primary is asked for them before the next
// STATUS."
#[test]
fn the_primary_is_asked_soon_for_what_only_it_was_shown() {
    covers!("MINBFT-R9");
    let mut world = World::all(3, SMALL);
    let frame = world.frame(1, 1, "op");
    world.request(&[0], &frame);
    assert_eq!(world.executed(0), 0);
    world.pass(SMALL.status_interval / 8);
    assert_eq!([0, 1, 2].map(|replica| world.executed(replica)), [1; 3]);
    let asked = world.sent.iter().filter(|flight| flight.kind() == Kind::FetchFrames);
    assert!(asked.clone().count() > 0 && asked.clone().all(|flight| flight.to == r(0)));
}

// "… and everybody as long after …"
#[test]
fn everybody_is_asked_soon_for_what_the_primary_keeps_back() {
    covers!("MINBFT-R9");
    let mut world = World::all(3, SMALL);
    world.links(|flight| {
        let asks = flight.kind() == Kind::FetchFrames && flight.to == r(0);
        if asks { Fate::Lose } else { Fate::Pass }
    });
    let frame = world.frame(1, 1, "op");
    world.request(&[0, 1], &frame);
    assert_eq!(world.executed(2), 0);
    world.pass(SMALL.status_interval / 8);
    assert_eq!(world.executed(2), 1, "before the next STATUS");
}

// "… and again as the replica commits and comes to want those of further batches (R8)"
#[test]
fn who_lacks_the_frames_of_many_batches_asks_for_all_of_them_soon() {
    covers!("MINBFT-R9");
    let mut world = World::all(3, Config { interval: 64, window: 128, ..SMALL });
    for number in 1..=40 {
        let frame = world.frame(1 + number % 8, number, "op");
        world.request(&[0, 1], &frame);
    }
    assert_eq!([0, 1, 2].map(|replica| world.executed(replica)), [40, 40, 0]);
    world.pass(SMALL.status_interval / 2);
    assert_eq!(world.executed(2), 40, "before the next STATUS");
    // For each batch once: whoever does not send them is asked no more before that.
    let asked = world.sent.iter().filter(|flight| flight.kind() == Kind::FetchFrames).count();
    assert!(asked <= 10, "{asked}");
}

// MINBFT-R10 (guard) "Of one replica a STATUS is answered at most four times in the interval between two."
#[test]
fn who_asks_without_end_is_answered_now_and_then() {
    covers!("MINBFT-R10");
    let mut world = World::all(3, SMALL);
    for number in 1..=3 {
        let frame = world.frame(1, number, "op");
        world.request_all(&frame);
    }
    world.now += SMALL.status_interval;
    world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
    let status = |round| {
        let processed = vec![0; 3];
        Message::Status(Status {
            view: View(0),
            processed,
            stable: Seq(0),
            executed: Seq(0),
            round,
            wants: None,
        })
    };
    let mut answered = 0;
    for round in 0..100 {
        let before = world.sent.len();
        world.inject(2, 0, status(round));
        answered += usize::from(world.sent.len() > before);
        world.now += SMALL.status_interval / 100;
    }
    assert_eq!(answered, 4);
}

/// What replica 1 sent replica 2 of VIEW-CHANGEs and NEW-VIEWs since so many messages.
fn large_ones(world: &World, since: usize) -> Vec<Kind> {
    let sent = world.sent[since..].iter().filter(|flight| (flight.from, flight.to) == (r(1), r(2)));
    let is_large = |flight: &Flight| match &flight.message {
        PeerMessage::Protocol(Message::Evidence(message)) => message.new_view().is_some(),
        _ => matches!(flight.kind(), Kind::ViewChange | Kind::NewView),
    };
    sent.filter(|flight| is_large(flight)).map(Flight::kind).collect()
}

// MINBFT-R15 (guard) "One answer has at most four VIEW-CHANGEs and NEW-VIEWs, as evidence (V17) or not … One that it was sent goes
// to it again after half the interval, and each time twice as long after, up to sixteen intervals."
#[test]
fn who_asks_for_view_changes_without_end_is_sent_few() {
    covers!("MINBFT-R15");
    let mut world = World::all(3, SMALL);
    world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
    world.wishes(&[0, 2], 0, 1);
    world.wishes(&[0, 2], 1, 1);
    assert!(world.minbft(0).active() && world.minbft(1).view == View(1));
    world.now += SMALL.status_interval;
    let start = world.now;
    let asks = |world: &World, from_start: bool| {
        let processed = match from_start {
            true => vec![0; 3],
            false => world.minbft(1).peers.iter().map(|peer| peer.gate.processed().0).collect(),
        };
        let wants = from_start.then_some(View(1));
        let round = (world.now - start) / (SMALL.status_interval / 4);
        let (stable, executed) = (Seq(0), Seq(0));
        Message::Status(Status { view: View(0), processed, stable, executed, round, wants })
    };
    let mut large = Vec::new();
    // A hundred intervals. Every other answer came, or so it says.
    for round in 0..400 {
        let since = world.sent.len();
        let status = asks(&world, round % 2 == 0);
        world.inject(2, 1, status);
        let some = large_ones(&world, since);
        large.extend(some);
        world.now += SMALL.status_interval / 4;
    }
    // The VIEW-CHANGEs of 0 and 1, and the NEW-VIEW in both ways.
    for (kind, times) in [(Kind::ViewChange, 2), (Kind::NewView, 1), (Kind::Evidence, 1)] {
        let count = large.iter().filter(|sent| **sent == kind).count();
        assert!(count >= times * 100 / 16 && count <= times * (100 / 16 + 6), "{kind:?} {count} times");
    }
}

#[test]
fn who_lost_a_view_change_has_it_soon() {
    covers!("MINBFT-R15");
    for lost in [1, 4, 40] {
        let mut world = World::all(3, SMALL);
        world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
        world.wishes(&[0, 2], 0, 1);
        world.wishes(&[0, 2], 1, 1);
        let frame = world.frame(1, 1, "op");
        world.request(&[1, 2], &frame);
        world.pass(lost * SMALL.status_interval);
        assert_eq!([0, 1].map(|replica| world.executed(replica)), [1, 1]);
        world.open();
        // What was answered was in vain so far.
        let most = lost.min(16) + 2;
        let mut waited = 0;
        while world.executed(2) < 1 {
            waited += 1;
            assert!(waited <= most, "{lost} intervals cut off");
            world.pass(SMALL.status_interval);
        }
        assert_eq!(world.minbft(2).view, View(1));
    }
}

#[test]
fn what_brings_a_replica_further_changes_its_progress_and_nothing_else_does() {
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(2, &[2]);
    let at = |world: &World| troth_core::Agreement::progress(world.minbft(2)).expect("it is not behind");
    let prepare = world.prepare(0, 1, &[&frames[0]]);
    let ahead = world.prepare(0, 2, &[&frames[1]]);
    let before = at(&world);
    world.say(2, &ahead);
    assert_eq!(at(&world), before, "it waits for its turn");
    world.say(2, &prepare);
    let after = at(&world);
    assert_ne!(after, before);
    assert_eq!(world.commits(2).len(), 2);
    let repeat = |world: &mut World, from, message: &_| {
        world.inject(from, 2, Message::Certified(Arc::clone(message)));
    };
    repeat(&mut world, 1, &ahead);
    assert_eq!(at(&world), after, "another's, which came before");
    repeat(&mut world, 0, &prepare);
    let repeated = at(&world);
    assert_ne!(repeated, after, "its author had to send it, whoever was faster");
    repeat(&mut world, 0, &prepare);
    let request = world.wish(1, 1);
    world.inject(1, 2, Message::RequestViewChange(request));
    assert_eq!(at(&world), repeated, "once; and what one alone wants");
}

// MINBFT-N12 "A COMMIT can wait for a moment for what follows it where its receiver has f+1 commitments without it, as
// long as nobody fails."
#[test]
fn every_backup_is_told_at_once_what_it_needs_beside_its_own() {
    covers!("MINBFT-N12");
    for (n, view) in [(3, 0), (3, 4), (5, 0), (5, 3), (7, 1)] {
        let mut world = World::with(n, SMALL, &[0]);
        let (frame, primary) = (world.frame(1, 1, "op"), u16::try_from(view % u64::from(n)).expect("small"));
        let prepare = world.prepare(view, 1, &[&frame]);
        let backups: Vec<u16> = (0..n).filter(|replica| *replica != primary).collect();
        let can_wait = |world: &World, message: &Arc<Certified>, to: u16| {
            world.minbft(0).can_wait(&Message::Certified(message.clone()), r(to))
        };
        let commits: Vec<_> = backups.iter().map(|by| world.commit(*by, &prepare)).collect();
        for (to, at_once) in (0..n).map(|to| {
            let told = commits.iter().filter(|commit| commit.from != r(to));
            (to, told.filter(|commit| !can_wait(&world, commit, to)).count())
        }) {
            let f = usize::from(n / 2);
            // A backup has the PREPARE and its own beside these.
            assert_eq!(at_once, if to == primary { 2 * f } else { f - 1 }, "n {n}, view {view}, to {to}");
        }
        let checkpoint = world.checkpoint(backups[0], 1, Digest([0; 32]));
        assert!(backups.iter().all(|to| !can_wait(&world, &prepare, *to)), "a PREPARE");
        assert!((0..n).all(|to| !can_wait(&world, &checkpoint, to)), "a CHECKPOINT");
    }
}

// MINBFT-U3 (guard) "… what comes early waits in a bounded hold-back."
#[test]
fn few_batches_that_name_too_many_frames_wait() {
    covers!("MINBFT-U3");
    let mut world = World::with(3, SMALL, &[2]);
    let frame = world.frame(1, 1, "op");
    for (count, most) in [(SMALL.limits.batch_frames + 1, 4), (SMALL.limits.batch_frames, 8)] {
        let named: Vec<_> = std::iter::repeat_n(&frame, count).collect();
        let proposals: Vec<_> = (1..=9).map(|seq| world.prepare(0, seq, &named)).collect();
        // The first does not come, so that none has its turn.
        for proposal in &proposals[1..] {
            world.say(2, proposal);
        }
        let waiting = world.minbft(2).peer(r(0)).gate.held();
        assert!(world.condemned(2, 0).is_none());
        assert_eq!(waiting, most);
        world = World::with(3, SMALL, &[2]);
    }
}

// MINBFT-R14 (guard) "A VIEW-CHANGE or NEW-VIEW that was processed or waits already, or is of a replica that broke a rule, or
// has longer lists than there are replicas, is passed over before anything in it is checked, and charged, unless it merely
// waits …"
#[test]
fn what_can_bring_nothing_is_not_worth_a_check() {
    covers!("MINBFT-R14");
    let mut world = World::with(3, SMALL, &[2]);
    let worth = |world: &World, message: &Arc<Certified>| {
        world.minbft(2).is_worth_checking(&Message::Certified(message.clone()))
    };
    let first = world.view_change(0, 1);
    let second = world.view_change(0, 2);
    assert!(worth(&world, &first) && worth(&world, &second));
    world.say(2, &second);
    assert!(worth(&world, &first) && !worth(&world, &second), "it waits");
    let waits = |world: &World, message: &Arc<Certified>| {
        world.minbft(2).waits_here(&Message::Certified(message.clone()))
    };
    assert!(waits(&world, &second) && !waits(&world, &first));
    world.say(2, &first);
    assert!(!worth(&world, &first) && !worth(&world, &second), "both had their turn");
    assert!(!waits(&world, &first) && !waits(&world, &second));

    let body = |world: &World, wants: u16| {
        let requests = (0..wants).map(|from| world.wish(from % 3, 1)).collect();
        let stable = StableProof { votes: Vec::new() };
        Body::ViewChange(ViewChange { to: View(1), stable, log: Vec::new(), requests })
    };
    let (fits, more) = (body(&world, 3), body(&world, 4));
    let (fits, more) = (world.certify(1, fits), world.certify(1, more));
    assert!(worth(&world, &fits) && !worth(&world, &more));
    let start = |world: &mut World, change: &Arc<Certified>, count| {
        let changes = vec![change.clone(); count];
        let body = NewView { view: View(1), changes, base: (Seq(0), Digest::ZERO), chosen: Vec::new() };
        world.certify(1, Body::NewView(body))
    };
    for (change, count, good) in [(&fits, 3, true), (&fits, 4, false), (&more, 1, false)] {
        let start = start(&mut world, change, count);
        assert_eq!(worth(&world, &start), good);
        let mut asks = world.minbft(2).clone();
        asks.known_views.want(View(1));
        let mut placed = (*start).clone();
        placed.ui.certificate.new = Place::of_start(View(1));
        assert_eq!(asks.is_worth_checking(&Message::Evidence(Arc::new(placed))), good);
    }
}
