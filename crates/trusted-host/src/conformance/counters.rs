//! Rules on the movement of counters.

use super::Outcome;
use super::probe::{ONE, OTHER, Probe, Seen, attest, attest_multi, require, step};
use crate::component::{Answer, Call};
use troth_trusted::{COUNTERS, CounterId, CounterValue, Refusal, Resumed};

fn elsewhere(counter: u16, current: u128) -> Refusal {
    Refusal::Elsewhere { counter: CounterId(counter), current: CounterValue(current) }
}

fn not_ahead(counter: u16, current: u128) -> Refusal {
    Refusal::NotAhead { counter: CounterId(counter), current: CounterValue(current) }
}

pub(super) fn fresh_start(probe: &mut Probe<'_>) -> Seen<Outcome> {
    require(probe.names_itself(), "the component names another identity than its home")?;
    for counter in 0..COUNTERS as u16 {
        require(probe.value(counter)? == 0, format!("counter {counter} does not start at zero"))?;
        let last = probe.resumed(counter)?;
        require(last == Resumed::Unmoved, format!("counter {counter} starts with {last:?}"))?;
    }
    for absent in [COUNTERS as u16, COUNTERS as u16 + 8, 256, u16::MAX] {
        let unknown = Refusal::UnknownCounter(CounterId(absent));
        probe.refused(Call::Read { counter: CounterId(absent) }, unknown)?;
        probe.refused(Call::Resume { counter: CounterId(absent) }, unknown)?;
        probe.refused(attest(step(absent, 0, 1), ONE), unknown)?;
    }
    Ok(Outcome::Held)
}

pub(super) fn uniqueness(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.attested(step(0, 0, 10), ONE)?;
    for (previous, new) in [(0, 10), (0, 5), (9, 10), (0, 11), (9, 11)] {
        probe.refused(attest(step(0, previous, new), OTHER), elsewhere(0, 10))?;
        let with_other = [step(0, previous, new), step(1, 0, 1)];
        probe.refused(attest_multi(&with_other, OTHER), elsewhere(0, 10))?;
    }
    probe.attested_multi(&[step(0, 10, 20), step(1, 0, 7)], ONE)?;
    for (counter, previous, new) in [(0, 10, 20), (1, 0, 7), (1, 6, 8)] {
        let current = if counter == 0 { 20 } else { 7 };
        probe.refused(attest(step(counter, previous, new), OTHER), elsewhere(counter, current))?;
    }
    // The same moves for the same digest, but stated alone, are another statement.
    probe.refused(attest(step(0, 10, 20), ONE), elsewhere(0, 20))?;
    probe.refused(attest_multi(&[step(0, 10, 20), step(1, 0, 7)], OTHER), elsewhere(0, 20))?;
    Ok(Outcome::Held)
}

pub(super) fn compare_and_set(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.refused(attest(step(0, 1, 2), ONE), elsewhere(0, 0))?;
    probe.refused(attest(step(0, 0, 0), ONE), not_ahead(0, 0))?;
    probe.attested(step(0, 0, 5), ONE)?;
    probe.refused(attest(step(0, 5, 5), OTHER), not_ahead(0, 5))?;
    probe.refused(attest(step(0, 5, 4), OTHER), not_ahead(0, 5))?;
    probe.refused(attest(step(0, 6, 7), OTHER), elsewhere(0, 5))?;
    probe.attested(step(0, 5, u128::MAX), OTHER)?;
    probe.refused(attest(step(0, u128::MAX, 0), ONE), not_ahead(0, u128::MAX))?;
    Ok(Outcome::Held)
}

