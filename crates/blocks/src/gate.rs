//! The hold-back of one sender's certified messages (MinBFT §4: "no correct server processes a message
//! sent by any server with counter value cv before it has processed the message with cv − 1";
//! guide.md §4.1). Bounded: what does not fit is fetched again later.

use std::collections::BTreeMap;
use troth_trusted::CounterValue;

/// What became of an offered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// It waits for its turn; it may be next.
    Held,
    /// It was processed before, or another copy is held.
    Duplicate,
    /// There is no room for it.
    Full,
}

/// Messages of one sender in counter order. A message follows another when its predecessor is the
/// other's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterGate<M> {
    processed: CounterValue,
    held: BTreeMap<CounterValue, (CounterValue, M)>,
    bound: usize,
}

impl<M: Clone> CounterGate<M> {
    /// A gate before the first message, that holds at most `bound` messages back.
    #[must_use]
    pub fn new(bound: usize) -> Self {
        Self { processed: CounterValue(0), held: BTreeMap::new(), bound }
    }

    /// The value of the last processed message.
    #[must_use]
    pub fn processed(&self) -> CounterValue {
        self.processed
    }

    /// Whether messages wait for one that has not come.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        !self.held.is_empty() && self.next().is_none()
    }

    /// How many messages are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The held messages, in counter order.
    pub fn waiting(&self) -> impl Iterator<Item = &M> {
        self.held.values().map(|(_, message)| message)
    }

    /// Takes a message in. Where there is no room, a message nearer to its turn displaces the farthest.
    pub fn offer(&mut self, predecessor: CounterValue, value: CounterValue, message: M) -> Offered {
        if value <= self.processed || predecessor < self.processed || self.held.contains_key(&predecessor) {
            return Offered::Duplicate;
        }
        if self.held.len() >= self.bound {
            match self.held.last_key_value() {
                Some((farthest, _)) if *farthest > predecessor => {
                    self.held.pop_last();
                }
                _ => return Offered::Full,
            }
        }
        self.held.insert(predecessor, (value, message));
        Offered::Held
    }

    /// The message whose turn it is, if it is here.
    #[must_use]
    pub fn next(&self) -> Option<M> {
        self.held.get(&self.processed).map(|(_, message)| message.clone())
    }

    /// The message whose turn it was is processed.
    pub fn advance(&mut self) {
        let (value, _) = self.held.remove(&self.processed).expect("advance follows next");
        self.processed = value;
    }

    /// Makes the first held message that `fits` the next one, passing over what is missing before it.
    /// The protocol must know that nothing it needs is passed over.
    pub fn jump_to(&mut self, fits: impl Fn(&M) -> bool) -> bool {
        let found =
            self.held.iter().find(|(_, (_, message))| fits(message)).map(|(predecessor, _)| *predecessor);
        if let Some(predecessor) = found {
            self.held = self.held.split_off(&predecessor);
            self.processed = predecessor;
        }
        found.is_some()
    }

    /// Starts behind a value that is known to be processed.
    pub fn start_at(&mut self, value: CounterValue) {
        self.processed = value;
        self.held = self.held.split_off(&value);
    }
}
