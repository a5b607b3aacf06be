//! A bound on the bytes that unconfirmed messages of each replica may occupy.

use troth_types::ReplicaId;

/// Bytes held per replica. Each replica has its own share, so one that sends rubbish uses up
/// nobody else's.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    share: usize,
    held: Vec<usize>,
}

impl Budget {
    pub(crate) fn new(replicas: usize, share: usize) -> Self {
        Self { share, held: vec![0; replicas] }
    }

    /// Whether `bytes` more of this replica fit; if so they count as held.
    pub(crate) fn take(&mut self, from: ReplicaId, bytes: usize) -> bool {
        let held = &mut self.held[usize::from(from.0)];
        if bytes > self.share - *held {
            return false;
        }
        *held += bytes;
        true
    }

    /// Returns bytes that [`Budget::take`] granted.
    pub(crate) fn give_back(&mut self, from: ReplicaId, bytes: usize) {
        let held = &mut self.held[usize::from(from.0)];
        assert!(*held >= bytes, "no more is given back than was taken");
        *held -= bytes;
    }

    /// Bytes held now, of all replicas.
    pub(crate) fn total(&self) -> usize {
        self.held.iter().sum()
    }
}
