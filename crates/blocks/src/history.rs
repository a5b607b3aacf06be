//! The history log of a replica: one attested slot for each batch that it executed, in their order (paper 000 §4.2.1).
//!
//! It keeps account of what its trusted component holds and of what it was asked for, says what to ask next, and takes
//! the answers. The component's word decides where the log ends; a slot that is filled is never filled again, after a
//! restart neither. What was executed elsewhere is appended too, once a stable certificate shows what it was: a log that
//! jumped convinces nobody (A2M-L7).

mod answers;
mod begins;
mod peers;

pub use begins::Begins;

use peers::{Peers, lookup_for};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use troth_auth::HISTORY_LOG;
use troth_core::{BatchRun, Proven, ReplyProof, Ticket};
use troth_trusted::CounterValue;
use troth_trusted::a2m::{Attestation, Nonce, Operation, Slot, chained, slot_nonce};
use troth_types::{Batch, ClientId, Configuration, Digest, GroupId, Seq};

/// Tickets of the history begin here: a protocol names its own below.
const TICKETS: u64 = 1 << 63;
/// Certificates kept.
const MOST_CERTIFICATES: usize = 8;
/// Slots asked for in one call: few enough for everything else that the call carries.
const MOST_AT_ONCE: usize = 64;
/// Numbers whose values are kept and shown in one message, for those who had a state sent and must append what led to it; of
/// what is not appended yet, as many again. Who missed more proves nothing until it has another component: half a minute at
/// two thousand batches a second, 2 MiB.
pub const MOST_VALUES: usize = 1 << 16;
/// Batches kept whose slots were not asked for, each with the digest and the client's number of each of its frames.
pub const MOST_WAITING: usize = 4096;

/// A slot of the own history that is attested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// What fills the slot: x.
    pub value: Digest,
    /// The digest of the history up to it: d.
    pub digest: Digest,
    /// The component's word to everybody, where it gave that.
    pub attestation: Option<Attestation>,
    proof: Option<Arc<ReplyProof>>,
}

/// A batch that was executed here.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Executed {
    run: BatchRun,
    done: Vec<(ClientId, u64)>,
}

/// One operation that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Asked {
    /// Where the log ends.
    End,
    /// Where it begins.
    Low,
    /// A slot, filled or looked up; with the batch where that was executed here.
    Slot(Seq, Option<Executed>),
    /// A slot, filled; who is shown it comes later in the call.
    Filled,
    /// A slot that was filled, looked up for one client of its batch; with the batch for the last of them.
    For(Seq, ClientId, Option<Executed>),
    /// What is below is forgotten.
    Truncated,
    /// The end, for reads that are answered from the state after this batch.
    Read(Seq),
}

/// Where the log stands once everything asked for is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Marks {
    low: Seq,
    end: Seq,
    digest: Digest,
}

/// A number that is attested now, and what proves its place to clients where it was executed here.
pub type Attested = (Seq, Option<Arc<ReplyProof>>);

/// The account of a history log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryLog {
    group: GroupId,
    /// Slots that the component's log has room for.
    room: u64,
    begins: Begins,
    /// Nothing before the component has said.
    marks: Option<Marks>,
    /// Whether the component's log holds nothing, and this account has it begin at its marks.
    opens: bool,
    /// The last batch that was recorded as executed when this replica started.
    recorded: Seq,
    /// The last batch that the executor has reached.
    reached: Seq,
    /// Where it stood when this replica started, if that is still to be looked up.
    restored: Option<Seq>,
    /// Batches executed here whose slots were not asked for.
    waiting: BTreeMap<Seq, Executed>,
    /// What fills each slot, as far as this replica executed it or a certificate shows it.
    values: BTreeMap<Seq, Digest>,
    asked: BTreeMap<Ticket, Vec<Asked>>,
    next_ticket: u64,
    held: BTreeMap<Seq, Held>,
    /// The digests that stable certificates show.
    certificates: BTreeMap<Seq, Digest>,
    /// The newest of them that the own history was compared with, or is.
    compared: Seq,
    /// Slots whose attestation is wanted for everybody, after one for each of their clients.
    unsigned: BTreeSet<Seq>,
    peers: Peers,
    stable: Seq,
    /// An end that was asked for, for reads.
    end: Option<Attestation>,
}

fn slot(seq: Seq) -> Slot {
    CounterValue::new(0, seq.0)
}

fn number(slot: Slot) -> Option<Seq> {
    u64::try_from(slot.0).ok().map(Seq)
}

fn lookup(at: Seq) -> Operation {
    Operation::Lookup { log: HISTORY_LOG, slot: slot(at), nonce: slot_nonce(slot(at)) }
}

