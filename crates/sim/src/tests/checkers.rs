//! Each checker trips on a bad history made by hand: one that nothing trips is not trusted.

use crate::checks::{
    Agreed, Bounded, Checks, ClientState, EqualCheckpoints, EventOrder, ExactlyOnce, Liveness, NoneAccused,
    PrefixOrder, RecoveredPrefix, ReplyIntegrity, StableMonotone, TrustedUniqueness, Validity,
};
use crate::component::{WireWatch, component, indulge};
use crate::minbft::MinBftWorld;
use crate::{Body, Protocol};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{ModelSigner, Signer, Verified};
use troth_core::{Note, Ordered, Outcome};
use troth_kv::{Answer, Change, Operation, Watch};
use troth_trusted::{CounterId, CounterValue};
use troth_trusted_host::{Answer as TrustedAnswer, Call, CertificateVerifier, TrustedComponent};
use troth_types::{
    ClientId, Digest, Event, Frame, FrameDraft, GroupId, ReplicaId, Reply, ReplyBody, Seq, Time, View, Wire,
};

fn frame(client: u64, number: u64, operation: &Operation) -> Verified<Arc<Frame>> {
    let draft = FrameDraft {
        group: GroupId::default(),
        client: ClientId(client),
        number,
        events_seen: 0,
        operations: vec![operation.to_wire()],
    };
    let signature = ModelSigner::new(client).sign(&draft.signing_digest());
    Verified::made_here(Arc::new(draft.sign(signature)))
}

fn put(value: &'static str) -> Operation {
    Operation::Put { key: Bytes::from_static(b"k"), value: Bytes::from_static(value.as_bytes()) }
}

fn batch(seq: u64, frames: Vec<Verified<Arc<Frame>>>) -> Ordered {
    Ordered { seq: Seq(seq), time: Time(seq), seed: Digest::ZERO, frames }
}

fn reply(client: u64, number: u64, seq: u64, events_up_to: u64, result: &Answer) -> Reply {
    let body = ReplyBody::Full(vec![result.to_wire()]);
    Reply { client: ClientId(client), number, seq: Seq(seq), view: View(0), events_up_to, body }
}

fn outcome(replies: Vec<Reply>) -> Outcome {
    Outcome { replies, ..Outcome::default() }
}

#[test]
fn agreement_trips_on_another_batch_another_time_and_a_missing_frame() {
    let mut agreed = Agreed::default();
    let (a, b) = (frame(1, 1, &put("a")), frame(1, 1, &put("b")));
    assert_eq!(agreed.executed(0, &batch(1, vec![a.clone()])), Ok(()));
    assert_eq!(agreed.executed(1, &batch(1, vec![a.clone()])), Ok(()));
    assert!(agreed.executed(1, &batch(1, vec![b])).is_err());
    assert!(agreed.executed(1, &batch(1, vec![])).is_err());
    assert!(agreed.executed(1, &Ordered { time: Time(9), ..batch(1, vec![a]) }).is_err());
    assert_eq!(agreed.highest(), Seq(1));
}

#[test]
fn prefix_order_trips_on_a_gap_a_repetition_and_a_step_back() {
    let mut order = PrefixOrder::default();
    assert_eq!(order.executed(0, Seq(1)), Ok(()));
    assert!(order.executed(0, Seq(1)).is_err());
    assert!(order.executed(0, Seq(3)).is_err());
    assert_eq!(order.installed(0, Seq(8)), Ok(()));
    assert!(order.installed(0, Seq(8)).is_err());
    assert_eq!(order.executed(0, Seq(9)), Ok(()));
    order.restored(0, Seq(4));
    assert_eq!(order.executed(0, Seq(5)), Ok(()));
}

#[test]
fn exactly_once_trips_on_a_second_effect() {
    let mut once = ExactlyOnce::default();
    let done = reply(1, 1, 1, 0, &Answer::Written { version: 1 });
    assert_eq!(once.executed(Seq(1), &outcome(vec![done.clone()])), Ok(()));
    assert_eq!(once.executed(Seq(1), &outcome(vec![done.clone()])), Ok(()), "another replica");
    assert!(once.executed(Seq(2), &outcome(vec![done.clone()])).is_err());
    assert!(once.executed(Seq(1), &outcome(vec![done.clone(), done])).is_err());
    assert_eq!(once.count(), 1);
}

