use super::{CLIENT, Scene, event, full, read_reply, refusal, texts};
use bytes::Bytes;
use troth_types::{RefusalReason, ReplicaId, Reply, ReplyBody};

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
    assert_eq!(seen.frames[0].1.operations(), texts(&["get"]));
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
