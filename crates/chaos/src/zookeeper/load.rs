//! What sessions do: people come with a session, do something again and again, and end it: properly, or by being silent, or by
//! being gone.

use super::client::{Failed, Reply, Session};
use super::journal::{Ask, Aspect, Done, Lasts, child};
use super::layout;
use super::world::World;
use crate::random::Random;
use std::rc::Rc;
use std::time::Duration;

/// Milliseconds of rest between two things that a person does.
const REST: (u64, u64) = (100, 700);
/// Milliseconds that a session lives until its person ends it.
const LIVES: (u64, u64) = (8_000, 60_000);
/// Milliseconds of sessions' time-outs.
const TIMEOUTS: (u64, u64) = (6_000, 12_000);
/// The longest time that a lock is held, in milliseconds.
const HOLD: u64 = 150;
/// How long a contender waits for the one before it until it looks again.
const WAIT: Duration = Duration::from_secs(5);

/// The longest time-out of a session.
pub(crate) const LONGEST_TIMEOUT: Duration = Duration::from_millis(TIMEOUTS.1);

/// How a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// It is closed.
    Closes,
    /// Its client stops.
    Stops,
    /// Its client is silent for longer than its time-out, and then comes back.
    Silent,
}

/// Somebody who has one session after the other, until the load ends. The last is left as it is.
pub(crate) async fn person(world: Rc<World>, number: usize, seed: u64) -> Session {
    let mut random = Random::stream(seed, 1000 + number as u64);
    loop {
        let timeout = u32::try_from(random.range(TIMEOUTS.0, TIMEOUTS.1)).expect("seconds");
        let driver = Random::stream(seed, random.range(1 << 32, u64::MAX / 2));
        let session = Session::open(&world, timeout, driver).await;
        let until = world.now() + random.range(LIVES.0, LIVES.1) * 1_000_000;
        let mut visit =
            Visit { world: &world, session: &session, group: number % layout::GROUP_COUNT, attempt: 0 };
        let mut leaves = visit.announces(&mut random).await.is_err();
        while world.goes_on() && world.now() < until && !leaves {
            leaves = visit.does_something(&mut random).await.is_err();
            tokio::time::sleep(millis(random.range(REST.0, REST.1))).await;
        }
        if !world.goes_on() {
            return session;
        }
        match [Leaving::Closes, Leaving::Stops, Leaving::Silent][random.index(3)] {
            Leaving::Closes => session.close().await,
            Leaving::Stops => session.abandon().await,
            Leaving::Silent => {
                session.go_away(millis(u64::from(timeout) + random.range(0, 4000)));
                // Whatever it finds when it is back, it then ends.
                let _ = session.ask(Ask::Exists { path: "/".to_owned(), watch: false }).await;
                session.close().await;
            }
        }
    }
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

/// Its session is over, or is to end where it is.
struct Leaves;

struct Visit<'a> {
    world: &'a World,
    session: &'a Session,
    group: usize,
    attempt: u64,
}

