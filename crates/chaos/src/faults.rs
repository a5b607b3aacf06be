//! Which fault comes next. At most f replicas are broken at a time, those that lie counted; only when all are
//! killed at once it is more. How a fault is done and undone is in `strike`.

use crate::processes::Part;
use crate::random::Random;
use crate::relay::Weather;
use std::time::Duration;
use troth_node::config::{Cluster, TrustedHome};

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Replicas are killed with SIGKILL and started again.
    Kill,
    /// Their trusted processes are.
    KillTrusted,
    /// Both are.
    KillBoth,
    /// One of the two or both die in the middle of a sync and lose a part of what was not synced, torn
    /// writes among it.
    Lose,
    /// Replicas or their trusted processes or both lose all that they keep; they must refuse to start, and are
    /// readmitted.
    Wipe,
    /// Replicas are stopped and go on.
    Pause,
    /// All links of replicas carry nothing, or break.
    Cut,
    /// One link between two replicas carries nothing, or breaks.
    Split,
    /// All links of replicas are slow.
    Slow,
    /// Every connection to and from replicas is made twice, with the same bytes.
    Double,
    /// The clients' connections break again and again: they connect anew and send anew what has no
    /// answer, so replicas get the same requests twice.
    Reset,
    /// Disks have no space for anything, until there is space again.
    Full,
    /// Clocks are ten minutes off.
    Clock,
    /// Replicas lie to clients and to each other.
    Lie,
    /// All processes are killed with SIGKILL at once and started again.
    Everything,
    /// All processes die in the middle of a sync, as with `Lose`.
    LoseEverything,
}

/// All kinds.
pub(crate) const KINDS: [Kind; 16] = [
    Kind::Kill,
    Kind::KillTrusted,
    Kind::KillBoth,
    Kind::Lose,
    Kind::Wipe,
    Kind::Pause,
    Kind::Cut,
    Kind::Split,
    Kind::Slow,
    Kind::Double,
    Kind::Reset,
    Kind::Full,
    Kind::Clock,
    Kind::Lie,
    Kind::Everything,
    Kind::LoseEverything,
];

/// What there is to break in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Breakable {
    pub(crate) replicas: u16,
    /// How many may be broken at a time.
    pub(crate) faults: u16,
    /// Whether trusted components run in processes of their own.
    pub(crate) apart: bool,
    /// Whether a replica that lost all it kept comes back.
    pub(crate) readmits: bool,
}

impl Breakable {
    /// Of this group.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let group = &cluster.group;
        let few = |count: usize| u16::try_from(count).expect("a group is small");
        Self {
            replicas: few(group.n()),
            faults: few(group.f()),
            apart: cluster.trusted_home == TrustedHome::Process,
            readmits: cluster.protocol.readmits(),
        }
    }

    /// Why a kind of fault is none here, where that is so.
    pub(crate) fn spared(self, kind: Kind) -> Option<&'static str> {
        match kind {
            Kind::KillTrusted | Kind::KillBoth if !self.apart => Some("no trusted process"),
            // What follows would be one fault too many: it is what a run ends with.
            Kind::Wipe if !self.readmits => Some("no way back but once, in the end"),
            _ => None,
        }
    }

    /// The kinds of faults that it can take again and again.
    pub(crate) fn kinds(self) -> Vec<Kind> {
        KINDS.into_iter().filter(|kind| self.spared(*kind).is_none()).collect()
    }

    /// In words.
    pub(crate) fn describe(self) -> String {
        let names: Vec<&str> = self.kinds().into_iter().map(Kind::name).collect();
        let spared = KINDS.into_iter().filter_map(|kind| Some((kind, self.spared(kind)?)));
        let spared: Vec<String> = spared.map(|(kind, why)| format!("{} ({why})", kind.name())).collect();
        let without =
            if spared.is_empty() { String::new() } else { format!("; without {}", spared.join(", ")) };
        format!("faults: {}{without}", names.join(", "))
    }
}

