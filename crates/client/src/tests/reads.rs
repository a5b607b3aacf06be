use super::{CLIENT, Scene, event, full, read_reply, refusal, texts};
use bytes::Bytes;
use troth_types::{Event, RefusalReason, ReplicaId, Reply, ReplyBody, Seq, ToClient, View};

/// The rules stand on the pages of the protocols whose clients read so.
macro_rules! about {
    ($label:literal) => {};
}

fn body(scene: &Scene, number: u64, from: u16, result: &str) -> ReplyBody {
    if scene.group.designated(CLIENT, number) == ReplicaId(from) {
        ReplyBody::Full(texts(&[result]))
    } else {
        ReplyBody::Digest(Reply::results_digest(&texts(&[result])))
    }
}

fn read(scene: &mut Scene) -> crate::Ticket {
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap()
}

#[test]
fn a_fast_read_needs_all_replicas() {
    let mut scene = Scene::new(3);
    let ticket = read(&mut scene);
    let seen = scene.drain();
    assert_eq!(seen.reads.len(), 3);
    assert!(seen.frames.is_empty());
    for replica in [0, 1, 1, 0] {
        let body = body(&scene, 1, replica, "5");
        scene.say(replica, read_reply(1, 0, body));
    }
    assert!(scene.drain().done.is_empty(), "two of three are not all");
    let body = body(&scene, 1, 2, "5");
    scene.say(2, read_reply(1, 0, body));
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["5"])))]);
    assert_eq!(scene.core.next_wake(), None);
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

/// Does `spoil` to a read that replica 0 has answered; the read must then be ordered at once.
fn becomes_ordered(spoil: impl FnOnce(&mut Scene)) {
    let mut scene = Scene::new(3);
    let ticket = read(&mut scene);
    scene.drain();
    let answer = body(&scene, 1, 0, "5");
    scene.say(0, read_reply(1, 0, answer));
    spoil(&mut scene);
    let seen = scene.drain();
    assert_eq!(seen.frames.len(), 3, "it is ordered");
    assert_eq!(seen.frames[0].1.draft().operations, texts(&["get"]));
    scene.say(0, full(1, &["6"]));
    scene.say(2, full(1, &["6"]));
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["6"])))]);
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

#[test]
fn whatever_spoils_a_fast_read_has_it_ordered() {
    becomes_ordered(|scene| scene.wait(crate::Timing::DEFAULT.read_wait));
    becomes_ordered(|scene| {
        let other = body(scene, 1, 1, "6");
        scene.say(1, read_reply(1, 0, other));
    });
    becomes_ordered(|scene| {
        let same_result_other_events = body(scene, 1, 1, "5");
        scene.say(1, read_reply(1, 9, same_result_other_events));
    });
    becomes_ordered(|scene| scene.say(1, refusal(1, true, RefusalReason::NotReady)));
    becomes_ordered(|scene| scene.say(1, read_reply(1, 0, ReplyBody::Full(texts(&["5", "5"])))));
    becomes_ordered(|scene| {
        // All digests alike, but the designated replica keeps the result to itself.
        for replica in 0..3 {
            let digest = Reply::results_digest(&texts(&["5"]));
            scene.say(replica, read_reply(1, 0, ReplyBody::Digest(digest)));
        }
    });
}

#[test]
fn a_digest_sent_after_the_result_does_not_vouch_for_that_result() {
    let mut scene = Scene::new(3);
    read(&mut scene);
    scene.drain();
    // The designated replica shows a result of its own, then agrees with the others' digest.
    scene.say(2, read_reply(1, 0, ReplyBody::Full(texts(&["6"]))));
    for replica in [2, 0, 1] {
        let digest = Reply::results_digest(&texts(&["5"]));
        scene.say(replica, read_reply(1, 0, ReplyBody::Digest(digest)));
    }
    let seen = scene.drain();
    assert!(seen.done.is_empty(), "nobody else vouched for its result");
    assert_eq!(seen.frames.len(), 3, "it is ordered");
}

