//! Who looks on while frames are executed and reads are answered.

use core::fmt::Debug;
use troth_types::ClientId;

/// Looks on while frames are executed, and reads are answered that have no step of their own, so that a host can charge
/// what they take to their clients. Results and state are the same with it and without: it decides only how many reads
/// share a step.
pub trait Meter: Debug + Send + Sync {
    /// The next frame or read begins; what came before it is nobody's.
    fn begins(&self);
    /// The frame that began last has been executed. It was this client's.
    fn executed(&self, client: ClientId);
    /// The read that began last has been answered. It was this client's. How many microseconds it took.
    fn answered(&self, client: ClientId) -> u64;
}
