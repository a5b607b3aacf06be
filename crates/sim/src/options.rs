//! The swarm: what a seed's world is like. Whole fault classes are off in many seeds, so that rare
//! combinations are met and no class hides another.

use crate::Rng;
use crate::service::ServiceKind;
use std::collections::BTreeSet;
use std::fmt;

/// A class of faults that a seed may have and shrinking may take away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultClass {
    /// Messages are lost.
    Loss,
    /// Messages arrive twice.
    Duplication,
    /// Some messages take very long, and overtake each other.
    Delays,
    /// The replicas fall into groups that do not hear each other.
    Partitions,
    /// Single links go deaf, in one direction, around view changes above all.
    Cuts,
    /// Replicas crash and start again from their disks.
    Crashes,
    /// Clocks disagree.
    Skew,
    /// Some clients are Byzantine.
    Clients,
    /// Machines are lost with all they hold, and faulty replicas are replaced.
    Losses,
    /// Links lose one kind of message for a while, and pass all others.
    Kinds,
}

impl FaultClass {
    /// All classes.
    pub const ALL: [Self; 10] = [
        Self::Loss,
        Self::Duplication,
        Self::Delays,
        Self::Partitions,
        Self::Cuts,
        Self::Crashes,
        Self::Skew,
        Self::Clients,
        Self::Losses,
        Self::Kinds,
    ];
}

/// How a faulty replica behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultyKind {
    /// Runs the protocol; a proxy withholds, delays, selects, replays and rewrites what it sends.
    Proxy,
    /// Two hosts of one identity that share one trusted component.
    Twin,
    /// Says in its own name what others say.
    Parrot,
    /// A host for each part into which the network falls, of one identity.
    Janus,
    /// Forgets: goes back to earlier clones of its state while its component moves on.
    Amnesia,
    /// Works with one part of the network, and then, as it was before, with the other, together with all other faulty ones.
    Relapse,
    /// Keeps its component when it is replaced by another, and has that one, too.
    Heir,
    /// A written strategy of the protocol, by its index.
    Written(usize),
}

/// A faulty replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faulty {
    /// Its number.
    pub replica: u16,
    /// Its behaviour.
    pub kind: FaultyKind,
    /// Whether it behaves correctly after the healing; else it is silent.
    pub reforms: bool,
}

/// What a protocol's worlds are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Replicas of the group.
    pub n: u16,
    /// Written strategies that the protocol has, but for the later ones.
    pub strategies: usize,
    /// Those behind them that are drawn from a stream of their own: what other seeds are stays what it was.
    pub later: usize,
    /// Whether a replica whose machine is lost can be replaced by another.
    pub replaces: bool,
    /// Whether a faulty replica may be a parrot.
    pub parrots: bool,
    /// Whether faulty replicas may hear and be heard across faults of the network.
    pub bridges: bool,
    /// Whether faulty replicas may have a face for each part of the network.
    pub faces: bool,
    /// Whether faulty replicas may relapse together.
    pub relapses: bool,
    /// Whether a faulty replica may have the component that it had and the one that took its place.
    pub heirs: bool,
}

/// What takes something away from a seed's draw: shrinking and the special modes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Classes to leave out.
    pub without: BTreeSet<FaultClass>,
    /// Faulty replicas (by their place in the draw) to leave correct.
    pub corrected: BTreeSet<usize>,
    /// The most correct clients.
    pub clients: Option<usize>,
    /// The most requests of each client.
    pub requests: Option<u64>,
    /// The flaw whose literal rule is in force; then only general adversaries are drawn.
    pub literal: Option<String>,
    /// How many replicas are faulty, where they are more than f.
    pub faulty: Option<u16>,
    /// Every faulty replica is a pair with *cloned* components: outside the fault model.
    pub negative: bool,
    /// A run ends without a verdict on what follows when a correct replica enters this view: which
    /// failures need a replica to be primary twice?
    pub views: Option<u64>,
    /// The only property that is judged: what else a flawed rule breaks must not end the search for what it is said to break.
    pub only: Option<String>,
    /// No checker looks at counter values: what else notices a cloned component?
    pub trust_blind: bool,
    /// What the group replicates.
    pub service: ServiceKind,
    /// Clients' reads need not show the present, but what they were told.
    pub recent: bool,
}