impl Visit<'_> {
    /// Asks; nothing comes back where the connection was lost.
    async fn ask(&self, ask: Ask) -> Result<Option<Reply>, Leaves> {
        match self.session.ask(ask).await {
            Ok(reply) => Ok(Some(reply)),
            Err(Failed::Lost) => Ok(None),
            Err(Failed::Over) => Err(Leaves),
        }
    }

    /// Asks until there is an answer: what happens twice by that does no harm.
    async fn insist(&self, ask: Ask) -> Result<Reply, Leaves> {
        loop {
            if let Some(reply) = self.ask(ask.clone()).await? {
                return Ok(reply);
            }
        }
    }

    /// Shows that the session is there, and watches who else is.
    async fn announces(&self, random: &mut Random) -> Result<(), Leaves> {
        let directory = layout::group(self.group);
        let path = child(&directory, &self.session.number().to_string());
        let value = self.world.value();
        self.insist(Ask::Create { path, value, lasts: Lasts::Session }).await?;
        let watch = random.range(0, 2) == 0;
        self.insist(Ask::Children { path: directory, watch }).await?;
        Ok(())
    }

    async fn does_something(&mut self, random: &mut Random) -> Result<(), Leaves> {
        match random.range(0, 99) {
            0..=49 => self.uses_registers(random).await,
            50..=59 => self.locks(random).await,
            60..=74 => self.watches(random).await,
            75..=84 => self.changes(random).await,
            85..=89 => self.looks_at_group(random).await,
            90..=97 => self.waits_for_a_flag().await,
            _ => {
                // To another gateway.
                self.session.go_away(Duration::ZERO);
                Ok(())
            }
        }
    }

    /// Reads, and writes what it has read or without regard to it; several requests at once.
    async fn uses_registers(&self, random: &mut Random) -> Result<(), Leaves> {
        let minute = self.world.now() / 1_000_000_000 / layout::REGISTER_SECONDS;
        let mut path = || layout::register(minute, random.index(layout::REGISTER_COUNT));
        let (one, other) = (path(), path());
        let read = self.ask(Ask::Get { path: one.clone(), watch: false });
        let write = self.ask(Ask::Set { path: other, value: self.world.value(), expected: None });
        let (read, write) =
            if random.range(0, 1) == 0 { tokio::join!(read, write) } else { (read.await, Ok(None)) };
        write?;
        let Some(Reply { outcome: Ok(Done::Value { stat, .. }), .. }) = read? else { return Ok(()) };
        if random.range(0, 1) == 0 {
            tokio::time::sleep(millis(random.range(0, 100))).await;
        }
        self.ask(Ask::Set { path: one, value: self.world.value(), expected: Some(stat.version) }).await?;
        Ok(())
    }

    /// Gets a lock, changes what it protects, and gives it back, or leaves with it.
    async fn locks(&mut self, random: &mut Random) -> Result<(), Leaves> {
        let number = random.index(layout::LOCK_COUNT);
        let directory = layout::lock(number);
        self.attempt += 1;
        let name = layout::contender(self.session.number(), self.attempt);
        let own = self.contends(&directory, &name).await?;
        loop {
            let listed = self.insist(Ask::Children { path: directory.clone(), watch: false }).await?;
            let Ok(Done::Children { names, .. }) = listed.outcome else { return Ok(()) };
            if !names.contains(&own) {
                // It is not for us to say that this must not be.
                return Ok(());
            }
            if layout::lowest(&names) == Some(&own) {
                self.writes_guarded(number, random).await?;
                if random.range(0, 39) == 0 {
                    return Err(Leaves);
                }
                break;
            }
            if !self.world.goes_on() {
                break;
            }
            let Some(before) = layout::before(&names, &own) else { return Ok(()) };
            let before = child(&directory, before);
            let gone = self.session.next_event(&before);
            let seen = self.insist(Ask::Get { path: before, watch: true }).await?;
            if seen.outcome.is_ok() && tokio::time::timeout(WAIT, gone).await.is_ok_and(|gone| gone.is_err())
            {
                return Err(Leaves);
            }
        }
        self.insist(Ask::Delete { path: child(&directory, &own) }).await?;
        Ok(())
    }

    /// Stands in line, once, and says by which name.
    async fn contends(&self, directory: &str, name: &str) -> Result<String, Leaves> {
        loop {
            let path = child(directory, name);
            let create = Ask::Create { path, value: self.world.value(), lasts: Lasts::SessionNumbered };
            if let Some(reply) = self.ask(create).await? {
                let Ok(Done::Created { path, .. }) = reply.outcome else { return Err(Leaves) };
                return Ok(path[directory.len() + 1..].to_owned());
            }
            // It may have been created: nothing that was asked on an earlier connection is done from here on.
            let listed = self.insist(Ask::Children { path: directory.to_owned(), watch: false }).await?;
            if let Ok(Done::Children { names, .. }) = listed.outcome
                && let Some(own) = names.into_iter().find(|own| own.starts_with(name))
            {
                return Ok(own);
            }
        }
    }

    async fn writes_guarded(&self, number: usize, random: &mut Random) -> Result<(), Leaves> {
        let path = layout::guard(number);
        for _ in 0..random.range(1, 3) {
            // What it read is what is there until it writes: nobody else may.
            let read = self.insist(Ask::Get { path: path.clone(), watch: false }).await?;
            let Ok(Done::Value { stat, .. }) = read.outcome else { return Ok(()) };
            tokio::time::sleep(millis(random.range(0, HOLD / 3))).await;
            let value = self.world.value();
            self.ask(Ask::Set { path: path.clone(), value, expected: Some(stat.version) }).await?;
        }
        Ok(())
    }

    async fn watches(&self, random: &mut Random) -> Result<(), Leaves> {
        let path = layout::watched(random.index(layout::WATCHED_COUNT));
        self.ask(Ask::Get { path, watch: true }).await?;
        Ok(())
    }

    async fn changes(&self, random: &mut Random) -> Result<(), Leaves> {
        let path = layout::watched(random.index(layout::WATCHED_COUNT));
        self.ask(Ask::Set { path, value: self.world.value(), expected: None }).await?;
        Ok(())
    }

    async fn looks_at_group(&self, random: &mut Random) -> Result<(), Leaves> {
        let path = layout::group(random.index(layout::GROUP_COUNT));
        let watch = random.range(0, 1) == 0;
        let listed = self.ask(Ask::Children { path: path.clone(), watch }).await?;
        if let Some(Reply { outcome: Ok(Done::Children { names, .. }), .. }) = listed
            && !names.is_empty()
        {
            let path = child(&path, &names[random.index(names.len())]);
            self.ask(Ask::Get { path, watch: false }).await?;
        }
        Ok(())
    }

    /// Watches for the flag of one of the next few seconds, and raises the one of now.
    async fn waits_for_a_flag(&self) -> Result<(), Leaves> {
        let second = usize::try_from(self.world.now() / 1_000_000_000).expect("a run is short");
        let path = layout::flag(second + 3);
        if !self.session.watches(Aspect::Coming, &path) {
            self.ask(Ask::Exists { path, watch: true }).await?;
        }
        let (path, value) = (layout::flag(second), self.world.value());
        self.ask(Ask::Create { path, value, lasts: Lasts::Always }).await?;
        Ok(())
    }
}

/// Makes all that must be there before the first comes.
pub(crate) async fn lay_out(session: &Session, world: &World, minutes: u64) -> Result<(), String> {
    let mut paths: Vec<String> = layout::DIRECTORIES.map(str::to_owned).to_vec();
    paths.extend((0..layout::LOCK_COUNT).flat_map(|number| [layout::lock(number), layout::guard(number)]));
    paths.extend((0..layout::GROUP_COUNT).map(layout::group));
    paths.extend((0..layout::WATCHED_COUNT).map(layout::watched));
    // A run lasts a little longer than its faults.
    let all =
        (0..minutes + 10).flat_map(|minute| (0..layout::REGISTER_COUNT).map(move |number| (minute, number)));
    paths.extend(all.map(|(minute, number)| layout::register(minute, number)));
    for path in paths {
        let create = Ask::Create { path: path.clone(), value: world.value(), lasts: Lasts::Always };
        match session.ask(create).await {
            Ok(reply) if reply.outcome.is_ok() => {}
            other => return Err(format!("{path} could not be created: {other:?}")),
        }
    }
    Ok(())
}
