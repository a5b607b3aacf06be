//! Who looks on while frames are executed and reads are answered.

use core::fmt::Debug;
use troth_types::ClientId;

/// Looks on while frames are executed, and reads are answered that have no step of their own, so that a host can charge
/// what they take to their clients. It decides nothing: results and state are the same with it and without.
pub trait Meter: Debug + Send + Sync {
    /// The next frame or read begins; what came before it is nobody's.
    fn begins(&self);
    /// The frame that began last has been executed. It was this client's.
    fn executed(&self, client: ClientId);
    /// The read that began last has been answered. It was this client's.
    fn answered(&self, client: ClientId);
}