/// One seed's world.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "each field is what its name says; times are microseconds, chances parts in a million"
)]
pub struct Options {
    pub seed: u64,
    pub f: u16,
    pub n: u16,
    pub classes: BTreeSet<FaultClass>,
    pub loss: u64,
    pub duplication: u64,
    pub delay_min: u64,
    pub delay_mean: u64,
    pub spike: u64,
    pub spike_mean: u64,
    pub fault_pause: u64,
    pub fault_length: u64,
    pub cut_on_view_change: u64,
    pub crash_pause: u64,
    pub down_mean: u64,
    pub crash_per_command: u64,
    pub durable: bool,
    pub sync: u64,
    pub attest: u64,
    pub skew: u64,
    pub interval: u64,
    pub window: u64,
    pub pipeline: u64,
    pub batch_frames: usize,
    pub request_timeout: u64,
    pub view_timeout: u64,
    pub status_interval: u64,
    pub clients: usize,
    pub requests: u64,
    pub outstanding: usize,
    pub think: u64,
    pub keys: u64,
    /// Fast reads among the submissions, in percent.
    pub reads: u64,
    pub client_window: u64,
    pub client_deadline: u64,
    pub resend_first: u64,
    pub byzantine_clients: usize,
    pub faulty: Vec<Faulty>,
    /// Links of faulty replicas pass messages whatever befalls the others: who has the parts of a group to itself.
    pub bridges: bool,
    /// Faulty replicas have a face for each part of the network, and nothing silences whole links but parts, one after the other.
    pub faces: bool,
    /// Faulty replicas go back together to what they were, from one part of the network to the other, and no other
    /// fault befalls its links.
    pub relapses: bool,
    /// A faulty replica has two components from some moment on, at which the correct ones are parted.
    pub heirs: bool,
    pub wire_one_in: u64,
    pub fault_phase: u64,
    pub literal: Option<String>,
    pub negative: bool,
    pub trust_blind: bool,
    pub views: Option<u64>,
    pub only: Option<String>,
    pub service: ServiceKind,
    pub recent: bool,
}

impl Options {
    /// Slots of the history that a replica may keep: beyond what is not stable yet those whose forerunners it asks for, once in
    /// each interval between two status messages, while the others order on.
    #[must_use]
    pub fn most_history(&self) -> u64 {
        const ASKED: u64 = 4;
        const PHASES: u64 = 3;
        let meanwhile = ASKED * self.status_interval * self.pipeline / (PHASES * self.delay_min.max(1));
        4 * self.window + 64 + meanwhile
    }

    /// Draws the world of a seed.
    #[must_use]
    pub fn draw(seed: u64, f: u16, shape: Shape, overrides: &Overrides) -> Self {
        let mut rng = Rng::stream(seed, "options", 0);
        let Shape { n, replaces, .. } = shape;
        let mut classes: BTreeSet<FaultClass> = BTreeSet::new();
        if replaces && Rng::stream(seed, "losses", 0).below(100) < 60 {
            classes.insert(FaultClass::Losses);
        }
        if Rng::stream(seed, "kinds", 0).one_in(3) {
            classes.insert(FaultClass::Kinds);
        }
        // Those two are drawn from streams of their own: what other seeds are stays what it was.
        let apart = [FaultClass::Losses, FaultClass::Kinds];
        for class in FaultClass::ALL.into_iter().filter(|class| !apart.contains(class)) {
            let likely = matches!(class, FaultClass::Cuts | FaultClass::Crashes | FaultClass::Skew);
            if rng.below(100) < if likely { 65 } else { 45 } {
                classes.insert(class);
            }
        }
        let interval = rng.pick(&[2, 3, 4, 5, 8, 12]);
        let view_timeout = rng.range(15_000, 50_000);
        let mut options = Self {
            seed,
            f,
            n,
            loss: rng.pick(&[2_000, 10_000, 40_000, 100_000]),
            duplication: rng.pick(&[5_000, 30_000, 100_000]),
            delay_min: rng.range(20, 300),
            delay_mean: rng.pick(&[50, 200, 500, 1_500]),
            spike: rng.pick(&[2_000, 20_000]),
            spike_mean: rng.pick(&[5_000, 40_000, 150_000]),
            fault_pause: rng.range(30_000, 250_000),
            fault_length: rng.range(5_000, 120_000),
            cut_on_view_change: rng.pick(&[0, 300_000, 700_000]),
            crash_pause: rng.range(30_000, 250_000),
            down_mean: rng.pick(&[2_000, 20_000, 100_000]),
            crash_per_command: rng.pick(&[0, 100, 600]),
            durable: rng.below(100) < 85,
            sync: rng.pick(&[0, 0, 50, 400]),
            attest: rng.pick(&[0, 0, 20, 300]),
            skew: rng.pick(&[100, 10_000, 300_000]),
            interval,
            window: interval * rng.pick(&[2, 3, 4, 8]),
            pipeline: rng.pick(&[1, 2, 4, 8]),
            batch_frames: rng.pick(&[1, 2, 4, 16]),
            request_timeout: rng.range(15_000, 60_000),
            view_timeout,
            status_interval: rng.range(5_000, 15_000),
            clients: rng.index(4) + 2,
            requests: 0,
            outstanding: rng.pick(&[1, 2, 4, 8]),
            think: rng.pick(&[0, 500, 5_000]),
            keys: rng.range(2, 6),
            reads: Rng::stream(seed, "options", 1).pick(&[10, 30, 60]),
            client_window: rng.pick(&[8, 16, 32]),
            client_deadline: rng.pick(&[200_000, 600_000_000, 600_000_000]),
            resend_first: rng.range(8_000, 30_000),
            byzantine_clients: rng.index(2) + 1,
            faulty: Vec::new(),
            bridges: shape.bridges && Rng::stream(seed, "bridges", 0).one_in(3),
            faces: false,
            relapses: false,
            heirs: false,
            wire_one_in: 64,
            fault_phase: rng.range(1_000_000, 2_500_000),
            literal: overrides.literal.clone(),
            negative: overrides.negative,
            trust_blind: overrides.trust_blind,
            views: overrides.views,
            only: overrides.only.clone(),
            service: overrides.service,
            recent: overrides.recent,
            classes,
        };
        options.requests = (300 / options.clients as u64) + 1;
        options.draw_faulty(shape, overrides);
        options.draw_faces(shape, overrides);
        options.draw_relapses(shape, overrides);
        options.draw_heirs(shape, overrides);
        options.apply(overrides);
        options
    }