#[test]
fn a_read_waits_for_the_events_it_reveals() {
    let mut scene = Scene::new(3);
    read(&mut scene);
    scene.drain();
    for replica in 0..3 {
        let body = body(&scene, 1, replica, "5");
        scene.say(replica, read_reply(1, 1, body));
    }
    assert!(scene.drain().done.is_empty());
    scene.say(0, event(1, "changed"));
    scene.say(1, event(1, "changed"));
    assert_eq!(scene.drain().order, ["e1", "d0"]);
}

#[test]
fn reads_are_ordered_when_a_fast_one_is_hopeless() {
    let mut scene = Scene::with(3, |config| config.bounds.reads = 1);
    read(&mut scene);
    read(&mut scene);
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (3, 3), "the second is over the bound");
    let mut scene = Scene::new(3);
    scene.core.on_connection(scene.now, ReplicaId(2), false);
    read(&mut scene);
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (0, 2), "not all replicas are there");
}

fn recent(scene: &mut Scene) -> crate::Ticket {
    scene.core.read_recent(scene.now, Bytes::from_static(b"get")).unwrap()
}

/// Lets these replicas answer a read alike.
fn answer(scene: &mut Scene, number: u64, from: &[u16], result: &str) {
    for replica in from {
        let body = body(scene, number, *replica, result);
        scene.say(*replica, read_reply(number, 0, body));
    }
}

#[test]
fn a_recent_read_needs_f_plus_one_replicas() {
    about!("MINBFT-R12");
    about!("PBFT-E7");
    for (mut scene, believed) in [(Scene::new(3), 2), (Scene::new(5), 3), (Scene::pbft(), 2)] {
        let ticket = recent(&mut scene);
        assert_eq!(scene.drain().reads.len(), scene.group.n());
        let designated = scene.group.designated(CLIENT, 1).0;
        let others = (0..).filter(|replica| *replica != designated).take(believed - 1);
        let mut from: Vec<u16> = others.collect();
        from.push(designated);
        for replica in &from[1..] {
            answer(&mut scene, 1, &[*replica, *replica], "5");
        }
        assert!(scene.drain().done.is_empty(), "f may be liars, however often they speak");
        answer(&mut scene, 1, &from[..1], "5");
        assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["5"])))]);
        assert_eq!((scene.core.next_wake(), scene.core.unconfirmed_bytes()), (None, 0));
    }
    // Replicas that are away keep nobody from reading.
    let mut scene = Scene::new(3);
    scene.core.on_connection(scene.now, ReplicaId(2), false);
    let ticket = recent(&mut scene);
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (2, 0));
    answer(&mut scene, seen.reads[0].1.number, &[0, 1], "5");
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["5"])))]);
    scene.core.on_connection(scene.now, ReplicaId(1), false);
    recent(&mut scene);
    assert!(scene.drain().reads.is_empty(), "one alone is not asked");
}

