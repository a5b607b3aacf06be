//! Whom a client asks to answer, and to whom it sends what.

use super::*;
use crate::Timing;

impl Scene {
    /// A client that sends small frames to the primary alone, and knows that it is replica 1 (view 4 of three).
    fn alone() -> Self {
        let mut scene = Self::with(3, |config| config.primary_shows = true);
        scene.submit(&["a"]);
        scene.wishes();
        scene.say_all(1);
        scene.drain();
        scene
    }

    /// To whom frames went, and with which wishes.
    fn wishes(&mut self) -> Vec<(u16, Wish)> {
        let mut wishes = Vec::new();
        while let Some(output) = self.core.poll() {
            if let Output::Send { to, message: ToReplica::Request { wish, .. } } = output {
                wishes.push((to.0, wish));
            }
        }
        wishes.sort_by_key(|(to, _)| *to);
        wishes
    }

    fn say_all(&mut self, number: u64) {
        self.group.all().for_each(|replica| self.say(replica.0, full(number, &["A"])));
    }

    /// Submits one operation; to whom it went. The designated replica of number n is n + 7 of so many.
    fn sends(&mut self) -> Vec<(u16, Wish)> {
        self.submit(&["a"]);
        self.wishes()
    }
}

use Wish::{Alone, Nothing, Usual};

#[test]
fn as_many_are_asked_as_must_agree_and_they_take_turns() {
    let mut scene = Scene::new(3);
    assert_eq!(scene.sends(), [(0, Usual), (1, Nothing), (2, Usual)]);
    assert_eq!(scene.sends(), [(0, Usual), (1, Usual), (2, Nothing)]);
    assert_eq!(scene.sends(), [(0, Nothing), (1, Usual), (2, Usual)]);
    let mut five = Scene::new(5);
    assert_eq!(five.sends().iter().filter(|(_, wish)| *wish == Usual).count(), 3);
    let mut pbft = Scene::pbft();
    assert_eq!(
        pbft.sends().iter().filter(|(_, wish)| *wish == Usual).count(),
        3,
        "a quorum may be tentative"
    );
}

#[test]
fn the_others_are_asked_when_somebody_is_late_or_differs_or_refuses_or_is_gone() {
    let soon = Timing::DEFAULT.resend_first / 2;
    let rest = [(1, Usual)];
    let mut late = Scene::new(3);
    late.sends();
    late.wait(soon - 1);
    assert!(late.wishes().is_empty());
    late.wait(1);
    assert_eq!(late.wishes(), rest);

    let mut differs = Scene::new(3);
    differs.sends();
    differs.say(0, full(1, &["A"]));
    assert!(differs.wishes().is_empty(), "the other one may say the same");
    differs.say(2, full(1, &["B"]));
    assert_eq!(differs.wishes(), rest);

    let mut refuses = Scene::new(3);
    refuses.sends();
    refuses.say(2, refusal(1, false, RefusalReason::NotReady));
    refuses.say(0, full(1, &["A"]));
    assert_eq!(refuses.wishes(), rest);

    let mut gone = Scene::new(3);
    gone.sends();
    gone.core.on_connection(gone.now, ReplicaId(2), false);
    assert_eq!(gone.wishes(), rest);
}

#[test]
fn who_let_others_be_asked_is_not_relied_on_until_it_has_answered_for_a_while() {
    let mut scene = Scene::new(3);
    scene.sends();
    scene.wait(Timing::DEFAULT.resend_first / 2);
    assert_eq!(scene.wishes(), [(1, Usual)]);
    // 2 says nothing.
    (0..2).for_each(|replica| scene.say(replica, full(1, &["A"])));
    scene.drain();
    for number in 2..=40 {
        let wishes = scene.sends();
        let asked: Vec<u16> = wishes.iter().filter(|(_, wish)| *wish == Usual).map(|(to, _)| *to).collect();
        assert_eq!(asked.len(), if number < 18 { 3 } else { 2 }, "{number}");
        asked.into_iter().for_each(|replica| scene.say(replica, full(number, &["A"])));
        scene.drain();
    }
}

#[test]
fn who_answers_what_it_need_not_is_asked_for_everything() {
    // A release before this takes the wish for no message, and has the frame of others.
    let mut scene = Scene::new(3);
    let mut silent = Vec::new();
    for number in 1..=12 {
        let unasked = scene.sends().into_iter().filter(|(_, wish)| *wish == Nothing).map(|(to, _)| to);
        let unasked: Vec<u16> = unasked.collect();
        unasked.iter().for_each(|replica| scene.say(*replica, full(number, &["A"])));
        scene.say_all(number);
        scene.drain();
        silent.push(unasked.len());
    }
    assert_eq!(silent[..7], [1; 7]);
    assert_eq!(silent[7..], [0; 5], "one has shown it three times, and so nobody is left to do without");
}

#[test]
fn small_frames_go_to_the_primary_alone_and_large_ones_and_some_to_all() {
    let mut scene = Scene::alone();
    assert_eq!(scene.sends(), [(1, Alone)]);
    scene.say_all(2);
    scene.drain();
    scene.submit(&["x".repeat(2000).as_str()]);
    assert_eq!(scene.wishes().len(), 3);
    for number in 3..=15 {
        scene.say_all(number);
        scene.drain();
        let wishes = scene.sends();
        assert_eq!(wishes.len(), if number == 15 { 3 } else { 1 }, "{number}");
    }
}

#[test]
fn what_the_primary_is_late_with_goes_to_all_and_so_does_what_follows_for_a_while() {
    let mut scene = Scene::alone();
    let mut number = 1;
    // A machine is late now and then.
    for _ in 0..3 {
        number += 1;
        assert_eq!(scene.sends(), [(1, Alone)]);
        let due = scene.core.next_wake().unwrap();
        scene.wait(due.0 - scene.now.0);
        assert_eq!(scene.wishes(), [(0, Usual), (2, Usual)]);
        scene.say_all(number);
        scene.drain();
    }
    number += 1;
    assert_eq!(scene.sends().len(), 3, "for a second");
    scene.say_all(number);
    scene.wait(999_999);
    scene.drain();
    assert_eq!(scene.sends().len(), 3);
    scene.say_all(number + 1);
    scene.wait(1);
    scene.drain();
    assert_eq!(scene.sends(), [(1, Alone)]);
}

#[test]
fn a_primary_that_lets_wait_what_nobody_else_sees_is_not_sent_it_any_more() {
    let mut scene = Scene::alone();
    // It grows slower so slowly that nothing is ever late.
    let mut alone = 0;
    for number in 2..=400 {
        let goes_alone = scene.sends().len() == 1;
        alone = if goes_alone { alone + 1 } else { alone };
        let due = scene.core.next_wake().unwrap();
        let takes = if goes_alone { (due.0 - scene.now.0) * 9 / 10 } else { 1_000 };
        scene.wait(takes);
        scene.say_all(number);
        scene.drain();
    }
    assert!(alone < 200, "{alone} of 400, and a second's pause is long beside what is let through");
}

#[test]
fn nothing_goes_alone_where_somebody_whose_turn_it_is_does_not_answer() {
    let mut scene = Scene::alone();
    scene.core.on_connection(scene.now, ReplicaId(0), false);
    // Of 2 it is 0's turn, and 1's; of 3 1's and 2's.
    assert_eq!(scene.sends().len(), 2);
    assert_eq!(scene.sends(), [(1, Alone)]);
}
