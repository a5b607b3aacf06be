//! MINBFT-R: retransmission and restart.

use super::harness::{Fate, Kind, SMALL, World, covers, one_missed_them, r};
use crate::message::{Body, Message, Status};
use crate::place::Place;
use troth_core::{Agreement, LogRecord};
use troth_trusted::CounterValue;
use troth_types::{ClientId, Digest, Read, Seq, ToClient, View, Wire};

// MINBFT-R1 "Frames are durable before the commitment that names them, and every body is durable before
// its identifier exists."
#[test]
fn frames_and_bodies_are_durable_before_the_identifier() {
    covers!("MINBFT-R1");
    for (me, stalled) in [(0, false), (1, false), (0, true), (1, true)] {
        let mut world = World::all(3, SMALL);
        world.node_mut(me).stalled = stalled;
        let frame = world.frame(1, 1, "a");
        world.request_all(&frame);
        // The component has been asked or has answered: the log holds the frame, and then the body.
        let log = &world.node(me).disk.log;
        let at = |want: &dyn Fn(&LogRecord) -> bool| {
            log.iter().position(|bytes| want(&LogRecord::from_wire(bytes).expect("a record")))
        };
        let frame_at = at(&|record| match record {
            LogRecord::Machine(bytes) => matches!(
                crate::Record::from_wire(bytes),
                Ok(crate::Record::Frame(logged)) if logged.digest() == frame.digest()
            ),
            _ => false,
        });
        let body_at = at(&|record| matches!(record, LogRecord::Own { new: CounterValue(1), .. }));
        assert!(frame_at.is_some() && body_at.is_some() && frame_at < body_at, "replica {me}: {stalled}");
    }
}

#[test]
fn a_new_primary_holds_what_its_new_view_names() {
    covers!("MINBFT-R1");
    // Replica 1 has the frame from the client and never committed to it; puppet 0's log shows it.
    let mut world = World::with(3, SMALL, &[1]);
    let frame = world.frame(1, 1, "a");
    world.request(&[1], &frame);
    world.wishes(&[0, 2], 1, 1);
    let prepare = world.prepare(0, 1, &[&frame]);
    world.say(1, &prepare);
    let change = world.view_change(0, 1);
    world.node_mut(1).stalled = true;
    world.say(1, &change);
    let logged = world.node(1).disk.log.iter().any(|bytes| match LogRecord::from_wire(bytes) {
        Ok(LogRecord::Machine(bytes)) => matches!(
            crate::Record::from_wire(&bytes),
            Ok(crate::Record::Frame(logged)) if logged.digest() == frame.digest()
        ),
        _ => false,
    });
    assert!(world.minbft(1).proposed_view, "the component is asked for the NEW-VIEW");
    assert!(logged, "its NEW-VIEW commits it to a frame that a crash would lose");
}

// MINBFT-R2 "Frames that a processed batch or a VIEW-CHANGE names and that are missing are asked for
// until they are here."
#[test]
fn missing_frames_are_asked_for_until_they_come() {
    covers!("MINBFT-R2");
    let mut world = World::all(3, SMALL);
    world.links(|flight| if flight.kind() == Kind::Frames { Fate::Lose } else { Fate::Pass });
    let frame = world.frame(1, 1, "a");
    world.request(&[0, 1], &frame);
    let asked =
        |world: &World| world.sent.iter().filter(|f| f.kind() == Kind::FetchFrames && f.from == r(2)).count();
    assert_eq!(world.executed(2), 0);
    world.pass(SMALL.status_interval);
    let once = asked(&world);
    assert!(once > 0);
    world.pass(SMALL.status_interval * 3);
    assert!(asked(&world) >= once + 3, "with every STATUS");
    world.open();
    world.pass(SMALL.status_interval);
    assert_eq!(world.journal(2), ["a"]);
    let now = asked(&world);
    world.pass(SMALL.status_interval * 3);
    assert_eq!(asked(&world), now, "and no longer than needed");
}