fn chain(at: Seq, value: &Digest, previous: &Digest) -> Digest {
    Digest(chained(slot(at), &value.0, &previous.0))
}

impl HistoryLog {
    /// The account of a replica of this group, which knows nothing of its component yet but the room of its log.
    #[must_use]
    pub fn new(group: GroupId, room: usize) -> Self {
        Self {
            group,
            room: u64::try_from(room).unwrap_or(u64::MAX),
            begins: Begins::WithTheGroup,
            marks: None,
            opens: false,
            recorded: Seq(0),
            reached: Seq(0),
            restored: None,
            waiting: BTreeMap::new(),
            values: BTreeMap::new(),
            asked: BTreeMap::new(),
            next_ticket: TICKETS,
            held: BTreeMap::new(),
            certificates: BTreeMap::new(),
            compared: Seq(0),
            unsigned: BTreeSet::new(),
            peers: Peers::default(),
            stable: Seq(0),
            end: None,
        }
    }

    /// The replica starts, its executor standing at `reached`; `recorded` is the last batch that its own log says it
    /// executed. Nothing else is asked for before the component has said where its log ends.
    pub fn start(&mut self, reached: Seq, recorded: Seq) -> (Ticket, Vec<Operation>) {
        (self.reached, self.recorded) = (reached, recorded.max(reached));
        self.restored = Some(reached).filter(|reached| *reached > Seq(0));
        let end = Operation::End { log: HISTORY_LOG, nonce: slot_nonce(CounterValue(0)) };
        self.call(vec![(Asked::End, end), (Asked::Low, lookup(Seq(0)))])
    }

    /// What the history held from a number on, when this replica ran before.
    pub fn remember(&mut self, from: Seq, values: &[Digest]) {
        self.values.extend((from.0..).map(Seq).zip(values.iter().copied()));
    }

