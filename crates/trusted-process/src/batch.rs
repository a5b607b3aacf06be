//! Which calls may share a frame.
//!
//! When a connection is lost while a frame is being answered, the client does not know which of its
//! calls were done: none, some or all, for the process may have been killed between two of them. It
//! asks again. That is right only if doing any first part of the frame and then the whole frame gives
//! the same answers and leaves the same counters as doing the frame once. Calls one by one have this
//! property: the last move of a counter repeated returns the same certificate, and a refused call
//! changed nothing. A frame has it if no call's outcome depends on a move that comes later in the frame.
//!
//! Where it does depend, a blind repetition burns values. Of `0→1` and `1→2` in one frame, both done,
//! the repetition refuses the first: the certificate of 1 is lost, and no component makes it again. Of
//! `5→6` (refused, the counter stands at 4) and `4→5` (done), the repetition does the first and refuses
//! the second. Neither certifies two digests for a value, but the host misses evidence that its peers wait
//! for. So such a batch is cut, and each part is sent once the one before was answered:
//!
//! * no counter is moved by two calls of a frame;
//! * no counter is read in a frame before it moves there;
//! * no counter at all moves after a `Resume`, since what was moved together with the resumed one, which
//!   the client does not know, decides whether its last certificate can still be made.
//!
//! A move with a blob beside it is a frame by itself.
//!
//! A caller that moves every counter once per batch, as [`TrustedComponent`](troth_trusted_host::TrustedComponent)
//! asks it to, gets one frame per batch.

use crate::wire::MAX_CALLS;
use troth_trusted::CounterId;
use troth_trusted_host::Call;

/// The calls in order, cut into the longest frames that may be repeated as a whole.
pub fn frames(calls: &[Call]) -> impl Iterator<Item = &[Call]> {
    let mut rest = calls;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut named = Named::default();
        let fits = rest.iter().take(MAX_CALLS).take_while(|call| named.admits(call)).count();
        let (frame, after) = rest.split_at(fits);
        rest = after;
        Some(frame)
    })
}

/// What the calls of a frame name so far: sets of counters, bit `i` for counter `i`.
#[derive(Default)]
struct Named {
    moved: u8,
    read: u8,
    resumed: bool,
}

impl Named {
    /// Whether one more call leaves the frame repeatable, in which case it belongs to it from now on.
    /// The first call of a frame always does.
    fn admits(&mut self, call: &Call) -> bool {
        let moves = match call {
            Call::Attest { counter, .. } => bit(*counter),
            Call::AttestMulti { moves, .. } => {
                moves.as_slice().iter().fold(0, |set, moved| set | bit(moved.counter))
            }
            Call::Resume { .. } => {
                self.resumed = true;
                return true;
            }
            Call::Read { counter } => {
                self.read |= bit(*counter);
                return true;
            }
        };
        let free = moves == 0 || (moves & (self.moved | self.read) == 0 && !self.resumed);
        self.moved |= if free { moves } else { 0 };
        free
    }
}

/// The counter's bit; none for a counter that does not exist, which is refused whatever else is asked.
fn bit(counter: CounterId) -> u8 {
    1u8.checked_shl(u32::from(counter.0)).unwrap_or(0)
}
