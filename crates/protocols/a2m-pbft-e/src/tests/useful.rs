//! What histories bring a replica further, and what they only cost; of all else PBFT's rule tells.

use super::checkpoint::with_a_transfer;
use super::harness::{Net, covers, frame};
use crate::{Message, Timer};
use troth_core::Agreement;
use troth_types::{Digest, Seq};

fn progress(net: &Net, replica: u16) -> Option<u128> {
    Agreement::progress(&net.node(replica).replica)
}

/// Whether this message brought a replica further.
fn brings(net: &mut Net, from: u16, to: u16, message: Message) -> bool {
    let before = progress(net, to).expect("it works in its view");
    net.tell(from, to, message);
    before != progress(net, to).expect("it works in its view")
}

#[test]
fn questions_and_what_nobody_asked_for_bring_nothing() {
    covers!("A2MPBFTE-R5");
    let mut net = Net::new();
    let before = progress(&net, 1);
    net.order(&frame(1, 1));
    assert!(before.is_some() && progress(&net, 1) > before, "votes do");
    let invented = vec![Digest([1; 32]); 40];
    for message in [
        Message::FetchHistory(Seq(1)),
        Message::History(Seq(1), invented.clone()),
        Message::History(Seq(2), invented),
    ] {
        for _ in 0..2 {
            assert!(!brings(&mut net, 2, 1, message.clone()), "{message:?}");
        }
    }
}

#[test]
fn one_answer_to_each_question_brings_something_and_so_does_what_is_true() {
    covers!("A2MPBFTE-R5");
    let mut net = with_a_transfer();
    net.fire(3, Timer::Status);
    let asked = |message: &Message| matches!(message, Message::FetchHistory(Seq(1)));
    let whom = net.wire.iter().find(|flight| asked(&flight.message)).expect("it asks").to.0;
    net.wire.clear();
    let invented = Message::History(Seq(1), vec![Digest([1; 32]); 13]);
    assert!(!brings(&mut net, (whom + 1) % 3, 3, invented.clone()), "it was not asked");
    assert!(brings(&mut net, whom, 3, invented.clone()), "nobody can tell yet");
    assert!(!brings(&mut net, whom, 3, invented), "once");
    let truth = Message::History(Seq(1), net.node(1).replica.history().values_from(Seq(1)));
    assert!(brings(&mut net, (whom + 1) % 3, 3, truth.clone()));
    assert!(!brings(&mut net, (whom + 1) % 3, 3, truth));
}
