//! I10, liveness: once faults have stopped and a quorum is healed, everything pending and fresh
//! requests of every client finish within a bound of virtual time.

use troth_types::ReplicaId;

/// What one correct client still waits for after the healing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientState {
    /// Its number.
    pub client: u64,
    /// Submissions from before the healing without an outcome.
    pub old: usize,
    /// Fresh requests answered since, and how many are wanted.
    pub fresh: (u64, u64),
}

/// The bound and its keeper.
#[derive(Clone, Debug, Default)]
pub struct Liveness {
    /// When the faults stopped.
    pub healed_at: u64,
    /// Microseconds until everything must be done.
    pub bound: u64,
    /// When more was asked of the clients after that.
    pub asked_at: u64,
    /// The longest that a fresh request waited for its answer.
    pub waited: u64,
    /// When everything was done for the first time.
    pub done_at: Option<u64>,
}

impl Liveness {
    /// What is missing, if anything.
    #[must_use]
    pub fn pending(&self, clients: &[ClientState]) -> Option<String> {
        let late = clients.iter().find(|client| client.old > 0 || client.fresh.0 < client.fresh.1)?;
        let (have, want) = late.fresh;
        Some(match late.old {
            0 => format!("client {} has {have} of {want} fresh requests answered", late.client),
            old => format!("client {} waits for {old} requests from before the healing", late.client),
        })
    }

    /// More is wanted of the clients from now on, and the bound begins anew.
    pub fn more(&mut self, now: u64) {
        self.asked_at = now;
    }

    /// Judges the present moment. `away` is a readmitted replica that does not vote yet.
    pub fn look(
        &mut self,
        now: u64,
        clients: &[ClientState],
        away: Option<ReplicaId>,
    ) -> Result<bool, String> {
        let away = || away.map(|replica| format!("{replica} was readmitted and does not vote"));
        match self.pending(clients).or_else(away) {
            None => {
                self.done_at.get_or_insert(now);
                Ok(true)
            }
            Some(missing) if now > self.healed_at.max(self.asked_at) + self.bound => {
                Err(format!("{} ms after the healing {missing}", (now - self.healed_at) / 1000))
            }
            Some(_) => Ok(false),
        }
    }
}
