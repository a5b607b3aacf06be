//! Reads that wait: for a state that reflects all that this replica has vouched for, and for that state to be final
//! (guide.md §2.7).

use crate::answers::refuse;
use crate::proven_reads::ProvenReads;
use crate::replica::Outputs;
use crate::room::{Room, Space};
use crate::{Agreement, Env, Execution, Output, Replica, ReplicaTimer, rule};
use std::collections::{BTreeMap, VecDeque};
use troth_types::{ClientId, Read, ReadReply, RefusalReason, Reply, ReplyBody, Seq, ToClient};

/// How many batches a recent read waits for at most: its client knows of none that f+1 replicas have not executed, so one that
/// is further ahead is made up, or this replica so far behind that others answer long before it does.
const FURTHEST: u64 = 1024;
/// What waits.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct HeldReads {
    /// With the batch that the state must reflect.
    questions: VecDeque<(Seq, Read)>,
    /// Recent reads, by the batch that they wait for.
    recent: BTreeMap<Seq, VecDeque<Read>>,
    /// With the last batch that the answer shows, in the order of these.
    answers: VecDeque<(Seq, ReadReply)>,
    room: Room,
    /// Those whose answers wait for the end of the history.
    pub(crate) proven: ProvenReads,
    /// Where execution and agreement stood when all of it was looked at last.
    looked_at: Option<(Seq, Seq, Seq)>,
    /// Who was answered in a turn of its own in this step.
    answered: Option<ClientId>,
    /// Whose read had the last such turn.
    turn: Option<ClientId>,
    /// Whether the next is a read's, where clients wait for events, too.
    before_events: bool,
}

/// Where a read waits.
#[derive(Clone, Copy, Debug)]
enum Place {
    Question(usize),
    Recent(Seq, usize),
}

/// What a read takes of the room.
pub(crate) fn size(read: &Read) -> usize {
    size_of::<Read>() + read.operation.len()
}

impl HeldReads {
    fn is_empty(&self) -> bool {
        self.questions.is_empty() && self.recent.is_empty() && self.answers.is_empty()
    }

    /// Takes room for a read or an answer, where there is any or another client makes some.
    pub(crate) fn take_room<A: Agreement, X: Execution>(
        &mut self,
        client: ClientId,
        bytes: usize,
        out: &mut Outputs<A, X>,
    ) -> bool {
        loop {
            match self.room.space(client, bytes) {
                Space::Free => break,
                Space::None => return false,
                Space::After(other) => {
                    let Some((number, freed)) = self.give_up_newest(other) else { return false };
                    self.room.give_back(other, freed);
                    out.push(refuse(other, number, true, RefusalReason::NotReady));
                }
            }
        }
        self.room.take(client, bytes);
        true
    }

    pub(crate) fn give_back(&mut self, client: ClientId, bytes: usize) {
        self.room.give_back(client, bytes);
    }

    /// Takes out what came last of a client: the number of the read, and the bytes.
    fn give_up_newest(&mut self, client: ClientId) -> Option<(u64, usize)> {
        if let Some(at) = self.questions.iter().rposition(|(_, read)| read.client == client) {
            return self.questions.remove(at).map(|(_, read)| (read.number, size(&read)));
        }
        if let Some(read) = self.give_up_recent(client) {
            return Some((read.number, size(&read)));
        }
        if let Some(read) = self.proven.give_up_waiting(client) {
            return Some((read.number, size(&read)));
        }
        let at = self.answers.iter().rposition(|(_, reply)| reply.client == client);
        let answer = at.and_then(|at| self.answers.remove(at)).map(|(_, reply)| reply);
        let answer = answer.or_else(|| self.proven.give_up_answer(client));
        answer.map(|reply| (reply.number, reply.body.size()))
    }

    fn give_up_recent(&mut self, client: ClientId) -> Option<Read> {
        let own = |reads: &VecDeque<Read>| reads.iter().rposition(|read| read.client == client);
        let (seq, at) = self.recent.iter().rev().find_map(|(seq, reads)| Some((*seq, own(reads)?)))?;
        self.remove_recent(seq, at)
    }

