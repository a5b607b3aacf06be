//! Passive building blocks that protocols share. Blocks answer and never act: none sees a context or
//! makes an effect, so all control flow of a protocol stands in that protocol's files.
#![forbid(unsafe_code)]

mod back_off;
mod budget;
mod clock;
mod doubt;
mod favours;
mod frames;
mod gate;
mod history;
mod kept_history;
mod lacked;
mod lag;
mod pace;
mod patience;
mod pool;
mod shown_again;
mod voters;

pub use back_off::BackOff;
pub use budget::{KEPT_FRAMES, MAX_WINDOW, batch_bytes, check_window, pending_bytes};
pub use clock::{is_due, is_fresh};
pub use doubt::Doubt;
pub use favours::{Favours, FavoursAsked};
pub use frames::FrameStore;
pub use gate::{CounterGate, Offered};
pub use history::{Attested, Begins, DIVERGED, Held, HistoryLog, MOST_VALUES, MOST_WAITING};
pub use kept_history::KeptHistory;
pub use lacked::LackedFrames;
pub use lag::{Behind, Lag};
pub use pace::{Look, Pace};
pub use patience::{Lateness, OrderedAt, Patience, Shown};
pub use pool::{Admitted, RequestPool, Stock, Waiting};
pub use shown_again::ShownAgain;
pub use voters::Voters;

#[cfg(test)]
mod tests;
