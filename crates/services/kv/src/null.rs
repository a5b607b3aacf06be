//! The service without a state.

use bytes::Bytes;
use troth_exec::{Application, OpContext, State, StateView};
use troth_types::ClientId;

/// Answers every operation with the same number of zero bytes. Its whole state is the client table,
/// so it shows what ordering, signatures and the network cost.
#[derive(Clone, Debug, Default)]
pub struct Null {
    result: Bytes,
}

impl Null {
    /// A service whose results have this many bytes.
    #[must_use]
    pub fn new(result_bytes: usize) -> Self {
        Self { result: Bytes::from(vec![0; result_bytes]) }
    }
}

impl Application for Null {
    fn execute(&self, _state: &mut State<'_>, _cx: &mut OpContext<'_>, _operation: &Bytes) -> Bytes {
        self.result.clone()
    }
    fn query(&self, _state: &StateView<'_>, _client: ClientId, _operation: &Bytes) -> Bytes {
        self.result.clone()
    }
}
