//! I11: no correct replica and no correct client is ever called faulty by a correct replica.

use troth_types::{ClientId, ReplicaId};

/// Judges accusations.
#[derive(Debug, Default)]
pub struct NoneAccused {
    /// Accusations of faulty replicas: those are welcome.
    pub rightly: u64,
    /// The same of clients.
    pub clients_rightly: u64,
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

    /// A correct node accuses a client of two contents under one number.
    pub fn client_accused(&mut self, client: ClientId, number: u64, faulty: bool) -> Result<(), String> {
        if faulty {
            self.clients_rightly += 1;
            return Ok(());
        }
        Err(format!("{client} is correct and was accused: two frames of number {number}"))
    }
}