    /// Whether there is a read whose batch is there.
    fn has_ready(&self, executed: Seq, from: Seq) -> bool {
        self.questions.iter().any(|(wanted, _)| executed >= (*wanted).min(from))
            || self.recent.first_key_value().is_some_and(|(wanted, _)| *wanted <= executed)
    }

    /// Takes out the first read whose batch is there of the next client that has any.
    fn take_ready(&mut self, executed: Seq, from: Seq) -> Option<Read> {
        // It may be answered as if it had come now.
        let questions = self.questions.iter().enumerate();
        let questions = questions.filter(|(_, (wanted, _))| executed >= (*wanted).min(from));
        let questions = questions.map(|(at, (_, read))| (read.client, Place::Question(at)));
        let recent = self.recent.range(..=executed);
        let recent = recent.flat_map(|(seq, reads)| (0..).zip(reads).map(move |(at, read)| (*seq, at, read)));
        let recent = recent.map(|(seq, at, read)| (read.client, Place::Recent(seq, at)));
        let had_its_turn = |client: ClientId| self.turn.is_some_and(|last| client <= last);
        let ready = questions.chain(recent);
        let (client, place) = ready.min_by_key(|(client, _)| (had_its_turn(*client), *client))?;
        self.turn = Some(client);
        match place {
            Place::Question(at) => self.questions.remove(at).map(|(_, read)| read),
            Place::Recent(seq, at) => self.remove_recent(seq, at),
        }
    }

    fn remove_recent(&mut self, seq: Seq, at: usize) -> Option<Read> {
        let reads = self.recent.get_mut(&seq)?;
        let read = reads.remove(at);
        if reads.is_empty() {
            self.recent.remove(&seq);
        }
        read
    }

    /// What shows batches above this one was never so.
    pub(crate) fn undone<A: Agreement, X: Execution>(&mut self, to: Seq, out: &mut Outputs<A, X>) {
        while let Some((_, reply)) = self.answers.pop_back_if(|(through, _)| *through > to) {
            self.room.give_back(reply.client, reply.body.size());
            out.push(refuse(reply.client, reply.number, true, RefusalReason::NotReady));
        }
    }

    /// The state is another one.
    pub(crate) fn refuse_all<A: Agreement, X: Execution>(&mut self, out: &mut Outputs<A, X>) {
        let questions = std::mem::take(&mut self.questions).into_iter();
        let answers = std::mem::take(&mut self.answers).into_iter();
        self.room = Room::default();
        let recent = std::mem::take(&mut self.recent).into_values().flatten();
        let all = questions.map(|(_, read)| read).chain(recent).map(|read| (read.client, read.number));
        let all = all.chain(answers.map(|(_, reply)| (reply.client, reply.number)));
        let all = all.chain(self.proven.take_all());
        out.extend(all.map(|(client, number)| refuse(client, number, true, RefusalReason::NotReady)));
    }
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    pub(crate) fn on_read(&mut self, read: &Read, out: &mut Outputs<A, X>) {
        if !self.agreement.may_answer_reads() || self.transfer.is_some() || self.repair.is_some() {
            return out.push(refuse(read.client, read.number, true, RefusalReason::NotReady));
        }
        rule!("MINBFT-R11");
        rule!("PBFT-E6");
        let from = read.least.unwrap_or_else(|| self.agreement.reads_from());
        let furthest = Seq(self.execution.executed().0.saturating_add(FURTHEST));
        if self.execution.executed() >= from {
            self.answer_read(read, out);
        } else if read.least.is_some_and(|least| least > furthest) {
            out.push(refuse(read.client, read.number, true, RefusalReason::NotReady));
        } else if self.reads.take_room(read.client, size(read), out) {
            match read.least {
                None => self.reads.questions.push_back((from, read.clone())),
                Some(least) => self.reads.recent.entry(least).or_default().push_back(read.clone()),
            }
        } else {
            out.push(refuse(read.client, read.number, true, RefusalReason::NotReady));
        }
    }

