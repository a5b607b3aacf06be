//! Reads of the coordination service that were not ordered: each shows the service as it stood at one place of the order, one
//! that correct replicas had reached when the answer came, and none before what anybody had been shown when it was asked, or,
//! where it need only be recent, before what its client had been.

use super::ReplyIntegrity;
use bytes::Bytes;
use core::slice;
use troth_types::{ClientId, Seq};

/// A read as a client saw it.
#[derive(Clone, Debug)]
pub struct FastRead {
    /// The client.
    pub client: ClientId,
    /// What it asked.
    pub operation: Bytes,
    /// What it was answered.
    pub answer: Bytes,
    /// What anybody had been shown when it asked, or, where it need only be recent, what its client had been.
    pub since: Seq,
    /// What correct replicas had executed when it was answered.
    pub until: Seq,
    /// Its events that it had delivered then.
    pub events: u64,
}

/// What anybody was shown, and what is judged later.
#[derive(Debug, Default)]
pub struct FastReads {
    revealed: Seq,
    waiting: Vec<FastRead>,
    /// Reads judged.
    pub judged: u64,
    /// Those that showed less than somebody had been shown when they were judged.
    pub behind: u64,
}

impl FastReads {
    /// The last place of the order that anybody was shown something of.
    #[must_use]
    pub fn revealed(&self) -> Seq {
        self.revealed
    }

    /// Somebody was shown something of this place.
    pub fn reveal(&mut self, seq: Seq) {
        self.revealed = self.revealed.max(seq);
    }

    /// A read was answered: judged now, or when the model has come that far.
    pub fn answered(&mut self, read: FastRead, replies: &ReplyIntegrity) -> Result<(), String> {
        if replies.model.seq < read.until {
            self.waiting.push(read);
            return Ok(());
        }
        let seq = self.judge(&read, replies)?;
        self.behind += u64::from(self.shows_less(&read, replies));
        self.reveal(seq);
        Ok(())
    }

    /// Judges what waited, at the end of a run; what the model cannot follow stays open.
    pub fn settle(&mut self, replies: &ReplyIntegrity) -> Result<(), String> {
        for mut read in std::mem::take(&mut self.waiting) {
            if replies.is_behind() {
                continue;
            }
            read.until = read.until.min(replies.model.seq);
            self.judge(&read, replies)?;
        }
        Ok(())
    }

    /// Whether the service answers otherwise since somebody was shown what they were.
    fn shows_less(&self, read: &FastRead, replies: &ReplyIntegrity) -> bool {
        let service = replies.model.coordination(self.revealed);
        service.is_some_and(|service| service.query(read.client, &read.operation) != read.answer)
            && read.since < self.revealed
    }

    /// The first place at which the service answers like this.
    fn judge(&mut self, read: &FastRead, replies: &ReplyIntegrity) -> Result<Seq, String> {
        let FastRead { client, operation, answer, since, until, events } = read;
        self.judged += 1;
        // Where replicas did not agree it was ordered after all, and has its place within a batch.
        let ordered = replies.matching(*client, slice::from_ref(operation), slice::from_ref(answer));
        if let Some(seq) = ordered.map(|done| done.seq).filter(|seq| (since..=until).contains(&seq)).min() {
            return Ok(seq);
        }
        let fits = |seq: &u64| {
            let service = replies.model.coordination(Seq(*seq));
            service.is_some_and(|service| service.query(*client, operation) == *answer)
        };
        let Some(seq) = (since.0..=until.0).find(fits).map(Seq) else {
            let earlier = (0..since.0).rev().find(fits).map(Seq);
            return Err(format!(
                "{client} read {answer:?} for {operation:?}, which the service answers nowhere from {since} to \
                 {until}; before that at {earlier:?}"
            ));
        };
        let caused = replies.model.events_by(*client, seq);
        if caused > *events {
            return Err(format!(
                "{client} was shown the service as of {seq}, having delivered {events} events of {caused}"
            ));
        }
        Ok(seq)
    }
}
