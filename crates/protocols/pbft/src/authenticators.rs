//! PBFT's MAC authenticators of clients (OSDI '99 §5.2): what they leave in doubt, and what ends the doubt.
//!
//! A tag convinces one replica alone, so a client's frame may be authentic to some and forged to others, by its client's
//! doing or by that of who passed it on.

use crate::message::Message;
use crate::state::Pbft;
use std::sync::Arc;
use troth_auth::Verified;
use troth_blocks::Voters;
use troth_core::{Cx, Done, rule};
use troth_types::{Batch, ClientId, Digest, Frame, ReplicaId, Seq};

/// Frames that a complaint names at most.
pub(crate) const MOST_COMPLAINTS: usize = 64;

impl Pbft {
    /// Frames that a proposal names and whose tag for this replica is wrong. They are kept for what others say of them, and
    /// everybody hears of it.
    pub(crate) fn doubt(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<Arc<Frame>>) {
        rule!("PBFT-M2");
        let (mut found, mut news) = (Vec::new(), Vec::new());
        let mut bytes: usize = self.doubtful.values().map(|frame| frame.size()).sum();
        for frame in frames {
            let digest = frame.digest();
            if self.start_lacks.has(&digest) {
                // What a view starts with one correct replica at least pre-prepared (A2).
                rule!("PBFT-M3");
                found.push(digest);
                self.frames.insert(Verified::vouched(frame), false);
                continue;
            }
            if !self.wants_shown(&digest) || bytes >= self.most_doubtful() {
                continue;
            }
            bytes += frame.size();
            // Who makes wrong tags, or shows them, must not have this replica complain as often as he likes: others charge it
            // for what is no news to them.
            if self.distrust.may_tell(frame.client(), cx.now(), self.config.status_interval) {
                news.push(digest);
            }
            if self.distrust.shown(frame.client()) {
                self.forget_unsigned(frame.client());
            }
            found.push(digest);
            self.doubtful.insert(digest, frame);
        }
        rule!("PBFT-M4");
        for some in news.chunks(MOST_COMPLAINTS) {
            cx.send(troth_core::To::Others, Message::WrongTags(some.to_vec()));
        }
        self.useful += u64::from(!found.is_empty());
        self.frames_came(&found);
    }

    /// Whether a proposal names a frame that is not here, in doubt neither.
    pub(crate) fn wants_shown(&self, digest: &Digest) -> bool {
        self.frames.wants(digest, self.wants_up_to()) && !self.doubtful.contains_key(digest)
    }

    /// Bytes of doubtful frames, but for the last: nobody correct proposes more than this of what is wanted.
    fn most_doubtful(&self) -> usize {
        let batches = usize::try_from(self.batches_ahead()).unwrap_or(usize::MAX);
        batches.saturating_mul(self.config.batch_bytes())
    }

    /// Says again what it doubts, with each STATUS a part: a complaint may be lost, or come before the frame does.
    pub(crate) fn complain_again(&self, cx: &mut Cx<'_, Self>) {
        rule!("PBFT-M4");
        let parts = self.doubtful.len().div_ceil(MOST_COMPLAINTS).max(1) as u64;
        let part = usize::try_from(self.round % parts).unwrap_or(0);
        let some = self.doubtful.keys().copied().skip(part * MOST_COMPLAINTS).take(MOST_COMPLAINTS);
        let some: Vec<Digest> = some.collect();
        if !some.is_empty() {
            cx.send(troth_core::To::Others, Message::WrongTags(some));
        }
    }

    /// Others vote for a batch, or have decided it: one of more than f of them is correct and knows whose its frames are.
    pub(crate) fn vouch(&mut self, batch: &Batch) {
        rule!("PBFT-M3");
        if self.doubtful.is_empty() {
            return;
        }
        for digest in &batch.frames {
            if let Some(frame) = self.doubtful.remove(digest) {
                self.frames.insert(Verified::vouched(frame), false);
            }
        }
    }

    /// A replica found its tag wrong in these frames. Those count that wait here as their clients sent them, also where
    /// the signed form has come since, or its client could send it between a proposal and the complaints: what somebody else
    /// showed he may have spoilt. Where f+1 did in a client's, the client has made tags that are right for
    /// some only: nothing of it counts without signature any more, or it could have a view fail with every frame.
    pub(crate) fn on_wrong_tags(&mut self, from: ReplicaId, digests: &[Digest]) {
        rule!("PBFT-M5");
        for digest in digests.iter().take(MOST_COMPLAINTS) {
            let Some(frame) = self.frames.get(digest) else { continue };
            let client = frame.client();
            if !self.pool.came_unsigned(client, frame.number(), digest) {
                continue;
            }
            let (news, must_sign) = self.distrust.complains(client, from, self.group.weak());
            self.useful += u64::from(news);
            if must_sign {
                self.forget_unsigned(client);
            }
        }
    }

    /// What goes into the next batch. A batch waits for ever where more than f correct replicas miss a right tag in any of
    /// its frames, and clients that spoil tags of one replica each look like honest ones to whoever counts the
    /// complaints of each client: so frames without signature share a batch only where at most f replicas in all found
    /// wrong tags in frames of their clients.
    pub(crate) fn next_frames(&mut self, most: usize, bytes: usize) -> Vec<Digest> {
        rule!("PBFT-M6");
        let (f, distrust) = (self.group.f(), &self.distrust);
        let mut all = Voters::NONE;
        self.pool.propose_where(most, bytes, |client| {
            let with = all.with(distrust.complainers(client));
            let fits = with.count() <= f;
            if fits {
                all = with;
            }
            fits
        })
    }

    /// From now on a client's frames are proposed here only with its signature.
    fn forget_unsigned(&mut self, client: ClientId) {
        for digest in self.pool.forget_unsigned(client) {
            self.frames.settle(&digest);
        }
    }

    /// A batch was executed: what is signed of it speaks for its clients.
    pub(crate) fn count_signed(&mut self, seq: Seq, done: &[Done]) {
        let Some(batch) = self.decided.get(&seq) else { return };
        for (done, digest) in done.iter().zip(&batch.frames) {
            if done.now && self.frames.get(digest).is_some_and(|frame| frame.is_signed()) {
                self.distrust.signed(done.client);
            }
        }
    }

    /// Whether a frame may wait here to be proposed: one that the other replicas will know for its client's, too, as far
    /// as anybody can tell.
    pub(crate) fn may_wait(&self, frame: &Frame) -> bool {
        rule!("PBFT-M7");
        frame.is_signed() || !self.distrust.has(frame.client())
    }

    /// Forgets what no proposal can name any more.
    pub(crate) fn drop_doubtful(&mut self) {
        let (frames, up_to) = (&self.frames, self.wants_up_to());
        self.doubtful.retain(|digest, _| frames.wants(digest, up_to));
    }
}
