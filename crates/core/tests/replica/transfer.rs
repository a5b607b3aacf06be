//! A state from others: one source at a time, each in its turn, and not without a pause when all are in vain.

use crate::proving::{One, Step};
use crate::stubs::{DIGEST, Installer, SEQ, Silence, Wanting};
use bytes::Bytes;
use troth_auth::Verified;
use troth_core::{Env, Input, Machine as _, MachineStart, Output, PeerMessage, Replica, ReplicaTimer, To};
use troth_types::{Group, GroupId, ReplicaId, Seq, StatePiece, Time};

type Fetcher = Replica<Wanting, Installer>;
type Outputs = Vec<Output<Fetcher>>;

const ME: ReplicaId = ReplicaId(0);
const NOBODY: [u16; 0] = [];

struct Wait {
    replica: Fetcher,
    now: Time,
    /// When the transfer's timer is due.
    due: Option<Time>,
}

impl Wait {
    /// A replica of a group of five that has asked the first of these.
    fn of(sources: &[u16]) -> (Self, Vec<u16>) {
        let sources = sources.iter().copied().map(ReplicaId).collect();
        let agreement = Wanting { sources, newer: 0, installed: Vec::new() };
        let group = Group::hybrid(GroupId([1; 16]), 5).unwrap();
        let replica = Replica::new(ME, group, agreement, Installer::default());
        let mut wait = Self { replica, now: Time(1_000_000), due: None };
        let mut out = Vec::new();
        wait.replica.start(wait.env(), MachineStart::Fresh, &mut out).unwrap();
        let asked = wait.asked(out);
        (wait, asked)
    }

    fn env(&self) -> Env {
        Env { now: self.now, wall: self.now }
    }

    /// Whom the replica asks now.
    fn asked(&mut self, out: Outputs) -> Vec<u16> {
        let mut asked = Vec::new();
        for output in out {
            match output {
                Output::Peer { to: To::One(to), message: PeerMessage::FetchState(fetch) } => {
                    assert_eq!((fetch.seq, fetch.digest), (SEQ, DIGEST));
                    asked.push(to.0);
                }
                Output::SetTimer { timer: ReplicaTimer::Transfer, at } => self.due = Some(at),
                Output::CancelTimer(ReplicaTimer::Transfer) => self.due = None,
                _ => {}
            }
        }
        asked
    }

    fn piece(&mut self, from: u16, content: &'static str) -> Vec<u16> {
        let piece =
            StatePiece { seq: SEQ, digest: DIGEST, path: Bytes::new(), content: Bytes::from(content) };
        let mut out = Vec::new();
        self.replica.input(self.env(), Input::StatePiece(ReplicaId(from), piece), &mut out);
        self.asked(out)
    }

    /// A newer state is wanted.
    fn newer(&mut self) -> Vec<u16> {
        let message = Verified::made_here(Silence);
        let mut out = Vec::new();
        self.replica.input(self.env(), Input::Message(ReplicaId(1), message), &mut out);
        self.asked(out)
    }

    fn timer(&mut self) -> Vec<u16> {
        self.now = self.due.take().expect("it waits");
        let mut out = Vec::new();
        self.replica.input(self.env(), Input::Timer(ReplicaTimer::Transfer), &mut out);
        self.asked(out)
    }

    fn installed(&self) -> &[Seq] {
        &self.replica.agreement().installed
    }
}

#[test]
fn one_whose_piece_does_not_verify_loses_its_turn_at_once() {
    let (mut wait, asked) = Wait::of(&[1, 2]);
    assert_eq!(asked, [1]);
    assert_eq!(wait.piece(1, "rubbish"), [2]);
    assert_eq!(wait.piece(1, "head"), NOBODY, "its turn is over");
    assert_eq!(wait.piece(2, "head"), [2]);
    assert_eq!(wait.piece(2, "tail"), NOBODY);
    assert_eq!((wait.installed(), wait.due), (&[SEQ][..], None));
}

#[test]
fn one_that_says_nothing_loses_its_turn_with_time() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    assert_eq!(wait.timer(), [2]);
    assert_eq!(wait.timer(), [1]);
}

#[test]
fn one_that_says_nothing_has_no_more_time_for_a_newer_state() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    let due = wait.due.expect("it waits");
    let mut asked = Vec::new();
    while wait.now < due {
        wait.now = wait.now.after(5_000).min(due);
        asked = wait.newer();
        if wait.due.is_some_and(|at| at <= wait.now) {
            asked = wait.timer();
        }
    }
    assert_eq!((wait.now, asked), (due, vec![2]), "others become stable faster than it would lose its turn");
}

