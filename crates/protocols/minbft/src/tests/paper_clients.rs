//! MINBFT-N13, N14 and P5: what clients send to whom, and whom they want an answer of.

use super::harness::{Kind, SMALL, World, covers, r};
use crate::Config;
use std::sync::Arc;
use troth_core::{Input, Request};
use troth_types::{ClientId, Frame, ToClient, Wish};

const MS: u64 = 1_000;

impl World {
    fn wish_for(&mut self, to: u16, frame: &Arc<Frame>, wish: Wish) {
        let frame = self.frames.verify(frame.clone()).expect("clients sign well");
        self.input(r(to), Input::Requests(vec![Request { frame, wish }]));
        self.run();
    }

    /// The numbers of the frames that a replica has answered.
    fn answered(&self, replica: u16) -> Vec<u64> {
        let replies = self.node(replica).answers.iter().filter_map(|answer| match answer {
            ToClient::Reply(reply) => Some(reply.number),
            _ => None,
        });
        replies.collect()
    }

    fn sent_kind(&self, kind: Kind) -> Vec<(u16, u16)> {
        self.sent
            .iter()
            .filter(|flight| flight.kind() == kind)
            .map(|flight| (flight.from.0, flight.to.0))
            .collect()
    }
}

// MINBFT-N13 "A replica answers a frame whose client wished for no answer when it is sent it again with another wish."
#[test]
fn who_is_not_asked_does_not_answer_until_it_is() {
    covers!("MINBFT-N13");
    let mut world = World::all(3, SMALL);
    let frame = world.frame(1, 1, "op");
    world.wish_for(1, &frame, Wish::Nothing);
    for to in [2, 0] {
        world.wish_for(to, &frame, Wish::Usual);
    }
    assert_eq!((world.answered(0), world.answered(1), world.answered(2)), (vec![1], vec![], vec![1]));
    assert_eq!(world.journal(1), ["op"], "it is executed all the same");
    world.wish_for(1, &frame, Wish::Nothing);
    assert!(world.answered(1).is_empty(), "nor where it is executed already");
    world.wish_for(1, &frame, Wish::Usual);
    assert_eq!(world.answered(1), [1]);
    // A wish that is taken back in time.
    let next = world.frame(1, 2, "next");
    world.wish_for(1, &next, Wish::Nothing);
    world.wish_for(1, &next, Wish::Usual);
    world.request(&[0, 2], &next);
    assert_eq!(world.answered(1), [1, 2]);
}

// MINBFT-N14 "A primary shows the frames that it alone was sent to all others with the PREPARE that names them …"
#[test]
fn what_the_primary_alone_was_sent_it_shows_to_all() {
    covers!("MINBFT-N14");
    for n in [3, 5] {
        let mut world = World::all(n, SMALL);
        for number in 1..=3 {
            let frame = world.frame(1, number, &format!("op{number}"));
            world.wish_for(0, &frame, Wish::Alone);
        }
        for replica in 0..n {
            assert_eq!(world.journal(replica), ["op1", "op2", "op3"]);
            // "… and of those that were not sent it f+1 answer whose turn it is."
            let turn = |number: &u64| {
                world.group.turns(ClientId(1), *number).take(world.group.weak()).any(|one| one == r(replica))
            };
            let expected: Vec<u64> = (1..=3).filter(|number| replica == 0 || turn(number)).collect();
            assert_eq!(world.answered(replica), expected, "{replica} of {n}");
        }
        assert!(world.sent_kind(Kind::FetchFrames).is_empty(), "nobody has to ask");
        assert_eq!(world.sent_kind(Kind::Frames).len(), 3 * usize::from(n - 1), "once to each");
    }
}

// "… a backup passes on to the primary what it alone was sent …"
#[test]
fn who_is_taken_for_the_primary_passes_on_what_it_was_sent() {
    covers!("MINBFT-N14");
    let mut world = World::all(3, SMALL);
    let frame = world.frame(1, 1, "op");
    world.wish_for(2, &frame, Wish::Alone);
    assert!((0..3).all(|replica| world.journal(replica) == ["op"]), "at once");
    assert!(world.sent_kind(Kind::FetchFrames).is_empty());
}

// A client that shows the primary another frame than the others, and one whose earlier frame a replica has yet to execute.
#[test]
fn what_the_primary_shows_has_room_beside_what_waits() {
    covers!("MINBFT-N14");
    let mut world = World::with(3, SMALL, &[2]);
    let (one, other, third) =
        (world.frame(1, 1, "one"), world.frame(1, 1, "other"), world.frame(1, 1, "third"));
    world.request(&[2], &one);
    world.show(0, 2, &[&other]);
    world.show(0, 2, &[&third]);
    let window = SMALL.limits.client_window;
    let later = world.frame(1, 1 + window, "later");
    assert!(world.minbft(2).frames.get(&third.digest()).is_none(), "one, and no more");
    world.show(1, 2, &[&later]);
    let prepare = world.prepare(0, 1, &[&other]);
    world.say(2, &prepare);
    assert_eq!(world.journal(2), ["other"], "nobody has to be asked for it");
    assert!(world.sent_kind(Kind::FetchFrames).is_empty());
}

// "… frames of more than 4 KiB are asked for by who lacks them."
#[test]
fn what_is_large_is_not_shown_unasked() {
    covers!("MINBFT-N14");
    let mut world = World::all(3, SMALL);
    let frame = world.frame(1, 1, &"x".repeat(5_000));
    world.wish_for(0, &frame, Wish::Alone);
    assert!(world.sent_kind(Kind::Frames).is_empty());
    world.pass(1_000 * MS);
    assert!((0..3).all(|replica| world.executed(replica) == 1));
}

/// Of sixteen frames fifteen come from the primary with their PREPAREs, and one from its client, which waits so long.
fn mostly_alone(wait: u64, then_sent: bool) -> u64 {
    const CONFIG: Config = Config { interval: 1 << 15, window: 1 << 16, ..Config::DEFAULT };
    let mut world = World::with(3, CONFIG, &[2]);
    let end = world.now + 20_000 * MS;
    let mut number = 0;
    while world.now < end && world.wanted(2) == 0 {
        number += 1;
        let frame = world.frame(1, number, "op");
        let compared = number.is_multiple_of(16);
        if !compared || then_sent {
            world.show(0, 2, &[&frame]);
        }
        if compared {
            world.request(&[2], &frame);
            world.pass(wait);
        }
        let prepare = world.prepare(0, number, &[&frame]);
        world.say(2, &prepare);
        world.pass(MS);
        let commit = world.commit(1, &prepare);
        world.say(2, &commit);
    }
    world.wanted(2)
}

// MINBFT-P5 "What the primary itself showed counts for no wait, unless its client sends it, from then on."
#[test]
fn what_a_primary_shows_does_not_speak_for_it() {
    covers!("MINBFT-P5");
    for then_sent in [false, true] {
        assert_eq!(mostly_alone(90 * MS, then_sent), 1, "as slow as it is with what others see");
        assert_eq!(mostly_alone(MS, then_sent), 0);
    }
}
