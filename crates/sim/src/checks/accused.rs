//! I11: no correct replica is ever called faulty by a correct replica.

use troth_types::ReplicaId;

/// Judges accusations.
#[derive(Debug, Default)]
pub struct NoneAccused {
    /// Accusations of faulty replicas: those are welcome.
    pub rightly: u64,
}

impl NoneAccused {
    /// A correct node accuses a replica.
    pub fn accused(&mut self, replica: ReplicaId, rule: &str, faulty: bool) -> Result<(), String> {
        if faulty {
            self.rightly += 1;
            return Ok(());
        }
        Err(format!("{replica} is correct and was accused: {rule}"))
    }
}
