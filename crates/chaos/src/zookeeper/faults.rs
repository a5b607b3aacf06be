//! What is killed, and when: each kind of fault once in every round, in another order. At most f replicas are down at a time,
//! except where everything is.

use crate::processes::Part;
use crate::random::Random;
use std::time::Duration;

/// A kind of fault. All of it is SIGKILL, and a start a little later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A gateway.
    Gateway,
    /// Replicas.
    Replica,
    /// Trusted processes.
    Trusted,
    /// Replicas with their trusted processes, and a gateway.
    Together,
    /// All gateways.
    Gateways,
    /// Everything at once.
    Everything,
}

impl Kind {
    /// All of them.
    pub(crate) const ALL: [Self; 6] =
        [Self::Gateway, Self::Replica, Self::Trusted, Self::Together, Self::Gateways, Self::Everything];

    /// For people and for the result.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gateway => "kill-gateway",
            Self::Replica => "kill-replica",
            Self::Trusted => "kill-trusted",
            Self::Together => "kill-together",
            Self::Gateways => "kill-gateways",
            Self::Everything => "everything",
        }
    }
}

/// What there is to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Targets {
    pub(crate) gateways: usize,
    pub(crate) replicas: u16,
    /// How many replicas may be down at a time.
    pub(crate) faults: u16,
    /// Whether trusted components run in processes of their own.
    pub(crate) apart: bool,
}

impl Targets {
    /// The kinds of faults that it can take.
    pub(crate) fn kinds(self) -> Vec<Kind> {
        Kind::ALL.into_iter().filter(|kind| self.apart || *kind != Kind::Trusted).collect()
    }
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) replicas: Vec<u16>,
    /// The processes of these replicas that are killed.
    pub(crate) parts: Vec<Part>,
    pub(crate) gateways: Vec<usize>,
    /// Whether the first replica is to be whoever is the primary then.
    pub(crate) aims: bool,
    /// Before it.
    pub(crate) calm: Duration,
    pub(crate) lasts: Duration,
}

impl Fault {
    /// For people.
    pub(crate) fn describe(&self) -> String {
        format!(
            "{} of replicas {:?} and gateways {:?} for {:.1} s",
            self.kind.name(),
            self.replicas,
            self.gateways,
            self.lasts.as_secs_f64()
        )
    }
}

/// The faults that a seed chooses.
pub(crate) struct Schedule {
    random: Random,
    round: Vec<Kind>,
    targets: Targets,
}

impl Schedule {
    /// For these.
    pub(crate) fn new(seed: u64, targets: Targets) -> Self {
        Self { random: Random::stream(seed, 0), round: Vec::new(), targets }
    }

    /// The next fault.
    pub(crate) fn next(&mut self) -> Fault {
        if self.round.is_empty() {
            self.round.extend(self.targets.kinds());
            self.random.shuffle(&mut self.round);
        }
        let kind = self.round.pop().expect("just filled");
        let mut replicas: Vec<u16> = (0..self.targets.replicas).collect();
        self.random.shuffle(&mut replicas);
        let mut gateways: Vec<usize> = (0..self.targets.gateways).collect();
        self.random.shuffle(&mut gateways);
        let some = self.random.range(1, self.targets.faults.into());
        let (down, closed) = match kind {
            Kind::Gateway => (0, 1),
            Kind::Replica | Kind::Trusted => (some, 0),
            Kind::Together => (some, 1),
            Kind::Gateways => (0, gateways.len()),
            Kind::Everything => (self.targets.replicas.into(), gateways.len()),
        };
        replicas.truncate(usize::try_from(down).expect("as many as there are"));
        gateways.truncate(closed);
        let parts = match kind {
            Kind::Replica => vec![Part::Replica],
            Kind::Trusted => vec![Part::Trusted],
            _ => vec![Part::Trusted, Part::Replica],
        };
        let longest = if matches!(kind, Kind::Everything | Kind::Gateways) { 1000 } else { 3000 };
        Fault {
            kind,
            aims: down > 0 && kind != Kind::Everything && self.random.range(0, 1) == 0,
            replicas,
            parts,
            gateways,
            calm: Duration::from_millis(self.random.range(500, 2500)),
            lasts: Duration::from_millis(self.random.range(200, longest)),
        }
    }
}