// "Where no view is agreed everybody is asked soon after VIEW-CHANGEs and NEW-VIEWs name them …"
#[test]
fn a_new_primary_waits_for_no_status_to_ask_for_the_frames_that_its_view_needs() {
    covers!("MINBFT-R2");
    let mut world = World::with(3, SMALL, &[1]);
    let frames: Vec<_> = (1..=180).map(|number| world.frame(1, number, "a")).collect();
    world.wishes(&[0, 2], 1, 1);
    for (seq, of) in (1..).zip(frames.chunks(90)) {
        let prepare = world.prepare(0, seq, &of.iter().collect::<Vec<_>>());
        world.say(1, &prepare);
    }
    let change = world.view_change(0, 1);
    let before = world.sent.len();
    world.say(1, &change);
    let mut asked = Vec::new();
    for most in [128, 52, 0] {
        world.pass(SMALL.status_interval / 12);
        let digests: std::collections::BTreeSet<Digest> = world.sent[before..]
            .iter()
            .filter(|flight| flight.from == r(1) && flight.to == r(0))
            .flat_map(|flight| match &flight.message {
                troth_core::PeerMessage::FetchFrames(digests) => digests.clone(),
                _ => Vec::new(),
            })
            .filter(|digest| !asked.contains(digest))
            .collect();
        assert_eq!(digests.len(), most);
        let shown = frames.iter().filter(|frame| digests.contains(&frame.digest())).cloned().collect();
        asked.extend(digests);
        if most > 0 {
            world.arrive(0, 1, troth_core::PeerMessage::Frames(shown));
        }
    }
    assert!(world.minbft(1).active(), "view 1 begins");
    assert!(!world.sent[before..].iter().any(|flight| flight.kind() == Kind::Status && flight.from == r(1)));
}

#[test]
fn what_was_to_be_asked_of_a_primary_that_was_left_holds_up_no_later_question() {
    covers!("MINBFT-R2");
    let mut world = World::with(3, SMALL, &[1]);
    let frames = [world.frame(1, 1, "a"), world.frame(2, 1, "b")];
    let prepare = world.prepare(0, 1, &[&frames[0]]);
    world.say(1, &prepare);
    assert!(world.minbft(1).fetching, "its primary is about to be asked");
    let before = world.sent.len();
    world.wishes(&[0, 2], 1, 1);
    // It is due where nothing is wanted any more.
    world.pass(SMALL.status_interval / 16);
    let prepare = world.prepare(0, 2, &[&frames[1]]);
    world.say(1, &prepare);
    let change = world.view_change(0, 1);
    world.say(1, &change);
    world.pass(SMALL.status_interval / 16);
    let asked = world.sent[before..].iter().any(|flight| match &flight.message {
        troth_core::PeerMessage::FetchFrames(digests) => digests.contains(&frames[1].digest()),
        _ => false,
    });
    assert!(asked);
    assert!(!world.sent[before..].iter().any(|flight| flight.kind() == Kind::Status && flight.from == r(1)));
}

#[test]
fn frames_that_nobody_has_do_not_hide_those_that_somebody_has() {
    covers!("MINBFT-R2");
    let mut world = World::with(3, SMALL, &[2]);
    let frame = world.frame(1, 1, "op");
    for seq in 1..=4 {
        // Lower than any real digest.
        let invented = |index: u8| {
            let mut digest = [0; 32];
            (digest[30], digest[31]) = (seq as u8, index);
            Digest(digest)
        };
        let frames = (0..100).map(invented).collect();
        let mut batch = troth_types::Batch { time: world.wall(), frames };
        if seq == 4 {
            batch.frames.push(frame.digest());
        }
        let prepare = world.certify(0, Body::Prepare(crate::Prepare { view: View(0), seq: Seq(seq), batch }));
        world.say(2, &prepare);
    }
    world.pass(8 * SMALL.status_interval);
    let asked = world.sent.iter().any(|flight| match &flight.message {
        troth_core::PeerMessage::FetchFrames(digests) => digests.contains(&frame.digest()),
        _ => false,
    });
    assert!(asked);
    // What a left view named is not asked for.
    world.wishes(&[0, 1], 2, 1);
    assert!(world.minbft(2).frames.missing(128, 0, Seq(u64::MAX)).is_empty());
}

