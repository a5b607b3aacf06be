//! Calls to the logs that are repeated: the rule holds for all of them, and is needed.

use crate::support::{IDENTITY, mac};
use proptest::prelude::*;
use std::convert::Infallible;
use troth_trusted::a2m::{A2m, Answer, Content, LOGS, LogId, LogRefusal, Logs, Operation};
use troth_trusted::{CounterValue, VolatileStore};
use troth_trusted_host::repetition::{
    CallSoFar, Repeated, answers, can_be_answered_later, may_be_done, questions, repeat,
};
use troth_trusted_host::{LogRoom, log_room};

type Component = A2m<LogRoom, VolatileStore>;

/// Two logs, of which one is soon full.
fn component() -> Component {
    let mut room = [0; LOGS];
    (room[0], room[1]) = (12, 3);
    A2m::start(IDENTITY, mac(), VolatileStore, log_room(room))
}

fn call(component: &mut Component, operations: &[Operation]) -> Result<Vec<Answer>, LogRefusal> {
    let mut answers = Vec::new();
    component.call(operations, |answer| answers.push(answer)).map(|()| answers)
}

/// What is done to a log, relative to where it ends or begins, so that it often fits.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append(u8, bool),
    Advance(u8, u8, bool),
    Truncate(u8),
    Lookup(u8),
    LookupFor(u8),
    End,
}

fn steps(most: usize) -> impl Strategy<Value = Vec<(u16, Step)>> {
    let step = prop_oneof![
        4 => (0..2u8, any::<bool>()).prop_map(|(value, asks)| Step::Append(value, asks)),
        2 => (1..4u8, 0..2u8, any::<bool>()).prop_map(|(by, value, asks)| Step::Advance(by, value, asks)),
        2 => (0..3u8).prop_map(Step::Truncate),
        1 => (0..4u8).prop_map(Step::Lookup),
        2 => (0..4u8).prop_map(Step::LookupFor),
        1 => Just(Step::End),
    ];
    proptest::collection::vec((0..2u16, step), 0..most)
}

/// The operations of these steps, each from where those before it would leave its log; `off` slots aside.
fn operations(logs: &Logs<LogRoom>, steps: &[(u16, Step)], off: u128) -> Vec<Operation> {
    let mut high = [0, 1].map(|log| logs.get(LogId(log)).map_or(0, |log| log.high().0) + off);
    let at = CounterValue;
    let asking = |asks: bool| asks.then_some([0x5a; 32]);
    let operation = |(log, step): &(u16, Step)| {
        let (high, log) = (&mut high[usize::from(*log)], LogId(*log));
        match *step {
            Step::Append(value, asks) => {
                *high += 1;
                Operation::Append { log, slot: at(*high), value: [value; 32], nonce: asking(asks) }
            }
            Step::Advance(by, value, asks) => {
                *high += u128::from(by);
                let (slot, value, nonce) = (at(*high), [value; 32], asking(asks));
                Operation::Advance { log, slot, previous: [9; 32], value, nonce }
            }
            Step::Truncate(below) => {
                Operation::Truncate { log, slot: at(high.saturating_sub(u128::from(below))) }
            }
            Step::Lookup(below) => {
                Operation::Lookup { log, slot: at(high.saturating_sub(u128::from(below))), nonce: [1; 32] }
            }
            Step::LookupFor(below) => {
                let slot = at(high.saturating_sub(u128::from(below)));
                Operation::LookupFor { log, slot, nonce: [1; 32], peer: [3; 32] }
            }
            Step::End => Operation::End { log, nonce: [2; 32] },
        }
    };
    steps.iter().map(operation).collect()
}

