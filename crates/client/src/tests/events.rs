use super::{Scene, event, full, reply, texts};
use troth_types::ReplyBody;

fn full_after(number: u64, events_up_to: u64, results: &[&str]) -> troth_types::ToClient {
    reply(number, events_up_to, ReplyBody::Full(texts(results)))
}

#[test]
fn events_need_f_plus_one_equal_copies_and_come_in_order() {
    let mut scene = Scene::new(3);
    for _ in 0..5 {
        scene.say(2, event(1, "lie"));
    }
    scene.say(0, event(2, "b"));
    scene.say(1, event(2, "b"));
    scene.say(0, event(1, "a"));
    assert!(scene.drain().events.is_empty(), "2 is confirmed but 1 is not");
    scene.say(1, event(1, "a"));
    assert_eq!(scene.drain().order, ["e1", "e2"]);
    scene.say(0, event(1, "a"));
    scene.say(1, event(1, "a"));
    assert!(scene.drain().events.is_empty(), "each comes once");
    assert_eq!(scene.core.unconfirmed_bytes(), 0);
}

#[test]
fn a_reply_waits_for_the_events_it_reveals_and_asks_for_them() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    scene.say(0, full_after(1, 2, &["A"]));
    scene.say(1, full_after(1, 2, &["A"]));
    scene.say(0, event(1, "one"));
    scene.say(1, event(1, "one"));
    assert_eq!(scene.drain().order, ["e1"]);
    scene.wait(crate::Timing::DEFAULT.full_wait);
    let asked = scene.drain();
    assert_eq!(asked.frames.len(), 3, "replicas repeat their outboxes when asked in full");
    assert!(asked.frames.iter().all(|(_, _, full)| *full));
    scene.say(2, event(2, "two"));
    scene.say(0, event(2, "two"));
    assert_eq!(scene.drain().order, ["e2", "d0"]);
}

#[test]
fn while_events_come_the_next_are_asked_for_soon() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    for replica in [0, 1] {
        scene.say(replica, full_after(1, 20, &["A"]));
    }
    // Nobody has them for long, so that the pauses grow.
    for _ in 0..4 {
        scene.wait(crate::Timing::DEFAULT.resend_longest);
        scene.drain();
    }
    for index in 1..20 {
        for replica in [0, 1] {
            scene.say(replica, event(index, "part"));
        }
        scene.drain();
        scene.wait(crate::Timing::DEFAULT.full_wait);
        assert!(!scene.drain().frames.is_empty(), "after {index}");
    }
    for replica in [0, 1] {
        scene.say(replica, event(20, "last"));
    }
    assert_eq!(scene.drain().order, ["e20", "d0"]);
}

#[test]
fn frames_acknowledge_what_was_delivered() {
    let mut scene = Scene::new(3);
    for replica in [0, 1] {
        scene.say(replica, event(1, "one"));
    }
    scene.drain();
    scene.submit(&["a"]);
    assert_eq!(scene.drain().frames[0].1.events_seen(), 1);
}

#[test]
fn acknowledgement_can_wait_for_the_application() {
    let mut scene = Scene::with(3, |config| config.hold_acknowledgements = true);
    for index in [1, 2] {
        scene.say(0, event(index, "x"));
        scene.say(1, event(index, "x"));
    }
    scene.drain();
    scene.core.acknowledge_events(1);
    scene.submit(&["a"]);
    assert_eq!(scene.drain().frames[0].1.events_seen(), 1);
    scene.core.acknowledge_events(99);
    scene.submit(&["b"]);
    assert_eq!(scene.drain().frames[0].1.events_seen(), 2, "never more than was delivered");
}

#[test]
fn a_flood_of_events_from_one_replica_stays_bounded_and_harms_nobody() {
    let mut scene = Scene::with(3, |config| {
        config.bounds.event_bytes = 10_000;
        config.limits.outbox_events = 16;
    });
    for index in 1..1_000 {
        scene.say(2, event(index, &"x".repeat(1_000)));
        scene.say(2, event(u64::MAX - index, "far"));
    }
    assert!(scene.core.unconfirmed_bytes() <= 10_000);
    for replica in [1, 0] {
        for index in (1..=8).rev() {
            scene.say(replica, event(index, "true"));
        }
    }
    let seen = scene.drain();
    assert_eq!(seen.events.len(), 8);
    assert!(seen.events.iter().all(|event| event.payload == "true"));
}

#[test]
fn lost_events_are_marked_on_the_word_of_f_plus_one() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    for replica in [0, 1] {
        scene.say(replica, full_after(1, 42, &["A"]));
        scene.say(replica, event(3, "old"));
    }
    scene.say(2, event(1_000, ""));
    assert!(scene.drain().events.is_empty(), "one replica cannot make the client skip");
    // The markers of two correct replicas, one of which has executed more.
    scene.say(0, event(40, ""));
    scene.say(1, event(41, ""));
    for replica in [0, 1] {
        scene.say(replica, event(42, "new"));
    }
    let seen = scene.drain();
    assert_eq!(seen.order, ["e40", "e41", "e42", "d0"]);
    assert!(seen.events[..2].iter().all(|event| event.payload.is_empty()));
}

