//! What a service implements.

use crate::{FrameOperations, State, StateView};
use bytes::Bytes;
use core::fmt::Debug;
use troth_types::{ClientId, Digest, Hasher, Seq, Time};

/// The most bytes of one event's payload.
pub const MAX_EVENT_BYTES: usize = 16 << 10;

/// A deterministic service. The value itself is configuration and is the same at every replica;
/// all state is in the [`State`] it is given, so that a checkpoint, a transfer or a rollback of
/// that state is one of the service.
pub trait Application: Clone + Debug {
    /// Whether the service scans keys in order. An ordered index over its keys is kept only then.
    const SCANS: bool = false;

    /// Executes one operation and returns its result: a pure function of the state, the context
    /// and the operation. The operation is whatever a client sent; anything the service cannot make
    /// sense of has an answer of its own and never a panic.
    fn execute(&self, state: &mut State<'_>, cx: &mut OpContext<'_>, operation: &Bytes) -> Bytes;

    /// Executes the operations of a frame, one after the other and each of them. As if
    /// [`Application::execute`] were called for each: a service that writes something with every operation may
    /// write it here once, since nobody sees the state between them.
    fn execute_frame(&self, state: &mut State<'_>, operations: &mut FrameOperations<'_>) {
        while let Some((mut cx, operation)) = operations.next() {
            let result = self.execute(state, &mut cx, &operation);
            operations.answer(result);
        }
    }

    /// Answers an operation that only reads, from the current state.
    fn query(&self, state: &StateView<'_>, client: ClientId, operation: &Bytes) -> Bytes;

    /// Whether the operation changes no state and causes no event, whatever the state is: a function of
    /// the operation alone. Such an operation need not be executed where its result would not be
    /// shown; see [`Application::too_large`]. "No" is always right.
    fn only_reads(&self, _operation: &Bytes) -> bool {
        false
    }

    /// The result put in the place of one over the group's limits (`result_bytes` for one result,
    /// `client_bytes` for all of a frame). What the operation did to the state stays done; services
    /// bound their results so that this is not met. Once the operations of a frame have made more
    /// than `client_bytes` of results, the frame's remaining reads ([`Application::only_reads`]) have
    /// this result without being executed.
    fn too_large(&self) -> Bytes {
        Bytes::new()
    }

    /// Whether the entry under this key means something without the clients of this group: a restored backup
    /// goes on with other clients, under other keys, and gets these entries only. What is kept for a client
    /// (a watch, a session, a lock that ends with one) is not among them. A function of the key alone.
    fn outlives_clients(&self, _key: &[u8]) -> bool {
        true
    }

    /// The agreed time at which the service has something to do, if any.
    fn next_deadline(&self, _state: &StateView<'_>) -> Option<Time> {
        None
    }

    /// Called once before the frames of a batch whose time has reached [`Application::next_deadline`];
    /// does all that is due at `cx.time`, so that the next deadline lies after it.
    fn on_deadline(&self, _state: &mut State<'_>, _cx: &mut OpContext<'_>) {}
}

/// What an operation may know beside the state, and where its events go.
#[derive(Debug)]
pub struct OpContext<'a> {
    /// Who asks. For a deadline nobody does, and this is client 0.
    pub client: ClientId,
    /// The number of the client's frame; 0 for a deadline.
    pub number: u64,
    /// The operation's place in its frame, from 0.
    pub index: usize,
    /// The batch in which it executes.
    pub seq: Seq,
    /// The agreed time, in microseconds since the Unix epoch.
    pub time: Time,
    /// The batch's agreed seed: the same at every replica, not unpredictable.
    pub seed: Digest,
    pub(crate) events: &'a mut Vec<(ClientId, Bytes)>,
}

impl<'a> OpContext<'a> {
    /// A context as the executor makes it: for the tests of services. Events go to `events`, by
    /// receiver.
    #[must_use]
    pub fn new(
        client: ClientId,
        number: u64,
        seq: Seq,
        time: Time,
        seed: Digest,
        events: &'a mut Vec<(ClientId, Bytes)>,
    ) -> Self {
        Self { client, number, index: 0, seq, time, seed, events }
    }

    /// Puts an event into a client's outbox. The client delivers it before it shows the reply of
    /// any frame executed after this.
    ///
    /// # Panics
    /// If the payload is empty (an empty payload tells a client that events were lost) or over
    /// [`MAX_EVENT_BYTES`]: both are the service's bugs.
    pub fn emit(&mut self, to: ClientId, payload: Bytes) {
        assert!(!payload.is_empty(), "an event says something");
        assert!(payload.len() <= MAX_EVENT_BYTES, "a service bounds its events");
        self.events.push((to, payload));
    }

    /// A digest that no other operation gets, the same at every replica: for fresh identifiers.
    #[must_use]
    pub fn unique(&self) -> Digest {
        let mut hasher = Hasher::new("troth/operation-seed/v1");
        hasher.digest(&self.seed).number(self.seq.0).number(self.client.0).number(self.number);
        hasher.number(self.index as u64);
        hasher.finish()
    }
}
