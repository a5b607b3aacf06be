//! The bodies of frames, by digest, from their arrival until no batch that names them can be needed
//! any more (guide.md F-P7: keep bodies until stable).

use std::collections::BTreeMap;
use troth_core::VerifiedFrame;
use troth_types::{Digest, Seq, Time};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    frame: VerifiedFrame,
    pending: bool,
    used: Seq,
    logged: bool,
    /// Nobody else was sent it, as far as is known.
    alone: bool,
}

/// Verified frames.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FrameStore {
    frames: BTreeMap<Digest, Held>,
    /// Digests that a batch names and whose frames are missing.
    wanted: BTreeMap<Digest, Wanted>,
    /// Whether some of them may not have been asked for.
    anew: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    /// The lowest batch that names it.
    first: Seq,
    /// The highest.
    last: Seq,
    /// When it was asked for last.
    asked: Option<Time>,
    /// When it was asked of others than the one that was asked first.
    asked_others: Option<Time>,
}

impl FrameStore {
    /// Whether a batch up to this one names this frame, and it is missing.
    #[must_use]
    pub fn wants(&self, digest: &Digest, up_to: Seq) -> bool {
        self.wanted.get(digest).is_some_and(|wanted| wanted.first <= up_to)
    }

    /// Keeps a frame. `pending`: it waits for execution.
    pub fn insert(&mut self, frame: VerifiedFrame, pending: bool) {
        let digest = frame.digest();
        let used = self.wanted.remove(&digest).map(|wanted| wanted.last).unwrap_or_default();
        let held = self.frames.entry(digest).or_insert(Held {
            frame,
            pending: false,
            used,
            logged: false,
            alone: false,
        });
        held.pending |= pending;
    }

    /// Takes up a frame from the log.
    pub fn restore(&mut self, frame: VerifiedFrame) {
        let digest = frame.digest();
        self.frames.insert(digest, Held { frame, pending: false, used: Seq(0), logged: true, alone: false });
    }

    /// Of a frame from the log that nothing names any more nobody knows for which number it was promised: it stays until this
    /// one is stable.
    pub fn keep_unnamed(&mut self, until: Seq) {
        for held in self.frames.values_mut().filter(|held| held.logged && held.used == Seq(0)) {
            held.used = until;
        }
    }

    /// The frame, if it is here.
    #[must_use]
    pub fn get(&self, digest: &Digest) -> Option<&VerifiedFrame> {
        self.frames.get(digest).map(|held| &held.frame)
    }

    /// Whether the client of this frame has signed another content under the same number: the frame with that
    /// digest, if it is here.
    #[must_use]
    pub fn contradicts(&self, frame: &VerifiedFrame, other: &Digest) -> bool {
        self.get(other).is_some_and(|other| {
            (other.client(), other.number()) == (frame.client(), frame.number())
                && other.signing_digest() != frame.signing_digest()
        })
    }

    /// A batch names these frames; says whether all of them are here. Those that are missing become
    /// wanted.
    pub fn name(&mut self, seq: Seq, digests: &[Digest]) -> bool {
        let mut complete = true;
        for digest in digests {
            match self.frames.get_mut(digest) {
                Some(held) => held.used = held.used.max(seq),
                None => {
                    let wanted = self.wanted.entry(*digest).or_insert_with(|| {
                        self.anew = true;
                        Wanted { first: seq, last: seq, asked: None, asked_others: None }
                    });
                    (wanted.first, wanted.last) = (wanted.first.min(seq), wanted.last.max(seq));
                    complete = false;
                }
            }
        }
        complete
    }

    /// A batch that named these frames has lost its number, up to which all is executed: what nothing after it names, no log
    /// holds and nobody waits for goes, and what is missing is not wanted.
    pub fn let_go(&mut self, seq: Seq, digests: &[Digest]) {
        for digest in digests {
            if self.wanted.get(digest).is_some_and(|wanted| wanted.last <= seq) {
                self.wanted.remove(digest);
            }
            if self.frames.get(digest).is_some_and(|held| !held.pending && !held.logged && held.used <= seq) {
                self.frames.remove(digest);
            }
        }
    }

    /// The most bytes of a frame that is shown with the batch that names it; a larger one is asked for by whoever lacks it.
    const SHOWN_BYTES: usize = 4096;

    /// This replica alone was sent this frame. Whether it is small enough to be shown.
    pub fn is_alone(&mut self, digest: &Digest) -> bool {
        let Some(held) = self.frames.get_mut(digest) else { return false };
        held.alone = held.frame.size() <= Self::SHOWN_BYTES;
        held.alone
    }

    /// Keeps a small frame that does not wait for execution until the next checkpoint is stable, or for as long as a batch
    /// names it.
    pub fn keep_for_now(&mut self, frame: VerifiedFrame) {
        if frame.size() <= Self::SHOWN_BYTES {
            self.insert(frame, false);
        }
    }

    /// Whether this frame is here and no batch names it.
    #[must_use]
    pub fn is_unnamed(&self, digest: &Digest) -> bool {
        self.frames.get(digest).is_some_and(|held| held.used == Seq(0))
    }

