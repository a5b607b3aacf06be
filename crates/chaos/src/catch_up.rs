//! A replica that was down for long, and one with an empty disk, catch up while the load goes on.

use crate::processes::Part;
use crate::scenario::{BEFORE, said, seconds};
use crate::stage::{Stage, Trouble};
use crate::status;
use serde_json::json;
use std::time::{Duration, Instant};

/// More requests at a time than the ordinary load has, per client.
const FLOOD: u16 = 48;
/// Requests that the group orders while a replica is down.
const MISSED: u64 = 100_000;
/// How long ordering them may take.
const MISSING_WITHIN: Duration = Duration::from_secs(300);
/// Within which a replica must have caught up, and vote.
const CATCHES_UP_WITHIN: Duration = Duration::from_secs(60);
/// How far behind the newest replica one that has caught up may be, in batches: what is under way.
const BEHIND: u64 = 64;
/// The longest time without any answer while a replica catches up, or while one is missing whose place it takes.
const SILENCE: Duration = Duration::from_secs(5);
/// How long it is watched then: one that has caught up keeps up.
const KEEPS_UP: Duration = Duration::from_secs(3);

/// A replica's way back.
struct Return {
    /// Until it had what the others had when it was started.
    reached: Duration,
    /// Until it was no further behind than what is under way, and voted.
    caught_up: Duration,
    /// Requests per second that the group answered meanwhile.
    rate: f64,
    /// The longest time without an answer meanwhile.
    silence: Duration,
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn rate(requests: u64, time: Duration) -> f64 {
    (requests as f64 / time.as_secs_f64()).round()
}

impl Stage<'_> {
    /// Both, one after the other; the latter where the group readmits.
    pub(crate) async fn catch_up(&mut self) -> Result<(), Trouble> {
        self.load.flood(FLOOD);
        self.pass(BEFORE, None).await?;
        self.after_long_absence().await?;
        if self.plan.protocol.readmits() { self.with_an_empty_disk().await } else { Ok(()) }
    }

    /// A backup is down for many requests.
    async fn after_long_absence(&mut self) -> Result<(), Trouble> {
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
        let before = rate(missed, begun.elapsed());

        self.load.shared.longest_silence();
        let back = self.returns(backup).await?;
        println!(
            "replica {backup} missed {missed} requests and had caught up after {:.1} s; {before} requests/s before, \
             {} meanwhile, longest time without an answer {:.2} s",
            back.caught_up.as_secs_f64(),
            back.rate,
            back.silence.as_secs_f64()
        );
        self.figures.extend([
            ("missed_requests".to_owned(), json!(missed)),
            ("reached_what_it_had_missed_after_s".to_owned(), json!(seconds(back.reached))),
            ("caught_up_after_s".to_owned(), json!(seconds(back.caught_up))),
            ("requests_per_s_before".to_owned(), json!(before)),
            ("requests_per_s_meanwhile".to_owned(), json!(back.rate)),
            ("longest_silence_meanwhile_s".to_owned(), json!(seconds(back.silence))),
        ]);
        still_served(back.silence, &format!("replica {backup} caught up"))
    }

    /// A backup loses all that it and its trusted component keep, and is readmitted.
    async fn with_an_empty_disk(&mut self) -> Result<(), Trouble> {
        let backup = self.backup().await?;
        let (start, begun) = (self.load.shared.requests(), Instant::now());
        self.pass(BEFORE, None).await?;
        let before = rate(self.load.shared.requests() - start, begun.elapsed());
        self.load.shared.longest_silence();
        self.processes.kill(&[backup], self.processes.parts()).map_err(said)?;
        self.processes.wipe(backup, &[Part::Trusted, Part::Replica]).map_err(said)?;
        self.processes.must_refuse(backup).await.map_err(said)?;
        let ordering = Instant::now();
        self.operator.readmit(self.processes.directory(backup), backup).await.map_err(said)?;
        let admitted = ordering.elapsed();
        self.effects.readmitted += 1;
        let back = self.returns(backup).await?;
        let alone = self.needed(backup).await?;
        println!(
            "replica {backup} was readmitted in {:.1} s with an empty disk, and had caught up and voted after {:.1} s; \
             {before} requests/s before, {} meanwhile, longest time without an answer {:.2} s; with its vote instead of \
             another's {:.2} s",
            admitted.as_secs_f64(),
            back.caught_up.as_secs_f64(),
            back.rate,
            back.silence.as_secs_f64(),
            alone.as_secs_f64()
        );
        self.figures.insert(
            "empty_disk".to_owned(),
            json!({
                "readmitted_after_s": seconds(admitted),
                "reached_what_it_had_missed_after_s": seconds(back.reached),
                "caught_up_and_voted_after_s": seconds(back.caught_up),
                "requests_per_s_before": before,
                "requests_per_s_meanwhile": back.rate,
                "longest_silence_meanwhile_s": seconds(back.silence),
                "longest_silence_with_its_vote_needed_s": seconds(alone),
            }),
        );
        still_served(back.silence, &format!("replica {backup} came back with an empty disk"))?;
        still_served(alone, &format!("replica {backup} voted in another's place"))
    }

