//! I6, reply integrity: what replicas compute and what clients accept is what the reference model
//! answers at that place of the order.

use super::Model;
use super::model::Done;
use crate::service::ServiceKind;
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_core::{Ordered, Outcome};
use troth_types::{ClientId, OPERATOR, ReplyBody, Seq};

/// The reference model beside the run.
#[derive(Debug, Default)]
pub struct ReplyIntegrity {
    /// The model after everything that any correct node executed.
    pub model: Model,
    /// What the first correct node answered the operator, of whom the model knows nothing.
    operator: BTreeMap<u64, ReplyBody>,
    /// What clients accepted before any correct node had executed it finally.
    ahead: Vec<(ClientId, Vec<Bytes>, Vec<Bytes>)>,
    /// What correct nodes executed behind batches that none of them did: they had the state behind those sent, which faulty
    /// replicas and some that only voted had decided. The model goes on where a correct node executes those after all.
    behind_a_gap: BTreeMap<Seq, Ordered>,
}

impl ReplyIntegrity {
    /// Judges against an empty store of a group with this client window.
    #[must_use]
    pub fn new(window: u64) -> Self {
        Self::of(window, ServiceKind::Kv)
    }

    /// Judges against this service in the beginning.
    #[must_use]
    pub fn of(window: u64, service: ServiceKind) -> Self {
        Self {
            model: Model::new(window, service),
            operator: BTreeMap::new(),
            ahead: Vec::new(),
            behind_a_gap: BTreeMap::new(),
        }
    }

    /// A correct node executed a batch with this outcome.
    pub fn executed(&mut self, ordered: &Ordered, outcome: &Outcome, now: u64) -> Result<(), String> {
        if ordered.seq.0 == self.model.seq.0 + 1 {
            self.model.apply(ordered, now);
            while let Some(ordered) = self.behind_a_gap.remove(&self.model.seq.next()) {
                self.model.apply(&ordered, now);
            }
            self.model.look_over()?;
        }
        if ordered.seq > self.model.seq {
            // Agreement judges that.
            self.behind_a_gap.insert(ordered.seq, ordered.clone());
            return Ok(());
        }
        for reply in &outcome.replies {
            if reply.client == OPERATOR {
                let first = self.operator.entry(reply.number).or_insert_with(|| reply.body.clone());
                if *first != reply.body {
                    return Err(format!("{reply:?} answers the operator, and another replica {first:?}"));
                }
                continue;
            }
            let name = (reply.client, reply.number);
            let Some(done) = self.model.done.get(&name).filter(|done| done.seq == ordered.seq) else {
                return Err(format!(
                    "{name:?} takes no effect at {}, and a replica says it does",
                    ordered.seq
                ));
            };
            let same = reply.events_up_to == done.events_up_to
                && matches!(&reply.body, ReplyBody::Full(results) if *results == done.results);
            if !same {
                return Err(format!("{name:?} at {}: {reply:?}, the model has {done:?}", ordered.seq));
            }
        }
        let expected = self.model.effects.get(&ordered.seq).copied().unwrap_or(0);
        if expected != outcome.replies.len() {
            let count = outcome.replies.len();
            return Err(format!("{count} requests took effect at {}, the model has {expected}", ordered.seq));
        }
        self.caused(ordered.seq, outcome)
    }

    /// Whether a batch told whom it must, in order.
    fn caused(&self, seq: Seq, outcome: &Outcome) -> Result<(), String> {
        let expected = self.model.caused.get(&seq).map_or(&[][..], Vec::as_slice);
        let payload = |(client, index): &(ClientId, u64)| &self.model.events[client][*index as usize - 1].1;
        let same = expected.len() == outcome.events.len()
            && expected.iter().zip(&outcome.events).all(|(known, event)| {
                *known == (event.client, event.index) && *payload(known) == event.payload
            });
        if same {
            return Ok(());
        }
        let expected: Vec<_> = expected.iter().map(|known| (known, payload(known))).collect();
        Err(format!("{seq} tells {:?}, the model {expected:?}", outcome.events))
    }

    /// The executed frames of a client that hold these operations with these results.
    pub fn matching<'a>(
        &'a self,
        client: ClientId,
        operations: &'a [Bytes],
        results: &'a [Bytes],
    ) -> impl Iterator<Item = &'a Done> {
        self.model.done.range((client, 0)..=(client, u64::MAX)).map(|(_, done)| done).filter(move |done| {
            done.operations
                .windows(operations.len())
                .zip(done.results.windows(results.len()))
                .any(|(known, answered)| known == operations && answered == results)
        })
    }

    /// Whether correct nodes have executed more than the model can follow.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        !self.behind_a_gap.is_empty()
    }

    /// A correct client accepted results. A fast read has no place in the order; whether its result is
    /// possible, linearizability judges. What was executed tentatively, so nowhere finally yet, is judged at the end.
    pub fn accepted(
        &mut self,
        client: ClientId,
        operations: &[Bytes],
        results: &[Bytes],
        read: bool,
        tentative: bool,
    ) -> Result<(), String> {
        if results.len() != operations.len() {
            return Err(format!(
                "{client} accepted {} results for {} operations",
                results.len(),
                operations.len()
            ));
        }
        if read || self.matching(client, operations, results).next().is_some() {
            return Ok(());
        }
        if tentative || self.is_behind() {
            self.ahead.push((client, operations.to_vec(), results.to_vec()));
            return Ok(());
        }
        Err(format!("{client} accepted {results:?} for {operations:?}, which no execution gave"))
    }

    /// Whether all that clients accepted ahead of its final execution has been executed so; forgets what has.
    pub fn settle(&mut self) -> Result<(), String> {
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.retain(|(client, operations, results)| {
            self.matching(*client, operations, results).next().is_none()
        });
        self.ahead = ahead;
        match self.ahead.first().filter(|_| !self.is_behind()) {
            None => Ok(()),
            Some((client, operations, results)) => Err(format!(
                "{client} accepted {results:?} for {operations:?}, and in the end no execution gave it"
            )),
        }
    }
}
