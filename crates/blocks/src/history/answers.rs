//! What the component answers: slots that are attested, for everybody or for each client of their batches.

use super::{Asked, Attested, DIVERGED, Executed, Held, HistoryLog, Marks, SET_BACK, number};
use std::sync::Arc;
use troth_auth::HistoryEntry;
use troth_core::{ReplyProof, Ticket};
use troth_trusted::a2m::{Answer, Attestation, Content};
use troth_types::{ClientId, Digest, Seq};

impl HistoryLog {
    /// Takes the component's answers; returns the numbers that are attested now, with the proofs of their places.
    ///
    /// # Errors
    /// Where the component's log is not this replica's past, or not the group's.
    pub fn answered(&mut self, ticket: Ticket, answers: Vec<Answer>) -> Result<Vec<Attested>, &'static str> {
        let (mut attested, mut each) = (Vec::new(), Vec::new());
        let asked = self.asked.remove(&ticket).unwrap_or_default();
        for (asked, answer) in asked.into_iter().zip(answers) {
            let Answer::Attested(attestation) = answer else { continue };
            match asked {
                Asked::End => self.ends(&attestation)?,
                Asked::Low => {
                    let Content::Forgotten { low } = attestation.claim.content else { return Err(DIVERGED) };
                    let low = number(low).ok_or(DIVERGED)?;
                    self.marks = self.marks.map(|marks| Marks { low, ..marks });
                }
                Asked::Slot(at, executed) => attested.extend(self.signed(at, executed, attestation)?),
                Asked::For(at, client, last) => {
                    each.push((client, attestation));
                    if let Some(executed) = last {
                        attested.extend(self.shown_to_each(at, executed, std::mem::take(&mut each))?);
                    }
                }
                Asked::Filled | Asked::Truncated => {}
                Asked::Read(executed) => {
                    if number(attestation.claim.slot) != Some(executed) {
                        return Err(DIVERGED);
                    }
                    self.end = Some(attestation);
                }
            }
        }
        // A batch that is shown to its clients is attested behind all that the call fills; replies go in the order of batches.
        attested.sort_by_key(|(at, _)| *at);
        Ok(attested)
    }

    /// The component says where its log ends.
    fn ends(&mut self, attestation: &Attestation) -> Result<(), &'static str> {
        let end = number(attestation.claim.slot).ok_or(DIVERGED)?;
        if end > self.recorded {
            return Err(SET_BACK);
        }
        let digest = match attestation.claim.content {
            Content::Assigned { digest, .. } => Digest(digest),
            Content::Skipped { .. } | Content::Unassigned { .. } | Content::Forgotten { .. } => Digest::ZERO,
        };
        self.marks = Some(Marks { low: Seq(0), end, digest });
        Ok(())
    }

    /// What a slot holds, attested for everybody. One that is forgotten proves nothing to anybody.
    fn signed(
        &mut self,
        at: Seq,
        executed: Option<Executed>,
        attestation: Attestation,
    ) -> Result<Option<Attested>, &'static str> {
        let Some(entry) = self.entry(at, &attestation)? else { return Ok(None) };
        let proof = executed.map(|Executed { run, done }| Arc::new(ReplyProof::new(&attestation, run, done)));
        Ok(Some(self.hold(at, entry, Some(attestation), proof)))
    }

    /// The same, attested for each client of the batch.
    fn shown_to_each(
        &mut self,
        at: Seq,
        Executed { run, done }: Executed,
        each: Vec<(ClientId, Attestation)>,
    ) -> Result<Option<Attested>, &'static str> {
        let mut entry = None;
        for (_, attestation) in &each {
            entry = self.entry(at, attestation)?;
        }
        let Some(entry) = entry else { return Ok(None) };
        let proof = Arc::new(ReplyProof::for_each(&each, run, done));
        Ok(Some(self.hold(at, entry, None, Some(proof))))
    }

    /// What an attestation says of a slot, where that is what this replica knows of it.
    fn entry(&self, at: Seq, attestation: &Attestation) -> Result<Option<HistoryEntry>, &'static str> {
        let Some(entry) = HistoryEntry::of(attestation) else { return Ok(None) };
        let other = self.values.get(&at).is_some_and(|known| *known != entry.value);
        if other || self.certificates.get(&at).is_some_and(|certified| *certified != entry.digest) {
            return Err(DIVERGED);
        }
        Ok(Some(entry))
    }

    fn hold(
        &mut self,
        at: Seq,
        HistoryEntry { value, digest }: HistoryEntry,
        attestation: Option<Attestation>,
        proof: Option<Arc<ReplyProof>>,
    ) -> Attested {
        if at >= self.stable {
            let before = self.held.remove(&at).and_then(|held| held.proof);
            let proof = proof.clone().or(before);
            self.held.insert(at, Held { value, digest, attestation, proof });
        }
        (at, proof)
    }
}
