//! What replicas ask this one to send them, until its turn comes. Pieces of state and frames are large and
//! their questions small, so they wait beside the lanes: whoever catches up must not have its votes wait behind
//! its questions, and whoever asks without end waits alone.

use std::collections::VecDeque;
use troth_types::ReplicaId;

/// Questions of one replica that wait. It asks again for what finds no place.
const MOST: usize = 256;

/// Questions that wait, by replica.
#[derive(Debug)]
pub(crate) struct Fetches<Q> {
    waiting: Vec<VecDeque<Q>>,
    /// Whose turn it is.
    next: usize,
}

impl<Q> Fetches<Q> {
    pub(crate) fn new(replicas: usize) -> Self {
        Self { waiting: (0..replicas).map(|_| VecDeque::new()).collect(), next: 0 }
    }

    /// Takes a question in; tells whether there was a place for it. It takes the place of one that waits and that
    /// it `repeats`: on a slow link both answers would stand in each other's way, and in that of everything else.
    pub(crate) fn push(&mut self, from: ReplicaId, question: Q, repeats: impl Fn(&Q) -> bool) -> bool {
        let waiting = &mut self.waiting[usize::from(from.0)];
        if let Some(earlier) = waiting.iter_mut().find(|earlier| repeats(earlier)) {
            *earlier = question;
            return true;
        }
        let room = waiting.len() < MOST;
        if room {
            waiting.push_back(question);
        }
        room
    }

    /// The replicas that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = ReplicaId> {
        (0u16..).zip(&self.waiting).filter(|(_, waiting)| !waiting.is_empty()).map(|(id, _)| ReplicaId(id))
    }

    /// The next question of a replica that `may` be answered, each in turn, and whose it is.
    pub(crate) fn take(&mut self, may: impl Fn(ReplicaId) -> bool) -> Option<(ReplicaId, Q)> {
        let n = self.waiting.len();
        for step in 0..n {
            let at = (self.next + step) % n;
            let replica = ReplicaId(u16::try_from(at).expect("a group counts in u16"));
            if !self.waiting[at].is_empty() && may(replica) {
                self.next = at + 1;
                return self.waiting[at].pop_front().map(|question| (replica, question));
            }
        }
        None
    }
}
