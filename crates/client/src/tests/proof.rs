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
    scene.wait(20_000_000);
    scene.drain();
    scene.submit(&["three"]);
    let later = scene.drain().frames;
    assert!(!later.is_empty() && later.iter().all(|(_, frame, _)| !frame.is_signed()));
}
