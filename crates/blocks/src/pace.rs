//! How fast a primary orders, beside how fast the others could (Prime's suspect-leader, in one replica's eyes).

use crate::{Doubt, Voters};
use troth_types::{ReplicaId, Seq, Time};

/// A batch whose agreement is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Probe {
    seq: Seq,
    began: Time,
    voters: Voters,
    /// Who committed before this replica did and says nothing by it.
    early: Voters,
}

/// What a replica measures of a primary and of the others, and what follows. Times are microseconds of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Pace {
    /// Nothing is judged before: a new primary begins with what the last one left.
    from: Time,
    probe: Option<Probe>,
    probed: u64,
    probes: u64,
    /// The mean agreement time of the last look that had any.
    agreement: Option<u64>,
    waited: Option<u64>,
    /// Since when stock is taken.
    since: Time,
    /// The last looks, the newest lowest: whether each found the primary slow.
    slow: u8,
    doubt: Doubt,
}

/// What a look at a primary found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing that says anything.
    Nothing,
    /// It orders as fast as it could.
    Good,
    /// It orders slowly: this once.
    Slow,
    /// It ordered slowly twice of late.
    TooSlow,
}

impl Pace {
    /// A view begins. Its primary is judged from `from` on.
    pub fn begin(&mut self, from: Time) {
        *self = Self { from, doubt: self.doubt, agreement: self.agreement, ..Self::default() };
    }

    /// This replica commits to a batch: from now on it waits for nothing of the primary's. Backups that committed
    /// before count.
    pub fn prepared(&mut self, seq: Seq, now: Time, committed: impl Iterator<Item = ReplicaId>) {
        if self.probe.is_none() {
            let (voters, early) = (committed.collect(), Voters::NONE);
            self.probe = Some(Probe { seq, began: now, voters, early });
        }
    }

    /// The same where anybody can commit to what did not prepare: those who did before this replica do not count, or f
    /// of them would have every agreement take no time. A batch is not timed where fewer than `enough` of so many
    /// `backups` are left.
    pub fn prepared_alone(
        &mut self,
        seq: Seq,
        now: Time,
        before: impl Iterator<Item = ReplicaId>,
        backups: usize,
        enough: usize,
    ) {
        let early: Voters = before.collect();
        if self.probe.is_none() && early.count() + enough <= backups {
            self.probe = Some(Probe { seq, began: now, voters: Voters::NONE, early });
        }
    }

    /// A backup committed. With the `enough`-th the agreement is timed: so many take no longer than a correct primary
    /// would, whatever the present one does.
    pub fn committed(&mut self, seq: Seq, backup: ReplicaId, now: Time, enough: usize) {
        let Some(probe) = self.probe.as_mut().filter(|probe| probe.seq == seq) else { return };
        if probe.early.contains(backup) {
            return;
        }
        probe.voters.insert(backup);
        if probe.voters.count() >= enough {
            self.probed += now.0.saturating_sub(probe.began.0);
            self.probes += 1;
            self.probe = None;
        }
    }

    /// Stock is taken from now on.
    pub fn watch_from(&mut self, now: Time) {
        self.since = now;
    }

    /// Since when stock is taken.
    #[must_use]
    pub fn since(&self) -> Time {
        self.since
    }

    /// Looks at the primary: `waited` is how long requests typically waited for it, `times` how many times an
    /// agreement they may, `least` what nobody is blamed for.
    pub fn look(&mut self, now: Time, waited: Option<u64>, times: u64, least: u64) -> Look {
        self.look_again(now, waited, true, times, least)
    }

    /// The same where part of `waited` may be remembered of an earlier look: what is not measured `anew` says nothing.
    pub fn look_again(&mut self, now: Time, waited: Option<u64>, anew: bool, times: u64, least: u64) -> Look {
        // A batch that too few others vote for says nothing for ever; they may be down.
        let stuck = self
            .probe
            .is_some_and(|probe| probe.began.0.saturating_add(least.saturating_mul(Self::STUCK)) < now.0);
        if stuck {
            self.probe = None;
        }
        match self.probed.checked_div(self.probes) {
            Some(mean) => self.agreement = Some(mean),
            None if stuck => self.agreement = None,
            None => {}
        }
        (self.probed, self.probes) = (0, 0);
        self.waited = waited;
        let (Some(waited), Some(agreement)) = (waited, self.agreement) else {
            return Look::Nothing;
        };
        if now < self.from || !anew {
            return Look::Nothing;
        }
        self.slow = (self.slow << 1) & Self::LATE;
        let bears = self.doubt.bears(agreement.saturating_mul(times).saturating_add(least));
        if waited <= bears {
            self.doubt.good(waited <= bears / 2);
            return Look::Good;
        }
        self.slow |= 1;
        if self.slow.count_ones() < 2 { Look::Slow } else { Look::TooSlow }
    }

    /// The last four looks: a primary that is slow in every other one is slow.
    const LATE: u8 = 0b1111;
    /// So many times what nobody is blamed for, and a batch has no agreement to be timed.
    const STUCK: u64 = 64;

    /// The primary is suspected for it.
    pub fn blame(&mut self, primary: ReplicaId, weak: usize) {
        self.doubt.blame(primary, weak);
        self.slow = 0;
    }

    /// How much is borne because primaries were blamed that cannot all be faulty.
    #[must_use]
    pub fn doubt(&self) -> &Doubt {
        &self.doubt
    }

    /// How long an agreement takes among the others, in microseconds, where that is known.
    #[must_use]
    pub fn agreement(&self) -> Option<u64> {
        self.agreement
    }

    /// How long requests typically waited for their proposal at the last look, in microseconds.
    #[must_use]
    pub fn waited(&self) -> Option<u64> {
        self.waited
    }
}