#[test]
fn asked_frames_come_once_each_and_in_messages_that_links_carry() {
    let mut world = World::with(3, SMALL, &[2]);
    let large = "x".repeat(600 << 10);
    let frames: Vec<_> = (1..=8).map(|number| world.frame(1, number, &large)).collect();
    for frame in &frames {
        world.request(&[2], frame);
    }
    let digests: Vec<Digest> = frames.iter().map(|frame| frame.digest()).collect();
    let before = world.sent.len();
    world.arrive(0, 2, troth_core::PeerMessage::FetchFrames([&digests[..], &digests[..]].concat()));
    let sent: Vec<Vec<Digest>> = world.sent[before..]
        .iter()
        .filter_map(|flight| match &flight.message {
            troth_core::PeerMessage::Frames(frames) => {
                Some(frames.iter().map(|frame| frame.digest()).collect())
            }
            _ => None,
        })
        .collect();
    assert_eq!(sent.iter().map(Vec::len).collect::<Vec<_>>(), [1; 6], "each below a megabyte, four in all");
    let mut lowest = digests;
    lowest.sort_unstable();
    assert_eq!(sent.concat(), lowest[..6], "the rest is asked for again");
}

// MINBFT-R3 "A STATUS is answered with what its sender lacks: own messages, the proof of a higher stable
// checkpoint, and in turn third parties' messages."
#[test]
fn a_status_is_answered_with_what_its_sender_lacks() {
    covers!("MINBFT-R3");
    let mut world = World::all(5, SMALL);
    for number in 1..=5 {
        let frame = world.frame(1, number, "op");
        world.request_all(&frame);
    }
    world.now += SMALL.status_interval;
    let mut turns = [0; 5];
    for round in 0..4 {
        // Each STATUS long after the one before (R10).
        world.now += SMALL.status_interval;
        for me in 1..4 {
            let before = world.sent.len();
            let status = Status {
                view: View(0),
                processed: vec![0; 5],
                stable: Seq(0),
                executed: Seq(0),
                round,
                wants: None,
            };
            world.links(|flight| if flight.to == r(4) { Fate::Lose } else { Fate::Pass });
            world.inject(4, me, Message::Status(status));
            let answered = &world.sent[before..];
            assert!(answered.iter().all(|flight| flight.to == r(4)));
            assert!(answered.iter().any(|flight| flight.kind() == Kind::Stable));
            let of = |replica| answered.iter().filter_map(|f| f.certified()).any(|m| m.from == r(replica));
            assert!(of(me), "its own always");
            for (third, count) in turns.iter_mut().enumerate() {
                *count += usize::from(third as u16 != me && of(third as u16));
            }
        }
    }
    // Three of the others took their turns for each third party; a fourth turn was the asker's.
    assert_eq!(turns[0], 3, "{turns:?}");
    assert_eq!(turns[4], 0, "not its own");
    // Who lacks nothing gets nothing.
    world.now += SMALL.status_interval;
    let before = world.sent.len();
    let processed = world.minbft(1).peers.iter().map(|peer| peer.gate.processed().0).collect();
    let status = Status { view: View(0), processed, stable: Seq(4), executed: Seq(5), round: 0, wants: None };
    world.inject(4, 1, Message::Status(status));
    assert_eq!(world.sent.len(), before);
}

#[test]
fn a_little_behind_catches_up_by_messages_first() {
    covers!("MINBFT-R3");
    // The client sent it the frames; the others drop those below what is stable.
    let mut world = World::all(3, SMALL);
    world.links(|flight| if flight.to == r(2) { Fate::Lose } else { Fate::Pass });
    world.frames_held(5, &[0, 1, 2]);
    assert_eq!((world.stable(0), world.executed(2)), (Seq(4), 0));
    world.open();
    world.pass(1_500_000);
    assert_eq!(world.journal(2).len(), 5);
    assert!(!world.sent.iter().any(|flight| flight.kind() == Kind::FetchState), "no transfer");
}

