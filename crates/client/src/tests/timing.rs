use super::{Scene, digest, full};
use crate::{ClientError, SubmitError, Timing};
use troth_types::{ReplicaId, Time};

#[test]
fn frames_are_sent_again_with_growing_pauses_up_to_a_cap() {
    let timing = Timing { resend_first: 100, resend_longest: 350, deadline: 1_000_000, ..Timing::DEFAULT };
    let mut scene = Scene::with(3, |config| config.timing = timing);
    scene.submit(&["a"]);
    scene.drain();
    let mut pauses = Vec::new();
    for _ in 0..5 {
        let wake = scene.core.next_wake().unwrap();
        pauses.push(wake.0 - scene.now.0);
        scene.wait(wake.0 - scene.now.0 - 1);
        assert!(scene.drain().frames.is_empty(), "not before its time");
        scene.wait(1);
        let seen = scene.drain();
        assert_eq!(seen.frames.len(), 3);
        assert!(seen.frames.iter().all(|(_, frame, full)| frame.number() == 1 && *full));
    }
    assert_eq!(pauses, [100, 200, 350, 350, 350]);
}

/// One operation whose answers come so late.
fn answered_after(scene: &mut Scene, number: u64, micros: u64) {
    scene.submit(&["a"]);
    scene.drain();
    scene.wait(micros);
    (0..3).for_each(|replica| scene.say(replica, full(number, &["A"])));
    assert_eq!(scene.drain().done.len(), 1);
}

#[test]
fn a_busy_group_is_given_the_time_that_it_takes() {
    let timing = Timing { resend_first: 100, full_wait: 10, ..Timing::DEFAULT };
    let mut scene = Scene::with(3, |config| config.timing = timing);
    let pause = |scene: &mut Scene| scene.core.pace.resend_after(&timing);
    assert_eq!(pause(&mut scene), 100, "what is configured, where nothing is known");
    (1..=20).for_each(|number| answered_after(&mut scene, number, 90));
    assert_eq!(pause(&mut scene), 100, "and at least that");
    assert_eq!(scene.core.pace.full_after(&timing), 45);

    // Answers come later and later: the first is asked for twice, and tells nothing.
    for number in 21..=23 {
        answered_after(&mut scene, number, 300);
    }
    assert!((301..=1000).contains(&pause(&mut scene)), "{}", pause(&mut scene));
    let before = pause(&mut scene);
    scene.submit(&["a"]);
    scene.drain();
    scene.wait(before - 1);
    assert!(scene.drain().frames.is_empty(), "not asked for again");
    scene.wait(1);
    assert_eq!(scene.drain().frames.len(), 3);
    (0..3).for_each(|replica| scene.say(replica, full(24, &["A"])));
    assert_eq!(scene.drain().done.len(), 1);
    assert!(pause(&mut scene) > before && pause(&mut scene) <= 1000, "longer until one tells, and bounded");

    (25..=80).for_each(|number| answered_after(&mut scene, number, 1));
    assert_eq!(pause(&mut scene), 100);
}

#[test]
fn a_submission_ends_at_its_deadline_and_says_what_is_known() {
    let mut scene = Scene::with(3, |config| config.limits.client_window = 1);
    let sent = scene.submit(&["a"]);
    scene.drain();
    let queued = scene.submit(&["b"]);
    scene.drain();
    scene.wait(Timing::DEFAULT.deadline - 1);
    assert!(scene.drain().done.is_empty());
    scene.wait(1);
    let done = scene.drain().done;
    assert_eq!(done, [(sent, Err(ClientError::TimedOut)), (queued, Err(ClientError::Unsent))]);
    assert!(ClientError::TimedOut.outcome_unknown() && !ClientError::Unsent.outcome_unknown());
    assert_eq!(scene.core.outstanding(), 0);
}

#[test]
fn a_quiet_client_has_nothing_to_wake_for() {
    let mut scene = Scene::new(3);
    assert_eq!(scene.core.next_wake(), None);
    scene.submit(&["a"]);
    scene.drain();
    scene.say(0, full(1, &["A"]));
    scene.say(1, digest(1, &["A"]));
    scene.drain();
    assert_eq!(scene.core.next_wake(), None);
}

#[test]
fn time_never_goes_back() {
    let mut scene = Scene::new(3);
    scene.core.on_timer(Time(5_000));
    scene.core.submit(Time(10), super::texts(&["a"])).unwrap();
    scene.drain();
    assert_eq!(scene.core.next_wake(), Some(Time(5_000).after(Timing::DEFAULT.resend_first)));
}

#[test]
fn without_connections_nothing_is_sent_and_the_group_is_unavailable() {
    let mut scene = Scene::new(3);
    let sent = scene.submit(&["a"]);
    scene.drain();
    for replica in [0, 1] {
        scene.core.on_connection(scene.now, ReplicaId(replica), false);
    }
    let kept = scene.submit(&["b"]);
    assert!(scene.drain().frames.is_empty(), "one replica cannot complete anything");
    scene.wait(Timing::DEFAULT.unavailable_after);
    let unreachable = vec![ReplicaId(0), ReplicaId(1)];
    let error = |sent| ClientError::Unavailable { unreachable: unreachable.clone(), sent };
    assert_eq!(scene.drain().done, [(sent, Err(error(true))), (kept, Err(error(false)))]);
    let refused = scene.core.submit(scene.now, super::texts(&["c"]));
    assert_eq!(refused, Err(SubmitError::Unavailable { unreachable }));
    scene.core.on_connection(scene.now, ReplicaId(1), true);
    let seen = scene.drain();
    assert_eq!(
        seen.frames.iter().map(|(to, frame, full)| (to.0, frame.number(), *full)).collect::<Vec<_>>(),
        [(1, 1, true)]
    );
    scene.submit(&["c"]);
    let to: Vec<_> = scene.drain().frames.iter().map(|(to, frame, _)| (to.0, frame.number())).collect();
    assert_eq!(to, [(1, 2), (2, 2)], "sent to those that are there");
}
