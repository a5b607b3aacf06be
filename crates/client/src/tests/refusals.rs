use super::{Scene, digest, full, refusal, texts};
use crate::ClientError;
use troth_types::RefusalReason::{NotReady, TooLarge, TooOld, Unauthorised, WindowFull};

#[test]
fn f_plus_one_replicas_with_one_reason_end_a_frame() {
    for (reason, error) in [
        (TooLarge, ClientError::TooLarge),
        (Unauthorised, ClientError::Unauthorised),
        (TooOld, ClientError::TooOld),
    ] {
        let mut scene = Scene::new(5);
        let ticket = scene.submit(&["a"]);
        scene.drain();
        for replica in [0, 0, 0, 1] {
            scene.say(replica, refusal(1, false, reason));
        }
        scene.say(2, refusal(1, false, WindowFull));
        assert!(scene.drain().done.is_empty(), "two replicas may both be faulty");
        scene.say(3, refusal(1, false, reason));
        assert_eq!(scene.drain().done, [(ticket, Err(error))]);
    }
}

#[test]
fn a_session_that_was_overtaken_goes_on_with_numbers_by_the_clock() {
    let mut scene = Scene::new(3);
    scene.wait(5_000_000);
    scene.submit(&["a"]);
    scene.drain();
    for replica in [0, 1] {
        scene.say(replica, refusal(1, false, TooOld));
    }
    assert!(matches!(scene.drain().done[..], [(_, Err(ClientError::TooOld))]));
    scene.submit(&["b"]);
    scene.drain();
    let number = scene.core.next_number - 1;
    assert!(number >= 5_000_000, "another session that began within this time is behind: {number}");
    for replica in [0, 1] {
        scene.say(replica, full(number, &["B"]));
    }
    assert_eq!(scene.drain().done[0].1, Ok(texts(&["B"])));
    // One faulty replica moves nothing.
    scene.submit(&["c"]);
    scene.say(2, refusal(number + 1, false, TooOld));
    scene.drain();
    assert_eq!(scene.core.next_number, number + 2);
}

#[test]
fn refusals_that_pass_end_nothing() {
    for reason in [WindowFull, NotReady] {
        let mut scene = Scene::new(3);
        scene.submit(&["a"]);
        scene.drain();
        for replica in 0..3 {
            scene.say(replica, refusal(1, false, reason));
        }
        assert!(scene.drain().done.is_empty());
        scene.say(0, full(1, &["A"]));
        scene.say(1, full(1, &["A"]));
        assert_eq!(scene.drain().done[0].1, Ok(texts(&["A"])));
    }
}

#[test]
fn a_refused_frame_gives_its_slot_back() {
    let mut scene = Scene::with(3, |config| config.limits.client_window = 1);
    scene.submit(&["a"]);
    scene.drain();
    scene.submit(&["b"]);
    scene.say(0, refusal(1, false, TooLarge));
    scene.say(1, refusal(1, false, TooLarge));
    assert_eq!(scene.drain().numbers(), [2]);
}

#[test]
fn executed_frames_are_not_refused_but_their_results_may_be_forgotten() {
    let mut scene = Scene::new(3);
    let ticket = scene.submit(&["a"]);
    scene.drain();
    scene.say(0, digest(1, &["A"]));
    scene.say(1, digest(1, &["A"]));
    scene.say(0, refusal(1, false, Unauthorised));
    scene.say(2, refusal(1, false, Unauthorised));
    assert!(scene.drain().done.is_empty());
    scene.say(0, refusal(1, false, TooOld));
    scene.say(1, refusal(1, false, TooOld));
    assert_eq!(scene.drain().done, [(ticket, Err(ClientError::TooOld))]);
}