#[test]
fn lost_messages_are_made_up_for() {
    covers!("MINBFT-R3");
    for n in [3, 5] {
        for kind in [Kind::Prepare, Kind::Commit, Kind::Checkpoint] {
            let mut world = World::all(n, SMALL);
            world.links(move |flight| if flight.kind() == kind { Fate::Lose } else { Fate::Pass });
            // Four batches where none is executed (N2), more where some are.
            for number in 1..=8 {
                let frame = world.frame(1, number, "op");
                world.request_all(&frame);
            }
            world.open();
            world.pass(SMALL.status_interval * 4);
            for replica in 0..n {
                let reached = world.executed(replica);
                assert_eq!((reached, world.journal(replica).len()), (world.executed(0), 8), "{kind:?}");
                assert_eq!(world.stable(replica), Seq(4), "{kind:?}");
                assert_eq!(world.minbft(replica).view, View(0));
            }
        }
    }
}

// MINBFT-R4 "A restarted replica goes on from its own certified messages: it stays in the view they show,
// and never certifies anything that contradicts them."
#[test]
fn a_restarted_replica_goes_on_where_it_was() {
    covers!("MINBFT-R4");
    for n in [3, 5] {
        for me in 0..n {
            let mut world = World::all(n, SMALL);
            for number in 1..=6 {
                let frame = world.frame(1, number, &format!("op{number}"));
                world.request_all(&frame);
            }
            world.wishes(&[0, 1, 2], 1, 1);
            world.run();
            for number in 7..=9 {
                let frame = world.frame(1, number, &format!("op{number}"));
                world.request_all(&frame);
            }
            assert!(world.works_in(me, 1));
            let before = (world.minbft(me).requested, world.minbft(me).committed);
            world.crash(me);
            world.restart(me);
            assert!(world.works_in(me, 1), "it stays in the view");
            assert_eq!((world.minbft(me).requested, world.minbft(me).committed), before);
            world.pass(1_000_000);
            for number in 10..=14 {
                let frame = world.frame(1, number, &format!("op{number}"));
                world.request_all(&frame);
            }
            world.pass(500_000);
            for replica in 0..n {
                assert_eq!(world.journal(replica).len(), 14, "{replica} after the restart of {me}");
                assert!(world.accused_nobody(replica));
            }
        }
    }
}

#[test]
fn a_replica_restarted_in_a_view_change_stays_in_it() {
    covers!("MINBFT-R4");
    let mut world = World::with(3, SMALL, &[2]);
    let frames = world.frames_held(1, &[2]);
    let prepare = world.prepare(0, 1, &[&frames[0]]);
    world.say(2, &prepare);
    world.wishes(&[0, 1], 2, 1);
    world.crash(2);
    world.restart(2);
    assert_eq!((world.minbft(2).view, world.minbft(2).active()), (View(1), false));
    // Nothing of the view it left is committed to any more.
    let second = world.prepare(0, 2, &[&frames[0]]);
    world.say(2, &prepare);
    world.say(2, &second);
    assert_eq!(world.commits(2), [1]);
    // And it wants the next when no NEW-VIEW comes.
    world.pass(2_100_000);
    assert_eq!(world.wanted(2), 2);
}

