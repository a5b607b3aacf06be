//! One word per replica: the only way this crate counts.

use troth_types::ReplicaId;

/// What each replica said last. A replica that speaks twice replaces its own word, so no quorum
/// counts it twice.
#[derive(Clone, Debug)]
pub(crate) struct Ballot<T> {
    words: Vec<Option<T>>,
}

impl<T: PartialEq> Ballot<T> {
    pub(crate) fn new(replicas: usize) -> Self {
        Self { words: (0..replicas).map(|_| None).collect() }
    }

    /// Takes a replica's word; answers how many replicas say the same now. Callers have checked
    /// that the replica belongs to the group.
    pub(crate) fn cast(&mut self, from: ReplicaId, word: T) -> usize {
        let same = self
            .words
            .iter()
            .enumerate()
            .filter(|(index, said)| *index != usize::from(from.0) && said.as_ref() == Some(&word))
            .count();
        self.words[usize::from(from.0)] = Some(word);
        same + 1
    }

    /// What a replica said.
    pub(crate) fn word(&self, of: ReplicaId) -> Option<&T> {
        self.words.get(usize::from(of.0)).and_then(Option::as_ref)
    }

    /// All words, one for each replica that spoke.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        self.words.iter().flatten()
    }

    /// How many replicas have not spoken.
    pub(crate) fn silent(&self) -> usize {
        self.words.iter().filter(|word| word.is_none()).count()
    }
}