    /// Of these frames, those that others must be shown, once.
    pub fn to_show(&mut self, digests: &[Digest]) -> Vec<VerifiedFrame> {
        let mut shown = Vec::new();
        for digest in digests {
            if let Some(held) = self.frames.get_mut(digest).filter(|held| held.alone) {
                held.alone = false;
                shown.push(held.frame.clone());
            }
        }
        shown
    }

    /// Whether all of these frames are here.
    #[must_use]
    pub fn complete(&self, digests: &[Digest]) -> bool {
        digests.iter().all(|digest| self.frames.contains_key(digest))
    }

    /// Whether any frame that a batch names is missing.
    #[must_use]
    pub fn lacks_any(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Whether frames may be missing that [`FrameStore::ask_first`] has not had asked for since they were named.
    #[must_use]
    pub fn lacks_anew(&self) -> bool {
        self.anew && self.lacks_any()
    }

    /// The frames that are missing of batches up to this one, at most `most`, in each round others: a faulty
    /// primary may have named any number that nobody has.
    #[must_use]
    pub fn missing(&self, most: usize, round: u64, up_to: Seq) -> Vec<Digest> {
        let wanted = || self.wanted.iter().filter(|(_, wanted)| wanted.first <= up_to);
        let parts = wanted().count().div_ceil(most).max(1) as u64;
        let part = usize::try_from(round % parts).unwrap_or(0);
        wanted().map(|(digest, _)| *digest).skip(part * most).take(most).collect()
    }

    /// The frames that are missing of batches up to this one and that were not asked for by this before since
    /// `asked_before`, those of the lowest batches, at most `most`. They count as asked for `now`.
    pub fn ask_first(&mut self, most: usize, up_to: Seq, now: Time, asked_before: Time) -> Vec<Digest> {
        let due = |wanted: &Wanted| wanted.asked.is_none_or(|asked| asked < asked_before);
        let due = self.due(most, up_to, due);
        self.anew &= due.len() == most;
        for digest in &due {
            self.wanted.entry(*digest).and_modify(|wanted| wanted.asked = Some(now));
        }
        due
    }

    /// Of those that were asked for first up to `since`, the ones that nobody else was asked for since `asked_before`. They
    /// count as asked of others `now`.
    pub fn ask_next(
        &mut self,
        most: usize,
        up_to: Seq,
        now: Time,
        since: Time,
        asked_before: Time,
    ) -> Vec<Digest> {
        let due = self.due(most, up_to, |wanted| {
            wanted.asked.is_some_and(|asked| asked <= since)
                && wanted.asked_others.is_none_or(|asked| asked < asked_before)
        });
        for digest in &due {
            self.wanted.entry(*digest).and_modify(|wanted| wanted.asked_others = Some(now));
        }
        due
    }

    /// What is missing of batches up to this one and `due`, that of the lowest batches first.
    fn due(&self, most: usize, up_to: Seq, due: impl Fn(&Wanted) -> bool) -> Vec<Digest> {
        let wanted = self.wanted.iter().filter(|(_, wanted)| wanted.first <= up_to && due(wanted));
        let mut wanted: Vec<_> = wanted.map(|(digest, wanted)| (wanted.first, *digest)).collect();
        wanted.sort_unstable();
        wanted.truncate(most);
        wanted.into_iter().map(|(_, digest)| digest).collect()
    }

    /// Another primary is asked: what was asked of the one before does not count.
    pub fn ask_anew(&mut self) {
        self.wanted.values_mut().for_each(|wanted| (wanted.asked, wanted.asked_others) = (None, None));
    }

    /// Bytes of these frames, as far as they are here.
    #[must_use]
    pub fn bytes<'a>(&self, digests: impl IntoIterator<Item = &'a Digest>) -> usize {
        digests.into_iter().filter_map(|digest| self.get(digest)).map(|frame| frame.size()).sum()
    }

    /// Nothing that is missing is wanted any more, until a batch names it again.
    pub fn want_nothing(&mut self) {
        self.wanted.clear();
    }

    /// Marks frames as logged; returns those that were not.
    pub fn log(&mut self, digests: &[Digest]) -> Vec<VerifiedFrame> {
        let mut fresh = Vec::new();
        for digest in digests {
            if let Some(held) = self.frames.get_mut(digest)
                && !held.logged
            {
                held.logged = true;
                fresh.push(held.frame.clone());
            }
        }
        fresh
    }

    /// The frame waits no longer for execution.
    pub fn settle(&mut self, digest: &Digest) {
        if let Some(held) = self.frames.get_mut(digest) {
            held.pending = false;
            if held.used == Seq(0) {
                self.frames.remove(digest);
            }
        }
    }

    /// Batches up to `stable` are not needed any more.
    pub fn stable(&mut self, stable: Seq) {
        self.frames.retain(|_, held| held.pending || held.used > stable);
        self.wanted.retain(|_, wanted| wanted.last > stable);
    }

    /// What a fresh log must hold: the logged frames.
    #[must_use]
    pub fn logged(&self) -> Vec<VerifiedFrame> {
        self.frames.values().filter(|held| held.logged).map(|held| held.frame.clone()).collect()
    }

    /// How many frames are held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether none is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }
}