#[test]
fn checkpoints_alone_show_the_view() {
    covers!("MINBFT-R4");
    // Two transfers in a row, the second covering the first: the log holds nothing but CHECKPOINTs.
    let mut world = World::with(3, SMALL, &[]);
    let changes = [world.view_change(0, 1), world.view_change(1, 1)];
    let new_view = world.new_view(1, &[&changes[1], &changes[0]], &[]);
    let checkpoint = |seq| {
        Body::Checkpoint(crate::Checkpoint {
            seq: Seq(seq),
            digest: Digest([seq as u8; 32]),
            ..crate::Checkpoint::default()
        })
    };
    let own = [
        world.certify_at(2, Place::of_checkpoint(View(1), Seq(8)).expect("possible"), checkpoint(8)),
        world.certify_at(2, Place::of_checkpoint(View(1), Seq(16)).expect("possible"), checkpoint(16)),
    ];
    let mut minbft = crate::MinBft::new(r(2), world.group, world.config);
    let (env, mut effects) = (world.env(r(2)), Vec::new());
    let mut cx = troth_core::Cx::new(env.now, env.wall, r(2), &world.group, &mut effects);
    let reached = troth_core::Reached { seq: Seq(16), ..Default::default() };
    let start = troth_core::Start::Recovered {
        own: own.iter().cloned().map(Message::Certified).collect(),
        records: vec![crate::Record::NewView(new_view.clone())],
        snapshot: (Seq(16), Digest([16; 32])),
        reached,
    };
    minbft.on_start(&mut cx, start);
    assert_eq!((minbft.view, minbft.active()), (View(1), true));
    assert_eq!((minbft.requested, minbft.own_checkpoint.seq), (own[1].value(), Seq(16)));
    assert_eq!(minbft.started.digest, new_view.digest);
    assert_eq!(minbft.committed, Seq(16), "its next commitment is to 17");
}

// MINBFT-R5 (guard) "After a restart it answers no read before it has executed everything up to its
// highest own commitment."
#[test]
fn no_read_before_it_has_caught_up_with_itself() {
    covers!("MINBFT-R5");
    let mut world = World::all(3, SMALL);
    for number in 1..=3 {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
    }
    let answered = |world: &mut World| {
        let read =
            Read { client: ClientId(1), number: 1, nonce: None, least: None, operation: Default::default() };
        let before = world.node(0).answers.len();
        world.input(r(0), troth_core::Input::Read(read));
        match &world.node(0).answers[before..] {
            [ToClient::ReadReply(_)] => true,
            [ToClient::Refusal(_)] => false,
            other => panic!("one answer: {other:?}"),
        }
    };
    assert!(answered(&mut world));
    world.crash(0);
    world.links(|_| Fate::Lose);
    world.restart(0);
    // The last batch's record was not durable yet; the commitment to it was.
    assert_eq!((world.executed(0), world.minbft(0).committed), (2, Seq(3)));
    assert!(!answered(&mut world), "its PREPAREs may have been executed by others");
    world.open();
    world.pass(500_000);
    assert_eq!(world.executed(0), 3);
    assert!(answered(&mut world));
    // A fresh replica has promised nothing.
    let mut fresh = World::with(3, SMALL, &[0]);
    assert!(answered(&mut fresh));
    assert!(fresh.minbft(0).may_answer_reads());
}

// MINBFT-R11 (guard) "A recent read, which names a batch, is answered from a state that reflects it, whatever else this
// replica has committed to …"
#[test]
fn a_recent_read_waits_for_the_batch_that_it_names() {
    covers!("MINBFT-R11");
    let mut world = World::all(3, SMALL);
    let ask = |world: &mut World, number, least| {
        let read = Read {
            client: ClientId(1),
            number,
            nonce: None,
            least: Some(Seq(least)),
            operation: Default::default(),
        };
        world.input(r(0), troth_core::Input::Read(read));
    };
    let answers = |world: &World| -> Vec<u64> {
        let numbers = world.node(0).answers.iter().filter_map(|answer| match answer {
            ToClient::ReadReply(reply) => Some(reply.number),
            _ => None,
        });
        numbers.collect()
    };
    ask(&mut world, 1, 2);
    ask(&mut world, 2, 1);
    ask(&mut world, 3, 0);
    assert_eq!(answers(&world), [3]);
    for (number, then) in [(1, &[3, 2][..]), (2, &[3, 2, 1])] {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
        // It has a turn of its own.
        world.pass(0);
        assert_eq!((world.executed(0), &answers(&world)[..]), (number, then));
    }
}