    /// A batch was executed: its slot is to be filled, or looked up where it is filled already.
    ///
    /// # Errors
    /// Where the batch has more frames than a client can be shown a path through.
    pub fn executed(
        &mut self,
        at: Seq,
        batch: &Batch,
        done: Vec<(ClientId, u64)>,
    ) -> Result<(), &'static str> {
        let run = BatchRun::of(batch).ok_or("a batch too large for the history")?;
        self.reached = self.reached.max(at);
        self.values.insert(at, run.value(self.group));
        self.waiting.insert(at, Executed { run, done });
        // Behind a gap so old that nobody can tell what was there, nothing is ever appended.
        while self.waiting.len() > MOST_WAITING {
            self.waiting.pop_first();
        }
        while self.values.len() > 2 * MOST_VALUES {
            self.values.pop_first();
        }
        Ok(())
    }

    /// The executor stands at a state that came from others; what it executed beyond was wrong or comes again.
    pub fn installed(&mut self, at: Seq) {
        self.reached = at;
        self.waiting.clear();
        drop(self.values.split_off(&at.next()));
    }

    /// A stable certificate: the digest of every correct history up to a number.
    ///
    /// # Errors
    /// Where this replica's own history is another.
    pub fn certified(&mut self, at: Seq, digest: Digest) -> Result<(), &'static str> {
        if self.held.get(&at).is_some_and(|held| held.digest != digest) {
            return Err(DIVERGED);
        }
        self.certificates.insert(at, digest);
        while self.certificates.len() > MOST_CERTIFICATES {
            self.certificates.pop_first();
        }
        self.stable = self.stable.max(at);
        // Nobody is answered any more for what is below.
        self.held = self.held.split_off(&self.stable);
        if self.is_to_begin() {
            // It will begin above.
            self.waiting = self.waiting.split_off(&self.stable.next());
        }
        Ok(())
    }

    /// The clients of the group, from now on.
    pub fn configured(&mut self, configuration: &Arc<Configuration>) {
        self.peers = Peers::of(configuration);
    }

    /// What the own history holds at a number is to be attested for everybody.
    pub fn sign(&mut self, at: Seq) {
        let mut asked = self.asked.values().flatten();
        let coming = asked.any(|asked| matches!(asked, Asked::Slot(asked, _) if *asked == at));
        if !coming && self.held.get(&at).is_some_and(|held| held.attestation.is_none()) {
            self.unsigned.insert(at);
        }
    }

    /// What the own history holds at a number, once it is attested.
    #[must_use]
    pub fn held(&self, at: Seq) -> Option<&Held> {
        self.held.get(&at)
    }

    /// What proves the place of a batch to its clients. What is stable is proven anew, under another number: so those who
    /// executed it and those who had its state sent agree on it.
    #[must_use]
    pub fn proven(&self, at: Seq) -> Proven {
        if at <= self.stable {
            return Proven::Gone;
        }
        match self.held.get(&at).and_then(|held| held.proof.clone()) {
            Some(proof) => Proven::Here(proof),
            None => Proven::Coming,
        }
    }

    /// The first number that the own log lacks, where the executor has passed it and others must tell what it was.
    #[must_use]
    pub fn lacks(&self) -> Option<Seq> {
        let next = self.grows()?.end.next();
        (next <= self.reached && !self.values.contains_key(&next)).then_some(next)
    }

    /// What the own history holds from a number on, as much as one message shows to others.
    #[must_use]
    pub fn values_from(&self, from: Seq) -> Vec<Digest> {
        let known = self.values.range(from..).zip(from.0..).take(MOST_VALUES);
        known.take_while(|((at, _), next)| at.0 == *next).map(|((_, value), _)| *value).collect()
    }

    /// The values kept, each run of numbers with its first: those behind a gap are what others may lack. A run has a length
    /// that fits a record.
    #[must_use]
    pub fn kept(&self) -> Vec<(Seq, Vec<Digest>)> {
        let mut runs: Vec<(Seq, Vec<Digest>)> = Vec::new();
        for (at, value) in &self.values {
            match runs.last_mut() {
                Some((from, values))
                    if from.0 + values.len() as u64 == at.0 && values.len() < MOST_VALUES =>
                {
                    values.push(*value);
                }
                _ => runs.push((*at, vec![*value])),
            }
        }
        runs
    }

    /// What somebody says the history holds from a number on; taken as far as a certificate of what is executed shows it.
    /// What was executed here is known here: it may lead from the end of what is shown to a certificate. Returns what was
    /// taken, to be kept.
    pub fn shown(&mut self, from: Seq, values: &[Digest]) -> Option<Vec<Digest>> {
        let (marks, wanted) = (self.grows()?, self.lacks()?);
        if from != wanted {
            return None;
        }
        let (mut digest, mut path, mut verified) = (marks.digest, Vec::new(), 0);
        for (count, at) in (from.0..=self.reached.0).map(Seq).enumerate() {
            let Some(value) = self.values.get(&at).or(values.get(count)) else { break };
            path.push(*value);
            digest = chain(at, value, &digest);
            if self.certificates.get(&at) == Some(&digest) {
                verified = path.len();
            }
        }
        // What comes behind was known here.
        path.truncate(verified.min(values.len()));
        self.values.extend((from.0..).map(Seq).zip(path.iter().copied()));
        Some(path).filter(|path| !path.is_empty())
    }

    /// Where it stands, for a person who debugs.
    #[must_use]
    pub fn describe(&self) -> String {
        let (waiting, asked, held) =
            (self.waiting.keys().next(), self.asked.len(), self.held.keys().next_back());
        let ends = self.marks.map(|marks| (marks.low, marks.end));
        format!("{ends:?} waits for {waiting:?} lacks {:?} asked {asked} held to {held:?}", self.lacks())
    }

    /// Batches that wait, and slots that are kept: what is to be bounded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len() + self.held.len()
    }

    /// Whether nothing waits and nothing is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What to ask the component for now, if anything: of lookups, truncation and appends, one alone. A call that looks up
    /// before it changes, or fills what it forgets, could not be answered again where its answer was lost (A2M-C4).
    pub fn calls(&mut self) -> Option<(Ticket, Vec<Operation>)> {
        let marks = self.grows()?;
        let mut wanted = self.lookups(marks.end);
        if wanted.is_empty() {
            wanted.extend(self.truncation(marks));
        }
        if wanted.is_empty() {
            wanted = self.appends(marks);
        }
        (!wanted.is_empty()).then(|| self.call(wanted))
    }

    /// Slots that are filled already and that this replica has not heard of.
    fn lookups(&mut self, end: Seq) -> Vec<(Asked, Operation)> {
        self.compare_up_to(end);
        let mut wanted = Vec::new();
        // The CHECKPOINT of the state that it started from may have to be signed again.
        if let Some(at) = self.restored.take_if(|at| *at <= end) {
            wanted.push((Asked::Slot(at, None), lookup(at)));
        }
        while let Some(at) = self.unsigned.pop_first() {
            wanted.push((Asked::Slot(at, None), lookup(at)));
        }
        // A life before this one filled them.
        while wanted.len() < MOST_AT_ONCE
            && let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() <= end)
        {
            let (at, executed) = entry.remove_entry();
            wanted.push((Asked::Slot(at, Some(executed)), lookup(at)));
        }
        wanted
    }

    /// A certificate shows what the log must hold at a slot that a life before this one filled and a state that came from
    /// others has passed over, so that nothing else has it looked up: it tells whether the component's history is the group's.
    fn compare_up_to(&mut self, end: Seq) {
        let known = self.certificates.range(..=end.min(self.reached));
        let Some(newest) = known.map(|(at, _)| *at).next_back().filter(|at| *at > self.compared) else {
            return;
        };
        self.compared = newest;
        let mut asked = self.asked.values().flatten();
        let is_asked =
            asked.any(|asked| matches!(asked, Asked::Slot(at, _) | Asked::For(at, ..) if *at == newest));
        let comes = self.restored == Some(newest) || self.waiting.contains_key(&newest);
        if !is_asked && !comes && !self.held.contains_key(&newest) {
            self.unsigned.insert(newest);
        }
    }

    /// What is below the stable checkpoint is forgotten, as far as the log reaches.
    fn truncation(&mut self, marks: Marks) -> Option<(Asked, Operation)> {
        let low = self.stable.min(marks.end);
        if low <= marks.low {
            return None;
        }
        self.marks = Some(Marks { low, ..marks });
        Some((Asked::Truncated, Operation::Truncate { log: HISTORY_LOG, slot: slot(low) }))
    }

    /// The next slots, as far as it is known what fills them.
    fn appends(&mut self, mut marks: Marks) -> Vec<(Asked, Operation)> {
        // What is far behind is appended in parts: the room that is free after one part is there for the next.
        if marks.end < self.stable && !self.asked.is_empty() {
            return Vec::new();
        }
        // All that is looked up comes behind all that is filled (A2M-C4).
        let (mut wanted, mut shown) = (Vec::new(), Vec::new());
        while wanted.len() + shown.len() < MOST_AT_ONCE {
            let at = marks.end.next();
            // One that is full waits for a stable checkpoint: what it refused would end this replica, now and at each start.
            if at.0 >= marks.low.0.saturating_add(self.room) {
                break;
            }
            // It is asked in each step, and mostly there is nothing new.
            let Some(value) = (at <= self.reached).then(|| self.values.get(&at).copied()).flatten() else {
                break;
            };
            let mut executed = self.waiting.remove(&at);
            let peers = executed.as_ref().and_then(|executed| self.peers.of_batch(&executed.done));
            let peers = peers.unwrap_or_default();
            let nonce = peers.is_empty().then(|| slot_nonce(slot(at)));
            let (log, slot, value_there) = (HISTORY_LOG, slot(at), value.0);
            let fill = match std::mem::take(&mut self.opens) {
                // The first slot of a component that was admitted (A2M-L8).
                true => Operation::Advance { log, slot, previous: marks.digest.0, value: value_there, nonce },
                false => Operation::Append { log, slot, value: value_there, nonce },
            };
            let filled = if peers.is_empty() { Asked::Slot(at, executed.take()) } else { Asked::Filled };
            wanted.push((filled, fill));
            for (index, (client, peer)) in (1..).zip(&peers) {
                let last = executed.take_if(|_| index == peers.len());
                shown.push((Asked::For(at, *client, last), lookup_for(at, *peer)));
            }
            (marks.end, marks.digest) = (at, chain(at, &value, &marks.digest));
        }
        self.marks = Some(marks);
        while self.values.len() > MOST_VALUES
            && self.values.first_key_value().is_some_and(|(at, _)| *at <= marks.end)
        {
            self.values.pop_first();
        }
        wanted.extend(shown);
        wanted
    }

    /// Has the end attested under this nonce, for reads that are answered from the state after the batch `executed`: where
    /// the log ends just there once all that was asked for before is done. What is asked for later is done later, so the
    /// END is of that state, however long it takes. An empty log says nothing to anybody.
    pub fn attest_end(&mut self, executed: Seq, nonce: Nonce) -> Option<(Ticket, Vec<Operation>)> {
        // A log that is to begin ends in this account already, and in its component nowhere yet.
        let ends_there =
            !self.opens && self.grows().is_some_and(|marks| marks.end == executed) && executed > Seq(0);
        ends_there
            .then(|| self.call(vec![(Asked::Read(executed), Operation::End { log: HISTORY_LOG, nonce })]))
    }

    /// The end that was asked for, once it is attested.
    pub fn end_attested(&mut self) -> Option<Attestation> {
        self.end.take()
    }

    fn call(&mut self, wanted: Vec<(Asked, Operation)>) -> (Ticket, Vec<Operation>) {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        let (asked, operations) = wanted.into_iter().unzip();
        self.asked.insert(ticket, asked);
        (ticket, operations)
    }

    /// Whether a ticket is one of the history's.
    #[must_use]
    pub fn asked(&self, ticket: Ticket) -> bool {
        self.asked.contains_key(&ticket)
    }
}

/// Why a replica must not go on with the history that its trusted component has.
pub const DIVERGED: &str = "the history log of the trusted component is not that of the group";
const SET_BACK: &str =
    "the trusted component's history is ahead of this replica's log: the log was set back to an older one";
