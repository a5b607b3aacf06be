//! What a replica's clock says of the time that a primary proposes.

use troth_types::Time;

/// Whether a batch's time is not ahead of the clock by more than the bound. Once true it stays true, so a batch that was
/// good in one view is good in the next, however long the view change took (guide.md §1.3).
#[must_use]
pub fn is_due(time: Time, clock: Time, clock_bound: u64) -> bool {
    time <= clock.after(clock_bound)
}

/// Whether a batch that is proposed for the first time is not older than a correct primary's can be: its clock is behind
/// by no more than the bound, and it takes no longer than the request time-out on its way. The bound does not grow with the
/// time-outs of views that failed: a group in which proposals take longer does not go on.
/// Were old times borne, a faulty primary could hold the agreed time back and then let it jump: what a service promises
/// for a time would be over at once. All are microseconds.
#[must_use]
pub fn is_fresh(time: Time, clock: Time, clock_bound: u64, request_timeout: u64) -> bool {
    clock <= time.after(clock_bound.saturating_add(request_timeout))
}
