//! F-A6: logs that jump as the A2M paper prints it have clients believe two histories, and those of the real component do not.

use crate::a2m_pbft_e::A2mPbftEWorld;
use crate::component::FIRST_EPOCH;
use crate::logs::{Jumps, LogsComponent, logs_of};
use crate::world::World;
use crate::{FaultyKind, Options, Overrides, Protocol};
use troth_auth::HISTORY_LOG;
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Answer, Attestation, Content, LOGS, LogRefusal, Operation, Unfit, slot_nonce};
use troth_trusted_host::repetition::{Repeated, repeat};
use troth_types::ReplicaId;

const LITERAL: &str = "F-A6";

fn component(jumps: Jumps) -> LogsComponent {
    logs_of(&A2mPbftEWorld::group(1), ReplicaId(0), FIRST_EPOCH, [8; LOGS], jumps)
}

fn append(slot: u128, value: u8) -> Operation {
    let slot = CounterValue(slot);
    Operation::Append { log: HISTORY_LOG, slot, value: [value; 32], nonce: Some(slot_nonce(slot)) }
}

fn advance(slot: u128, previous: [u8; 32], value: u8) -> Operation {
    let slot = CounterValue(slot);
    let nonce = Some(slot_nonce(slot));
    Operation::Advance { log: HISTORY_LOG, slot, previous, value: [value; 32], nonce }
}

fn lookup(slot: u128) -> Operation {
    let slot = CounterValue(slot);
    Operation::Lookup { log: HISTORY_LOG, slot, nonce: slot_nonce(slot) }
}

fn attested(logs: &mut LogsComponent, operation: Operation) -> Attestation {
    match logs.call(&[operation]).expect("it can be done").pop() {
        Some(Answer::Attested(attestation)) => attestation,
        other => panic!("{operation:?} was answered {other:?}"),
    }
}

fn content(logs: &mut LogsComponent, operation: Operation) -> Content {
    attested(logs, operation).claim.content
}

fn digest(logs: &mut LogsComponent, operation: Operation) -> [u8; 32] {
    match content(logs, operation) {
        Content::Assigned { digest, .. } => digest,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_printed_log_that_jumped_has_the_digest_of_one_that_was_appended_to() {
    let mut other = component(Jumps::Told);
    let before = digest(&mut other, append(1, 2));
    let honest = digest(&mut other, append(2, 3));
    for (jumps, alike) in [(Jumps::AsPrinted, true), (Jumps::Told, false)] {
        let mut logs = component(jumps);
        // It attested another history before.
        assert_ne!(digest(&mut logs, append(1, 1)), before);
        assert_eq!(digest(&mut logs, advance(2, before, 3)) == honest, alike, "{jumps:?}");
    }
}

#[test]
fn a_printed_log_fills_each_slot_once_and_says_what_it_passed_over() {
    let mut logs = component(Jumps::AsPrinted);
    let first = attested(&mut logs, append(1, 1));
    let last = attested(&mut logs, advance(5, [9; 32], 5));
    assert_eq!(attested(&mut logs, lookup(1)), first);
    assert_eq!(attested(&mut logs, lookup(5)), last);
    let Content::Assigned { value, digest } = last.claim.content else { panic!("{last:?}") };
    let end = CounterValue(5);
    assert_eq!(content(&mut logs, lookup(3)), Content::Skipped { end, value, digest });
    assert_eq!(content(&mut logs, lookup(6)), Content::Unassigned { high: end });
    assert_eq!(content(&mut logs, lookup(0)), Content::Forgotten { low: CounterValue(0) });
    let behind = LogRefusal::Operation { index: 1, why: Unfit::NotAhead { high: CounterValue(6) } };
    assert_eq!(logs.call(&[append(6, 6), advance(6, [9; 32], 7)]), Err(behind));
    assert_eq!(content(&mut logs, lookup(6)), Content::Unassigned { high: end }, "all or none");
    let elsewhere = LogRefusal::Operation { index: 0, why: Unfit::Elsewhere { high: end } };
    assert_eq!(logs.call(&[append(4, 4)]), Err(elsewhere));
    // Who lost the answer asks again and is told the same.
    let call = [advance(8, [7; 32], 8), append(9, 9)];
    let answers = logs.call(&call);
    let Ok(again) = repeat(&call, |asked| Ok::<_, std::convert::Infallible>(logs.call(asked)));
    assert!(matches!(again, Repeated::Answered(again) if again == answers && again.is_ok()));
    logs.call(&[Operation::Truncate { log: HISTORY_LOG, slot: end }]).expect("within the log");
    assert_eq!(content(&mut logs, lookup(1)), Content::Forgotten { low: end });
    assert_eq!(attested(&mut logs, lookup(5)), last);
}

fn draw(seed: u64) -> Options {
    let literal = Some(LITERAL.to_owned());
    let overrides = Overrides { literal, faulty: Some(2), ..Overrides::default() };
    Options::draw(seed, 1, A2mPbftEWorld::shape(1), &overrides)
}

#[test]
fn in_some_worlds_all_who_are_too_many_have_a_face_for_each_part() {
    let worlds: Vec<Options> = (0..100).map(draw).filter(|world| world.faces).collect();
    assert!((15..60).contains(&worlds.len()), "{} of 100", worlds.len());
    for world in worlds {
        assert!(world.beyond() && world.bridges);
        assert!(world.faulty.iter().all(|faulty| faulty.kind == FaultyKind::Janus));
    }
}

#[test]
fn a_jump_as_printed_has_clients_believe_two_histories_and_one_that_is_told_does_not() {
    let found = |options: &Options| World::<A2mPbftEWorld>::run(options, 0).violation;
    let mut broken = 0;
    for printed in (340..480).map(draw).filter(|world| world.faces) {
        let Some(violation) = found(&printed) else { continue };
        let seed = printed.seed;
        assert_eq!(violation.property, "linearizability", "seed {seed}");
        // The very same world, but for the rule.
        assert_eq!(found(&Options { literal: None, ..printed }), None, "seed {seed}");
        broken += 1;
    }
    assert!(broken > 0, "no world shows it");
}
