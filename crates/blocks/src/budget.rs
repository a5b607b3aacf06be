//! Bytes of frames that a replica may have to keep, and the shares of it.

use troth_types::Limits;

/// Bytes of frames that are kept until a checkpoint is stable.
pub const KEPT_FRAMES: usize = 256 << 20;

/// Bytes of the frames that one batch may name, where it names more than one: what all batches of a window of so many
/// name stays within [`KEPT_FRAMES`], or within one frame each where that is more.
#[must_use]
pub fn batch_bytes(limits: &Limits, window: u64) -> usize {
    let share = KEPT_FRAMES / usize::try_from(window).unwrap_or(usize::MAX).max(1);
    share.max(limits.frame_bytes)
}

/// Bytes of frames that a client may have pending: its whole window.
#[must_use]
pub fn pending_bytes(limits: &Limits) -> usize {
    let window = usize::try_from(limits.client_window).unwrap_or(usize::MAX);
    limits.frame_bytes.saturating_mul(window)
}

/// The largest window, in batches.
pub const MAX_WINDOW: u64 = 1 << 16;

/// Why a checkpoint interval, a window and a pipeline, in batches, cannot work, if they cannot.
pub fn check_window(interval: u64, window: u64, pipeline: u64) -> Result<(), &'static str> {
    if interval == 0 {
        return Err("the checkpoint interval must be at least 1");
    }
    if window < 2 * interval {
        return Err(
            "the window must be at least twice the checkpoint interval, or ordering stalls at its edge",
        );
    }
    if window > MAX_WINDOW {
        return Err("the window must be at most 65536 batches");
    }
    if pipeline == 0 {
        return Err("the pipeline must be at least 1");
    }
    Ok(())
}
