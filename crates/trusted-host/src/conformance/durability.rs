//! Rules on restarts and failing stores.

use super::Outcome;
use super::probe::{ONE, OTHER, Probe, Seen, attest, attest_multi, require, step};
use crate::component::Call;
use troth_trusted::{COUNTERS, CounterId, CounterValue, Refusal, Resumed};

pub(super) fn resume_after_restart(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.attested(step(0, 0, 1), ONE)?;
    let alone = probe.attested(step(0, 1, 5), OTHER)?;
    let together = probe.attested_multi(&[step(1, 0, 1), step(7, 0, u128::MAX)], ONE)?;
    let before = probe.everything()?;
    if !probe.restart() {
        return Ok(Outcome::NotApplicable);
    }
    require(probe.names_itself(), "the component came back as somebody else")?;
    require(probe.everything()? == before, "the component came back with other counters")?;
    require(probe.attested(step(0, 1, 5), OTHER)? == alone, "a repeat after the restart differs")?;
    let moves = [step(1, 0, 1), step(7, 0, u128::MAX)];
    require(probe.attested_multi(&moves, ONE)? == together, "a repeat after the restart differs")?;
    let stands = Refusal::Elsewhere { counter: CounterId(0), current: CounterValue(5) };
    probe.refused(attest(step(0, 1, 5), ONE), stands)?;
    probe.refused(attest(step(0, 0, 1), ONE), stands)?;
    probe.attested(step(0, 5, 6), ONE)?;
    Ok(Outcome::Held)
}

/// How often a home is started again: more often than a small store holds records.
const RESTARTS: u128 = 24;

pub(super) fn resume_after_every_restart(probe: &mut Probe<'_>) -> Seen<Outcome> {
    for round in 0..RESTARTS {
        // Some lives store much, some little, and some nothing at all before they end.
        let (from, to) = (round * 8, (round + 1) * 8);
        let mut last = probe.attested(step(0, from, from + 1), ONE)?;
        for value in from + 1..from + 1 + round % 7 {
            last = probe.attested(step(0, value, value + 1), ONE)?;
        }
        for _ in 0..=round % 3 {
            if !probe.restart() {
                return Ok(Outcome::NotApplicable);
            }
        }
        let resumed = probe.resumed(0)?;
        let expected = Resumed::One { certificate: last.clone(), digest: ONE };
        require(resumed == expected, format!("after {last:?} and a restart it resumed {resumed:?}"))?;
        let stands = Refusal::Elsewhere { counter: CounterId(0), current: last.new };
        probe.refused(attest(step(0, last.previous.0, last.new.0), OTHER), stands)?;
        probe.refused(attest(step(0, from, from + 1), OTHER), stands)?;
        probe.attested(step(0, last.new.0, to), ONE)?;
    }
    Ok(Outcome::Held)
}

pub(super) fn halted_after_failing_store(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.attested(step(0, 0, 1), ONE)?;
    if !probe.break_store() {
        return Ok(Outcome::NotApplicable);
    }
    probe.refused(attest(step(0, 1, 2), ONE), Refusal::Halted)?;
    for call in [
        attest(step(0, 1, 2), ONE),
        attest(step(0, 0, 1), ONE),
        attest(step(0, 1, 2), OTHER),
        attest(step(1, 0, 1), ONE),
        attest_multi(&[step(1, 0, 1), step(2, 0, 1)], ONE),
    ] {
        probe.refused(call, Refusal::Halted)?;
    }
    for counter in (0..COUNTERS as u16).map(CounterId) {
        probe.refused(Call::Resume { counter }, Refusal::Halted)?;
        probe.refused(Call::Read { counter }, Refusal::Halted)?;
    }
    Ok(Outcome::Held)
}
