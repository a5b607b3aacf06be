//! I4, linearizability at the clients: Wing and Gong's search with Lowe's memory, key by key. An
//! operation whose outcome a client does not know may have happened at any time after it was sent, or
//! never. Fast reads count like all others.
//!
//! A scan counts as a read of every key in its range; versions, which one counter of the whole store
//! gives out, need only grow at each key. Both only weaken what is demanded.

use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use troth_kv::{Answer, Operation};

/// One operation on one key as a client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When it was sent, virtual microseconds.
    pub invoked: u64,
    /// When its result was shown; none where the outcome is unknown.
    pub returned: Option<u64>,
    /// What was asked.
    pub operation: Operation,
    /// What was answered, if known.
    pub answer: Option<Answer>,
}

/// What the search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is an order.
    Linearizable,
    /// There is none.
    Impossible,
    /// The search took too long.
    Undecided,
}

/// Search steps per key before it is given up.
const MAX_STEPS: usize = 20_000;

/// All histories of one run.
#[derive(Debug, Default)]
pub struct Linear {
    keys: BTreeMap<Bytes, Vec<Call>>,
    /// Keys whose search was given up.
    pub undecided: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Register {
    /// The value with its version; the version of a write with unknown outcome is not known.
    held: Option<(Option<u64>, Bytes)>,
    /// The highest version known to be used.
    floor: u64,
}

impl Register {
    fn holds_version(&self, version: u64) -> bool {
        match &self.held {
            Some((Some(known), _)) => *known == version,
            Some((None, _)) => version > self.floor,
            None => false,
        }
    }

    fn bind(&self, version: u64) -> Self {
        let value = self.held.as_ref().map(|(_, value)| (Some(version), value.clone()));
        Self { held: value, floor: self.floor.max(version) }
    }

    fn written(&self, version: Option<u64>, value: &Bytes) -> Option<Self> {
        version
            .is_none_or(|version| version > self.floor)
            .then(|| Self { held: Some((version, value.clone())), floor: version.unwrap_or(self.floor) })
    }

    fn deleted(&self, version: Option<u64>) -> Option<Self> {
        let possible = self.held.is_some() && version.is_none_or(|version| version > self.floor);
        possible.then(|| Self { held: None, floor: version.unwrap_or(self.floor) })
    }

    /// The register with what a compare-and-swap expects made certain, if it may be so.
    fn expecting(&self, expected: Option<u64>) -> Option<Self> {
        match expected {
            None => self.held.is_none().then(|| self.clone()),
            Some(version) => self.holds_version(version).then(|| self.bind(version)),
        }
    }

    /// The registers that an operation with this answer can lead to.
    fn step(&self, operation: &Operation, answer: Option<&Answer>) -> [Option<Self>; 2] {
        let unknown = answer.is_none();
        match (operation, answer) {
            (Operation::Get { .. }, Some(Answer::Value { version, value })) => {
                let same = self.held.as_ref().is_some_and(|(_, held)| held == value);
                [(same && self.holds_version(*version)).then(|| self.bind(*version)), None]
            }
            (Operation::Get { .. }, Some(Answer::NotFound)) => {
                [self.held.is_none().then(|| self.clone()), None]
            }
            (Operation::Put { value, .. }, Some(Answer::Written { version })) => {
                [self.written(Some(*version), value), None]
            }
            (Operation::Put { value, .. }, None) => [self.written(None, value), None],
            (Operation::Delete { .. }, Some(Answer::Deleted { version })) => {
                [self.deleted(Some(*version)), None]
            }
            (Operation::Delete { .. }, Some(Answer::NotFound)) => {
                [self.held.is_none().then(|| self.clone()), None]
            }
            (Operation::Delete { .. }, None) => [self.deleted(None).or(Some(self.clone())), None],
            (Operation::CompareAndSwap { expected, .. }, Some(Answer::Mismatch { current })) => {
                let differs = current != expected;
                [if differs { self.expecting(*current) } else { None }, None]
            }
            (
                Operation::CompareAndSwap { expected, value: Some(value), .. },
                Some(Answer::Written { version }),
            ) => [self.expecting(*expected).and_then(|state| state.written(Some(*version), value)), None],
            (Operation::CompareAndSwap { expected, value: None, .. }, Some(Answer::Deleted { version })) => {
                [self.expecting(*expected).and_then(|state| state.deleted(Some(*version))), None]
            }
            (Operation::CompareAndSwap { expected: None, value: None, .. }, Some(Answer::NotFound)) => {
                [self.held.is_none().then(|| self.clone()), None]
            }
            (Operation::CompareAndSwap { expected, value, .. }, None) => {
                let swapped = self.expecting(*expected).and_then(|state| match value {
                    Some(value) => state.written(None, value),
                    None => state.deleted(None),
                });
                [swapped, Some(self.clone())]
            }
            _ if unknown => [Some(self.clone()), None],
            _ => [None, None],
        }
    }
}

impl Linear {
    /// Adds what a client saw on one key.
    pub fn add(&mut self, key: Bytes, call: Call) {
        self.keys.entry(key).or_default().push(call);
    }