#[test]
fn copies_that_wait_while_nothing_is_under_way_are_asked_for() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    scene.say(0, full(1, &["A"]));
    scene.say(1, full(1, &["A"]));
    scene.drain();
    scene.say(0, event(1, "one"));
    let first = crate::Timing::DEFAULT.resend_first;
    assert_eq!(scene.core.next_wake(), Some(scene.now.after(first)));
    scene.wait(first);
    assert_eq!(scene.drain().numbers(), [1], "the latest frame again makes replicas repeat events");
    scene.say(2, event(1, "one"));
    assert_eq!(scene.drain().order, ["e1"]);
    assert_eq!(scene.core.next_wake(), None);
}

/// Its outbox is repeated from where its latest frame was made, which may be very much ago, and part by part.
#[test]
fn who_has_ordered_nothing_for_long_asks_on_while_it_is_sent_what_it_had() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    let both = |scene: &mut Scene, index: u64| {
        for replica in [0, 1] {
            scene.say(replica, event(index, "told"));
        }
    };
    scene.say(0, full(1, &["A"]));
    scene.say(1, full(1, &["A"]));
    (1..=4).for_each(|index| both(&mut scene, index));
    assert_eq!(scene.drain().order, ["d0", "e1", "e2", "e3", "e4"]);
    assert_eq!(scene.core.next_wake(), None);
    let pause = |scene: &Scene| scene.core.next_wake().map(|at| at.0 - scene.now.0);
    // 5 and 6 are lost.
    both(&mut scene, 7);
    let first = crate::Timing::DEFAULT.resend_first;
    assert_eq!(pause(&scene), Some(first));
    scene.wait(first);
    assert_eq!(scene.drain().numbers(), [1]);
    assert_eq!(pause(&scene), Some(2 * first), "nothing has come of it yet");
    scene.say(0, event(1, "told"));
    assert_eq!(pause(&scene), Some(2 * first), "one replica alone may say so for ever");
    scene.say(1, event(1, "told"));
    let soon = pause(&scene).expect("it asks on");
    assert!(soon < first / 2, "{soon}");
    both(&mut scene, 2);
    assert_eq!(pause(&scene), Some(soon), "once for a part");
    scene.wait(soon);
    assert_eq!(scene.drain().numbers(), [1], "the next part");
    both(&mut scene, 5);
    assert_eq!(scene.drain().order, ["e5"]);
    let soon = pause(&scene).expect("there is more");
    assert!(soon < first / 2, "{soon}");
    scene.wait(soon);
    assert_eq!(scene.drain().numbers(), [1]);
    both(&mut scene, 6);
    assert_eq!(scene.drain().order, ["e6", "e7"]);
    assert_eq!(scene.core.next_wake(), None);
}

/// A faulty replica says that there is more, and there is nothing.
#[test]
fn events_that_nobody_else_has_are_asked_for_ever_more_seldom() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.drain();
    scene.say(0, full(1, &["A"]));
    scene.say(1, full(1, &["A"]));
    scene.say(2, event(90, "made up"));
    scene.wait(crate::Timing::DEFAULT.resend_first);
    assert_eq!(scene.drain().numbers(), [1], "that is not known yet");
    let mut asked = 0;
    for index in 1..=100 {
        // Events go on to come meanwhile, and are repeated.
        for (replica, index) in [(0, index), (1, index), (0, index), (1, index)] {
            scene.say(replica, event(index, "told"));
        }
        scene.wait(50_000);
        asked += scene.drain().numbers().len();
    }
    assert!(asked <= 25, "{asked} times in five seconds");
}

#[test]
fn a_session_that_does_not_know_where_events_begin_learns_it_from_its_first_outcome() {
    let mut scene = Scene::with(3, |config| {
        config.events_seen = None;
        config.first_number = 1_000_000;
    });
    let now = scene.now;
    for replica in [0, 1] {
        scene.say(replica, event(5, "for the session before"));
        scene.say(replica, event(7, "for this one"));
    }
    scene.submit(&["a"]);
    scene.submit(&["b"]);
    scene.core.read(now, texts(&["r"]).remove(0)).unwrap();
    let seen = scene.drain();
    assert_eq!((seen.numbers(), seen.reads.len()), (vec![1_000_000], 0), "one frame alone");
    assert_eq!(seen.frames[0].1.operations().len(), 1);
    for replica in [0, 1] {
        scene.say(replica, full_after(1_000_000, 6, &["A"]));
    }
    let seen = scene.drain();
    assert_eq!(seen.order, ["e7", "d0"]);
    assert_eq!(seen.frames[0].1.draft().operations, texts(&["b", "r"]), "the rest follows together");
    assert_eq!(seen.frames[0].1.events_seen(), 7, "the earlier session's events may go");
}

#[test]
fn copies_from_before_an_overflow_keep_none_behind_it_out() {
    let mut scene = Scene::with(3, |config| config.limits.outbox_events = 4);
    for replica in [0, 1] {
        // Event 1 never came, so these fill the room and cannot be delivered.
        for index in 2..=5 {
            scene.say(replica, event(index, "old"));
        }
        scene.say(replica, event(20, ""));
        for index in 21..=23 {
            scene.say(replica, event(index, "new"));
        }
    }
    assert_eq!(scene.drain().order, ["e20", "e21", "e22", "e23"]);
}

#[test]
fn another_client_s_events_are_not_delivered() {
    let mut scene = Scene::new(3);
    for replica in 0..3 {
        let payload = bytes::Bytes::from_static(b"for client 8");
        let event = troth_types::Event {
            client: troth_types::ClientId(8),
            index: 1,
            seq: troth_types::Seq(1),
            payload,
        };
        scene.say(replica, troth_types::ToClient::Event(event));
    }
    assert!(scene.drain().events.is_empty());
}
