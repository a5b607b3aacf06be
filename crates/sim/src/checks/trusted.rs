//! U1, trusted uniqueness: no counter value of a component is certified for two digests, and no slot of its logs attested
//! as two things, anywhere on the wire, nested messages included.

use crate::component::WireWatch;

/// Judges what the wire showed.
#[derive(Debug, Default)]
pub struct TrustedUniqueness;

impl TrustedUniqueness {
    /// Looks at everything seen so far.
    pub fn look(&self, watch: &WireWatch) -> Result<(), String> {
        match watch.clash() {
            None => watch.log_clash().map_or(Ok(()), Err),
            Some(clash) => Err(format!(
                "value {:x} of counter {} of replica {} was certified twice",
                clash.value.0, clash.counter.0, clash.replica
            )),
        }
    }
}
