//! What clients ask of a service, and what they make of its answers.

use crate::Rng;
use crate::checks::Checks;
use bytes::Bytes;
use troth_types::{ClientId, Event, Seq};

/// What a client does with a service.
pub trait Workload {
    /// So many operations, to be ordered together. `now` is virtual microseconds.
    fn operations(&mut self, now: u64, rng: &mut Rng, count: usize) -> Vec<Bytes>;
    /// One that only reads.
    fn read(&mut self, now: u64, rng: &mut Rng) -> Bytes;
    /// What was asked has an outcome, or will have none that the client learns.
    fn done(&mut self, call: &Called<'_>, checks: &mut Checks);
    /// An event was delivered.
    fn told(&mut self, now: u64, event: &Event, checks: &mut Checks);
}

/// What a client asked at once, and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// Who asked.
    pub client: ClientId,
    /// What.
    pub operations: &'a [Bytes],
    /// The results, if they are known.
    pub results: Option<&'a [Bytes]>,
    /// When it was asked, virtual microseconds.
    pub invoked: u64,
    /// When the results were shown, or given up.
    pub now: u64,
    /// The last place of the order of which anybody was shown something when it was asked.
    pub since: Seq,
    /// Whether it was a read that need not be ordered.
    pub read: bool,
    /// Whether the client takes for done what is executed tentatively.
    pub tentative: bool,
}
