//! The run that a crash interrupted between its bodies and its certificate.
//!
//! A log may hold bodies that the component has not certified: the crash came before it was asked. Or it
//! was asked, the messages left, and its counters have been set back since; the two cannot be told apart,
//! as the certificate reaches the disk with the next run's bodies only. So a start never lets such bodies
//! go. It has the component certify them, as the host was about to: what left before is certified again,
//! the same, and not something else under the same value. Set back further, the log's certificates show it
//! and the replica is refused.

use bytes::Bytes;
use std::collections::BTreeMap;
use troth_core::{LogRecord, Machine};
use troth_trusted::{CounterId, CounterValue, run};
use troth_trusted_host::Call;
use troth_types::{GroupId, Malformed, ReplicaId, Wire};

/// What the component is to be asked before the replica goes on, where it stands at this value and the log
/// holds the bodies of the run after it.
///
/// # Errors
/// [`Malformed`] where the log's records do not decode.
pub(crate) fn unfinished_run<M: Machine>(
    log: &[Bytes],
    counter: CounterId,
    stands: CounterValue,
    me: ReplicaId,
    group: GroupId,
) -> Result<Option<Call>, Malformed> {
    // By the value before. What stands before the newest certificate was certified or never was.
    let mut bodies: BTreeMap<CounterValue, (CounterValue, Bytes)> = BTreeMap::new();
    for record in log {
        match LogRecord::from_wire(record)? {
            LogRecord::Certified(certificate) if certificate.counter == counter => bodies.clear(),
            LogRecord::Own { counter: of, previous, new, body } if of == counter => {
                bodies.insert(previous, (new, body));
            }
            _ => {}
        }
    }
    let mut digests = Vec::new();
    let mut last = stands;
    while digests.len() < run::MAX_RUN {
        let Some((new, body)) = bodies.get(&last) else { break };
        let jump = last.next() != Some(*new);
        // A jump is certified alone.
        if jump && !digests.is_empty() {
            break;
        }
        digests.push(M::digest(&M::Body::from_wire(body)?, group, me).0);
        last = *new;
        if jump {
            break;
        }
    }
    let digest = run::Tree::default().build(&digests);
    Ok(digest.map(|digest| Call::Attest { counter, previous: stands, new: last, digest }))
}
