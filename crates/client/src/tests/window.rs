use super::{Scene, digest, full, texts};
use crate::{ClientError, SubmitError};
use bytes::Bytes;
use troth_auth::{Check, ModelScheme, ModelSigner, SignatureScheme, Signer};

#[test]
fn what_is_ready_at_once_is_one_frame_and_each_ticket_gets_its_own_results() {
    let mut scene = Scene::new(3);
    let first = scene.submit(&["a"]);
    let second = scene.submit(&["b", "c"]);
    let third = scene.submit(&["d"]);
    let seen = scene.drain();
    assert_eq!(seen.frames.len(), 3, "one frame to three replicas");
    assert_eq!(seen.frames[0].1.draft().operations, texts(&["a", "b", "c", "d"]));
    scene.say(0, full(1, &["A", "B", "C", "D"]));
    scene.say(1, digest(1, &["A", "B", "C", "D"]));
    let done = scene.drain().done;
    let expected = [(first, &["A"][..]), (second, &["B", "C"]), (third, &["D"])];
    assert_eq!(done, expected.map(|(ticket, results)| (ticket, Ok(texts(results)))));
}

#[test]
fn what_asks_for_a_frame_of_its_own_shares_it_with_nothing() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    scene.submit(&["b"]);
    for _ in 0..2 {
        scene.core.submit_apart(scene.now, texts(&["c", "d"])).unwrap();
    }
    scene.submit(&["e"]);
    scene.submit(&["f"]);
    let frames = scene.drain().frames;
    let to_first = frames.iter().filter(|(to, ..)| to.0 == 0);
    let sent: Vec<_> = to_first.map(|(_, frame, _)| frame.draft().operations.clone()).collect();
    let expected = [&["a", "b"][..], &["c", "d"], &["c", "d"], &["e", "f"]];
    assert_eq!(sent, expected.map(texts));
}

#[test]
fn frames_are_signed_and_name_client_and_group() {
    let mut scene = Scene::new(3);
    scene.submit(&["a"]);
    let frame = scene.drain().frames[0].1.clone();
    let signer = ModelSigner::new(1);
    let mut scheme = ModelScheme::default();
    scheme.register(&signer);
    let check = Check {
        key: signer.public_key(),
        digest: *frame.signing_digest(),
        signature: *frame.signature().expect("signed"),
    };
    assert!(scheme.verify(&check));
    assert_eq!((frame.group(), frame.client()), (scene.group.id(), super::CLIENT));
}

#[test]
fn a_number_is_sent_only_when_the_one_a_window_earlier_completed() {
    let mut scene = Scene::with(3, |config| config.limits.client_window = 4);
    for _ in 0..4 {
        scene.submit(&["a"]);
        scene.drain();
    }
    let waiting: Vec<_> = (0..3).map(|_| scene.submit(&["b"])).collect();
    assert!(scene.drain().frames.is_empty(), "the window is full");
    for number in [2, 3, 4] {
        scene.say(0, full(number, &["A"]));
        scene.say(1, full(number, &["A"]));
    }
    let seen = scene.drain();
    assert_eq!(seen.done.len(), 3);
    assert!(seen.frames.is_empty(), "number 5 would overtake number 1 in its slot");
    scene.say(0, full(1, &["A"]));
    scene.say(1, full(1, &["A"]));
    let seen = scene.drain();
    assert_eq!(seen.numbers(), [5], "what waited goes together");
    assert_eq!(seen.frames[0].1.operations().len(), waiting.len());
}

#[test]
fn frames_keep_the_limits_and_submissions_stay_whole() {
    let mut scene = Scene::with(3, |config| {
        config.limits.frame_operations = 3;
        config.limits.frame_bytes = 200;
    });
    scene.submit(&["a", "b"]);
    scene.submit(&["c", "d"]);
    let long = "x".repeat(60);
    scene.submit(&[&long]);
    scene.submit(&[&long]);
    let seen = scene.drain();
    assert_eq!(seen.numbers(), [1, 2, 3, 4]);
    assert!(seen.frames.iter().all(|(_, frame, _)| frame.size() <= 200 && frame.operations().len() <= 3));
}

#[test]
fn what_can_never_be_sent_is_refused_at_once() {
    let mut scene = Scene::with(3, |config| {
        config.limits.frame_operations = 3;
        config.limits.frame_bytes = 200;
        config.bounds.queue_operations = 4;
        config.limits.client_window = 1;
    });
    let now = scene.now;
    assert_eq!(scene.core.submit(now, Vec::new()), Err(SubmitError::Empty));
    assert_eq!(scene.core.submit(now, texts(&["a", "b", "c", "d"])), Err(SubmitError::TooLarge));
    let long = Bytes::from(vec![0; 69]);
    assert_eq!(scene.core.submit(now, vec![long.clone()]), Err(SubmitError::TooLarge));
    assert_eq!(scene.core.read(now, long), Err(SubmitError::TooLarge));
    assert!(scene.core.submit(now, vec![Bytes::from(vec![0; 68])]).is_ok(), "just fits");
    scene.drain();
    scene.submit(&["a", "b", "c"]);
    assert_eq!(scene.core.submit(now, texts(&["d", "e"])), Err(SubmitError::Busy));
    scene.submit(&["d"]);
}

#[test]
fn a_frame_that_nobody_waits_for_keeps_its_slot_until_replicas_answer() {
    let mut scene = Scene::with(3, |config| config.limits.client_window = 1);
    let lost = scene.submit(&["a"]);
    scene.drain();
    scene.wait(crate::Timing::DEFAULT.deadline);
    assert_eq!(scene.drain().done, [(lost, Err(ClientError::TimedOut))]);
    let next = scene.submit(&["b"]);
    assert!(scene.drain().frames.is_empty(), "number 2 would overtake number 1");
    let pause = crate::Timing::DEFAULT.resend_longest;
    for _ in 0..3 {
        scene.wait(pause);
        assert_eq!(scene.drain().numbers(), [1], "number 1 is still asked for, at the longest pause");
    }
    // Digests suffice here: that it was executed is all the client wants to know.
    scene.say(0, digest(1, &["A"]));
    scene.say(1, digest(1, &["A"]));
    let seen = scene.drain();
    assert!(seen.done.is_empty(), "its ticket has ended");
    assert_eq!(seen.numbers(), [2]);
    scene.say(0, full(2, &["B"]));
    scene.say(1, full(2, &["B"]));
    assert_eq!(scene.drain().done, [(next, Ok(texts(&["B"])))]);
}