#[test]
fn validity_trips_on_what_no_client_signed() {
    let mut validity = Validity::default();
    let (a, b) = (frame(1, 1, &put("a")), frame(1, 1, &put("b")));
    validity.signed(&a);
    assert_eq!(validity.executed(&batch(1, vec![a])), Ok(()));
    assert!(validity.executed(&batch(2, vec![b])).is_err());
}

#[test]
fn reply_integrity_trips_on_wrong_results_at_replicas_and_clients() {
    let mut replies = ReplyIntegrity::new(8);
    let first = frame(1, 1, &put("a"));
    let good = Answer::Written { version: 1 };
    let ordered = batch(1, vec![first.clone()]);
    assert_eq!(replies.executed(&ordered, &outcome(vec![reply(1, 1, 1, 0, &good)]), 0), Ok(()));
    assert!(
        replies
            .executed(&ordered, &outcome(vec![reply(1, 1, 1, 0, &Answer::Written { version: 2 })]), 0)
            .is_err()
    );
    assert!(replies.executed(&ordered, &outcome(vec![reply(1, 1, 1, 5, &good)]), 0).is_err(), "events");
    assert!(replies.executed(&ordered, &outcome(vec![]), 0).is_err(), "a request without effect");
    let again = batch(2, vec![first]);
    assert!(
        replies.executed(&again, &outcome(vec![reply(1, 1, 2, 0, &good)]), 0).is_err(),
        "executed before"
    );
    let operations = [put("a").to_wire()];
    assert_eq!(replies.accepted(ClientId(1), &operations, &[good.to_wire()], false, false), Ok(()));
    assert!(replies.accepted(ClientId(1), &operations, &[Answer::NotFound.to_wire()], false, false).is_err());
    assert!(replies.accepted(ClientId(1), &operations, &[], false, false).is_err());
    assert!(
        replies.accepted(ClientId(2), &operations, &[good.to_wire()], false, false).is_err(),
        "not its own"
    );
    // Ahead of its execution: judged by what comes of it.
    let second = put("b");
    let answer = Answer::Written { version: 2 };
    assert_eq!(replies.accepted(ClientId(1), &[second.to_wire()], &[answer.to_wire()], false, true), Ok(()));
    assert!(replies.settle().is_err());
    let ordered = batch(3, vec![frame(1, 2, &second)]);
    assert_eq!(replies.executed(&ordered, &outcome(vec![reply(1, 2, 3, 0, &answer)]), 0), Ok(()));
    assert_eq!(replies.settle(), Ok(()));
}

#[test]
fn what_no_correct_node_executed_is_judged_when_one_does() {
    let mut replies = ReplyIntegrity::new(8);
    let (first, second) = (batch(1, vec![frame(1, 1, &put("a"))]), batch(2, vec![frame(1, 2, &put("b"))]));
    let written = |version| Answer::Written { version };
    // The only correct node that executed the second had the state behind the first sent.
    assert_eq!(replies.executed(&second, &outcome(vec![reply(1, 2, 2, 0, &written(2))]), 0), Ok(()));
    assert!(replies.is_behind());
    let accepted = |replies: &mut ReplyIntegrity, version| {
        replies.accepted(ClientId(1), &[put("b").to_wire()], &[written(version).to_wire()], false, false)
    };
    assert_eq!(accepted(&mut replies, 2), Ok(()));
    assert_eq!(accepted(&mut replies, 7), Ok(()));
    assert_eq!(replies.executed(&first, &outcome(vec![reply(1, 1, 1, 0, &written(1))]), 0), Ok(()));
    assert!(!replies.is_behind());
    assert!(replies.settle().is_err(), "the second answer was none");
    assert!(accepted(&mut replies, 7).is_err());
}

