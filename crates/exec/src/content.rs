//! What of a state belongs to the application alone, and can go on in another group.
//!
//! A backup is restored into a group with other keys. What belongs to clients of the old one cannot go with
//! it: the client table, which says what frames of keys were executed that nobody holds any more, the
//! outboxes, and what an application keeps for its clients' sessions. What is left is the content; its digest
//! says nothing of keys, clients or configuration, so the same content has the same digest before and after.

use crate::place::piece;
use crate::state::APPLICATION;
use crate::{Application, MerkleMap, Snapshot};
use troth_types::{Digest, Seq, StateFetch, StatePiece};

impl Snapshot {
    /// The application's content as the first state of another group: sequence number 0, the same agreed
    /// time, and of the entries those that [`Application::outlives_clients`] keeps.
    #[must_use]
    pub fn content<A: Application>(&self, application: &A) -> Self {
        let mut map = MerkleMap::new();
        self.tree().for_each(|key, value| {
            if key.first() == Some(&APPLICATION) && application.outlives_clients(&key[1..]) {
                map.insert(key, value);
            }
        });
        Self::of(Seq(0), self.time(), map.tree_now())
    }

    /// The digest of the content alone: of the entries that [`Snapshot::content`] keeps, and of nothing else.
    #[must_use]
    pub fn content_digest<A: Application>(&self, application: &A) -> Digest {
        self.content(application).root()
    }

    /// How many entries it has.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.tree().entries()
    }

    /// One piece of it, as a replica serves it; nothing where it is asked for another state, or for a place
    /// that it does not have.
    #[must_use]
    pub fn serve(&self, fetch: &StateFetch) -> Option<StatePiece> {
        if (fetch.seq, fetch.digest) != (self.seq(), self.digest()) {
            return None;
        }
        piece(self.time(), self.tree(), fetch)
    }
}
