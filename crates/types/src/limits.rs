//! The bounds that every part of a group shares.

/// Bounds on what clients and peers may make a replica hold. All replicas of a
/// group use the same values: some of them decide whether a frame is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Frames that one client may have outstanding; a slot of its window is number mod this.
    pub client_window: u64,
    /// Operations in one frame.
    pub frame_operations: usize,
    /// Bytes of one frame's encoding.
    pub frame_bytes: usize,
    /// Frames in one batch.
    pub batch_frames: usize,
    /// Bytes of one result.
    pub result_bytes: usize,
    /// Events waiting in one client's outbox.
    pub outbox_events: usize,
    /// Bytes of cached results per client.
    pub client_bytes: usize,
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        client_window: 32,
        frame_operations: 1024,
        frame_bytes: 1 << 20,
        batch_frames: 128,
        result_bytes: 1 << 20,
        outbox_events: 1024,
        client_bytes: 8 << 20,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
