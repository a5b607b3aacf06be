//! Rules on restarts and failing stores.

use super::super::Outcome;
use super::probe::{
    M, ONE, OTHER, Probe, Q, START, Seen, advance, append, end, lookup, quiet, require, truncate,
};
use troth_trusted::a2m::LogRefusal;

pub(super) fn same_after_restart(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE), append(Q, 2, OTHER), advance(M, 9, START, ONE)])?;
    probe.done(&[advance(Q, 12, OTHER, ONE), truncate(Q, 2)])?;
    let before = probe.everything()?;
    if !probe.restart() {
        return Ok(Outcome::NotApplicable);
    }
    require(probe.names_itself(), "the component came back as somebody else")?;
    require(probe.everything()? == before, "the component came back with other logs")?;
    probe.done(&[append(Q, 13, ONE), append(M, 10, ONE)])?;
    Ok(Outcome::Held)
}

/// How often a home is started again.
const RESTARTS: u128 = 24;

pub(super) fn same_after_every_restart(probe: &mut Probe<'_>) -> Seen<Outcome> {
    for round in 0..RESTARTS {
        // Some lives change much, some little, and some nothing at all before they end.
        for number in 3 * round + 1..=3 * round + 3 {
            probe.done(&[quiet(append(Q, number, ONE)), advance(M, 5 * number, START, OTHER)])?;
        }
        probe.done(&[truncate(Q, 3 * round + 2), truncate(M, 15 * round + 8)])?;
        let before = probe.everything()?;
        for _ in 0..=round % 3 {
            if !probe.restart() {
                return Ok(Outcome::NotApplicable);
            }
        }
        require(probe.everything()? == before, format!("start {round} came back with other logs"))?;
    }
    Ok(Outcome::Held)
}

pub(super) fn halted_after_failing_store(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE)])?;
    if !probe.break_store() {
        return Ok(Outcome::NotApplicable);
    }
    for operation in [append(Q, 2, ONE), append(Q, 2, OTHER), advance(M, 2, START, ONE), lookup(Q, 1), end(Q)]
    {
        let answered = probe.call(&[operation])?;
        let halted = Err(LogRefusal::Halted);
        require(answered == halted, format!("after its store failed it answered {answered:?}"))?;
    }
    Ok(Outcome::Held)
}
