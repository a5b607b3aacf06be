//! What brings a replica further, and what only costs it time.

use super::craft::Bench;
use super::harness::{Net, SMALL, batch, covers, frame, r, signature};
use super::stable::order_many;
use super::view_change::kind;
use crate::message::{Accept, Body, Message, PrePrepare, Status, Vote, WantViewChange};
use crate::{A2mPbftEa, Timer};
use std::sync::Arc;
use troth_auth::Seal;
use troth_core::Agreement;
use troth_types::{Digest, Seq, View};

fn progress(net: &Net) -> Option<u128> {
    Agreement::progress(&net.node(1).replica)
}

/// Whether this message brought replica 1 further.
fn brings(net: &mut Net, from: u16, message: Message) -> bool {
    let before = progress(net).expect("it works in its view");
    net.tell(from, 1, message);
    before != progress(net).expect("it works in its view")
}

#[test]
fn each_vote_brings_something_once() {
    covers!("A2MPBFTEA-R17");
    let (mut net, mut bench) = (Net::new(1), Bench::new(1));
    let batch = batch(&[&frame(1, 1)]);
    let vote = Vote { view: View(0), seq: Seq(1), digest: batch.digest() };
    let far = Vote { seq: Seq(10 * SMALL.window), ..vote };
    for (from, body, news) in [
        (0, Body::PrePrepare(PrePrepare { view: View(0), seq: Seq(1), batch }), true),
        (2, Body::Prepare(vote), true),
        (0, Body::Commit(vote), true),
        (2, Body::Commit(vote), true),
        (2, Body::Prepare(far), false),
        (2, Body::Commit(Vote { view: View(3), ..vote }), false),
    ] {
        let message = Message::Attested(bench.say(from, body));
        assert_eq!(brings(&mut net, from, message.clone()), news, "{message:?}");
        assert!(!brings(&mut net, from, message), "a second time");
    }
}

/// Who passes on what others have attested before it comes by itself has them charged for whatever is checked of it again.
#[test]
fn votes_that_are_here_are_passed_over() {
    covers!("A2MPBFTEA-R18");
    let (mut net, mut bench) = (Net::new(1), Bench::new(1));
    let vote = |digest| Vote { view: View(0), seq: Seq(1), digest };
    let worth = |net: &Net, message: &Message| net.node(1).replica.is_worth_checking(message);
    let said = [Body::Prepare(vote(Digest([1; 32]))), Body::Commit(vote(Digest([1; 32])))];
    for message in said.map(|body| Message::Attested(bench.say(2, body))) {
        assert!(worth(&net, &message));
        net.tell(0, 1, message.clone());
        assert!(!worth(&net, &message), "{message:?} is here");
    }
    let other = Message::Attested(bench.say(0, Body::Commit(vote(Digest([1; 32])))));
    assert!(worth(&net, &other), "another's");
}

#[test]
fn votes_that_come_too_late_are_no_repetitions_until_they_are() {
    covers!("A2MPBFTEA-R17");
    let mut net = Net::new(1);
    for number in 1..=SMALL.interval {
        net.request(&frame(number, 1), 0..3);
        net.run_where(|flight| flight.from != r(2));
    }
    assert_eq!(net.node(1).replica.stable.0, Seq(SMALL.interval));
    let said: Vec<Message> = net.node(2).own.clone();
    let of = |which| said.iter().filter(move |message| kind(message) == which).cloned();
    let votes: Vec<Message> = of("PREPARE").chain(of("COMMIT")).chain(of("CHECKPOINT")).collect();
    assert!(votes.len() > 2 * 3, "{votes:?}");
    for vote in &votes {
        assert!(brings(&mut net, 2, vote.clone()), "{vote:?}");
    }
    for vote in votes {
        assert!(!brings(&mut net, 2, vote.clone()), "{vote:?}");
    }
}

#[test]
fn questions_and_what_nobody_asked_for_bring_nothing() {
    covers!("A2MPBFTEA-R17");
    let mut net = Net::new(1);
    order_many(&mut net, 1);
    let status = Status {
        view: View(0),
        active: true,
        stable: Seq(0),
        executed: Seq(0),
        slots: Vec::new(),
        changes: 0,
        accepts: 0,
        lacks: None,
        wishes: false,
    };
    let start = Accept { view: View(900), new_view: Digest([1; 32]) };
    let mut bench = Bench::new(1);
    for message in [
        Message::Status(status),
        Message::FetchHistory(Seq(1)),
        Message::FetchProposals(View(0), vec![Seq(1)]),
        Message::History(Seq(1), vec![Digest([1; 32]); 40]),
        Message::History(Seq(2), vec![Digest([1; 32]); 40]),
        Message::Stable(Arc::default()),
        Message::Attested(bench.say(2, Body::Accept(start))),
        Message::Attested(bench.checkpoint(2, 100 * SMALL.interval, 1, 1)),
    ] {
        for _ in 0..2 {
            assert!(!brings(&mut net, 2, message.clone()), "{message:?}");
        }
    }
}

#[test]
fn one_want_of_each_brings_something_in_each_view() {
    covers!("A2MPBFTEA-R17");
    let mut net = Net::new(1);
    for (to, news) in [(1, true), (2, false), (3, false), (3, false), (900, false)] {
        let body = Body::Want(WantViewChange { to: View(to), nonce: [to as u8; 32] });
        let digest = A2mPbftEa::digest(&body, net.group.id(), r(2));
        let message = A2mPbftEa::seal(body, digest, r(2), Seal::Signature(signature(r(2))));
        assert_eq!(brings(&mut net, 2, message), news, "to view {to}");
    }
    net.request(&frame(1, 1), [1]);
    net.fire(1, Timer::Request);
    let own = net.node(1).replica.wanted_view;
    assert_eq!((own, progress(&net).is_some()), (View(1), true), "alone it works on");
    let body = Body::Want(WantViewChange { to: View(1), nonce: [9; 32] });
    let digest = A2mPbftEa::digest(&body, net.group.id(), r(0));
    let message = A2mPbftEa::seal(body, digest, r(0), Seal::Signature(signature(r(0))));
    net.tell(0, 1, message);
    assert_eq!(progress(&net), None, "while it changes views it holds on to what it will need");
}