/// How far a clock is off: ten minutes.
const OFF_MS: i64 = 600_000;

impl Kind {
    /// For people and for the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::KillTrusted => "kill-trusted",
            Self::KillBoth => "kill-both",
            Self::Lose => "lose",
            Self::Wipe => "wipe",
            Self::Pause => "pause",
            Self::Cut => "cut",
            Self::Split => "split",
            Self::Slow => "slow",
            Self::Double => "double",
            Self::Reset => "reset",
            Self::Full => "full",
            Self::Clock => "clock",
            Self::Lie => "lie",
            Self::Everything => "everything",
            Self::LoseEverything => "lose-everything",
        }
    }

    /// Whether every replica is hit, none of which may be at fault.
    pub(crate) fn hits_all(self) -> bool {
        matches!(self, Self::Everything | Self::LoseEverything)
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// The broken replicas.
    pub(crate) victims: Vec<u16>,
    /// Replicas that lie meanwhile; none of the victims but where lying is the fault.
    pub(crate) liars: Vec<u16>,
    /// Whether the first victim is to be whoever is the primary then.
    pub(crate) aims: bool,
    /// The processes that are hit, where processes are.
    pub(crate) parts: Vec<Part>,
    /// The other end of a split; a replica that is not broken itself.
    pub(crate) other: u16,
    pub(crate) weather: Weather,
    /// What decides how much is lost.
    pub(crate) seed: u64,
    /// How far clocks are off.
    pub(crate) clock_ahead_ms: i64,
    /// Before it.
    pub(crate) calm: Duration,
    pub(crate) lasts: Duration,
}

/// The faults that a seed chooses: each kind once in every round, in another order.
pub(crate) struct Schedule {
    random: Random,
    round: Vec<Kind>,
    group: Breakable,
    /// The only ones that ever lie, f of them. Were there more, two that lie at different times could tell
    /// a client that has waited long the same lie, and f+1 would have told it.
    traitors: Vec<u16>,
}

impl Schedule {
    /// For this group.
    pub(crate) fn new(seed: u64, group: Breakable) -> Self {
        let mut random = Random::stream(seed, 0);
        let mut traitors: Vec<u16> = (0..group.replicas).collect();
        random.shuffle(&mut traitors);
        traitors.truncate(group.faults.into());
        Self { random, round: Vec::new(), group, traitors }
    }

    /// The next fault.
    pub(crate) fn next(&mut self) -> Fault {
        if self.round.is_empty() {
            self.round.extend(self.group.kinds());
            self.random.shuffle(&mut self.round);
        }
        let kind = self.round.pop().expect("just filled");
        let mut replicas: Vec<u16> = (0..self.group.replicas).collect();
        self.random.shuffle(&mut replicas);
        let other = replicas.last().copied().expect("a group has three or more");
        let some = self.random.range(1, self.group.faults.into());
        let broken = match kind {
            Kind::Everything | Kind::LoseEverything => u64::from(self.group.replicas),
            Kind::Reset | Kind::Lie => 0,
            Kind::Split | Kind::Clock => 1,
            _ => some,
        };
        replicas.truncate(usize::try_from(broken).expect("as many as there are"));
        let liars = self.liars(kind, &replicas, some);
        let weather = match (kind, self.random.range(0, 1)) {
            (Kind::Slow, _) => Weather::Slow(Duration::from_millis(self.random.range(20, 300))),
            (Kind::Double, _) => Weather::Doubled,
            (_, 0) => Weather::Stalled,
            _ => Weather::Broken,
        };
        let aimable = matches!(
            kind,
            Kind::Kill | Kind::KillTrusted | Kind::Lose | Kind::Wipe | Kind::Full | Kind::Clock
        );
        let parts = match (kind, self.random.range(0, 2)) {
            (Kind::Kill, _) | (Kind::Lose | Kind::Wipe, 0) => vec![Part::Replica],
            // Without a process of its own a component has a disk of its own all the same.
            _ if !self.group.apart && kind != Kind::Wipe => vec![Part::Replica],
            (Kind::KillTrusted, _) | (Kind::Lose | Kind::Wipe, 1) => vec![Part::Trusted],
            _ => vec![Part::Trusted, Part::Replica],
        };
        let longest = if kind.hits_all() { 1000 } else { 4000 };
        Fault {
            kind,
            aims: aimable && liars.is_empty() && self.random.range(0, 1) == 0,
            victims: replicas,
            liars,
            parts,
            other,
            weather,
            seed: self.random.range(0, u64::MAX - 1),
            clock_ahead_ms: if self.random.range(0, 1) == 0 { OFF_MS } else { -OFF_MS },
            calm: Duration::from_millis(self.random.range(300, 1500)),
            lasts: Duration::from_millis(self.random.range(200, longest)),
        }
    }