#[test]
fn events_trip_on_gaps_inventions_and_replies_shown_too_early() {
    let mut replies = ReplyIntegrity::new(8);
    let watch = Operation::Watch(Watch::Key(Bytes::from_static(b"k")));
    let frames = vec![frame(1, 1, &watch), frame(2, 1, &put("a")), frame(1, 2, &put("b"))];
    let answers = vec![
        reply(1, 1, 1, 0, &Answer::Watching),
        reply(2, 1, 1, 0, &Answer::Written { version: 1 }),
        reply(1, 2, 1, 2, &Answer::Written { version: 2 }),
    ];
    let change = |version| Change { key: Bytes::from_static(b"k"), deleted: false, version }.to_wire();
    let event = |index, payload| Event { client: ClientId(1), index, seq: Seq(1), payload };
    let telling = |events| Outcome { events, ..outcome(answers.clone()) };
    let ordered = batch(1, frames);
    let both = vec![event(1, change(1)), event(2, change(2))];
    assert_eq!(replies.executed(&ordered, &telling(both.clone()), 0), Ok(()));
    for events in [vec![], both[..1].to_vec(), vec![event(1, change(1)), event(2, change(3))]] {
        assert!(replies.executed(&ordered, &telling(events.clone()), 0).is_err(), "{events:?}");
    }
    let twice = [both.clone(), vec![event(3, change(2))]].concat();
    assert!(replies.executed(&ordered, &telling(twice), 0).is_err());
    let mut events = EventOrder::default();
    assert!(events.delivered(&event(2, change(2)), &replies).is_err(), "a gap");
    assert!(events.delivered(&event(1, change(7)), &replies).is_err(), "another payload");
    let mut events = EventOrder::default();
    assert_eq!(events.delivered(&event(1, change(1)), &replies), Ok(()));
    let shown = [put("b").to_wire()];
    let result = [Answer::Written { version: 2 }.to_wire()];
    assert!(events.shown(ClientId(1), &shown, &result, &replies).is_err(), "event 2 first");
    assert_eq!(events.delivered(&event(2, change(2)), &replies), Ok(()));
    assert_eq!(events.shown(ClientId(1), &shown, &result, &replies), Ok(()));
    assert!(events.delivered(&event(3, change(3)), &replies).is_err(), "never happened");
}

#[test]
fn events_trip_on_answers_from_before_them() {
    let key = Bytes::from_static(b"k");
    let mut events = EventOrder::default();
    let payload = Change { key: key.clone(), deleted: false, version: 4 }.to_wire();
    events.told(10, &Event { client: ClientId(1), index: 1, seq: Seq(1), payload });
    let got = |client, invoked, version| {
        let answer = Answer::Value { version, value: Bytes::new() };
        events.answered(ClientId(client), invoked, &Operation::Get { key: key.clone() }, &answer)
    };
    assert!(got(1, 11, 3).is_err(), "asked afterwards");
    assert_eq!((got(1, 10, 3), got(1, 11, 4), got(2, 11, 3)), (Ok(()), Ok(()), Ok(())));
    let written = |version| events.answered(ClientId(1), 11, &put("b"), &Answer::Written { version });
    assert!(written(3).is_err());
    assert_eq!(written(5), Ok(()));
}

#[test]
fn checkpoints_and_recovery_trip_on_another_digest() {
    let mut known = EqualCheckpoints::default();
    assert_eq!(known.taken(Seq(4), Digest([1; 32])), Ok(()));
    assert_eq!(known.taken(Seq(4), Digest([1; 32])), Ok(()));
    assert!(known.taken(Seq(4), Digest([2; 32])).is_err());
    assert_eq!(RecoveredPrefix.restored(Seq(4), Digest([1; 32]), &known), Ok(()));
    assert!(RecoveredPrefix.restored(Seq(4), Digest([2; 32]), &known).is_err());
    assert!(RecoveredPrefix.restored(Seq(5), Digest([1; 32]), &known).is_err());
}

#[test]
fn stable_checkpoints_trip_on_a_step_back_within_a_life() {
    let mut stable = StableMonotone::default();
    assert_eq!(stable.stable(0, Seq(8)), Ok(()));
    assert!(stable.stable(0, Seq(4)).is_err());
    stable.restarted(0);
    assert_eq!(stable.stable(0, Seq(4)), Ok(()));
}

#[test]
fn bounds_trip_on_a_long_log_and_on_what_the_protocol_finds() {
    let mut bounded = Bounded::default();
    assert_eq!(bounded.look(10, 10, None), Ok(()));
    assert!(bounded.look(11, 10, None).is_err());
    assert!(bounded.look(1, 10, Some("too many".to_owned())).is_err());
}

#[test]
fn accusations_trip_on_a_correct_replica_only() {
    let mut accused = NoneAccused::default();
    assert_eq!(accused.accused(ReplicaId(1), "a rule", true), Ok(()));
    assert!(accused.accused(ReplicaId(1), "a rule", false).is_err());
    assert_eq!(accused.rightly, 1);
}