#[test]
fn a_recent_read_names_the_latest_batch_that_its_client_was_told_of() {
    about!("MINBFT-R12");
    about!("PBFT-E7");
    let mut scene = Scene::new(3);
    let least = |scene: &mut Scene| {
        recent(scene);
        let asked: Vec<_> = scene.drain().reads.iter().map(|(_, read)| read.least).collect();
        assert!(asked.iter().all(|least| *least == asked[0]));
        asked[0]
    };
    assert_eq!(least(&mut scene), Some(Seq(0)));
    let placed = |number, seq, from: u16| {
        let body = ReplyBody::Full(texts(&["done"]));
        let view = View(0);
        (from, ToClient::Reply(Reply { client: CLIENT, number, seq: Seq(seq), view, events_up_to: 0, body }))
    };
    scene.submit(&["set"]);
    scene.drain();
    let (from, said) = placed(1, 1000, 2);
    scene.say(from, said);
    assert_eq!(least(&mut scene), Some(Seq(0)), "one replica's word moves nothing");
    for from in [0, 1] {
        let (from, said) = placed(1, 7, from);
        scene.say(from, said);
    }
    assert_eq!(scene.drain().done.len(), 1);
    assert_eq!(least(&mut scene), Some(Seq(7)), "it shows what its client wrote");
    let told = |seq| {
        let payload = Bytes::from_static(b"changed");
        ToClient::Event(Event { client: CLIENT, index: 1, seq: Seq(seq), payload })
    };
    scene.say(2, told(1000));
    assert_eq!(least(&mut scene), Some(Seq(7)));
    scene.say(0, told(9));
    scene.say(1, told(9));
    assert_eq!(scene.drain().events.len(), 1);
    assert_eq!(least(&mut scene), Some(Seq(9)), "it shows what brought the event about");
    read(&mut scene);
    assert!(scene.drain().reads.iter().all(|(_, read)| read.least.is_none()), "others show the present");
}

// A client that is told of lost events reads afresh, and must not be shown what was before them.
#[test]
fn a_recent_read_shows_what_brought_lost_events_about() {
    about!("MINBFT-R12");
    about!("PBFT-E7");
    let mut scene = Scene::new(3);
    for from in [0, 1] {
        scene.say(from, event(5, ""));
    }
    assert_eq!(scene.drain().events.len(), 1, "up to the fifth they are lost");
    let ticket = recent(&mut scene);
    let number = scene.drain().reads[0].1.number;
    answer(&mut scene, number, &[0, 1], "from before");
    let seen = scene.drain();
    assert_eq!((seen.done.len(), seen.reads.len()), (0, 3), "two are too few, and it is asked again");
    for from in 0..3 {
        let after = body(&scene, number + 1, from, "after");
        scene.say(from, read_reply(number + 1, 5, after));
    }
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["after"])))]);
}

#[test]
fn a_recent_read_that_replicas_answer_differently_is_asked_once_more_and_then_ordered() {
    about!("MINBFT-R13");
    about!("PBFT-E8");
    let differ = |scene: &mut Scene, number| {
        for (replica, result) in [(0, "5"), (1, "6"), (2, "7")] {
            answer(scene, number, &[replica], result);
        }
        scene.drain()
    };
    let mut scene = Scene::new(3);
    let ticket = recent(&mut scene);
    scene.drain();
    let seen = differ(&mut scene, 1);
    assert_eq!((seen.reads.len(), seen.frames.len()), (3, 0), "they may agree the next time");
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
    answer(&mut scene, 1, &[0, 1, 2], "8");
    assert!(scene.drain().done.is_empty(), "an answer to another question");
    let seen = differ(&mut scene, 2);
    assert_eq!((seen.reads.len(), seen.frames.len()), (0, 3), "once more, and not for ever");
    scene.say(0, full(1, &["9"]));
    scene.say(1, full(1, &["9"]));
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["9"])))]);

    // The one that was to send the result is of another opinion than all others: another one sends it.
    let mut scene = Scene::new(3);
    let ticket = recent(&mut scene);
    scene.drain();
    let designated = scene.group.designated(CLIENT, 1).0;
    let others: Vec<u16> = (0..3).filter(|replica| *replica != designated).collect();
    answer(&mut scene, 1, &[designated], "6");
    answer(&mut scene, 1, &others, "5");
    assert_eq!(scene.drain().reads.len(), 3);
    assert_ne!(scene.group.designated(CLIENT, 2).0, designated);
    answer(&mut scene, 2, &others, "5");
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["5"])))]);

    // Who waits in vain has it ordered.
    let mut scene = Scene::new(3);
    recent(&mut scene);
    answer(&mut scene, 1, &[0], "5");
    scene.drain();
    scene.wait(crate::Timing::DEFAULT.read_wait);
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (0, 3));
}