/// A crash after the CHECKPOINT of a transferred state and before any commitment: nothing below it is committed
/// to again, or the others would see skipped numbers.
#[test]
fn an_own_checkpoint_stands_for_what_is_below_it() {
    covers!("MINBFT-R4");
    let mut world = World::with(3, SMALL, &[]);
    let place = Place::of_checkpoint(View(0), Seq(8)).expect("possible");
    let body = Body::Checkpoint(crate::Checkpoint {
        seq: Seq(8),
        digest: Digest([8; 32]),
        epochs: Vec::new(),
        given: false,
    });
    let own = world.certify_at(2, place, body);
    let started = |records: Vec<crate::Record>| {
        let mut minbft = crate::MinBft::new(r(2), world.group, world.config);
        let (env, mut effects) = (world.env(r(2)), Vec::new());
        let mut cx = troth_core::Cx::new(env.now, env.wall, r(2), &world.group, &mut effects);
        let reached = troth_core::Reached { seq: Seq(4), ..Default::default() };
        let start = troth_core::Start::Recovered {
            own: vec![Message::Certified(own.clone())],
            records,
            snapshot: (Seq(4), Digest([4; 32])),
            reached,
        };
        minbft.on_start(&mut cx, start);
        minbft
    };
    assert_eq!(started(Vec::new()).committed, Seq(8));
    // Commitments whose messages the log has dropped bind all the same, in their view.
    let kept = started(vec![crate::Record::Committed(View(0), Seq(12))]);
    assert_eq!((kept.committed, kept.read_barrier), (Seq(12), Seq(12)));
    let (_, records) = kept.retained();
    assert!(
        records.contains(&crate::Record::Committed(View(0), Seq(12))),
        "the next fresh log says it again"
    );
    let other = started(vec![crate::Record::Committed(View(1), Seq(12))]);
    assert_eq!((other.committed, other.read_barrier), (Seq(8), Seq(12)));
    let world = one_missed_them(3, 2, 5);
    let (_, records) = world.minbft(0).retained();
    assert!(records.contains(&crate::Record::Committed(View(0), world.minbft(0).committed)));
}

// MINBFT-R7 "What was stable it knows again from its log, and lets go of its messages below as it did
// before: otherwise its VIEW-CHANGE would hold everything since the snapshot that it started from."
#[test]
fn a_long_log_on_disk_is_no_long_log_in_memory() {
    covers!("MINBFT-R7");
    let mut world = World::all(3, SMALL);
    for replica in 0..3 {
        world.node_mut(replica).disk.segments = false;
    }
    for number in 1..=42 {
        let frame = world.frame(1, number, &format!("op{number}"));
        world.request_all(&frame);
    }
    // What makes a checkpoint stable is in the log once something after it is.
    let frame = world.frame(1, 43, "op43");
    world.request_all(&frame);
    let held: Vec<(Seq, usize)> = (0..3)
        .map(|replica| {
            let minbft = world.minbft(replica);
            (minbft.stable.0, minbft.peer(r(replica)).log.len())
        })
        .collect();
    assert!(held.iter().all(|(stable, log)| *stable >= Seq(40) && *log < 20), "{held:?}");
    for replica in 0..3 {
        world.crash(replica);
    }
    for replica in 0..3 {
        let logged = world.node(replica).disk.log.len();
        assert!(logged > 100, "the disk holds everything: {logged} records");
        world.restart(replica);
        let minbft = world.minbft(replica);
        let again = (minbft.stable.0, minbft.peer(r(replica)).log.len());
        assert_eq!(again, held[usize::from(replica)], "r{replica} holds what it held");
    }
    world.run();
    let frame = world.frame(1, 44, "op44");
    world.request_all(&frame);
    world.pass(3_000_000);
    let executed: Vec<usize> = (0..3).map(|replica| world.journal(replica).len()).collect();
    assert_eq!(executed, [44; 3]);
}
