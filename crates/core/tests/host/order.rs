//! The order of commands.

use crate::scribe::{Ask, COUNTER, ENV, Home, names};
use troth_core::{Command, Halt, LogRecord, PeerMessage, To};
use troth_trusted::{CounterValue, Refusal};
use troth_trusted_host::{Answer, Call};
use troth_types::{ReplicaId, Wire};

fn record(command: &Command<crate::scribe::Scribe>) -> Option<LogRecord> {
    match command {
        Command::Append(bytes) => Some(LogRecord::from_wire(bytes).expect("a record")),
        _ => None,
    }
}

#[test]
fn bodies_are_durable_then_messages_leave_then_the_component_is_asked() {
    let mut home = Home::new(true);
    home.ask(Ask::Everything);
    home.ask(Ask::Answer);
    home.ask(Ask::Certify(1));
    let done = home.run();
    let expected = [
        "append",
        "append",
        "append",
        "append",
        "sync",
        "send",
        "answer",
        "attest",
        "certified",
        "certified",
        "certified",
    ];
    assert_eq!(names(&done), expected);
    assert!(matches!(record(&done[0]), Some(LogRecord::Machine(_))), "records first");
    for (at, value) in [(1, 1), (2, 2), (3, 3)] {
        let Some(LogRecord::Own { counter, previous, new, .. }) = record(&done[at]) else { panic!("a body") };
        assert_eq!((counter, previous, new), (COUNTER, CounterValue(value - 1), CounterValue(value)));
    }
    let Command::Attest(Call::Attest { previous, new, .. }) = &done[7] else { panic!("a question") };
    assert_eq!((*previous, *new), (CounterValue(0), CounterValue(3)), "one question for all of them");
    assert_eq!(home.scribe().own.iter().map(|said| said.value().0).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(home.sent[1..], home.scribe().own, "what left is what came back");
}

#[test]
fn the_certificate_is_logged_before_the_next_question() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(2));
    home.run();
    assert!(home.host().command().is_none(), "nothing waits for the certificate's record");
    home.ask(Ask::Certify(1));
    let done = home.run();
    assert_eq!(names(&done), ["append", "append", "sync", "attest", "certified"]);
    assert!(matches!(record(&done[0]), Some(LogRecord::Certified(_))));
    assert!(matches!(record(&done[1]), Some(LogRecord::Own { new: CounterValue(3), .. })));
}

#[test]
fn a_record_is_durable_before_anything_later_leaves() {
    let mut home = Home::new(true);
    home.ask(Ask::Persist);
    assert!(home.host().command().is_none(), "a record alone waits for what depends on it");
    home.ask(Ask::Send);
    assert_eq!(names(&home.run()), ["append", "sync", "send"]);
    home.ask(Ask::Persist);
    home.ask(Ask::Answer);
    assert_eq!(names(&home.run()), ["append", "sync", "answer"]);
    home.ask(Ask::Send);
    assert_eq!(names(&home.run()), ["send"], "no sync where nothing was written");
}

#[test]
fn what_is_only_remembered_waits_for_the_next_sync() {
    let mut home = Home::new(true);
    home.ask(Ask::Remember);
    home.ask(Ask::Send);
    assert_eq!(names(&home.run()), ["send"]);
    home.ask(Ask::Persist);
    home.ask(Ask::Send);
    let done = home.run();
    assert_eq!(names(&done), ["append", "append", "sync", "send"]);
    home.again().expect("its log is whole");
    assert_eq!(home.scribe().records.len(), 2, "in order, both");
    assert!(home.scribe().records.is_sorted());
}

#[test]
fn nothing_is_written_where_nothing_is_kept() {
    let mut home = Home::new(false);
    home.ask(Ask::Everything);
    home.ask(Ask::Remember);
    home.ask(Ask::Compact);
    assert_eq!(names(&home.run()), ["send", "attest", "certified", "certified"]);
}

#[test]
fn timers_and_notes_wait_for_nothing() {
    let mut home = Home::new(true);
    home.ask(Ask::Send);
    home.ask(Ask::Small);
    assert_eq!(names(&home.run()), ["timer", "cancel", "note", "send"]);
}

#[test]
fn a_signed_message_comes_back_and_leaves_after_the_sync() {
    let mut home = Home::new(true);
    home.ask(Ask::Persist);
    home.ask(Ask::Sign);
    assert_eq!(home.scribe().signed.len(), 1);
    let done = home.run();
    assert_eq!(names(&done), ["append", "sync", "send"]);
    let Command::Peer { to, message: PeerMessage::Protocol(said) } = &done[2] else { panic!("a message") };
    assert_eq!((*to, said), (To::One(ReplicaId(0)), &home.scribe().signed[0]));
    assert!(said.signature.is_some());
}

