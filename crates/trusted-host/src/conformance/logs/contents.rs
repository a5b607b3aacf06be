//! Rules on what the logs hold and how they change.

use super::super::Outcome;
use super::ROOM;
use super::probe::{
    M, ONE, OTHER, Probe, Q, START, Seen, advance, append, end, lookup, quiet, require, slot, truncate,
};
use troth_trusted::a2m::{
    Answer, Attestation, Content, LOGS, LogId, LogRefusal, MOST_OPERATIONS, Request, Unfit, chained, jumped,
};

fn elsewhere(high: u128) -> Unfit {
    Unfit::Elsewhere { high: slot(high) }
}

fn not_ahead(high: u128) -> Unfit {
    Unfit::NotAhead { high: slot(high) }
}

pub(super) fn fresh_start(probe: &mut Probe<'_>) -> Seen<Outcome> {
    require(probe.names_itself(), "the component names another identity than its home")?;
    let nothing = Content::Forgotten { low: slot(0) };
    for log in (0..LOGS as u16).map(LogId) {
        probe.ends(log, 0, nothing)?;
        probe.holds(lookup(log, 0), 0, nothing)?;
        probe.holds(lookup(log, 1), 1, Content::Unassigned { high: slot(0) })?;
    }
    for absent in [LOGS as u16, LOGS as u16 + 16, 256, u16::MAX].map(LogId) {
        for operation in [
            append(absent, 1, ONE),
            advance(absent, 1, START, ONE),
            truncate(absent, 1),
            lookup(absent, 1),
            end(absent),
        ] {
            probe.refused(operation, Unfit::NoSuchLog)?;
        }
    }
    Ok(Outcome::Held)
}

pub(super) fn append_only(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE), advance(Q, 5, START, ONE)])?;
    let before = probe.everything()?;
    for number in 0..=5 {
        for value in [ONE, OTHER] {
            probe.refused(append(Q, number, value), elsewhere(5))?;
            probe.refused(advance(Q, number, START, value), not_ahead(5))?;
        }
    }
    for number in [7, u128::MAX] {
        probe.refused(append(Q, number, ONE), elsewhere(5))?;
    }
    require(probe.everything()? == before, "a refused operation changed a log")?;
    probe.done(&[truncate(Q, 5)])?;
    for number in 0..=5 {
        probe.refused(append(Q, number, OTHER), elsewhere(5))?;
        probe.refused(advance(Q, number, START, OTHER), not_ahead(5))?;
    }
    probe.done(&[advance(M, u128::MAX, START, ONE)])?;
    probe.refused(append(M, 0, OTHER), Unfit::Spent)?;
    probe.refused(append(M, u128::MAX, OTHER), Unfit::Spent)?;
    probe.refused(advance(M, u128::MAX, START, OTHER), not_ahead(u128::MAX))?;
    Ok(Outcome::Held)
}

pub(super) fn contents(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let first = chained(slot(1), &ONE, &START);
    let second = chained(slot(2), &OTHER, &first);
    let far = jumped(slot(1 << 70), &ONE, &OTHER);
    let after = chained(slot((1 << 70) + 1), &OTHER, &far);
    let assigned = |value, digest| Content::Assigned { value, digest };
    probe.holds(append(Q, 1, ONE), 1, assigned(ONE, first))?;
    probe.holds(append(Q, 2, OTHER), 2, assigned(OTHER, second))?;
    probe.holds(advance(Q, 1 << 70, OTHER, ONE), 1 << 70, assigned(ONE, far))?;
    probe.holds(append(Q, (1 << 70) + 1, OTHER), (1 << 70) + 1, assigned(OTHER, after))?;
    probe.ends(Q, (1 << 70) + 1, assigned(OTHER, after))?;
    probe.holds(lookup(Q, 1), 1, assigned(ONE, first))?;
    probe.holds(lookup(Q, 2), 2, assigned(OTHER, second))?;
    let skipped = Content::Skipped { end: slot(1 << 70), value: ONE, digest: far };
    for number in [3, 1 << 64, (1 << 70) - 1] {
        probe.holds(lookup(Q, number), number, skipped)?;
    }
    for number in [(1 << 70) + 2, u128::MAX] {
        probe.holds(lookup(Q, number), number, Content::Unassigned { high: slot((1 << 70) + 1) })?;
    }
    probe.ends(M, 0, Content::Forgotten { low: slot(0) })?;
    Ok(Outcome::Held)
}

