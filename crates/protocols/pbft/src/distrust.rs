//! Of which clients only what is signed is proposed, and until when (PBFT-M4, M5).

use std::collections::{BTreeMap, BTreeSet};
use troth_blocks::Voters;
use troth_core::rule;
use troth_types::{ClientId, Time};

/// Signed frames of a client that are executed before its tags count again for the first time. Each further time it takes
/// twice as many: what a client costs that makes wrong tags again and again grows no faster than the logarithm of what it asks.
const SIGNED: u64 = 256;
/// Doublings of that.
const MOST_DOUBLINGS: u32 = 20;

/// A client in whose frames, as it sent them, f+1 found their tags wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Owed {
    /// Signed frames until it may use tags again; 0 where it may.
    left: u64,
    /// How often it was found so.
    times: u32,
}

/// What tags of clients are worth here.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Distrust {
    /// Clients of whom a frame was shown in this view in which the own tag is wrong: whoever showed it may have spoilt it.
    in_view: BTreeSet<ClientId>,
    /// When the others were told of one at once, last.
    told: BTreeMap<ClientId, Time>,
    /// Who found its tag wrong in frames that these clients sent.
    complaints: BTreeMap<ClientId, Voters>,
    owed: BTreeMap<ClientId, Owed>,
}

impl Distrust {
    /// Whether nothing of a client counts here without signature.
    pub(crate) fn has(&self, client: ClientId) -> bool {
        self.in_view.contains(&client) || self.owed.get(&client).is_some_and(|owed| owed.left > 0)
    }

    /// Whether the others are told at once of a frame of the client in which the own tag is wrong: once in an interval.
    pub(crate) fn may_tell(&mut self, client: ClientId, now: Time, interval: u64) -> bool {
        let may = self.told.get(&client).is_none_or(|told| now.0 >= told.0.saturating_add(interval));
        if may {
            self.told.insert(client, now);
        }
        may
    }

    /// A frame of the client was shown in which the own tag is wrong. Whether that is news of it.
    pub(crate) fn shown(&mut self, client: ClientId) -> bool {
        let known = self.has(client);
        self.in_view.insert(client);
        !known
    }

    /// A replica found its tag wrong in a frame that the client sent. Whether that is news, and whether so many did now
    /// that the client has to sign.
    pub(crate) fn complains(
        &mut self,
        client: ClientId,
        from: troth_types::ReplicaId,
        weak: usize,
    ) -> (bool, bool) {
        let complainers = self.complaints.entry(client).or_insert(Voters::NONE);
        let news = !complainers.contains(from);
        complainers.insert(from);
        if complainers.count() >= weak {
            let owed = self.owed.entry(client).or_default();
            if owed.left == 0 {
                *owed = Owed { left: SIGNED << owed.times, times: (owed.times + 1).min(MOST_DOUBLINGS) };
                return (news, true);
            }
        }
        (news, false)
    }

    /// Who complained of a client.
    pub(crate) fn complainers(&self, client: ClientId) -> Voters {
        self.complaints.get(&client).copied().unwrap_or_default()
    }

    /// A signed frame of the client was executed.
    pub(crate) fn signed(&mut self, client: ClientId) {
        let Some(owed) = self.owed.get_mut(&client).filter(|owed| owed.left > 0) else { return };
        rule!("PBFT-M4");
        owed.left -= 1;
        if owed.left == 0 {
            self.complaints.remove(&client);
        }
    }

    /// The view is over: the next primary shows frames of its own.
    pub(crate) fn view_ends(&mut self) {
        self.in_view.clear();
        self.told.clear();
    }
}