#[test]
fn trusted_uniqueness_trips_on_overlapping_certificates() {
    let group = MinBftWorld::group(1);
    let me = ReplicaId(0);
    let attest = |previous, new, digest| Call::Attest {
        counter: CounterId(0),
        previous: CounterValue(previous),
        new: CounterValue(new),
        digest: [digest; 32],
    };
    let watch = WireWatch::new(&group);
    let show = |call: &Call, answer: TrustedAnswer| {
        let (Call::Attest { digest, .. }, Some(certificate)) = (call, answer.attested()) else {
            panic!("attested")
        };
        assert!(watch.verify(0, certificate, digest));
    };
    let mut real = component(&group, me);
    for call in [attest(0, 1, 1), attest(1, 4, 2)] {
        let answer = real.call(std::slice::from_ref(&call)).remove(0);
        show(&call, answer.clone());
        show(&call, answer);
    }
    assert_eq!(TrustedUniqueness.look(&watch), Ok(()), "one component never clashes with itself");
    // A clone certifies value 3 for something else.
    let call = attest(2, 3, 9);
    show(&call, indulge(&group, me, &call));
    assert!(TrustedUniqueness.look(&watch).is_err());
}

#[test]
fn liveness_trips_after_its_bound_and_names_what_is_missing() {
    let mut liveness = Liveness { healed_at: 1_000, bound: 500, ..Liveness::default() };
    let waiting = [ClientState { client: 3, old: 2, fresh: (0, 10) }];
    assert_eq!(liveness.look(1_400, &waiting, None), Ok(false));
    let found = liveness.look(1_501, &waiting, None).expect_err("too late");
    assert!(found.contains("client 3 waits for 2"), "{found}");
    let fresh = [ClientState { client: 3, old: 0, fresh: (4, 10) }];
    assert!(liveness.look(1_501, &fresh, None).expect_err("too late").contains("4 of 10"));
    assert_eq!(liveness.look(1_400, &[ClientState { client: 3, old: 0, fresh: (10, 10) }], None), Ok(true));
    // What is asked later has the same time.
    liveness.more(1_400);
    let fresh = [ClientState { client: 3, old: 0, fresh: (10, 20) }];
    assert_eq!(liveness.look(1_900, &fresh, None), Ok(false));
    assert!(liveness.look(1_901, &fresh, None).is_err());
    let none = [ClientState { client: 3, old: 0, fresh: (10, 10) }];
    assert_eq!(liveness.look(1_900, &none, Some(ReplicaId(2))), Ok(false));
    assert!(
        liveness.look(1_901, &none, Some(ReplicaId(2))).expect_err("too late").contains("r2 was readmitted")
    );
}

#[test]
fn notes_reach_their_checkers() {
    let faulty = |replica: ReplicaId| replica == ReplicaId(2);
    let faulty_client = |client: ClientId| client == ClientId(4);
    let diverged = Note::Diverged { seq: Seq(3) };
    let accused = Note::Accused { replica: ReplicaId(1), rule: "a rule" };
    let client = Note::ClientAccused { client: ClientId(3), number: 1 };
    let all = [
        (diverged, "equal checkpoints"),
        (accused, "no correct replica accused"),
        (client, "no correct client accused"),
    ];
    for (note, property) in all {
        let mut checks = Checks::default();
        checks.noted(0, &note, &faulty, &faulty_client);
        assert_eq!(checks.violation.expect("a violation").property, property);
    }
    let mut checks = Checks::default();
    checks.noted(0, &Note::Accused { replica: ReplicaId(2), rule: "a rule" }, &faulty, &faulty_client);
    checks.noted(0, &Note::ClientAccused { client: ClientId(4), number: 1 }, &faulty, &faulty_client);
    assert_eq!(checks.violation, None);
}

#[test]
fn certified_digests_bind_the_sender() {
    let group = MinBftWorld::group(1);
    let body: Body<MinBftWorld> =
        troth_minbft::Body::Checkpoint(troth_minbft::Checkpoint { seq: Seq(1), ..Default::default() });
    assert_ne!(
        MinBftWorld::digest(&body, &group, ReplicaId(0)),
        MinBftWorld::digest(&body, &group, ReplicaId(1))
    );
}

#[test]
fn where_one_property_alone_is_judged_no_other_ends_the_run() {
    let mut checks = Checks { only: Some("agreement".to_owned()), ..Checks::default() };
    checks.judge("bounds", &[0], Err("too much".to_owned()));
    assert_eq!(checks.violation, None);
    checks.judge("agreement", &[0, 1], Err("two".to_owned()));
    assert_eq!(checks.violation.map(|violation| violation.property), Some("agreement"));
}