    /// Who lies while these are broken: whoever may, and with several at fault often.
    fn liars(&mut self, kind: Kind, victims: &[u16], most: u64) -> Vec<u16> {
        if kind.hits_all() || (kind != Kind::Lie && self.random.range(0, 1) == 0) {
            return Vec::new();
        }
        let left = usize::from(self.group.faults) - victims.len();
        let most = if kind == Kind::Lie { usize::try_from(most).expect("at most f") } else { left };
        self.traitors
            .iter()
            .copied()
            .filter(|traitor| !victims.contains(traitor))
            .take(most.min(left))
            .collect()
    }
}

impl Fault {
    /// For people.
    pub(crate) fn describe(&self) -> String {
        let victims = list(&self.victims);
        let how = if self.weather == Weather::Broken { "broken" } else { "stalled" };
        let seconds = self.lasts.as_secs_f64();
        let parts = match self.parts[..] {
            [Part::Replica] => "replica",
            [Part::Trusted] => "trusted process",
            _ => "both processes",
        };
        let what = match (self.kind, self.weather) {
            (Kind::Kill | Kind::KillTrusted | Kind::KillBoth, _) => format!("killed {parts} of {victims}"),
            (Kind::Lose, _) => format!("lost unsynced bytes of {parts} of {victims}"),
            (Kind::Wipe, _) => format!("wiped disk of {parts} of {victims}"),
            (Kind::Pause, _) => format!("paused {victims}"),
            (Kind::Cut, _) => format!("links of {victims} {how}"),
            (Kind::Split, _) => format!("link of {victims} and {} {how}", self.other),
            (Kind::Slow, Weather::Slow(late)) => format!("links of {victims} {} ms late", late.as_millis()),
            (Kind::Slow, _) => format!("links of {victims} slow"),
            (Kind::Double, _) => format!("links of {victims} doubled"),
            (Kind::Reset, _) => "clients' connections reset".to_owned(),
            (Kind::Full, _) => format!("disk of {victims} full"),
            (Kind::Clock, _) => format!("clock of {victims} {} s off", self.clock_ahead_ms / 1000),
            (Kind::Lie, _) => "nothing else".to_owned(),
            (Kind::Everything, _) => "killed everything".to_owned(),
            (Kind::LoseEverything, _) => "lost unsynced bytes of everything".to_owned(),
        };
        let lies =
            if self.liars.is_empty() { String::new() } else { format!("{} lies, ", list(&self.liars)) };
        format!("{lies}{what} for {seconds:.1} s")
    }

    /// Whether the clients' connections break at this moment since the fault began.
    pub(crate) fn breaks_clients(&self, since: Duration) -> bool {
        // Every half second anew: long enough between to connect and to send.
        self.kind == Kind::Reset && since < self.lasts && since.as_millis() % 500 < 100
    }
}

fn list(replicas: &[u16]) -> String {
    replicas.iter().map(u16::to_string).collect::<Vec<_>>().join(" and ")
}
