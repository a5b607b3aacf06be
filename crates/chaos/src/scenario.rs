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
const BEFORE: Duration = Duration::from_secs(5);
/// How often everything is killed.
const RESTARTS: u64 = 4;
/// Within which the cluster must serve after everything was killed at once.
const SERVES_WITHIN: Duration = Duration::from_secs(10);
/// Requests that the group orders while a replica is down.
const MISSED: u64 = 100_000;
/// How long ordering them may take.
const MISSING_WITHIN: Duration = Duration::from_secs(300);
/// Within which a replica must have caught up.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(60);
/// How far behind the newest replica one that has caught up may be, in batches: what is under way.
const BEHIND: u64 = 64;
/// The longest time without any answer while a replica catches up.
const SILENCE: Duration = Duration::from_secs(5);
/// How long it is watched then: one that has caught up keeps up.
const KEEPS_UP: Duration = Duration::from_secs(3);
/// How long a disk is full.
const FULL_FOR: Duration = Duration::from_secs(8);
/// More requests at a time than the ordinary load has, per client.
const FLOOD: u16 = 48;

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

fn seconds(time: Duration) -> f64 {
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

    /// A backup is down for many requests and catches up while they go on.
    async fn catch_up(&mut self) -> Result<(), Trouble> {
        self.load.flood(FLOOD);
        self.pass(BEFORE, None).await?;
        let backup = self.backup().await?;
        self.processes.kill(&[backup], self.processes.parts()).map_err(said)?;
        let (start, begun) = (self.load.shared.requests(), Instant::now());
        while self.load.shared.requests() - start < MISSED {
            self.pass(Duration::from_millis(100), None).await?;
            if begun.elapsed() > MISSING_WITHIN {
                let done = self.load.shared.requests() - start;
                return Err(Trouble::Said(format!(
                    "only {done} of {MISSED} requests were answered within {} s while a replica was down",
                    MISSING_WITHIN.as_secs()
                )));
            }
        }
        let missed = self.load.shared.requests() - start;
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = |requests: u64, time: Duration| (requests as f64 / time.as_secs_f64()).round();
        let before = rate(missed, begun.elapsed());
        self.load.shared.longest_silence();

        let (start, begun) = (self.load.shared.requests(), Instant::now());
        self.processes.begin(backup).map_err(said)?;
        let goal = status::reached(&self.addresses).await;
        let mut reached_goal = None;
        loop {
            self.pass(Duration::from_millis(100), None).await?;
            let told = status::all(&self.addresses).await;
            let newest = told.iter().flatten().map(|told| told.executed).max().unwrap_or(0);
            let own = told[usize::from(backup)].as_ref().map_or(0, |told| told.executed);
            if own >= goal {
                reached_goal.get_or_insert(begun.elapsed());
                if own + BEHIND >= newest {
                    break;
                }
            }
            if begun.elapsed() > CATCHES_UP_WITHIN {
                return Err(Trouble::Said(format!(
                    "replica {backup} had not caught up {} s after its start: {own} of {newest} batches",
                    CATCHES_UP_WITHIN.as_secs()
                )));
            }
        }
        let (time, during) = (begun.elapsed(), self.load.shared.requests() - start);
        self.pass(KEEPS_UP, None).await?;
        let newest = status::reached(&self.addresses).await;
        self.pass(Duration::from_secs(1), None).await?;
        let own =
            status::all(&self.addresses).await[usize::from(backup)].as_ref().map_or(0, |told| told.executed);
        if own < newest {
            return Err(Trouble::Said(format!(
                "replica {backup} fell back again: {own} of {newest} batches"
            )));
        }
        let silence = self.load.shared.longest_silence();
        println!(
            "replica {backup} missed {missed} requests and had caught up after {:.1} s; {before} requests/s before, \
             {} meanwhile, longest time without an answer {:.2} s",
            time.as_secs_f64(),
            rate(during, time),
            silence.as_secs_f64()
        );
        self.figures.extend([
            ("missed_requests".to_owned(), json!(missed)),
            ("reached_what_it_had_missed_after_s".to_owned(), json!(reached_goal.map(seconds))),
            ("caught_up_after_s".to_owned(), json!(seconds(time))),
            ("requests_per_s_before".to_owned(), json!(before)),
            ("requests_per_s_meanwhile".to_owned(), json!(rate(during, time))),
            ("longest_silence_meanwhile_s".to_owned(), json!(seconds(silence))),
        ]);
        if silence > SILENCE {
            return Err(Trouble::Said(format!(
                "nothing was answered for {:.1} s while replica {backup} caught up",
                silence.as_secs_f64()
            )));
        }
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

    async fn primary(&self) -> Result<u16, Trouble> {
        status::primary(&self.addresses).await.ok_or(Trouble::Said("no replica knows a primary".to_owned()))
    }

    /// A replica that is not the primary.
    async fn backup(&self) -> Result<u16, Trouble> {
        let primary = self.primary().await?;
        Ok(if primary == 0 { 1 } else { 0 })
    }
}

fn said(why: Failure) -> Trouble {
    Trouble::Said(why.to_string())
}
