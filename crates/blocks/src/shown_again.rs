//! Large messages that one replica is sent in answer to its STATUS messages: each may be megabytes, and what its sender
//! lacks is what it says.

use std::collections::BTreeMap;
use troth_types::Time;

/// The most in one answer.
const MOST_LARGE: usize = 4;
/// Doublings of the time after which one that was sent is sent again: half an interval between two STATUS messages, so that
/// the next has it, and sixteen of them in the end.
const MOST_DOUBLINGS: u32 = 5;

/// What one replica was sent, by its name: when each was last, and how often before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownAgain<N>(BTreeMap<N, (Time, u32)>);

impl<N> Default for ShownAgain<N> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<N: Copy + Ord> ShownAgain<N> {
    /// Which of those that it lacks are sent now, in answer to one STATUS: the first few that it was not sent so lately that they
    /// may be on their way, or so often that it seems to want them for no more than to have them sent. `interval` is that
    /// between two STATUS messages, in microseconds.
    pub fn choose(&mut self, now: Time, interval: u64, lacking: &[N]) -> Vec<N> {
        let is_due = |name: &&N| {
            let sent = self.0.get(name);
            sent.is_none_or(|(at, times)| now.0 >= at.0.saturating_add((interval / 2) << times))
        };
        let chosen: Vec<N> = lacking.iter().filter(is_due).take(MOST_LARGE).copied().collect();
        for name in &chosen {
            let again =
                |(at, times): &mut (Time, u32)| (*at, *times) = (now, (*times + 1).min(MOST_DOUBLINGS));
            self.0.entry(*name).and_modify(again).or_insert((now, 0));
        }
        chosen
    }

    /// Forgets those that are not here any more.
    pub fn retain(&mut self, is_here: impl Fn(&N) -> bool) {
        self.0.retain(|name, _| is_here(name));
    }
}
