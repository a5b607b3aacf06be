//! PBFT's MAC authenticators of clients (OSDI '99 §5.2): what they leave in doubt, and what ends the doubt.
//!
//! A tag convinces one replica alone, so a client's frame may be authentic to some and forged to others, by its client's
//! doing or by that of who passed it on.

use crate::message::Message;
use crate::state::Pbft;
use std::sync::Arc;
use troth_auth::Verified;
use troth_blocks::Voters;
use troth_core::{Cx, rule};
use troth_types::{Batch, ClientId, Digest, Frame, ReplicaId};

/// Frames that a complaint names at most.
pub(crate) const MOST_COMPLAINTS: usize = 64;

impl Pbft {
    /// Frames that a proposal names and whose tag for this replica is wrong. They are kept for what others say of them, and
    /// everybody hears of it.
    pub(crate) fn doubt(&mut self, cx: &mut Cx<'_, Self>, frames: Vec<Arc<Frame>>) {
        rule!("PBFT-M2");
        let mut found = Vec::new();
        for frame in frames {
            let digest = frame.digest();
            if !self.frames.wants(&digest, self.wants_up_to()) || self.doubtful.contains_key(&digest) {
                continue;
            }
            self.distrust(frame.client());
            found.push(digest);
            self.doubtful.insert(digest, frame);
        }
        if found.is_empty() {
            return;
        }
        self.useful += 1;
        rule!("PBFT-M4");
        for some in found.chunks(MOST_COMPLAINTS) {
            cx.send(troth_core::To::Others, Message::WrongTags(some.to_vec()));
        }
        self.touch_all();
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

    /// A replica found its tag wrong in these frames. Where f+1 did in a client's, and this replica knows the frame for the
    /// client's own, the client has made tags that are right for some only: nothing of it counts without signature any
    /// more, or it could have a view fail with every frame.
    pub(crate) fn on_wrong_tags(&mut self, from: ReplicaId, digests: &[Digest]) {
        rule!("PBFT-M5");
        for digest in digests.iter().take(MOST_COMPLAINTS) {
            let Some(client) = self.frames.get(digest).filter(|it| !it.is_signed()).map(|it| it.client())
            else {
                continue;
            };
            let complainers = self.complaints.entry(client).or_insert(Voters::NONE);
            self.useful += u64::from(!complainers.contains(from));
            complainers.insert(from);
            if complainers.count() >= self.group.weak() {
                self.distrust(client);
            }
        }
    }

    /// From now on a client's frames are proposed here only with its signature.
    fn distrust(&mut self, client: ClientId) {
        if self.distrusted.insert(client) {
            for digest in self.pool.forget_unsigned(client) {
                self.frames.settle(&digest);
            }
        }
    }

    /// Whether a frame may wait here to be proposed: one that the other replicas will know for its client's, too, as far
    /// as anybody can tell.
    pub(crate) fn may_wait(&self, frame: &Frame) -> bool {
        rule!("PBFT-M6");
        frame.is_signed() || !self.distrusted.contains(&frame.client())
    }

    /// Forgets what no proposal can name any more.
    pub(crate) fn drop_doubtful(&mut self) {
        let (frames, up_to) = (&self.frames, self.wants_up_to());
        self.doubtful.retain(|digest, _| frames.wants(digest, up_to));
    }
}
