//! What a replica does that is behind a stable checkpoint: it waits for the ordinary messages, or fetches the state.

use troth_types::Seq;

/// Whether a replica is watched for being behind, and what state it fetched last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Lag {
    watched: bool,
    fetched: Seq,
}

/// What one does that finds itself behind a stable checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Lets the ordinary messages arrive, until a timer is due that is set now.
    Waits,
    /// Goes on waiting.
    WaitsAlready,
    /// Fetches the checkpoint's state at once.
    Fetches,
}

impl Lag {
    /// This replica executed up to `delivered`, which is less than what is `stable`.
    ///
    /// One that is a whole window behind cannot catch up by messages. Nor can one wait for a state that is on its way
    /// when a later one is stable: whoever has that lets go of the earlier, so it goes on with the later at once.
    pub fn noticed(&mut self, delivered: Seq, stable: Seq, window: u64) -> Behind {
        if self.fetched > delivered || delivered.0.saturating_add(window) <= stable.0 {
            Behind::Fetches
        } else if std::mem::replace(&mut self.watched, true) {
            Behind::WaitsAlready
        } else {
            Behind::Waits
        }
    }

    /// This checkpoint's state is fetched, and a timer set for what happens where it does not come.
    pub fn fetches(&mut self, stable: Seq) {
        *self = Self { watched: true, fetched: stable };
    }

    /// Whether a timer runs for what happens where this replica stays behind.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watched
    }

    /// The timer is due, or is not needed any more.
    pub fn is_over(&mut self) {
        self.watched = false;
    }
}
