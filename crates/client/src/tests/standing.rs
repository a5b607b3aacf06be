//! What a client tells of its replicas, and of where the time of a submission went.

use super::{CLIENT, Scene, digest, full, read_reply, refusal, reply, texts};
use crate::{Course, Output, Standing, Way};
use bytes::Bytes;
use troth_types::{RefusalReason, ReplicaId, Reply, ReplyBody, Seq, ToClient, View};

fn standing(scene: &Scene, replica: u16) -> Standing {
    scene.core.standing(ReplicaId(replica))
}

fn courses(scene: &mut Scene) -> Vec<Course> {
    let mut courses = Vec::new();
    while let Some(output) = scene.core.poll() {
        if let Output::Done { course, .. } = output {
            courses.push(course);
        }
    }
    courses
}

#[test]
fn who_answers_otherwise_is_told_from_who_answers_alike_before_the_outcome_and_after_it() {
    let mut scene = Scene::new(3);
    for number in 1..=2 {
        scene.submit(&["get"]);
        scene.drain();
        // First before the outcome, then behind it.
        let liar_first = number == 1;
        if liar_first {
            scene.say(2, digest(number, &["lie"]));
        }
        scene.say(0, full(number, &["5"]));
        scene.say(1, full(number, &["5"]));
        if !liar_first {
            scene.say(2, digest(number, &["lie"]));
            // It is judged once.
            scene.say(2, digest(number, &["5"]));
        }
    }
    let good = Standing { connected: true, matching: 2, ..Standing::default() };
    assert_eq!([standing(&scene, 0), standing(&scene, 1)], [good, good]);
    assert_eq!(standing(&scene, 2), Standing { connected: true, mismatching: 2, ..Standing::default() });

    scene.submit(&["get"]);
    scene.drain();
    scene.say(0, full(3, &["5"]));
    scene.say(1, full(3, &["5"]));
    assert_eq!(standing(&scene, 2).behind, 1);
    scene.say(2, full(3, &["5"]));
    let late = standing(&scene, 2);
    assert_eq!((late.behind, late.matching, late.mismatching), (0, 1, 2), "late and right");

    scene.say(2, refusal(4, false, RefusalReason::NotReady));
    assert_eq!(standing(&scene, 2).refused, 1);
    scene.core.on_connection(scene.now, ReplicaId(2), false);
    assert!(!standing(&scene, 2).connected);
}

#[test]
fn what_was_not_final_is_no_lie() {
    let mut scene = Scene::pbft();
    scene.submit(&["get"]);
    scene.drain();
    let other = Reply {
        client: CLIENT,
        number: 1,
        seq: Seq(9),
        view: View(4),
        events_up_to: 0,
        body: ReplyBody::Digest(Reply::results_digest(&texts(&["5"]))),
    };
    scene.say(3, ToClient::Tentative(other.clone()));
    scene.say(0, full(1, &["5"]));
    scene.say(1, full(1, &["5"]));
    assert_eq!(standing(&scene, 3).mismatching, 0);
    scene.say(2, ToClient::Tentative(other));
    assert_eq!(standing(&scene, 2).mismatching, 0);
    scene.say(2, reply(1, 3, ReplyBody::Digest(Reply::results_digest(&texts(&["5"])))));
    assert_eq!(standing(&scene, 2).mismatching, 1, "said of its final place it is");
}

#[test]
fn a_course_says_where_the_time_went_and_who_was_late() {
    let mut scene = Scene::new(3);
    scene.core.name_late_after(1_000);
    scene.submit(&["get"]);
    scene.wait(100);
    scene.drain();
    scene.wait(700);
    scene.say(0, full(1, &["5"]));
    scene.wait(300);
    scene.say(2, full(1, &["5"]));
    let late = vec![ReplicaId(1)];
    let expected = Course { way: Way::Ordered, tried: 0, queued: 100, first: 700, matching: 300, late };
    assert_eq!(courses(&mut scene), [expected]);

    scene.submit(&["get"]);
    scene.drain();
    scene.wait(999);
    scene.say(0, full(2, &["5"]));
    scene.say(2, full(2, &["5"]));
    let quick = courses(&mut scene);
    assert_eq!((quick[0].total(), quick[0].late.len()), (999, 0), "nobody asks who was late for that");
}

#[test]
fn a_read_is_fast_or_falls_back_because_of_somebody() {
    let mut scene = Scene::new(3);
    let wait = crate::Timing::DEFAULT.read_wait;
    let body = |scene: &Scene, number, from: u16| {
        if scene.group.designated(CLIENT, number) == ReplicaId(from) {
            ReplyBody::Full(texts(&["5"]))
        } else {
            ReplyBody::Digest(Reply::results_digest(&texts(&["5"])))
        }
    };
    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    scene.drain();
    scene.wait(40);
    for replica in 0..3 {
        let body = body(&scene, 1, replica);
        scene.say(replica, read_reply(1, 0, body));
    }
    let fast = Course { way: Way::Fast, first: 40, ..Course::default() };
    assert_eq!(courses(&mut scene), [fast]);

    scene.core.read(scene.now, Bytes::from_static(b"get")).unwrap();
    scene.drain();
    for replica in 0..2 {
        let body = body(&scene, 2, replica);
        scene.say(replica, read_reply(2, 0, body));
    }
    scene.wait(wait);
    scene.drain();
    scene.wait(30);
    scene.say(0, full(1, &["5"]));
    scene.say(1, full(1, &["5"]));
    let fell = Course { way: Way::FellBack, tried: wait, first: 30, ..Course::default() };
    assert_eq!(courses(&mut scene), [fell]);
    assert_eq!((scene.core.fast_reads(), scene.core.fallen_back()), (1, 1));
    let unanswered: Vec<u64> = (0..3).map(|one| standing(&scene, one).unanswered_reads).collect();
    assert_eq!(unanswered, [0, 0, 1]);
}

#[test]
fn who_gives_another_number_of_results_answers_otherwise_and_is_judged_once() {
    let mut scene = Scene::new(3);
    for (number, lie) in [(1, &["5", "6"][..]), (2, &[])] {
        scene.submit(&["get"]);
        scene.drain();
        scene.say(2, full(number, lie));
        // What it says besides makes it no better.
        scene.say(2, digest(number, &["5"]));
        scene.say(2, full(number, lie));
        scene.say(0, full(number, &["5"]));
        scene.say(1, full(number, &["5"]));
        let expected = Standing { connected: true, mismatching: number, ..Standing::default() };
        assert_eq!(standing(&scene, 2), expected);
    }
    assert_eq!((standing(&scene, 0).matching, standing(&scene, 0).mismatching), (2, 0));
}
