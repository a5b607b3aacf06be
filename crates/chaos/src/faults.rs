//! Which fault comes next, and how it is done and undone. At most f replicas are broken at a time;
//! only when all are killed at once it is more.

use crate::Failure;
use crate::processes::Processes;
use crate::random::Random;
use crate::relay::{Relay, Weather};
use std::time::Duration;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Replicas are killed with SIGKILL and started again.
    Kill,
    /// Replicas are stopped and go on.
    Pause,
    /// All links of replicas carry nothing, or break.
    Cut,
    /// One link between two replicas carries nothing, or breaks.
    Split,
    /// All links of replicas are slow.
    Slow,
    /// The clients' connections break again and again: they connect anew and send anew what has no
    /// answer, so replicas get the same requests twice.
    Reset,
    /// All replicas are killed with SIGKILL at once and started again.
    Everything,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 7] =
    [Kind::Kill, Kind::Pause, Kind::Cut, Kind::Split, Kind::Slow, Kind::Reset, Kind::Everything];

impl Kind {
    /// For people and for the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Cut => "cut",
            Self::Split => "split",
            Self::Slow => "slow",
            Self::Reset => "reset",
            Self::Everything => "everything",
        }
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// The broken replicas.
    pub(crate) victims: Vec<u16>,
    /// The other end of a split; a replica that is not broken itself.
    other: u16,
    weather: Weather,
    /// Before it.
    pub(crate) calm: Duration,
    pub(crate) lasts: Duration,
}

/// The faults that a seed chooses: each kind once in every round, in another order.
pub(crate) struct Schedule {
    random: Random,
    round: Vec<Kind>,
    replicas: u16,
    faults: u16,
}

impl Schedule {
    /// For a group of 2f+1.
    pub(crate) fn new(seed: u64, faults: u16) -> Self {
        Self { random: Random::stream(seed, 0), round: Vec::new(), replicas: 2 * faults + 1, faults }
    }

    /// The next fault.
    pub(crate) fn next(&mut self) -> Fault {
        if self.round.is_empty() {
            self.round.extend(KINDS);
            self.random.shuffle(&mut self.round);
        }
        let kind = self.round.pop().expect("just filled");
        let mut replicas: Vec<u16> = (0..self.replicas).collect();
        self.random.shuffle(&mut replicas);
        let broken = match kind {
            Kind::Everything => self.replicas,
            Kind::Reset => 0,
            Kind::Split => 1,
            _ => u16::try_from(self.random.range(1, self.faults.into())).expect("as many as f"),
        };
        let other = replicas.last().copied().expect("a group has three or more");
        replicas.truncate(broken.into());
        let weather = match (kind, self.random.range(0, 1)) {
            (Kind::Slow, _) => Weather::Slow(Duration::from_millis(self.random.range(20, 300))),
            (_, 0) => Weather::Stalled,
            _ => Weather::Broken,
        };
        let longest = if kind == Kind::Everything { 1000 } else { 6000 };
        Fault {
            kind,
            victims: replicas,
            other,
            weather,
            calm: Duration::from_millis(self.random.range(500, 2500)),
            lasts: Duration::from_millis(self.random.range(200, longest)),
        }
    }
}

impl Fault {
    /// For people.
    pub(crate) fn describe(&self) -> String {
        let victims: Vec<String> = self.victims.iter().map(u16::to_string).collect();
        let victims = victims.join(" and ");
        let how = if self.weather == Weather::Broken { "broken" } else { "stalled" };
        let seconds = self.lasts.as_secs_f64();
        let what = match (self.kind, self.weather) {
            (Kind::Kill, _) => format!("killed {victims}"),
            (Kind::Pause, _) => format!("paused {victims}"),
            (Kind::Cut, _) => format!("links of {victims} {how}"),
            (Kind::Split, _) => format!("link of {victims} and {} {how}", self.other),
            (Kind::Slow, Weather::Slow(late)) => format!("links of {victims} {} ms late", late.as_millis()),
            (Kind::Slow, _) => format!("links of {victims} slow"),
            (Kind::Reset, _) => "clients' connections reset".to_owned(),
            (Kind::Everything, _) => "killed everything".to_owned(),
        };
        format!("{what} for {seconds:.1} s")
    }

    /// Whether the clients' connections break at this moment since the fault began.
    pub(crate) fn breaks_clients(&self, since: Duration) -> bool {
        // Every half second anew: long enough between to connect and to send.
        self.kind == Kind::Reset && since < self.lasts && since.as_millis() % 500 < 100
    }

    /// Does it. Connections of clients are broken by whoever watches the time.
    pub(crate) fn strike(&self, processes: &mut Processes, relay: &Relay) -> Result<(), Failure> {
        for victim in &self.victims {
            match self.kind {
                Kind::Kill => processes.kill(*victim)?,
                Kind::Pause => processes.pause(*victim)?,
                Kind::Cut | Kind::Slow => relay.around(*victim, self.weather),
                Kind::Split => relay.between(*victim, self.other, self.weather),
                Kind::Reset | Kind::Everything => {}
            }
        }
        if self.kind == Kind::Everything { processes.kill_all() } else { Ok(()) }
    }

    /// Undoes it.
    pub(crate) fn heal(&self, processes: &mut Processes, relay: &Relay) -> Result<(), Failure> {
        relay.clear();
        for victim in &self.victims {
            match self.kind {
                Kind::Kill | Kind::Everything => processes.begin(*victim)?,
                Kind::Pause => processes.resume(*victim)?,
                Kind::Cut | Kind::Split | Kind::Slow | Kind::Reset => {}
            }
        }
        Ok(())
    }
}
