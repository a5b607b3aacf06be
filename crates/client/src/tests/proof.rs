//! Authenticators: what is sent first, and what again.

use super::*;
use crate::Timing;
use troth_auth::{Authenticators, PairKey};

#[test]
fn what_is_sent_again_is_signed_and_so_is_what_follows_for_a_while() {
    let keys = Authenticators::new((0..4).map(|replica| PairKey::new(&[replica; 32])));
    let mut scene = Scene::with(3, |config| config.authenticators = Some(keys.clone()));
    scene.submit(&["one"]);
    let first = scene.drain().frames;
    assert_eq!(first.len(), 3);
    for (to, frame, _) in &first {
        let right = keys.of(frame.signing_digest());
        assert_eq!(frame.tag_for(*to), Some(&right[usize::from(to.0)]));
    }
    scene.wait(Timing::DEFAULT.resend_first + 1);
    let again = scene.drain().frames;
    assert_eq!(again.len(), 3);
    assert!(again.iter().all(|(_, frame, _)| frame.is_signed()));
    assert_eq!(again[0].1.signing_digest(), first[0].1.signing_digest(), "the same otherwise");
    for from in 0..2 {
        scene.say(from, full(1, &["1"]));
    }
    assert_eq!(scene.drain().done.len(), 1, "which of the two was executed is all the same");
    scene.submit(&["two"]);
    assert!(scene.drain().frames.iter().all(|(_, frame, _)| frame.is_signed()));
    for from in 0..2 {
        scene.say(from, full(2, &["2"]));
    }
    scene.wait(1_000_000);
    scene.drain();
    scene.submit(&["three"]);
    let later = scene.drain().frames;
    assert!(!later.is_empty() && later.iter().all(|(_, frame, _)| !frame.is_signed()));
}

/// Submits, and has it answered at once; tells whether it was signed.
fn signed(scene: &mut Scene, number: &mut u64) -> bool {
    scene.submit(&["prompt"]);
    *number += 1;
    let sent = scene.drain().frames;
    answer(scene, *number);
    sent.iter().all(|(_, frame, _)| frame.is_signed())
}

fn answer(scene: &mut Scene, number: u64) {
    for from in 0..2 {
        scene.say(from, full(number, &["1"]));
    }
    assert_eq!(scene.drain().done.len(), 1);
}

/// Two frames without signature, which are answered when they have been sent again.
fn late(scene: &mut Scene, number: &mut u64) {
    for _ in 0..2 {
        scene.submit(&["late"]);
        assert!(scene.drain().frames.iter().all(|(_, frame, _)| !frame.is_signed()), "it tries");
    }
    scene.wait(10 * Timing::DEFAULT.resend_first);
    let again = scene.drain().frames;
    assert!(again.len() == 6 && again.iter().all(|(_, frame, _)| frame.is_signed()));
    for _ in 0..2 {
        *number += 1;
        answer(scene, *number);
    }
}

#[test]
fn a_client_signs_for_longer_the_oftener_it_has_to() {
    let keys = Authenticators::new((0..4).map(|replica| PairKey::new(&[replica; 32])));
    let mut scene = Scene::with(3, |config| config.authenticators = Some(keys.clone()));
    let mut number = 0;
    for seconds in [1, 2, 4, 8, 16, 16, 16] {
        late(&mut scene, &mut number);
        scene.wait(seconds * 1_000_000 - 1);
        assert!(signed(&mut scene, &mut number), "for {seconds} s");
        scene.wait(1);
        assert!(!signed(&mut scene, &mut number), "and no longer than {seconds} s");
    }
    // It went well for long.
    scene.wait(8 * 16_000_000);
    late(&mut scene, &mut number);
    scene.wait(1_000_000);
    assert!(!signed(&mut scene, &mut number), "the first time is short again");
}