    /// Answers from the present state, now, once it is final or once that is proven.
    fn answer_read(&mut self, read: &Read, out: &mut Outputs<A, X>) {
        if A::PROVES_REPLIES {
            return self.on_read_to_prove(read, out);
        }
        let (reply, shows) = (self.answer_to(read), self.execution.executed());
        if shows <= self.execution.committed() {
            out.push(Output::Client(ToClient::ReadReply(reply)));
        } else if self.reads.take_room(reply.client, reply.body.size(), out) {
            self.reads.answers.push_back((shows, reply));
        } else {
            out.push(refuse(read.client, read.number, true, RefusalReason::NotReady));
        }
    }

    /// What the present state answers, as this replica sends it.
    fn answer_to(&self, read: &Read) -> ReadReply {
        self.cut_answer(self.execution.query(read))
    }

    /// An answer as this replica sends it: in full, or its digest.
    pub(crate) fn cut_answer(&self, mut reply: ReadReply) -> ReadReply {
        if self.group.designated(reply.client, reply.number) != self.me
            && let ReplyBody::Full(results) = &reply.body
        {
            reply.body = ReplyBody::Digest(Reply::results_digest(results));
        }
        reply
    }

    /// Goes on with the reads that wait, where anything changed for them. One that may be answered now is so in a step of its
    /// own: many wait for the same batch, whoever asks may choose which, and an answer may take long to make, none of which
    /// is to be charged to whoever happens to bring that batch.
    pub(crate) fn go_on_with_reads(&mut self, env: Env, out: &mut Outputs<A, X>) {
        self.go_on_with_held_reads(env, out);
        self.prove_reads(env, out);
    }

    fn go_on_with_held_reads(&mut self, env: Env, out: &mut Outputs<A, X>) {
        if self.reads.is_empty() {
            return;
        }
        let (executed, committed) = (self.execution.executed(), self.execution.committed());
        let from = self.agreement.reads_from();
        if self.reads.looked_at.replace((executed, committed, from)) == Some((executed, committed, from)) {
            return;
        }
        while let Some((_, reply)) = self.reads.answers.pop_front_if(|(through, _)| *through <= committed) {
            self.reads.give_back(reply.client, reply.body.size());
            out.push(Output::Client(ToClient::ReadReply(reply)));
        }
        if self.reads.has_ready(executed, from) {
            out.push(Output::SetTimer { timer: ReplicaTimer::Reads, at: env.now });
        }
    }

    /// Answers somebody who had to wait and need not wait any longer: one read, or one client that wants events repeated.
    pub(crate) fn answer_next_late(&mut self, env: Env, out: &mut Outputs<A, X>) {
        let reads_first = std::mem::take(&mut self.reads.before_events);
        self.reads.answered = None;
        if reads_first && self.answer_next_read(out) {
            if self.repeated_events.has_asked() {
                out.push(Output::SetTimer { timer: ReplicaTimer::Reads, at: env.now });
            }
            return;
        }
        self.reads.answered = self.repeat_events_asked(env.now, out);
        if self.reads.answered.is_none() {
            self.answer_next_read(out);
            return;
        }
        self.reads.before_events = true;
        if self.has_late_answer() {
            out.push(Output::SetTimer { timer: ReplicaTimer::Reads, at: env.now });
        }
    }

    fn answer_next_read(&mut self, out: &mut Outputs<A, X>) -> bool {
        let (executed, from) = (self.execution.executed(), self.agreement.reads_from());
        let Some(read) = self.reads.take_ready(executed, from) else { return false };
        self.reads.give_back(read.client, size(&read));
        self.answer_read(&read, out);
        // Where answers are proven this one is made later, and charged then.
        self.reads.answered = (!A::PROVES_REPLIES).then_some(read.client);
        // The next one has its turn then.
        self.reads.looked_at = None;
        true
    }

    /// Whether somebody who had to wait may be answered: that is with the next [`ReplicaTimer::Reads`], which need not be waited
    /// for.
    pub fn has_late_answer(&self) -> bool {
        self.repeated_events.has_asked()
            || self.reads.has_ready(self.execution.executed(), self.agreement.reads_from())
    }

    /// Who was answered and is to be charged for it, where the last input was [`ReplicaTimer::Reads`].
    pub fn answered_late(&self) -> Option<ClientId> {
        self.reads.answered
    }
}
