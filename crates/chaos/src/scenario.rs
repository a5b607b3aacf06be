//! Courses of events of their own, with figures.

use crate::Failure;
use crate::cli::Scenario;
use crate::faults::{Fault, Kind};
use crate::processes::Part;
use crate::relay::Weather;
use crate::stage::{Stage, Trouble};
use crate::status;
use serde_json::json;
use std::time::{Duration, Instant};

/// Load before anything happens, and between what does.
pub(crate) const BEFORE: Duration = Duration::from_secs(5);
/// How often everything is killed.
const RESTARTS: u64 = 4;
/// Within which the cluster must serve after everything was killed at once.
const SERVES_WITHIN: Duration = Duration::from_secs(10);
/// How long a disk is full.
const FULL_FOR: Duration = Duration::from_secs(8);

fn fault(kind: Kind, victims: Vec<u16>, lasts: Duration, seed: u64) -> Fault {
    Fault {
        kind,
        victims,
        liars: Vec::new(),
        aims: false,
        parts: vec![Part::Trusted, Part::Replica],
        other: 0,
        weather: Weather::Clear,
        seed,
        clock_ahead_ms: 0,
        calm: Duration::ZERO,
        lasts,
    }
}

pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

impl Stage<'_> {
    /// Plays a course of events.
    pub(crate) async fn play(&mut self, scenario: Scenario, seed: u64) -> Result<(), Trouble> {
        match scenario {
            Scenario::RestartAll => self.restart_all(seed).await,
            Scenario::CatchUp => self.catch_up().await,
            Scenario::FullDisk => self.full_disk().await,
        }
    }

    /// Everything is killed at once, half of the times losing part of what was not synced.
    async fn restart_all(&mut self, seed: u64) -> Result<(), Trouble> {
        let all = self.processes.all();
        let mut times = Vec::new();
        for round in 0..RESTARTS {
            self.pass(BEFORE, None).await?;
            let kind = if round % 2 == 0 { Kind::Everything } else { Kind::LoseEverything };
            let fault = fault(kind, all.clone(), Duration::ZERO, seed.wrapping_add(round));
            // From before the first is killed: what it takes to die and to start is in it.
            let begun = Instant::now();
            self.bear(&fault).await?;
            let since = self.load.shared.history.borrow().now();
            while self.load.shared.history.borrow().answered() < since {
                self.pass(Duration::from_millis(10), None).await?;
                if begun.elapsed() > SERVES_WITHIN {
                    let within = SERVES_WITHIN.as_secs();
                    return Err(Trouble::Said(format!(
                        "it did not serve within {within} s after: {}",
                        fault.describe()
                    )));
                }
            }
            times.push(seconds(begun.elapsed()));
            self.slowest = self.slowest.max(begun.elapsed());
            self.recover(&fault).await?;
        }
        println!("served again after {times:?} s");
        self.figures.insert("served_again_after_s".to_owned(), json!(times));
        Ok(())
    }

    /// A backup's disk is full, then the primary's; each has space again after a while.
    async fn full_disk(&mut self) -> Result<(), Trouble> {
        for of_primary in [false, true] {
            self.pass(BEFORE, None).await?;
            let victim = if of_primary { self.primary().await? } else { self.backup().await? };
            let who = if of_primary { "primary" } else { "backup" };
            let full = fault(Kind::Full, vec![victim], FULL_FOR, 0);
            let (found, start) = (self.effects.full, self.load.shared.requests());
            self.load.shared.longest_silence();
            self.bear(&full).await?;
            let (answered, silence) =
                (self.load.shared.requests() - start, self.load.shared.longest_silence());
            if self.effects.full == found {
                return Err(Trouble::Said(format!("replica {victim} did not find its disk full")));
            }
            let healed = Instant::now();
            self.recover(&full).await?;
            println!(
                "disk of replica {victim} ({who}) full for {} s: {answered} requests answered meanwhile, longest time \
                 without an answer {:.2} s; it was back {:.1} s after there was space",
                FULL_FOR.as_secs(),
                silence.as_secs_f64(),
                healed.elapsed().as_secs_f64()
            );
            self.figures.insert(
                who.to_owned(),
                json!({
                    "answered_meanwhile": answered,
                    "longest_silence_s": seconds(silence),
                    "back_after_s": seconds(healed.elapsed()),
                }),
            );
            if silence >= FULL_FOR || answered == 0 {
                return Err(Trouble::Said(format!(
                    "the service did not go on while the {who}'s disk was full"
                )));
            }
        }
        Ok(())
    }

    pub(crate) async fn primary(&self) -> Result<u16, Trouble> {
        status::primary(&self.addresses).await.ok_or(Trouble::Said("no replica knows a primary".to_owned()))
    }

    /// A replica that is not the primary.
    pub(crate) async fn backup(&self) -> Result<u16, Trouble> {
        let primary = self.primary().await?;
        Ok(if primary == 0 { 1 } else { 0 })
    }
}

pub(crate) fn said(why: Failure) -> Trouble {
    Trouble::Said(why.to_string())
}
