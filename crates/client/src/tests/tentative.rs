//! What a client of PBFT believes: tentative replies of one view, and 2f+1 answers to a read.

use super::{CLIENT, Scene, read_reply, refusal, texts};
use bytes::Bytes;
use troth_types::{RefusalReason, ReplicaId, Reply, ReplyBody, Seq, ToClient, View};

fn reply(view: u64, result: &str) -> Reply {
    let body = ReplyBody::Full(texts(&[result]));
    Reply { client: CLIENT, number: 1, seq: Seq(1), view: View(view), events_up_to: 0, body }
}

fn tentative(view: u64, result: &str) -> ToClient {
    ToClient::Tentative(reply(view, result))
}

fn done_after(words: &[(u16, ToClient)]) -> bool {
    let mut scene = Scene::pbft();
    scene.submit(&["put"]);
    scene.drain();
    for (index, (from, message)) in words.iter().enumerate() {
        scene.say(*from, message.clone());
        let done = scene.drain().done;
        assert!(done.is_empty() || index + 1 == words.len(), "one word fewer must not be enough");
        if let Some((_, result)) = done.into_iter().next() {
            assert_eq!(result, Ok(texts(&["yes"])));
            return true;
        }
    }
    false
}

#[test]
fn a_quorum_of_tentative_replies_of_one_view_is_enough_and_no_fewer() {
    let yes = |view| tentative(view, "yes");
    let final_yes = || ToClient::Reply(reply(9, "yes"));
    assert!(done_after(&[(0, yes(0)), (1, yes(0)), (2, yes(0))]));
    assert!(!done_after(&[(0, yes(0)), (1, yes(0))]));
    assert!(!done_after(&[(0, yes(0)), (1, yes(0)), (1, yes(0)), (0, yes(0))]));
    assert!(!done_after(&[(0, yes(0)), (1, yes(0)), (2, yes(1)), (3, yes(2))]), "each may have been undone");
    assert!(
        !done_after(&[(0, yes(0)), (1, yes(0)), (0, yes(1)), (2, yes(0))]),
        "its word for view 0 is gone"
    );
    assert!(done_after(&[(0, yes(0)), (1, yes(1)), (2, yes(1)), (0, yes(1))]));
    assert!(!done_after(&[(0, yes(0)), (1, yes(0)), (2, tentative(0, "no"))]));
    // Final ones count with those of any view, and f+1 of them alone.
    assert!(done_after(&[(0, yes(0)), (1, final_yes()), (2, yes(0))]));
    assert!(done_after(&[(0, final_yes()), (1, final_yes())]));
    assert!(!done_after(&[(0, yes(0)), (1, final_yes()), (2, yes(1))]));
}

#[test]
fn where_nothing_is_tentative_such_a_reply_is_no_word() {
    let mut scene = Scene::new(3);
    scene.submit(&["put"]);
    scene.drain();
    for replica in 0..3 {
        scene.say(replica, tentative(0, "yes"));
    }
    assert!(scene.drain().done.is_empty());
}

#[test]
fn a_read_needs_2f_plus_1_equal_answers() {
    let mut scene = Scene::pbft();
    let ticket = scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    assert_eq!(scene.drain().reads.len(), 4);
    let designated = scene.group.designated(CLIENT, 1).0;
    let others: Vec<u16> = (0..4).filter(|replica| *replica != designated).collect();
    let digest = || ReplyBody::Digest(Reply::results_digest(&texts(&["5"])));
    scene.say(others[0], refusal(1, true, RefusalReason::NotReady));
    scene.say(others[1], read_reply(1, 0, digest()));
    scene.say(others[2], read_reply(1, 0, digest()));
    let seen = scene.drain();
    assert!(seen.done.is_empty() && seen.frames.is_empty(), "f refusals settle nothing");
    scene.say(designated, read_reply(1, 0, ReplyBody::Full(texts(&["5"]))));
    assert_eq!(scene.drain().done, [(ticket, Ok(texts(&["5"])))]);
    assert_eq!((scene.core.fast_reads(), scene.core.unconfirmed_bytes()), (1, 0));
}

/// After these answers of replicas other than the designated one, and perhaps its own, the read is ordered.
fn ordered_after(others: [Option<&str>; 3], designated_says: Option<ReplyBody>) -> bool {
    let mut scene = Scene::pbft();
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    scene.drain();
    let designated = scene.group.designated(CLIENT, 1);
    let rest = (0..4).map(ReplicaId).filter(|replica| *replica != designated);
    for (replica, says) in rest.zip(others) {
        let message = match says {
            Some(result) => read_reply(1, 0, ReplyBody::Digest(Reply::results_digest(&texts(&[result])))),
            None => refusal(1, true, RefusalReason::NotReady),
        };
        scene.say(replica.0, message);
    }
    if let Some(body) = designated_says {
        scene.say(designated.0, read_reply(1, 0, body));
    }
    let seen = scene.drain();
    assert!(seen.done.is_empty());
    !seen.frames.is_empty()
}

#[test]
fn a_read_is_ordered_as_soon_as_it_is_hopeless() {
    let all = [Some("5"), Some("5"), Some("5")];
    assert!(!ordered_after(all, None), "the result may be on its way");
    assert!(ordered_after(all, Some(ReplyBody::Full(texts(&["6"])))), "it will not come any more");
    assert!(ordered_after(all, Some(ReplyBody::Full(texts(&["5", "5"])))));
    assert!(!ordered_after([Some("5"), Some("5"), Some("6")], None));
    assert!(ordered_after([Some("5"), Some("6"), Some("7")], None));
    assert!(ordered_after([Some("5"), None, None], None));
    assert!(ordered_after([Some("5"), Some("6"), None], None));
}

#[test]
fn a_read_needs_2f_plus_1_connections() {
    let mut scene = Scene::pbft();
    scene.core.on_connection(scene.now, ReplicaId(2), false);
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (3, 0));
    scene.core.on_connection(scene.now, ReplicaId(3), false);
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    let seen = scene.drain();
    assert_eq!((seen.reads.len(), seen.frames.len()), (0, 2));
}

#[test]
fn the_result_of_a_read_is_to_come_from_one_that_is_there_and_owes_nothing() {
    let mut scene = Scene::pbft();
    scene.core.on_connection(scene.now, ReplicaId(2), false);
    for _ in 0..8 {
        scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    }
    let numbers: Vec<u64> = scene.drain().reads.iter().map(|(_, read)| read.number).collect();
    assert!(numbers.iter().all(|number| scene.group.designated(CLIENT, *number) != ReplicaId(2)));

    let mut scene = Scene::pbft();
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    scene.drain();
    let silent = scene.group.designated(CLIENT, 1);
    let digest = || ReplyBody::Digest(Reply::results_digest(&texts(&["5"])));
    for replica in (0..4).map(ReplicaId).filter(|replica| *replica != silent) {
        scene.say(replica.0, read_reply(1, 0, digest()));
    }
    assert!(scene.drain().done.is_empty());
    scene.wait(crate::Timing::DEFAULT.read_wait);
    assert!(!scene.drain().frames.is_empty(), "it is ordered");
    for _ in 0..8 {
        scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    }
    let numbers: Vec<u64> = scene.drain().reads.iter().map(|(_, read)| read.number).collect();
    assert!(
        numbers.len() == 32 && numbers.iter().all(|number| scene.group.designated(CLIENT, *number) != silent)
    );
}