    fn apply(&mut self, overrides: &Overrides) {
        for class in &overrides.without {
            self.classes.remove(class);
        }
        if !self.has(FaultClass::Loss) {
            self.loss = 0;
        }
        if !self.has(FaultClass::Duplication) {
            self.duplication = 0;
        }
        if !self.has(FaultClass::Delays) {
            self.spike = 0;
        }
        if !self.has(FaultClass::Cuts) {
            self.cut_on_view_change = 0;
        }
        if !self.has(FaultClass::Skew) {
            self.skew = 0;
        }
        self.skew = self.skew.min(self.clock_bound());
        if !self.has(FaultClass::Clients) {
            self.byzantine_clients = 0;
        }
        if !self.durable {
            self.classes.remove(&FaultClass::Crashes);
        }
        let mut place = 0;
        self.faulty.retain(|_| {
            place += 1;
            !overrides.corrected.contains(&(place - 1))
        });
        if let Some(clients) = overrides.clients {
            self.clients = self.clients.min(clients);
        }
        if let Some(requests) = overrides.requests {
            self.requests = self.requests.min(requests);
        }
    }

    /// Microseconds that replicas bear proposals to be ahead of their clocks, and correct clocks apart at most. Worlds take
    /// a few seconds, in which sessions must end.
    #[must_use]
    pub fn clock_bound(&self) -> u64 {
        match self.service {
            ServiceKind::Kv => 2_000_000,
            ServiceKind::ZooKeeper => 20_000,
        }
    }

    /// Whether a fault class is on.
    #[must_use]
    pub fn has(&self, class: FaultClass) -> bool {
        self.classes.contains(&class)
    }

    /// Whether more replicas are faulty than the group tolerates: then only what clients see is judged, and what components
    /// say.
    #[must_use]
    pub fn beyond(&self) -> bool {
        self.faulty.len() > usize::from(self.f)
    }

    /// The faulty behaviour of a replica, if it is faulty.
    #[must_use]
    pub fn faulty(&self, replica: u16) -> Option<&Faulty> {
        self.faulty.iter().find(|faulty| faulty.replica == replica)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  seed {} f {} n {} faulty {:?}", self.seed, self.f, self.n, self.faulty)?;
        writeln!(f, "  classes {:?}", self.classes)?;
        writeln!(
            f,
            "  K {} L {} pipeline {} batch {} | clients {}+{} requests {} outstanding {} window {} keys {}",
            self.interval,
            self.window,
            self.pipeline,
            self.batch_frames,
            self.clients,
            self.byzantine_clients,
            self.requests,
            self.outstanding,
            self.client_window,
            self.keys
        )?;
        write!(
            f,
            "  bridges: {} faces: {} relapses: {} heirs: {} | timeouts: request {} view {} status {} | delay {}+{} sync {} attest {} durable {} literal {:?}",
            self.bridges,
            self.faces,
            self.relapses,
            self.heirs,
            self.request_timeout,
            self.view_timeout,
            self.status_interval,
            self.delay_min,
            self.delay_mean,
            self.sync,
            self.attest,
            self.durable,
            self.literal
        )
    }
}
