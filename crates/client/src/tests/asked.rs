//! Whom a client asks to answer, and to whom it sends what.

use super::*;
use crate::Timing;
use crate::asked::Reliance;

impl Scene {
    /// A client that knows how long answers take, which is no time.
    fn known(mut self) -> Self {
        self.submit(&["a"]);
        self.wishes();
        self.say_all(1);
        self.drain();
        self
    }

    /// A client that sends small frames to the primary alone, and knows that it is replica 1 (view 4 of three). Its next
    /// frame is the ninth.
    fn alone() -> Self {
        Self::alone_of(3)
    }

    /// The same with so many replicas: of five replica 4 is the primary.
    fn alone_of(replicas: u16) -> Self {
        let mut scene = Self::with(replicas, |config| config.primary_shows = true);
        for number in 1..=8 {
            let wishes = scene.sends();
            assert_eq!(wishes.len(), usize::from(replicas), "until it knows how long that takes");
            scene.wait(1_000);
            scene.say_asked(number, &wishes);
        }
        scene
    }

    /// Everybody who was asked answers.
    fn say_asked(&mut self, number: u64, wishes: &[(u16, Wish)]) {
        let asked = wishes.iter().filter(|(_, wish)| *wish == Usual);
        asked.for_each(|(replica, _)| self.say(*replica, full(number, &["A"])));
        self.drain();
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
    assert_eq!(scene.sends(), [(0, Usual), (1, Usual), (2, Usual)], "nobody knows how long that takes");
    scene.say_all(1);
    scene.drain();
    assert_eq!(scene.sends(), [(0, Usual), (1, Usual), (2, Nothing)]);
    assert_eq!(scene.sends(), [(0, Nothing), (1, Usual), (2, Usual)]);
    assert_eq!(scene.sends(), [(0, Usual), (1, Nothing), (2, Usual)]);
    let asked = |mut scene: Scene| scene.sends().iter().filter(|(_, wish)| *wish == Usual).count();
    assert_eq!(asked(Scene::new(5).known()), 3);
    assert_eq!(asked(Scene::pbft().known()), 3, "a quorum may be tentative");
}

/// The second frame is for 0 and 1 to answer.
#[test]
fn the_others_are_asked_when_somebody_is_late_or_differs_or_refuses_or_is_gone() {
    let soon = Timing::DEFAULT.full_wait / 4;
    let rest = [(2, Usual)];
    let scene = || {
        let mut scene = Scene::new(3).known();
        scene.sends();
        scene
    };
    let mut late = scene();
    late.wait(soon - 1);
    assert!(late.wishes().is_empty());
    late.wait(1);
    assert_eq!(late.wishes(), rest);

    let mut differs = scene();
    differs.say(0, full(2, &["A"]));
    assert!(differs.wishes().is_empty(), "the other one may say the same");
    differs.say(1, full(2, &["B"]));
    assert_eq!(differs.wishes(), rest);

    let mut refuses = scene();
    refuses.say(1, refusal(2, false, RefusalReason::NotReady));
    refuses.say(0, full(2, &["A"]));
    assert_eq!(refuses.wishes(), rest);

    let mut gone = scene();
    gone.core.on_connection(gone.now, ReplicaId(1), false);
    assert_eq!(gone.wishes(), rest);
}

#[test]
fn who_let_others_be_asked_is_not_relied_on_until_it_has_answered_for_a_while() {
    let mut scene = Scene::new(3).known();
    let mut number = 1;
    for owes in [16, 32, 64] {
        // 1 says nothing in its turn.
        let wishes = loop {
            number += 1;
            let wishes = scene.sends();
            if wishes[1].1 == Usual && wishes.contains(&(2, Nothing)) {
                break wishes;
            }
            scene.say_asked(number, &wishes);
        };
        assert_eq!(wishes[0].1, Usual);
        let due = scene.core.next_wake().unwrap();
        scene.wait(due.0 - scene.now.0);
        assert_eq!(scene.wishes(), [(2, Usual)]);
        scene.say(0, full(number, &["A"]));
        scene.say(2, full(number, &["A"]));
        scene.drain();
        // What it says of frames that nobody sent, or says twice, pays nothing.
        for junk in [number, number, number + 1_000, 0] {
            scene.say(1, full(junk, &["B"]));
        }
        let mut answered = 0;
        loop {
            number += 1;
            let wishes = scene.sends();
            scene.say_asked(number, &wishes);
            if wishes.iter().any(|(_, wish)| *wish == Nothing) {
                break;
            }
            answered += 1;
        }
        // Good answers in between make the next debt a little less.
        assert!((owes - 4..=owes).contains(&answered), "{answered} of {owes}");
    }
}

#[test]
fn a_silence_counts_for_all_that_was_under_way_and_once_for_the_next() {
    let mut reliance = Reliance::default();
    let owes = |reliance: &mut Reliance, silences: u32| {
        (0..silences).for_each(|_| reliance.failed());
        let mut owed = 0;
        while !reliance.is_good() {
            reliance.answered();
            owed += 1;
        }
        owed
    };
    assert_eq!(owes(&mut reliance, 1), 16);
    assert_eq!(owes(&mut reliance, 32), 32 + 31 * 16, "a whole window");
    assert_eq!(owes(&mut reliance, 1), 64);
    assert_eq!(owes(&mut reliance, 1000), 4096, "and no more");
}

#[test]
fn the_others_are_asked_soon_after_the_first_answer_however_long_answers_took_before() {
    let mut scene = Scene::new(3).known();
    for number in 2..=9 {
        let wishes = scene.sends();
        scene.wait(100);
        scene.wait(60_000);
        scene.wishes();
        scene.say_all(number);
        scene.say_asked(number, &wishes);
    }
    let number = (10..200).find(|number| {
        let wishes = scene.sends();
        let rest: Vec<u16> = wishes.iter().filter(|(_, wish)| *wish == Nothing).map(|(to, _)| *to).collect();
        if rest.is_empty() {
            scene.wait(60_000);
            scene.say_asked(*number, &wishes);
            return false;
        }
        let first = wishes.iter().find(|(_, wish)| *wish == Usual).expect("two are asked").0;
        scene.wait(1_000);
        assert!(scene.wishes().is_empty());
        scene.say(first, full(*number, &["A"]));
        scene.wait(Timing::DEFAULT.full_wait / 4);
        assert_eq!(scene.wishes(), [(rest[0], Usual)]);
        true
    });
    assert!(number.is_some(), "all answer well in the end");
}

#[test]
fn who_answers_late_on_purpose_costs_no_more_than_as_long_again() {
    let mut scene = Scene::new(3);
    let (mut worst, mut owed) = (0, 0);
    for number in 1..=2_000 {
        let wishes = scene.sends();
        owed += u32::from(wishes.iter().all(|(_, wish)| *wish == Usual));
        let sent = scene.now;
        scene.wait(1_000);
        let asked = |one: u16, wishes: &[(u16, Wish)]| wishes.contains(&(one, Usual));
        for honest in [0, 2] {
            if asked(honest, &wishes) {
                scene.say(honest, full(number, &["A"]));
            }
        }
        // 1 waits for nearly as long as it may.
        while scene.drain().done.is_empty() {
            let due = scene.core.next_wake().unwrap();
            scene.wait((due.0 - scene.now.0).saturating_sub(1));
            if owed == 0 {
                scene.say(1, full(number, &["A"]));
                continue;
            }
            scene.wait(1);
            for (to, wish) in scene.wishes() {
                assert_eq!(wish, Usual);
                scene.say(to, full(number, &["A"]));
            }
        }
        worst = worst.max(scene.now.0 - sent.0);
    }
    let most = 1_000 + Timing::DEFAULT.full_wait / 4;
    assert!(worst <= most, "{worst}, and no more than {most}");
}

#[test]
fn who_answers_what_it_need_not_is_asked_for_everything() {
    // A release before this takes the wish for no message, and has the frame of others.
    let mut scene = Scene::new(3).known();
    let mut silent = Vec::new();
    for number in 2..=13 {
        let wishes = scene.sends();
        let unasked: Vec<u16> =
            wishes.iter().filter(|(_, wish)| *wish == Nothing).map(|(to, _)| *to).collect();
        unasked.iter().for_each(|replica| scene.say(*replica, full(number, &["A"])));
        scene.say_asked(number, &wishes);
        silent.push(unasked.len());
    }
    assert_eq!(silent.iter().filter(|silent| **silent > 0).count(), 10, "{silent:?}");
    assert_eq!(silent[10..], [0; 2], "who has shown it three times lets nobody be done without");
}

#[test]
fn small_frames_go_to_the_primary_alone_and_large_ones_and_some_to_all() {
    let mut scene = Scene::alone();
    assert_eq!(scene.sends(), [(1, Alone)]);
    scene.say_all(9);
    scene.drain();
    scene.submit(&["x".repeat(2000).as_str()]);
    let large = scene.wishes();
    assert_eq!(large.len(), 3);
    scene.say_asked(10, &large);
    for number in 11..=17 {
        let wishes = scene.sends();
        assert_eq!(wishes.len(), if number == 16 { 3 } else { 1 }, "{number}");
        if number == 16 {
            scene.say_asked(number, &wishes)
        } else {
            scene.say_all(number)
        }
        scene.drain();
    }
}

#[test]
fn what_the_primary_is_late_with_goes_to_all_and_so_does_what_follows_for_a_while() {
    let mut scene = Scene::alone();
    let mut number = 8;
    // A machine is late now and then.
    for _ in 0..3 {
        number += 1;
        assert_eq!(scene.sends(), [(1, Alone)]);
        let due = scene.core.next_wake().unwrap();
        assert!(due.0 - scene.now.0 <= 5_000, "soon, whatever came before");
        scene.wait(due.0 - scene.now.0);
        assert_eq!(scene.wishes(), [(0, Usual), (2, Usual)]);
        scene.say_all(number);
        scene.drain();
    }
    let end = scene.now.after(1_000_000);
    while scene.now < end {
        number += 1;
        let wishes = scene.sends();
        assert_eq!(wishes.len(), 3, "for a second");
        scene.wait(3_000);
        scene.say_asked(number, &wishes);
    }
    assert_eq!(scene.sends(), [(1, Alone)]);
}

#[test]
fn a_primary_that_lets_wait_what_nobody_else_sees_is_not_sent_it_any_more() {
    let mut scene = Scene::alone();
    // It lets each wait for nearly as long as it may.
    let (began, mut alone) = (scene.now, 0);
    for number in 9..=400 {
        let goes_alone = scene.sends().len() == 1;
        let due = scene.core.next_wake().unwrap();
        alone += u64::from(goes_alone);
        scene.wait(if goes_alone { due.0 - scene.now.0 - 1 } else { 1_000 });
        scene.say_all(number);
        scene.drain();
    }
    assert!((1..=10).contains(&alone), "{alone}: after eight that took too long nothing does");
    assert!(scene.now.0 - began.0 < 450_000, "which are nothing beside all of them");
}

#[test]
fn nothing_goes_alone_where_somebody_whose_turn_it_is_does_not_answer() {
    let mut scene = Scene::alone();
    scene.core.on_connection(scene.now, ReplicaId(0), false);
    // Of 9 it is 1's turn, and 2's; of 10 2's and 0's.
    assert_eq!(scene.sends(), [(1, Alone)]);
    assert_eq!(scene.sends().len(), 2);
}

#[test]
fn a_primary_that_shows_nothing_gains_nothing_by_the_word_of_a_backup() {
    // Of a lie the client learns that nobody had shown the frame; of what was to be expected, that it took too long.
    for (word, most) in [("B", 3), ("A", 10)] {
        let mut scene = Scene::alone_of(5);
        let mut alone = 0;
        for number in 9..=60 {
            let wishes = scene.sends();
            if wishes.len() > 1 {
                scene.wait(1_000);
                scene.say_asked(number, &wishes);
                continue;
            }
            assert_eq!(wishes, [(4, Alone)]);
            alone += 1;
            // It is not its turn: with five of them three answer, from number + 7 on.
            let other = (0..4).map(|step| ((number + 10 + step) % 5) as u16).find(|one| *one != 4);
            scene.say(other.expect("two are not asked"), full(number, &[word]));
            let due = scene.core.next_wake().unwrap();
            scene.wait(due.0 - scene.now.0);
            assert!(!scene.wishes().is_empty(), "the others are asked");
            let honest: Vec<u16> = (0..5).filter(|one| Some(*one) != other).collect();
            honest.iter().for_each(|one| scene.say(*one, full(number, &["A"])));
            scene.drain();
        }
        assert!((1..=most).contains(&alone), "{word}: {alone}");
    }
}

#[test]
fn only_those_that_were_asked_set_the_pace() {
    let mut scene = Scene::new(5).known();
    let slow = |scene: &mut Scene, number: u64| {
        let wishes = scene.sends();
        scene.wait(100);
        scene.wait(60_000);
        scene.wishes();
        scene.say_all(number);
        scene.say_asked(number, &wishes);
    };
    (2..=9).for_each(|number| slow(&mut scene, number));
    let number = (10..300).find(|number| {
        let wishes = scene.sends();
        let of = |wish| wishes.iter().find(|(_, one)| *one == wish).map(|(to, _)| *to);
        let (Some(other), Some(asked)) = (of(Nothing), of(Usual)) else {
            scene.wait(60_000);
            scene.say_asked(*number, &wishes);
            return false;
        };
        let before = scene.core.next_wake();
        scene.wait(10);
        scene.say(other, full(*number, &["B"]));
        assert_eq!(scene.core.next_wake(), before, "nobody waited for that one");
        scene.say(asked, full(*number, &["A"]));
        assert!(scene.core.next_wake() < before);
        true
    });
    assert!(number.is_some(), "all answer well in the end");
}

/// Of 10 it is 2's turn, and 0's, and 1 is the primary.
#[test]
fn the_others_are_asked_when_the_primary_that_was_to_show_a_frame_is_gone_or_refuses() {
    let scene = || {
        let mut scene = Scene::alone();
        scene.sends();
        scene.say_all(9);
        scene.drain();
        assert_eq!(scene.sends(), [(1, Alone)]);
        scene
    };
    let rest = [(0, Usual), (2, Usual)];
    let mut gone = scene();
    gone.core.on_connection(gone.now, ReplicaId(1), false);
    assert_eq!(gone.wishes(), rest);
    let mut refuses = scene();
    refuses.say(1, refusal(10, false, RefusalReason::WindowFull));
    assert_eq!(refuses.wishes(), rest);
}

#[test]
fn a_backup_that_answers_nothing_in_its_turn_is_not_relied_on_though_the_primary_answered() {
    let mut scene = Scene::alone();
    // Of 9 it is 1's turn, the primary's, and 2's, which says nothing.
    assert_eq!(scene.sends(), [(1, Alone)]);
    scene.say(1, full(9, &["A"]));
    let due = scene.core.next_wake().unwrap();
    scene.wait(due.0 - scene.now.0);
    scene.wishes();
    scene.say(0, full(9, &["A"]));
    scene.drain();
    // Of 10 it is 2's turn.
    assert_eq!(scene.sends().len(), 3, "it is not waited for again");
}
