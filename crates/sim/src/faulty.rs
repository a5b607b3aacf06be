//! Which replicas of a seed's world are faulty, and how they behave.

use crate::options::{FaultClass, Faulty, FaultyKind, Overrides, Shape};
use crate::{Options, Rng};

impl Options {
    pub(crate) fn draw_faulty(&mut self, shape: Shape, overrides: &Overrides) {
        let Shape { strategies, later, parrots, .. } = shape;
        let mut rng = Rng::stream(self.seed, "faulty", 0);
        // Mostly as many as the model allows.
        let count = if let Some(faulty) = overrides.faulty {
            faulty
        } else if rng.below(10) < 7 || overrides.negative {
            self.f
        } else {
            rng.below(u64::from(self.f) + 1) as u16
        };
        let mut replicas: Vec<u16> = (0..self.n).collect();
        if rng.one_in(2) {
            // The first primary and its successors: colluders in charge one after the other.
            replicas.rotate_left(rng.index(2));
        } else {
            rng.shuffle(&mut replicas);
        }
        let general = overrides.literal.is_some() || strategies == 0;
        // Those who are more than the group tolerates do most harm together: by one of the last two strategies.
        let together = overrides.faulty.and_then(|_| [1, 2].get(rng.index(3)).copied());
        for replica in replicas.into_iter().take(usize::from(count)) {
            let kind = match rng.below(if general { 4 } else { 10 }) {
                _ if overrides.negative => FaultyKind::Twin,
                _ if together.is_some_and(|last| last <= strategies) => {
                    FaultyKind::Written(strategies - together.unwrap_or_default())
                }
                0 | 1 => FaultyKind::Proxy,
                2 => FaultyKind::Twin,
                3 => FaultyKind::Amnesia,
                _ => FaultyKind::Written(rng.index(strategies)),
            };
            let kind = self
                .later(replica, strategies, later)
                .filter(|_| !general && !overrides.negative && together.is_none())
                .unwrap_or(kind);
            let parrot =
                parrots && !overrides.negative && together.is_none() && self.parrot(replica, general);
            let kind = if parrot { FaultyKind::Parrot } else { kind };
            self.faulty.push(Faulty { replica, kind, reforms: rng.one_in(2) });
        }
    }

    /// In some worlds every faulty replica has two faces, and the network falls into parts for long enough that each part
    /// leaves views by itself. Where more of them are faulty than the group tolerates each part orders by itself.
    pub(crate) fn draw_faces(&mut self, shape: Shape, overrides: &Overrides) {
        let mut rng = Rng::stream(self.seed, "faces", 0);
        let general = overrides.literal.is_some();
        let drawn = rng.one_in(if general { 3 } else { 12 });
        if !shape.faces || overrides.negative || self.faulty.is_empty() || !drawn {
            return;
        }
        (self.faces, self.bridges) = (true, true);
        self.classes.insert(FaultClass::Partitions);
        self.faulty.iter_mut().for_each(|faulty| faulty.kind = FaultyKind::Janus);
        self.fault_length = rng.range(50_000, 500_000);
        self.fault_pause = rng.range(1_000, 100_000);
    }

    /// In some worlds all faulty replicas relapse together, again and again.
    pub(crate) fn draw_relapses(&mut self, shape: Shape, overrides: &Overrides) {
        let general = overrides.literal.is_some();
        let drawn = Rng::stream(self.seed, "relapses", 0).one_in(if general { 4 } else { 16 });
        let excluded = overrides.negative || self.faces || self.beyond() || self.faulty.is_empty();
        if !shape.relapses || excluded || !drawn {
            return;
        }
        (self.relapses, self.bridges) = (true, true);
        self.classes.insert(FaultClass::Partitions);
        self.classes.remove(&FaultClass::Cuts);
        self.classes.remove(&FaultClass::Kinds);
        self.faulty.iter_mut().for_each(|faulty| faulty.kind = FaultyKind::Relapse);
    }

    /// In some worlds one faulty replica has two components, and the others hear it across the faults of the network. What
    /// is stable soon covers what it said first.
    pub(crate) fn draw_heirs(&mut self, shape: Shape, overrides: &Overrides) {
        let drawn = Rng::stream(self.seed, "heirs", 0).one_in(16);
        let general = overrides.literal.is_some();
        let excluded = overrides.negative || general || self.faces || self.relapses || self.beyond();
        if !shape.heirs || excluded || !drawn {
            return;
        }
        let Some(heir) = self.faulty.first_mut() else { return };
        heir.kind = FaultyKind::Heir;
        (self.heirs, self.bridges) = (true, true);
        self.classes.extend([FaultClass::Partitions, FaultClass::Losses]);
        self.classes.remove(&FaultClass::Cuts);
        self.classes.remove(&FaultClass::Kinds);
        self.interval = self.interval.min(4);
        self.window = 2 * self.interval;
    }

    /// Whether a replica is a parrot instead. A stream of its own, as above.
    fn parrot(&self, replica: u16, general: bool) -> bool {
        Rng::stream(self.seed, "parrots", u64::from(replica)).one_in(if general { 2 } else { 8 })
    }

    /// Whether a replica follows one of the later strategies instead.
    fn later(&self, replica: u16, strategies: usize, later: usize) -> Option<FaultyKind> {
        let mut rng = Rng::stream(self.seed, "later strategies", u64::from(replica));
        (later > 0 && rng.one_in(8)).then(|| FaultyKind::Written(strategies + rng.index(later)))
    }
}