pub(super) fn truncation(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let outside = |low, high| Unfit::OutsideLog { low: slot(low), high: slot(high) };
    probe.refused(truncate(Q, 1), outside(0, 0))?;
    probe.done(&[append(Q, 1, ONE), append(Q, 2, OTHER), advance(Q, 6, START, ONE)])?;
    probe.refused(truncate(Q, 0), outside(0, 6))?;
    probe.refused(truncate(Q, 7), outside(0, 6))?;
    let before = probe.everything()?;
    for low in [2, 4, 6] {
        probe.done(&[truncate(Q, low)])?;
        for number in 0..low {
            probe.holds(lookup(Q, number), number, Content::Forgotten { low: slot(low) })?;
        }
        // The first seventeen answers are those of this log: slots 0 to 15 and its end.
        let now = probe.everything()?;
        let kept = low as usize..;
        require(now[kept.clone()] == before[kept], format!("truncating to {low} changed what is kept"))?;
        probe.refused(truncate(Q, low), outside(low, 6))?;
    }
    let last = jumped(slot(6), &ONE, &START);
    let digest = chained(slot(7), &OTHER, &last);
    probe.holds(append(Q, 7, OTHER), 7, Content::Assigned { value: OTHER, digest })?;
    Ok(Outcome::Held)
}

pub(super) fn full_log(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let most = ROOM as u128;
    for number in 1..=most {
        // Jumps take one entry each, as appends do.
        probe.done(&[quiet(advance(Q, 3 * number, START, ONE)), quiet(append(M, number, ONE))])?;
    }
    let before = probe.everything()?;
    for operation in
        [append(Q, 3 * most + 1, ONE), advance(Q, 9 * most, START, ONE), append(M, most + 1, ONE)]
    {
        probe.refused(operation, Unfit::Full)?;
    }
    require(probe.everything()? == before, "a full log changed")?;
    probe.done(&[truncate(M, most - 1)])?;
    for number in most + 1..=2 * most - 2 {
        probe.done(&[append(M, number, ONE)])?;
    }
    probe.refused(append(M, 2 * most - 1, ONE), Unfit::Full)?;
    Ok(Outcome::Held)
}

pub(super) fn all_or_nothing(probe: &mut Probe<'_>) -> Seen<Outcome> {
    probe.done(&[append(Q, 1, ONE), advance(M, 3, START, ONE)])?;
    let before = probe.everything()?;
    let good = [append(Q, 2, OTHER), quiet(advance(M, 7, START, OTHER)), end(Q), truncate(M, 2)];
    for (bad, why) in [
        (append(LogId(1), 2, ONE), elsewhere(0)),
        (advance(LogId(1), 0, START, ONE), not_ahead(0)),
        (truncate(LogId(2), 1), Unfit::OutsideLog { low: slot(0), high: slot(0) }),
        (lookup(LogId(LOGS as u16), 1), Unfit::NoSuchLog),
    ] {
        for index in 0..=good.len() {
            let mut operations = good.to_vec();
            operations.insert(index, bad);
            let answered = probe.call(&operations)?;
            let expected = Err(LogRefusal::Operation { index, why });
            require(answered == expected, format!("{operations:?} was answered {answered:?}"))?;
            require(probe.everything()? == before, format!("{operations:?} was refused and changed a log"))?;
        }
    }
    let twice = [append(Q, 2, ONE), append(Q, 2, OTHER)];
    let answered = probe.call(&twice)?;
    let expected = Err(LogRefusal::Operation { index: 1, why: elsewhere(2) });
    require(answered == expected, format!("{twice:?} was answered {answered:?}"))?;
    let mut long = vec![end(Q); MOST_OPERATIONS];
    probe.done(&long)?;
    long.insert(0, append(Q, 2, ONE));
    let answered = probe.call(&long)?;
    require(answered == Err(LogRefusal::TooMany), format!("a longer call was answered {answered:?}"))?;
    require(probe.everything()? == before, "a call of too many operations changed a log")?;
    probe.done(&good)?;
    Ok(Outcome::Held)
}

pub(super) fn call_order(probe: &mut Probe<'_>) -> Seen<Outcome> {
    let operations = [
        end(Q),
        append(Q, 1, ONE),
        quiet(append(M, 1, OTHER)),
        end(Q),
        quiet(append(Q, 2, OTHER)),
        lookup(Q, 1),
        end(Q),
        truncate(Q, 2),
        lookup(Q, 1),
    ];
    let answers = probe.done(&operations)?;
    let shape: Vec<_> = answers
        .iter()
        .map(|answer| match answer {
            Answer::Done => None,
            Answer::Attested(Attestation { claim, .. }) => {
                let assigned = matches!(claim.content, Content::Assigned { .. });
                Some((claim.request, claim.slot.0, assigned))
            }
        })
        .collect();
    let expected = [
        Some((Request::End, 0, false)),
        Some((Request::Lookup, 1, true)),
        None,
        Some((Request::End, 1, true)),
        None,
        Some((Request::Lookup, 1, true)),
        Some((Request::End, 2, true)),
        None,
        Some((Request::Lookup, 1, false)),
    ];
    require(shape == expected, format!("a call was answered {answers:?}"))?;
    require(probe.done(&[])?.is_empty(), "an empty call was answered")?;
    Ok(Outcome::Held)
}
