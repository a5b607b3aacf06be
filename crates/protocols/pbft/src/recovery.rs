//! A start from the log: the replica goes on from its promises, which bind it whether or not they were sent.

use crate::checkpoint::proven;
use crate::message::{Body, Record};
use crate::state::Pbft;
use troth_auth::Verified;
use troth_core::{Cx, Reached, To, rule};
use troth_types::{Digest, Seq, View};

impl Pbft {
    /// Rebuilds the state from a snapshot and the records since.
    pub(crate) fn recover(
        &mut self,
        cx: &mut Cx<'_, Self>,
        records: Vec<Record>,
        snapshot: (Seq, Digest),
        reached: Reached,
    ) {
        rule!("PBFT-R9");
        self.reached = reached;
        self.delivered = reached.seq;
        self.own_state = snapshot.0;
        if snapshot.0 > Seq(0) {
            self.own_digests.insert(snapshot.0, snapshot.1);
            self.due_checkpoints.push_back(snapshot);
        }
        let mut leaving = None;
        for record in records {
            match record {
                Record::Frame(frame) => self.frames.restore(Verified::made_here(frame)),
                Record::PrePrepared(view, seq, batch) => {
                    let digest = batch.digest();
                    let known = self.pre_prepared.get(&seq).and_then(|at| at.get(&digest)).copied();
                    if known.is_none_or(|known| known < view) {
                        self.enter_pre_prepared(view, seq, digest);
                    }
                    self.batches.insert(digest, batch);
                }
                Record::Prepared(entry) => {
                    let known = self.prepared.get(&entry.seq).map(|known| known.view);
                    if known.is_none_or(|known| known < entry.view) {
                        self.prepared.insert(entry.seq, entry);
                    }
                }
                Record::Leaving(change) => {
                    if change.to >= self.view {
                        (self.view, self.active) = (change.to, false);
                        leaving = Some(change);
                    }
                }
                Record::NewView(message) => {
                    if let Some(new_view) = message.new_view().filter(|it| it.view >= self.view) {
                        (self.view, self.active, leaving) = (new_view.view, true, None);
                        self.forget_refuted(new_view);
                        self.started.chosen =
                            new_view.chosen.iter().map(troth_types::Batch::digest).collect();
                        self.started.by = Some(message);
                    }
                }
                Record::Stable(proof) => {
                    // The same once more is by others.
                    if let Some(target) = proven(&self.group, self.config.histories, &proof)
                        .filter(|it| it.0 > self.stable.0 || *it == self.stable)
                    {
                        (self.stable, self.stable_proof) = (target, proof);
                    }
                }
                Record::Executed(seq, batch) => {
                    self.decided.insert(seq, batch);
                }
                // Of the history, which is kept beside.
                Record::History(..) => {}
            }
        }
        self.name_promised();
        if self.active {
            self.resume_view();
        } else if let Some(change) = leaving {
            // The very same: what it names must not be forgotten.
            cx.sign(Body::ViewChange(change), To::Others);
        }
        self.execute_decided(cx);
        self.drop_stable();
        // The snapshot may be older than what was known to be stable, or may be wrong.
        self.compare_with_stable(cx);
        self.notice_lag(cx);
    }

    /// What P, Q and the executed batches name is needed until it is stable, whatever view this replica is in: a new view
    /// may rest on this replica's word that it has the frames.
    fn name_promised(&mut self) {
        self.pre_prepared = self.pre_prepared.split_off(&self.stable.0.next());
        let promised: Vec<(Seq, Digest)> =
            self.pre_prepared.iter().flat_map(|(seq, at)| at.keys().map(|digest| (*seq, *digest))).collect();
        for (seq, digest) in promised {
            if let Some(batch) = self.batch(&digest) {
                self.frames.name(seq, &batch.frames);
            }
        }
        for (seq, batch) in &self.decided {
            self.frames.name(*seq, &batch.frames);
        }
        // What Q has forgotten (V3) a later view may start with all the same, and this replica is to bear witness again.
        rule!("PBFT-R9");
        self.frames.keep_unnamed(self.highest());
    }

    /// The slots of the present view, as far as this replica voted there.
    fn resume_view(&mut self) {
        if let Some(message) = self.started.by.clone().filter(|_| self.view > View(0))
            && let Some(new_view) = message.new_view().cloned()
        {
            self.begin(&message, &new_view);
        }
        let (view, me) = (self.view, self.me);
        let promised: Vec<(Seq, Digest)> = self
            .pre_prepared
            .iter()
            .flat_map(|(seq, at)| at.iter().map(|(digest, view)| (*seq, *digest, *view)))
            .filter(|(_, _, promised)| *promised == view)
            .map(|(seq, digest, _)| (seq, digest))
            .collect();
        let mine = self.is_primary();
        for (seq, digest) in promised {
            let Some(batch) = self.batch(&digest) else { continue };
            self.frames.name(seq, &batch.frames);
            self.propose(seq, digest, batch);
            let prepared =
                self.prepared.get(&seq).is_some_and(|entry| (entry.view, entry.digest) == (view, digest));
            if let Some(slot) = self.slots.get_mut(&seq) {
                slot.pre_prepared = true;
                slot.prepares.insert(me, digest);
                if prepared {
                    slot.prepared = true;
                    slot.commits.insert(me, digest);
                }
            }
            if mine {
                self.proposed = self.proposed.max(seq);
            }
        }
    }

    /// Executes again what was executed before: the checkpoints that this replica has signed since its snapshot may be
    /// stable, and it must be able to show their states.
    pub(crate) fn execute_decided(&mut self, cx: &mut Cx<'_, Self>) {
        while let Some(batch) = self.decided.get(&self.delivered.next()).cloned() {
            let seq = self.delivered.next();
            self.vouch(&batch);
            if !self.frames.name(seq, &batch.frames) {
                return;
            }
            self.deliver(cx, seq, batch);
        }
    }
}