    /// Judges all keys.
    pub fn judge(&mut self) -> Result<(), String> {
        for (key, calls) in &self.keys {
            match judge_key(calls) {
                Verdict::Linearizable => {}
                Verdict::Undecided => self.undecided += 1,
                Verdict::Impossible => {
                    return Err(format!("the history of {key:?} has no order: {}", shorten(calls)));
                }
            }
        }
        Ok(())
    }
}

/// Judges one key. What clients do not know of is left out first, except writes that somebody saw;
/// only where that shows no order, the rest is tried.
fn judge_key(calls: &[Call]) -> Verdict {
    let calls = &with_seen_writes(calls);
    let certain: Vec<Call> = calls.iter().filter(|call| call.answer.is_some()).cloned().collect();
    match search(&certain, MAX_STEPS) {
        Verdict::Linearizable => Verdict::Linearizable,
        _ => search(calls, MAX_STEPS),
    }
}

/// Values are written once, so a read that shows a value tells the version of its write.
fn with_seen_writes(calls: &[Call]) -> Vec<Call> {
    let seen: BTreeMap<&Bytes, u64> = calls
        .iter()
        .filter_map(|call| match &call.answer {
            Some(Answer::Value { version, value }) => Some((value, *version)),
            _ => None,
        })
        .collect();
    let resolve = |call: &Call| match &call.operation {
        Operation::Put { value, .. } | Operation::CompareAndSwap { value: Some(value), .. }
            if call.answer.is_none() =>
        {
            let answer = seen.get(value).map(|version| Answer::Written { version: *version });
            Call { answer, ..call.clone() }
        }
        _ => call.clone(),
    };
    calls.iter().map(resolve).collect()
}

/// The shortest impossible prefix of a history, so that a person can see the point.
fn shorten(calls: &[Call]) -> String {
    let mut ends: Vec<u64> = calls.iter().filter_map(|call| call.returned).collect();
    ends.sort_unstable();
    let cut = ends.partition_point(|end| judge_key(&until(calls, *end)) != Verdict::Impossible);
    let end = ends.get(cut).copied().unwrap_or(u64::MAX);
    let prefix = until(calls, end);
    let last: Vec<&Call> = prefix.iter().rev().take(12).collect();
    format!("impossible at {end}; the last calls: {last:?}")
}

fn until(calls: &[Call], end: u64) -> Vec<Call> {
    let cut = |call: &Call| match call.returned {
        Some(returned) if returned <= end => call.clone(),
        _ => Call { returned: None, answer: None, ..call.clone() },
    };
    calls.iter().filter(|call| call.invoked <= end).map(cut).collect()
}

/// The version that a call gave the key, where it wrote and the client knows it.
fn written_version(call: &Call) -> Option<u64> {
    match call.answer {
        Some(Answer::Written { version } | Answer::Deleted { version }) => Some(version),
        _ => None,
    }
}

/// Looks for an order of one key's calls.
pub(crate) fn search(calls: &[Call], max_steps: usize) -> Verdict {
    let calls = with_seen_writes(calls);
    let mut calls: Vec<&Call> = calls.iter().filter(|call| matters(call)).collect();
    calls.sort_by_key(|call| (call.invoked, call.returned.unwrap_or(u64::MAX)));
    let mut versions: Vec<(u64, usize)> =
        calls.iter().enumerate().filter_map(|(index, call)| Some((written_version(call)?, index))).collect();
    versions.sort_unstable();
    let known = calls.iter().filter(|call| call.returned.is_some()).count();
    let mut taken = vec![0u64; calls.len().div_ceil(64)];
    let mut visited: BTreeSet<(Vec<u64>, Register)> = BTreeSet::new();
    let mut steps = 0;
    // Each level: the candidates not yet tried (call, register after).
    let mut levels = vec![candidates(&calls, &versions, &taken, &Register::default())];
    let mut path: Vec<usize> = Vec::new();
    let mut done = 0;
    while done < known {
        steps += 1;
        if steps > max_steps {
            return Verdict::Undecided;
        }
        let level = levels.last_mut().expect("the first level is removed only at the end");
        let Some((index, state)) = level.pop() else {
            levels.pop();
            let Some(index) = path.pop() else { return Verdict::Impossible };
            taken[index / 64] &= !(1 << (index % 64));
            done -= usize::from(calls[index].returned.is_some());
            continue;
        };
        taken[index / 64] |= 1 << (index % 64);
        if !visited.insert((taken.clone(), state.clone())) {
            taken[index / 64] &= !(1 << (index % 64));
            continue;
        }
        done += usize::from(calls[index].returned.is_some());
        path.push(index);
        levels.push(candidates(&calls, &versions, &taken, &state));
    }
    Verdict::Linearizable
}

/// A read with unknown outcome constrains nothing.
fn matters(call: &Call) -> bool {
    call.answer.is_some() || !matches!(call.operation, Operation::Get { .. } | Operation::Scan { .. })
}

/// What may come next: calls sent before the first return among those left. One that leaves the
/// register as it is can be taken at once and alone; of the writes whose versions are known only the
/// lowest can be next. The last of the list is tried first.
fn candidates(
    calls: &[&Call],
    versions: &[(u64, usize)],
    taken: &[u64],
    state: &Register,
) -> Vec<(usize, Register)> {
    let free = |index: usize| taken[index / 64] & (1 << (index % 64)) == 0;
    let lowest = versions.iter().find(|(_, index)| free(*index)).map(|(_, index)| *index);
    let mut horizon = u64::MAX;
    let mut found = Vec::new();
    for (index, call) in calls.iter().enumerate().filter(|(index, _)| free(*index)) {
        if call.invoked > horizon {
            break;
        }
        horizon = horizon.min(call.returned.unwrap_or(u64::MAX));
        found.push((index, *call));
    }
    found.retain(|(index, call)| {
        call.invoked <= horizon && (written_version(call).is_none() || Some(*index) == lowest)
    });
    for (index, call) in &found {
        if call.answer.is_some() && written_version(call).is_none() {
            let [next, other] = state.step(&call.operation, call.answer.as_ref());
            if other.is_none() && next.as_ref() == Some(state) {
                return vec![(*index, state.clone())];
            }
        }
    }
    // Writes that nobody saw are alike, and so are deletions without an answer: the earliest stands for
    // all of its kind.
    let (mut put, mut delete) = (false, false);
    found.retain(|(_, call)| match (&call.operation, &call.answer) {
        (Operation::Put { .. }, None) => !std::mem::replace(&mut put, true),
        (Operation::Delete { .. }, None) => !std::mem::replace(&mut delete, true),
        _ => true,
    });
    // Known outcomes before unknown ones.
    found.sort_by_key(|(_, call)| std::cmp::Reverse(call.returned.unwrap_or(u64::MAX)));
    found
        .into_iter()
        .flat_map(|(index, call)| {
            let next = state.step(&call.operation, call.answer.as_ref());
            next.into_iter().flatten().map(move |state| (index, state))
        })
        .collect()
}
