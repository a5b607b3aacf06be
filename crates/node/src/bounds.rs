//! What a replica's process may have resident, beside the service's state: the sum of the bounds of everything
//! that others can fill. docs/internals/bounds.md has the table.

use crate::config::{Auth, Cluster, Protocol};
use crate::connection::{CLIENT_OVERHEAD, CLIENT_UNSENT_AT_LEAST, CLIENTS_UNSENT, REPLICA_UNSENT};
use crate::engine::BACKLOG_BYTES;
use crate::inbox::{CLIENTS_BYTES, LANE_BYTES};
use crate::served::{batches_per_number, largest_message};
use troth_blocks::MOST_WAITING;
use troth_core::{HELD_NAMES, HELD_READS, HELD_REPLIES, UNASKED};
use troth_minbft::KEPT_FRAMES;

/// The program, its threads and what the allocator keeps at hand.
const PROGRAM: usize = 128 << 20;
/// The buffers of one connection: two records that come in, and as many opened.
const BUFFERS: usize = 256 << 10;
/// Bytes of a certified message that is held, beside the digests of its batch.
const CERTIFIED: usize = 1024;

/// What each frame of a batch takes whose place in a history is not proven yet: two nodes of its tree, its client and number.
const UNPROVEN: usize = 96;

/// The bound for a replica of this cluster with so many clients in its configuration, in bytes.
#[must_use]
pub fn memory_bound(cluster: &Cluster, clients: usize) -> u64 {
    let limits = &cluster.limits;
    let bounded = |number: u64| usize::try_from(number).expect("bounded by the configuration");
    let (n, window) = (cluster.group.n(), bounded(cluster.timing.window));
    let largest = largest_message(cluster).max(16 << 20);
    // Read ahead, one message that is coming in, and what waits to go out, of which as much again may be written.
    let peer = LANE_BYTES + largest + BUFFERS + 2 * REPLICA_UNSENT.max(largest);
    // What all clients share, and what each has for itself: a message that is coming in, or the one in its lane.
    let shared = CLIENTS_BYTES + 2 * CLIENTS_UNSENT;
    let pending = limits.frame_bytes.saturating_mul(bounded(limits.client_window));
    let client =
        limits.frame_bytes + CLIENT_OVERHEAD + BUFFERS + pending + 2 * CLIENT_UNSENT_AT_LEAST + UNASKED;
    // Frames of batches until these are behind a stable checkpoint, and of those that are fetched ahead.
    let kept = batches_per_number(cluster) * KEPT_FRAMES.max(window * limits.frame_bytes);
    let ahead = bounded(cluster.timing.pipeline).max(4) * limits.batch_frames * limits.frame_bytes;
    // The same of those that may be their clients' or not, with PBFT's authenticators: these batches' bytes, and a frame.
    let batch = (KEPT_FRAMES / window.max(1)).max(limits.frame_bytes);
    let tagged = cluster.auth == Auth::Mac;
    let doubtful =
        if tagged { bounded(cluster.timing.pipeline).max(4) * batch + limits.frame_bytes } else { 0 };
    // Certified messages: each replica's log and hold-back, and a quorum of VIEW-CHANGEs in a NEW-VIEW.
    let certified = CERTIFIED + 32 * limits.batch_frames;
    let protocol = n * (7 * window + 64) * certified + 4 * n * largest;
    // Replies that wait for the proof of their batch's place, and batches that wait for a slot of the history.
    let proves = matches!(cluster.protocol, Protocol::A2mPbftE | Protocol::A2mPbftEa);
    let proven = if proves {
        HELD_REPLIES + HELD_NAMES * UNPROVEN + MOST_WAITING * limits.batch_frames * UNPROVEN
    } else {
        0
    };
    let others = PROGRAM + HELD_READS + 2 * BACKLOG_BYTES + proven;
    let sum = others + (n - 1) * peer + shared + clients * client + kept + ahead + doubtful + protocol;
    sum as u64
}