/// Whether every slot that the call fills holds its value, but for those that the logs have forgotten.
fn all_is_the_case(logs: &Logs<LogRoom>, operations: &[Operation]) -> bool {
    operations.iter().all(|operation| {
        let log = logs.get(operation.log()).expect("a log");
        match *operation {
            Operation::Append { slot, value, .. } | Operation::Advance { slot, value, .. } => {
                match log.content(slot) {
                    Content::Assigned { value: held, .. } => held == value,
                    Content::Forgotten { .. } => true,
                    _ => false,
                }
            }
            Operation::Truncate { slot, .. } => slot <= log.low(),
            _ => true,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6_000))]

    #[test]
    fn whatever_became_of_a_call_repeating_it_tells(
        before in steps(8),
        asked in steps(6),
        off in prop_oneof![4 => Just(0u128), 1 => 1..3u128],
        stale in any::<bool>(),
    ) {
        covers!("A2M-C4");
        let mut component = component();
        let before = operations(component.logs(), &before, 0);
        let _ = call(&mut component, &before);
        let base = if stale { self::component().logs().clone() } else { component.logs().clone() };
        let asked = operations(&base, &asked, off);
        let first = call(&mut component, &asked);
        let left = component.logs().clone();
        let second = call(&mut component, &asked);
        prop_assert_eq!(component.logs(), &left, "a repetition changed something");
        match (&first, &second) {
            (Ok(given), Err(refusal)) => {
                prop_assert!(may_be_done(&asked, refusal), "{asked:?} was refused with {refusal:?}");
                let replies = call(&mut component, &questions(&asked)).expect("a question");
                let again = answers(&asked, replies);
                prop_assert!(again.is_some(), "{asked:?} was done and seems not to be");
                if can_be_answered_later(&asked) {
                    prop_assert_eq!(again.as_ref(), Some(given), "{:?}", asked);
                }
            }
            (Err(refusal), _) => {
                prop_assert_eq!(&first, &second);
                if may_be_done(&asked, refusal) {
                    let replies = call(&mut component, &questions(&asked)).expect("a question");
                    let taken_for_done = answers(&asked, replies).is_some();
                    prop_assert!(!taken_for_done || all_is_the_case(component.logs(), &asked), "{asked:?}");
                }
            }
            (Ok(_), Ok(_)) => {
                prop_assert!(!asked.iter().any(Operation::changes), "{asked:?} was done twice");
                prop_assert_eq!(&first, &second);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn calls_that_end_where_they_must_are_answered_as_single_operations_though_each_answer_is_lost(
        asked in steps(40),
    ) {
        covers!("A2M-C5");
        let asked = operations(component().logs(), &asked, 0);
        let mut alone = component();
        let expected: Result<Vec<_>, _> = asked.iter().map(|asked| call(&mut alone, &[*asked])).collect();
        // Where something is refused, others are refused with it.
        let Ok(expected) = expected else { return Ok(()) };
        let (mut together, mut given) = (component(), Vec::new());
        let (mut rest, mut next) = (&asked[..], CallSoFar::default());
        while !rest.is_empty() {
            let fitting = rest.iter().take_while(|operation| {
                let fits = next.admits(operation) && !next.waits_for_room(operation);
                next.add(operation);
                fits
            });
            let (now, later) = rest.split_at(fitting.count());
            prop_assert!(!now.is_empty(), "an operation alone can always be answered again");
            call(&mut together, now).expect("each of them is done alone");
            let Ok(again) = repeat(now, |asked| Ok::<_, Infallible>(call(&mut together, asked)));
            let Repeated::Answered(Ok(answers)) = again else { panic!("{now:?} is lost: {again:?}") };
            given.extend(answers);
            (rest, next) = (later, CallSoFar::default());
        }
        prop_assert_eq!(given, expected.concat());
    }
}

const Q: LogId = LogId(0);

fn append(slot: u128, nonce: Option<[u8; 32]>) -> Operation {
    Operation::Append { log: Q, slot: CounterValue(slot), value: [slot as u8; 32], nonce }
}

/// Why some calls are not answered later: what they are owed is no more.
#[test]
fn calls_that_ask_before_they_change_cannot_be_answered_later() {
    let end = Operation::End { log: Q, nonce: [2; 32] };
    let lookup = Operation::Lookup { log: Q, slot: CounterValue(1), nonce: [1; 32] };
    let truncate = Operation::Truncate { log: Q, slot: CounterValue(2) };
    let other = Operation::End { log: LogId(1), nonce: [2; 32] };
    for (asked, later) in [
        (vec![end, append(1, None)], false),
        (vec![lookup, append(1, None)], false),
        (vec![append(1, Some([5; 32])), append(2, None), truncate], false),
        (vec![append(1, None), append(2, Some([5; 32])), truncate], true),
        (vec![append(1, Some([5; 32])), append(2, None), end, lookup], true),
        (vec![other, append(1, None), append(2, None), truncate, lookup], true),
    ] {
        assert_eq!(can_be_answered_later(&asked), later, "{asked:?}");
        let mut component = component();
        let given = call(&mut component, &asked).expect("it fits");
        let replies = call(&mut component, &questions(&asked)).expect("a question");
        assert_eq!(answers(&asked, replies) == Some(given), later, "{asked:?}");
    }
}