#[test]
fn whoever_is_named_first_nobody_has_a_second_turn_before_everybody_had_one() {
    let (mut wait, mut asked) = Wait::of(&[1, 2, 3, 4]);
    // Nobody answers, and after each turn a newer state has its first two sources in another order.
    let mut turns = Vec::new();
    for _ in 0..8 {
        turns.extend(asked);
        asked = wait.timer();
        wait.newer();
    }
    assert_eq!(turns, [1, 2, 3, 4, 1, 2, 3, 4], "who was asked longest ago comes first");
}

#[test]
fn when_every_source_was_in_vain_nobody_is_asked_before_time_has_passed() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    for round in 0..3 {
        assert_eq!(wait.piece(1, "rubbish"), [2], "round {round}");
        assert_eq!(wait.piece(2, "rubbish"), NOBODY, "round {round}");
        // What comes late was asked of nobody whose turn it is, and does not shorten the rest.
        assert_eq!(wait.piece(1, "rubbish"), NOBODY, "round {round}");
        assert_eq!(wait.piece(2, "rubbish"), NOBODY, "round {round}");
        assert!(wait.due.is_some_and(|due| due > wait.now), "round {round}");
        assert_eq!(wait.timer(), [1], "round {round}");
    }
    assert_eq!(wait.piece(1, "head"), [1]);
    assert_eq!(wait.piece(1, "tail"), NOBODY);
    assert_eq!(wait.installed(), [SEQ]);
}

#[test]
fn an_only_source_is_asked_again_after_a_rest() {
    let (mut wait, _) = Wait::of(&[1]);
    assert_eq!(wait.piece(1, "rubbish"), NOBODY);
    assert_eq!(wait.timer(), [1]);
}

#[test]
fn a_good_piece_or_time_begins_the_count_of_those_in_vain_anew() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    assert_eq!(wait.piece(1, "rubbish"), [2]);
    assert_eq!(wait.piece(2, "head"), [2]);
    assert_eq!(wait.piece(2, "rubbish"), [1], "one in vain since the good one");
    assert_eq!(wait.timer(), [2]);
    assert_eq!(wait.piece(2, "rubbish"), [1], "one in vain since then");
}

#[test]
fn one_that_sends_a_little_now_and_then_has_its_turn_once() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    let began = wait.now;
    let mut asked = wait.piece(1, "head");
    while asked == [1] {
        wait.now = wait.now.after(399_000);
        assert!(wait.now.0 < began.0 + 10_000_000, "for ever");
        asked = wait.piece(1, "head");
    }
    assert_eq!(asked, [2]);
    assert_eq!(wait.piece(1, "head"), NOBODY, "its turn is over");
    assert_eq!(wait.piece(2, "head"), [2]);
}

#[test]
fn who_answers_later_than_a_turn_takes_is_waited_for_in_the_end() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    let patience = |wait: &Wait| wait.due.expect("it waits").0 - wait.now.0;
    let silent = patience(&wait);
    let mut waits = Vec::new();
    for _ in 0..20 {
        waits.push(patience(&wait) / silent);
        wait.timer();
    }
    assert_eq!(waits, [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32, 64, 64, 64, 64, 64, 64, 64, 64]);
    wait.piece(1, "head");
    wait.timer();
    assert_eq!(patience(&wait), silent, "somebody answers");
}

#[test]
fn one_that_has_answered_may_take_its_time() {
    let (mut wait, _) = Wait::of(&[1, 2]);
    let patience = |wait: &Wait| wait.due.expect("it waits").0 - wait.now.0;
    let silent = patience(&wait);
    assert_eq!(wait.piece(1, "head"), [1]);
    assert_eq!(patience(&wait), 8 * silent);
    assert_eq!(wait.timer(), [2]);
    assert_eq!(patience(&wait), silent, "the next one has not");
}

#[test]
fn what_ordinary_messages_overtake_is_given_up_with_all_that_it_holds() {
    let mut one = One::new();
    one.step(Step::Fetch(3));
    let timer = ReplicaTimer::Transfer;
    for (number, abandoned) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        let out = one.outputs(Input::Timer(ReplicaTimer::Protocol(Step::Execute(number))));
        let cancelled = out.iter().any(|output| matches!(output, Output::CancelTimer(it) if *it == timer));
        assert_eq!((one.0.execution().abandoned, cancelled), (abandoned, number == 3), "after {number}");
    }
}
