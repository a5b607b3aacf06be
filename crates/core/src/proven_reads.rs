//! Reads whose answers prove that they are of the latest state: with the end of the own history, attested under their
//! clients' nonces (paper 000 §4.2, footnote 4). What waits shares one END (§6.3, batching); the next one is asked for when
//! that has come.

use crate::answers::refuse;
use crate::reads::size;
use crate::replica::Outputs;
use crate::{Agreement, Env, Execution, Output, Replica, rule};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use troth_auth::encode_attestation;
use troth_trusted::a2m::Attestation;
use troth_trusted::run::{MAX_RUN, Tree};
use troth_types::{
    AttestedRead, ClientId, Digest, HistoryEnd, Read, ReadReply, RefusalReason, Seq, ToClient,
};

/// Reads under one END: all of them are answered in one step.
const MOST_OF_A_TURN: usize = 32;
const _: () = assert!(MOST_OF_A_TURN <= MAX_RUN);
/// Bytes of results made in one step, about: the one that exceeds it is the last.
const ANSWERS_OF_A_TURN: usize = 1 << 20;
/// Microseconds that they take in one step, about: the same. An END is not asked for more often than each millisecond or
/// two where reads are dear, and one that takes long holds up what waits behind it once, not 32 times.
const MICROS_OF_A_TURN: u64 = 2_000;

/// Reads that wait for an END, taken in turn of their clients.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Line {
    /// Those of each client that has any, the oldest first.
    clients: BTreeMap<ClientId, VecDeque<(Digest, Read)>>,
    /// Whose turn it was last.
    last: Option<ClientId>,
}

impl Line {
    fn push(&mut self, nonce: Digest, read: Read) {
        self.clients.entry(read.client).or_default().push_back((nonce, read));
    }

    /// The oldest read of the next client.
    fn pop(&mut self) -> Option<(Digest, Read)> {
        let behind = (self.last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let next = self.clients.range(behind).next().or_else(|| self.clients.first_key_value());
        let client = *next?.0;
        let reads = self.clients.get_mut(&client)?;
        let read = reads.pop_front();
        if reads.is_empty() {
            self.clients.remove(&client);
        }
        self.last = Some(client);
        read
    }

    fn pop_newest_of(&mut self, client: ClientId) -> Option<Read> {
        let reads = self.clients.get_mut(&client)?;
        let read = reads.pop_back();
        if reads.is_empty() {
            self.clients.remove(&client);
        }
        read.map(|(_, read)| read)
    }
}

/// Answers that wait for the END that was asked for in the step that made them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct UnderWay {
    /// The nonces, of refused answers too: the root is over all of them.
    nonces: Vec<[u8; 32]>,
    /// The answers, each with the place of its nonce.
    replies: Vec<(u16, ReadReply)>,
}

/// Reads that wait for an END, and answers that do.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct ProvenReads {
    waiting: Line,
    under_way: Option<UnderWay>,
}

impl ProvenReads {
    /// Takes out all reads that wait or whose answers do: the state that these are of is wrong. An END that is under way
    /// comes all the same, and nothing goes with it.
    pub(crate) fn take_all(&mut self) -> Vec<(ClientId, u64)> {
        let waiting = std::mem::take(&mut self.waiting.clients).into_values().flatten();
        let waiting = waiting.map(|(_, read)| (read.client, read.number));
        let answers = self.under_way.as_mut().map(|under_way| std::mem::take(&mut under_way.replies));
        let answers = answers.unwrap_or_default().into_iter();
        waiting.chain(answers.map(|(_, reply)| (reply.client, reply.number))).collect()
    }

    /// Takes out the newest read of a client that waits.
    pub(crate) fn give_up_waiting(&mut self, client: ClientId) -> Option<Read> {
        self.waiting.pop_newest_of(client)
    }

    /// Takes out the newest answer to a client that waits for its END.
    pub(crate) fn give_up_answer(&mut self, client: ClientId) -> Option<ReadReply> {
        let replies = &mut self.under_way.as_mut()?.replies;
        let at = replies.iter().rposition(|(_, reply)| reply.client == client)?;
        Some(replies.remove(at).1)
    }
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    pub(crate) fn on_read_to_prove(&mut self, read: &Read, out: &mut Outputs<A, X>) {
        match read.nonce {
            Some(nonce) if self.reads.take_room(read.client, size(read), out) => {
                self.reads.proven.waiting.push(nonce, read.clone());
            }
            _ => out.push(refuse(read.client, read.number, true, RefusalReason::NotReady)),
        }
    }

    /// Has the end of the history attested for what waits, and answers it from the state as it is in this very step: every
    /// append that led to it was asked for before, and none that follows was. What would make the step too long waits for
    /// the next END.
    pub(crate) fn prove_reads(&mut self, env: Env, out: &mut Outputs<A, X>) {
        if self.reads.proven.under_way.is_some() {
            return;
        }
        rule!("A2MPBFTE-E3");
        rule!("A2MPBFTEA-E3");
        let (mut nonces, mut answers, mut made, mut took) = (Vec::new(), Vec::new(), 0, 0);
        while nonces.len() < MOST_OF_A_TURN
            && made < ANSWERS_OF_A_TURN
            && took < MICROS_OF_A_TURN
            && let Some((nonce, read)) = self.reads.proven.waiting.pop()
        {
            self.reads.give_back(read.client, size(&read));
            let (answer, micros) = self.execution.query_in_passing(&read);
            made += answer.body.size();
            took += micros;
            nonces.push(nonce.0);
            answers.push(self.cut_answer(answer));
        }
        if nonces.is_empty() {
            return;
        }
        let root = Tree::default().build(&nonces).expect("a run has 1 to 256 nonces");
        let (executed, mut asked) = (self.execution.executed(), false);
        self.step(env, out, |agreement, cx| asked = agreement.attest_end(cx, executed, root));
        self.reads.proven.under_way = asked.then_some(UnderWay { nonces, replies: Vec::new() });
        for (place, reply) in (0..).zip(answers) {
            let (client, number) = (reply.client, reply.number);
            let kept = asked && self.reads.take_room(client, reply.body.size(), out);
            match &mut self.reads.proven.under_way {
                Some(under_way) if kept => under_way.replies.push((place, reply)),
                _ => out.push(refuse(client, number, true, RefusalReason::NotReady)),
            }
        }
    }

    /// The end is attested: the answers under it go.
    pub(crate) fn end_attested(&mut self, end: &Attestation, out: &mut Outputs<A, X>) {
        let Some(UnderWay { nonces, replies }) = self.reads.proven.under_way.take() else { return };
        let mut tree = Tree::default();
        tree.build(&nonces);
        let mut bytes = Vec::new();
        encode_attestation(end, &mut bytes);
        let attestation = Bytes::from(bytes);
        let slot = u64::try_from(end.claim.slot.0).map_or(Seq(u64::MAX), Seq);
        let renewed = self.execution.configuration().renewed_at(slot);
        for (place, reply) in replies {
            self.reads.give_back(reply.client, reply.body.size());
            let proof = tree.proof(place).expect("the tree has all nonces");
            let path = proof.path.as_slice().iter().map(|sibling| Digest(*sibling)).collect();
            let (index, count) = (proof.index, proof.count);
            let end = HistoryEnd { attestation: attestation.clone(), index, count, path };
            let renewed = renewed.clone();
            out.push(Output::Client(ToClient::AttestedRead(AttestedRead { reply, end, renewed })));
        }
    }
}
