//! How a fault is done and undone.

use crate::Failure;
use crate::faults::{Fault, Kind};
use crate::processes::{Part, Processes};
use crate::readmission::Operator;
use crate::relay::{Relay, Weather};
use std::time::Duration;
use troth_disk::Orders;

/// What a replica says when it finds no space.
const NO_SPACE: &str = "the disk is full";
/// How long connections are broken that are to be made anew, twice.
const BREAK: Duration = Duration::from_millis(100);

/// What faults did that no process can be seen to have had otherwise: a run in which they do nothing shows
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Effects {
    /// Processes that died in the middle of a sync, with a part of their bytes.
    pub(crate) deaths: u64,
    /// Disks that a replica found full.
    pub(crate) full: u64,
    /// Replicas that lied.
    pub(crate) liars: u64,
    /// Replicas that lost all that they kept, refused to start and were readmitted.
    pub(crate) readmitted: u64,
    /// Replicas that lost it, refused to start and are missing from then on.
    pub(crate) gone: u64,
}

impl Fault {
    /// Does it. Connections of clients are broken by whoever watches the time.
    pub(crate) async fn strike(&self, processes: &mut Processes, relay: &Relay) -> Result<(), Failure> {
        for liar in &self.liars {
            processes.lies(*liar, true);
            processes.kill(&[*liar], &[Part::Replica])?;
            processes.begin(*liar)?;
        }
        match self.kind {
            Kind::Kill | Kind::KillTrusted | Kind::KillBoth | Kind::Everything => {
                processes.kill(&self.victims, &self.parts)?;
            }
            Kind::Lose | Kind::LoseEverything => {
                processes.lose(&self.victims, &self.parts, self.seed).await?;
            }
            Kind::Wipe => {
                processes.kill(&self.victims, &[Part::Trusted, Part::Replica])?;
                for victim in &self.victims {
                    processes.wipe(*victim, &self.parts)?;
                    processes.must_refuse(*victim).await?;
                }
            }
            Kind::Pause => self.victims.iter().try_for_each(|victim| processes.pause(*victim))?,
            Kind::Cut | Kind::Slow => {
                self.victims.iter().for_each(|victim| relay.around(*victim, self.weather));
            }
            Kind::Double => {
                self.victims.iter().for_each(|victim| relay.around(*victim, Weather::Broken));
                tokio::time::sleep(BREAK).await;
                self.victims.iter().for_each(|victim| relay.around(*victim, self.weather));
            }
            Kind::Split => {
                self.victims.iter().for_each(|victim| relay.between(*victim, self.other, self.weather));
            }
            Kind::Full => self.orders(processes, Orders { capacity: Some(0), ..Orders::default() })?,
            Kind::Clock => {
                self.orders(processes, Orders { clock_ahead_ms: self.clock_ahead_ms, ..Orders::default() })?;
            }
            Kind::Reset | Kind::Lie => {}
        }
        Ok(())
    }

    /// Undoes it.
    pub(crate) async fn heal(
        &self,
        processes: &mut Processes,
        relay: &Relay,
        operator: &Operator,
    ) -> Result<(), Failure> {
        relay.clear();
        for liar in &self.liars {
            processes.lies(*liar, false);
            processes.kill(&[*liar], &[Part::Replica])?;
            processes.begin(*liar)?;
        }
        match self.kind {
            Kind::Kill
            | Kind::KillTrusted
            | Kind::KillBoth
            | Kind::Lose
            | Kind::Everything
            | Kind::LoseEverything => self.victims.iter().try_for_each(|victim| processes.begin(*victim)),
            Kind::Wipe => {
                for victim in &self.victims {
                    operator.readmit(processes.directory(*victim), *victim).await?;
                    processes.begin(*victim)?;
                }
                Ok(())
            }
            Kind::Pause => self.victims.iter().try_for_each(|victim| processes.resume(*victim)),
            Kind::Full | Kind::Clock => self.orders(processes, Orders::default()),
            Kind::Cut | Kind::Split | Kind::Slow | Kind::Double | Kind::Reset | Kind::Lie => Ok(()),
        }
    }

    /// How often the victims have said that they have no space.
    pub(crate) fn complaints(&self, processes: &Processes) -> usize {
        if self.kind != Kind::Full {
            return 0;
        }
        self.victims.iter().map(|victim| processes.said(*victim, NO_SPACE)).sum()
    }

    fn orders(&self, processes: &mut Processes, orders: Orders) -> Result<(), Failure> {
        self.victims.iter().try_for_each(|victim| processes.order(*victim, Part::Replica, orders))
    }
}
