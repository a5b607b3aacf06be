//! A set of voters: quorums count distinct identities, never messages (guide.md §0.5).

use troth_types::ReplicaId;

/// Who voted. A replica is in it once, whatever it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Voters(u128);

impl Voters {
    /// Nobody.
    pub const NONE: Self = Self(0);

    /// Adds a voter.
    pub fn insert(&mut self, replica: ReplicaId) {
        assert!(replica.0 < 128, "a group has at most 128 replicas");
        self.0 |= 1u128 << replica.0;
    }

    /// Takes a voter out.
    pub fn remove(&mut self, replica: ReplicaId) {
        self.0 &= !(1u128.checked_shl(u32::from(replica.0)).unwrap_or(0));
    }

    /// Whether a replica is among them.
    #[must_use]
    pub fn contains(&self, replica: ReplicaId) -> bool {
        replica.0 < 128 && self.0 & (1 << replica.0) != 0
    }

    /// These and those.
    #[must_use]
    pub fn with(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// How many they are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.count_ones() as usize
    }
}

impl FromIterator<ReplicaId> for Voters {
    fn from_iter<I: IntoIterator<Item = ReplicaId>>(replicas: I) -> Self {
        let mut voters = Self::NONE;
        for replica in replicas {
            voters.insert(replica);
        }
        voters
    }
}