    /// Starts a replica and waits until it has caught up and votes; then it must keep up.
    async fn returns(&mut self, replica: u16) -> Result<Return, Trouble> {
        let (start, begun) = (self.load.shared.requests(), Instant::now());
        self.processes.begin(replica).map_err(said)?;
        let goal = status::reached(&self.addresses).await;
        let mut reached = None;
        loop {
            self.pass(Duration::from_millis(100), None).await?;
            let told = status::all(&self.addresses).await;
            let newest = told.iter().flatten().map(|told| told.executed).max().unwrap_or(0);
            let own = told[usize::from(replica)].as_ref();
            let (executed, votes) = own.map_or((0, false), |told| (told.executed, told.votes));
            if executed >= goal {
                reached.get_or_insert(begun.elapsed());
                if executed + BEHIND >= newest && votes {
                    break;
                }
            }
            if begun.elapsed() > CATCHES_UP_WITHIN {
                let votes = if votes { "voted" } else { "did not vote" };
                return Err(Trouble::Said(format!(
                    "replica {replica} had not caught up {} s after its start: {executed} of {newest} batches, and it \
                     {votes}",
                    CATCHES_UP_WITHIN.as_secs()
                )));
            }
        }
        let (caught_up, during) = (begun.elapsed(), self.load.shared.requests() - start);
        self.pass(KEEPS_UP, None).await?;
        let newest = status::reached(&self.addresses).await;
        self.pass(Duration::from_secs(1), None).await?;
        let told = status::all(&self.addresses).await;
        let own = told[usize::from(replica)].as_ref().map_or(0, |told| told.executed);
        if own < newest {
            return Err(Trouble::Said(format!(
                "replica {replica} fell back again: {own} of {newest} batches"
            )));
        }
        Ok(Return {
            reached: reached.unwrap_or(caught_up),
            caught_up,
            rate: rate(during, caught_up),
            silence: self.load.shared.longest_silence(),
        })
    }

    /// Takes so many others away that nothing is ordered without this replica's vote, and gives the longest time
    /// without an answer until they are back.
    async fn needed(&mut self, replica: u16) -> Result<Duration, Trouble> {
        let primary = self.primary().await?;
        let others = self.processes.all().into_iter().filter(|other| ![replica, primary].contains(other));
        let away: Vec<u16> = others.take(self.plan.f.into()).collect();
        self.load.shared.longest_silence();
        self.processes.kill(&away, self.processes.parts()).map_err(said)?;
        self.pass(KEEPS_UP, None).await?;
        let silence = self.load.shared.longest_silence();
        let begun = Instant::now();
        away.iter().try_for_each(|other| self.processes.begin(*other)).map_err(said)?;
        let goal = status::reached(&self.addresses).await;
        while !self.all_back(goal).await {
            self.pass(Duration::from_millis(100), None).await?;
            if begun.elapsed() > CATCHES_UP_WITHIN {
                return Err(Trouble::Said(format!(
                    "{away:?} were not back {} s after their start",
                    CATCHES_UP_WITHIN.as_secs()
                )));
            }
        }
        Ok(silence)
    }
}

/// Fails where nothing was answered for too long.
fn still_served(silence: Duration, meanwhile: &str) -> Result<(), Trouble> {
    if silence <= SILENCE {
        return Ok(());
    }
    Err(Trouble::Said(format!("nothing was answered for {:.1} s while {meanwhile}", silence.as_secs_f64())))
}
