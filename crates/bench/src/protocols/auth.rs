//! PBFT by what its clients' frames, and what its replicas say of them, show whose they are: signatures, the paper's
//! authenticators (OSDI '99 §5.2), and everything signed (§4). Every protocol serves the first, and it is what they are
//! compared with; what PBFT's own authenticators save, and what signing everything costs, is to be read beside it. The
//! three have groups of their own, so that what is demanded of protocols is measured without them.

use super::Contender;
use super::entry::ENTRIES;
use crate::protocol::Agreed;
use troth_node::config::Auth;

/// Where these are measured: faulty replicas to bear, and requests and replies.
pub(super) const FAULTS: u16 = 1;
pub(super) const SHAPE: &str = "0/0";

/// PBFT with each of them, signed frames first.
pub(crate) fn contenders() -> [Contender; 3] {
    let [entry, ..] = &ENTRIES;
    Auth::ALL.map(|auth| Contender {
        entry,
        name: auth.name(),
        agreed: Agreed::in_process(entry.protocol, FAULTS).with_auth(auth),
    })
}