pub(super) fn idempotent_repeat(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let first = probe.attested(step(2, 0, 3), ONE)?;
    require(probe.attested(step(2, 0, 3), ONE)? == first, "a repeat gave another certificate")?;
    let last = probe.resumed(2)?;
    require(
        last == Resumed::One { certificate: first, digest: ONE },
        format!("resume gave {last:?} after a move alone"),
    )?;
    let moves = [step(2, 3, 4), step(5, 0, 9)];
    let first = probe.attested_multi(&moves, OTHER)?;
    require(probe.attested_multi(&moves, OTHER)? == first, "a repeat gave another certificate")?;
    for counter in [2, 5] {
        let last = probe.resumed(counter)?;
        let expected = Resumed::Multi { certificate: first.clone(), digest: OTHER };
        require(last == expected, format!("resume gave {last:?} after a move together"))?;
    }
    require(probe.value(2)? == 4 && probe.value(5)? == 9, "a repeat moved a counter")?;
    // Once the counter has gone on, the older call is no repeat any more.
    probe.attested(step(5, 9, 10), ONE)?;
    probe.refused(attest_multi(&moves, OTHER), elsewhere(2, 4))?;
    let last = probe.resumed(2)?;
    require(last == Resumed::Superseded, format!("resume gave {last:?} for half of a move together"))?;
    Ok(Outcome::Held)
}

pub(super) fn multi_atomicity(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.attested(step(3, 0, 1), ONE)?;
    let before = probe.everything()?;
    for bad in [
        [step(0, 0, 1), step(1, 0, 1), step(3, 0, 2)],
        [step(0, 0, 1), step(2, 1, 2), step(3, 1, 2)],
        [step(0, 0, 1), step(1, 0, 0), step(3, 1, 2)],
    ] {
        let answer = probe.ask(attest_multi(&bad, OTHER))?;
        require(matches!(answer, Answer::Refused(_)), format!("{bad:?} was answered {answer:?}"))?;
        require(probe.everything()? == before, format!("{bad:?} was refused and moved a counter"))?;
    }
    let all: Vec<_> = (0..COUNTERS as u16).map(|c| step(c, u128::from(c == 3), 2)).collect();
    probe.attested_multi(&all, OTHER)?;
    for counter in 0..COUNTERS as u16 {
        require(probe.value(counter)? == 2, format!("counter {counter} did not move with the others"))?;
    }
    Ok(Outcome::Held)
}

pub(super) fn refusal_changes_nothing(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.attested(step(0, 0, 4), ONE)?;
    probe.attested_multi(&[step(1, 0, 1), step(2, 0, 2)], ONE)?;
    let before = probe.everything()?;
    for bad in [
        attest(step(0, 0, 4), OTHER),
        attest(step(0, 4, 4), ONE),
        attest(step(0, 4, 3), ONE),
        attest(step(0, 5, 6), ONE),
        attest(step(99, 0, 1), ONE),
        attest_multi(&[step(1, 0, 1), step(2, 0, 2)], OTHER),
        attest_multi(&[step(1, 1, 2), step(2, 0, 1)], ONE),
    ] {
        let answer = probe.ask(bad.clone())?;
        require(matches!(answer, Answer::Refused(_)), format!("{bad:?} was answered {answer:?}"))?;
        require(probe.everything()? == before, format!("{bad:?} was refused and changed something"))?;
    }
    Ok(Outcome::Held)
}

pub(super) fn batch_order(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let read = Call::Read { counter: CounterId(0) };
    let answers = probe.batch(&[
        read.clone(),
        attest(step(0, 0, 1), ONE),
        attest(step(0, 0, 1), OTHER),
        read.clone(),
        attest(step(0, 1, 2), OTHER),
        read,
    ])?;
    let in_order = matches!(
        answers.as_slice(),
        [
            Answer::Value(CounterValue(0)),
            Answer::Attested(_),
            Answer::Refused(_),
            Answer::Value(CounterValue(1)),
            Answer::Attested(_),
            Answer::Value(CounterValue(2)),
        ]
    );
    require(in_order, format!("a batch was answered {answers:?}"))?;
    require(probe.batch(&[])?.is_empty(), "an empty batch was answered")?;
    Ok(Outcome::Held)
}
