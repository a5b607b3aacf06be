//! Planted bugs: replicas are made to lose what they had not synced until something catches the bug.

use crate::cli::Plant;
use crate::faults::{Fault, Kind};
use crate::processes::Part;
use crate::relay::Weather;
use crate::stage::{Stage, Trouble};
use std::time::{Duration, Instant};

/// How long a bug may stay unseen.
const PATIENCE: Duration = Duration::from_secs(60);
/// Load before a loss, so that there is something to lose.
const BEFORE: Duration = Duration::from_millis(1500);
/// How long a replica that is started again is watched: it reads its log and asks its component meanwhile.
const AFTER: Duration = Duration::from_millis(2500);

impl Stage<'_> {
    /// Loses unsynced bytes of one replica or of all, until a process refuses to go on with what is left.
    /// Says what it said; nothing where no process did, and then the history must tell.
    pub(crate) async fn catch(&mut self, plant: Plant, seed: u64) -> Result<Option<String>, Trouble> {
        let give_up = Instant::now() + PATIENCE;
        let all = self.processes.all();
        // What holds the bytes that the bug leaves unsynced comes first.
        let own = if plant == Plant::SkipTrustedSync { Part::Trusted } else { Part::Replica };
        let mut round: u64 = 0;
        while Instant::now() < give_up {
            let victim = all[usize::try_from(round).unwrap_or(0) % all.len()];
            let (kind, victims, parts) = match round % 3 {
                0 => (Kind::Lose, vec![victim], vec![own]),
                1 => (Kind::Lose, vec![victim], vec![Part::Trusted, Part::Replica]),
                _ => (Kind::LoseEverything, all.clone(), vec![Part::Trusted, Part::Replica]),
            };
            let fault = Fault {
                kind,
                victims,
                liars: Vec::new(),
                aims: false,
                parts,
                other: 0,
                weather: Weather::Clear,
                seed: seed.wrapping_add(round),
                clock_ahead_ms: 0,
                calm: Duration::ZERO,
                lasts: Duration::from_millis(100),
            };
            self.pass(BEFORE, None).await?;
            self.bear(&fault).await?;
            match self.pass(AFTER, None).await {
                Err(Trouble::Ended(ended)) if ended.refused() => {
                    return Ok(Some(format!("after {}, {}", fault.describe(), ended.describe())));
                }
                other => other?,
            }
            round += 1;
        }
        Ok(None)
    }
}