#[test]
fn what_is_signed_for_all_comes_back_only_after_the_sync() {
    let mut home = Home::new(true);
    home.ask(Ask::Persist);
    home.ask(Ask::SignForAll);
    let done = home.run();
    assert_eq!(names(&done), ["append", "sync", "send", "return"]);
    assert!(home.scribe().signed.is_empty(), "what it rests on was not durable");
    let Command::Peer { to, message: PeerMessage::Protocol(sent) } = &done[2] else { panic!("a message") };
    let Command::Return(own) = done[3].clone() else { panic!("the own copy") };
    assert_eq!((*to, sent), (To::Others, &own));
    assert!(own.signature.is_some());
    home.host().returned(ENV, own.clone());
    assert_eq!(home.scribe().signed, [own]);
}

#[test]
fn a_jump_stands_alone() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(2));
    home.ask(Ask::Jump);
    home.ask(Ask::Certify(2));
    let done = home.run();
    let questions: Vec<(u128, u128)> = done
        .iter()
        .filter_map(|command| match command {
            Command::Attest(Call::Attest { previous, new, .. }) => Some((previous.0, new.0)),
            _ => None,
        })
        .collect();
    let view = CounterValue::new(1, 0).0;
    assert_eq!(questions, [(0, 2), (2, view), (view, view + 2)]);
    assert_eq!(home.sent.len(), 5);
    for pair in home.sent.windows(2) {
        assert_eq!(pair[1].ui.as_ref().map(troth_auth::Ui::predecessor), Some(pair[0].value()));
    }
}

#[test]
fn a_run_has_at_most_256_messages() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(600));
    let done = home.run();
    let sizes: Vec<u128> = done
        .iter()
        .filter_map(|command| match command {
            Command::Attest(Call::Attest { previous, new, .. }) => Some(new.0 - previous.0),
            _ => None,
        })
        .collect();
    assert_eq!(sizes, [256, 256, 88]);
    assert_eq!(home.scribe().own.len(), 600);
}

#[test]
fn one_question_at_a_time() {
    let mut home = Home::new(true);
    home.ask(Ask::Certify(1));
    let call = home.run_until_asked();
    home.ask(Ask::Certify(1));
    home.ask(Ask::Persist);
    home.ask(Ask::Send);
    assert_eq!(names(&home.run()), ["append", "sync", "send"], "others go on while the component thinks");
    let answer = home.attest(call);
    home.host().attested(ENV, answer);
    assert_eq!(names(&home.run()), ["certified", "append", "append", "sync", "attest", "certified"]);
}

#[test]
fn a_refusal_halts() {
    let refusals = [
        Refusal::Halted,
        Refusal::Elsewhere { counter: COUNTER, current: CounterValue(9) },
        Refusal::NotAhead { counter: COUNTER, current: CounterValue(9) },
    ];
    for refusal in refusals {
        let mut home = Home::new(true);
        home.ask(Ask::Certify(2));
        home.run_until_asked();
        home.host().attested(ENV, Answer::Refused(refusal));
        assert_eq!(home.host().command(), Some(Command::Halt(Halt::Counters(refusal))));
        assert!(home.scribe().own.is_empty(), "nothing was certified");
    }
    // An answer to another question is no certificate either.
    let mut home = Home::new(true);
    home.ask(Ask::Certify(1));
    home.run_until_asked();
    home.host().attested(ENV, Answer::Value(CounterValue(1)));
    assert_eq!(home.host().command(), Some(Command::Halt(Halt::Counters(Refusal::Halted))));
    assert!(home.host().command().is_none());
}

#[test]
fn a_component_that_stands_elsewhere_refuses_and_the_host_halts() {
    let mut home = Home::new(true);
    home.attest(Call::Attest {
        counter: COUNTER,
        previous: CounterValue(0),
        new: CounterValue(1),
        digest: [1; 32],
    });
    home.ask(Ask::Certify(1));
    let call = home.run_until_asked();
    let answer = home.attest(call);
    home.host().attested(ENV, answer);
    let refusal = Refusal::Elsewhere { counter: COUNTER, current: CounterValue(1) };
    assert_eq!(home.host().command(), Some(Command::Halt(Halt::Counters(refusal))));
}
