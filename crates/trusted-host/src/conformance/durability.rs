//! Rules on restarts and failing stores.

use super::Outcome;
use super::probe::{ONE, OTHER, Probe, Seen, attest, attest_multi, require, step};
use crate::component::{Answer, Call};
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

pub(super) fn blob_beside_move(probe: &mut Probe<'_>) -> Seen<Outcome> {
    if probe.attested_beside(step(0, 0, 1), ONE, b"first")?.is_none() {
        return Ok(Outcome::NotApplicable);
    }
    let mut expected = vec![b"first".to_vec()];
    let kept = |probe: &mut Probe<'_>, expected: &[Vec<u8>], when: &str| {
        let kept = probe.blobs()?;
        require(kept == expected, format!("{when} it keeps {kept:?} instead of {expected:?}"))
    };
    for value in 1..RESTARTS {
        let (moved, blob) = (step(0, value, value + 1), vec![value as u8; value as usize * 40]);
        // Every seventh move has none, and others may find no place for theirs.
        let made = if value % 7 == 0 { None } else { probe.attested_beside(moved, ONE, &blob)? };
        match &made {
            Some(made) => {
                expected.push(blob);
                require(probe.attested(moved, ONE)? == *made, "a repeat gave another certificate")?;
            }
            None => {
                require(probe.value(0)? == value, "a blob was not kept and the counter moved")?;
                kept(probe, &expected, "before a move without a blob")?;
                probe.attested(moved, ONE)?;
                expected.clear();
            }
        }
        if value % 4 == 3 {
            blob_beside_moves(probe, value / 4, &mut expected)?;
        }
        kept(probe, &expected, "after a move")?;
        let refused = probe.beside(&attest(moved, OTHER), b"refused")?;
        let refuses = matches!(refused, None | Some(Answer::Refused(_)));
        require(refuses, format!("another digest for {moved:?} was answered {refused:?}"))?;
        kept(probe, &expected, "after a refusal")?;
        for _ in 0..value % 3 {
            if !probe.restart() {
                return Ok(Outcome::NotApplicable);
            }
            kept(probe, &expected, "after a restart")?;
            require(probe.value(0)? == value + 1, "a restart moved the counter")?;
        }
    }
    Ok(Outcome::Held)
}

/// Moves two counters together from `value`, now with a blob and now without, and repeats that with another.
fn blob_beside_moves(probe: &mut Probe<'_>, value: u128, expected: &mut Vec<Vec<u8>>) -> Seen<()> {
    let together = [step(1, value, value + 1), step(2, value, value + 1)];
    let call = attest_multi(&together, ONE);
    if value.is_multiple_of(2) && probe.beside(&call, b"together")?.is_some() {
        expected.push(b"together".to_vec());
    } else {
        probe.attested_multi(&together, ONE)?;
        expected.clear();
    }
    let made = probe.attested_multi(&together, ONE)?;
    let again = probe.beside(&call, b"again")?;
    let repeated = again == Some(Answer::AttestedMulti(Box::new(made)));
    require(repeated, format!("the last move, repeated with a blob, was answered {again:?}"))
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
    let beside = probe.beside(&attest(step(0, 1, 2), ONE), b"blob")?;
    let halted = matches!(beside, None | Some(Answer::Refused(Refusal::Halted)));
    require(halted, format!("a move with a blob was answered {beside:?}"))?;
    for counter in (0..COUNTERS as u16).map(CounterId) {
        probe.refused(Call::Resume { counter }, Refusal::Halted)?;
        probe.refused(Call::Read { counter }, Refusal::Halted)?;
    }
    Ok(Outcome::Held)
}
