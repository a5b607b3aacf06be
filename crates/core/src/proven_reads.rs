//! Reads whose answers prove that they are of the latest state: with the end of the own history, attested under their
//! clients' nonces (paper 000 §4.2, footnote 4). What waits shares one END (§6.3, batching); the next one is asked for when
//! that has come.

use crate::answers::refuse;
use crate::reads::size;
use crate::replica::Outputs;
use crate::{Agreement, Env, Execution, Output, Replica};
use bytes::Bytes;
use std::collections::VecDeque;
use troth_auth::encode_attestation;
use troth_trusted::a2m::Attestation;
use troth_trusted::run::{MAX_RUN, Tree};
use troth_types::{AttestedRead, ClientId, Digest, HistoryEnd, Read, ReadReply, RefusalReason, ToClient};

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
    waiting: VecDeque<(Digest, Read)>,
    under_way: Option<UnderWay>,
}

impl ProvenReads {
    /// Takes out all reads that wait or whose answers do: the state that these are of is wrong. An END that is under way
    /// comes all the same, and nothing goes with it.
    pub(crate) fn take_all(&mut self) -> Vec<(ClientId, u64)> {
        let waiting =
            std::mem::take(&mut self.waiting).into_iter().map(|(_, read)| (read.client, read.number));
        let answers = self.under_way.as_mut().map(|under_way| std::mem::take(&mut under_way.replies));
        let answers = answers.unwrap_or_default().into_iter();
        waiting.chain(answers.map(|(_, reply)| (reply.client, reply.number))).collect()
    }
}

impl<A: Agreement, X: Execution> Replica<A, X> {
    pub(crate) fn on_read_to_prove(&mut self, read: &Read, out: &mut Outputs<A, X>) {
        match read.nonce {
            Some(nonce) if self.reads.room.take(read.client, size(read)) => {
                self.reads.proven.waiting.push_back((nonce, read.clone()));
            }
            _ => out.push(refuse(read.client, read.number, true, RefusalReason::NotReady)),
        }
    }

    /// Has the end of the history attested for what waits, and answers it from the state as it is in this very step: every
    /// append that led to it was asked for before, and none that follows was.
    pub(crate) fn prove_reads(&mut self, env: Env, out: &mut Outputs<A, X>) {
        if self.reads.proven.under_way.is_some() || self.reads.proven.waiting.is_empty() {
            return;
        }
        let some = self.reads.proven.waiting.len().min(MAX_RUN);
        let reads: Vec<(Digest, Read)> = self.reads.proven.waiting.drain(..some).collect();
        let nonces: Vec<[u8; 32]> = reads.iter().map(|(nonce, _)| nonce.0).collect();
        let root = Tree::default().build(&nonces).expect("a run has 1 to 256 nonces");
        let (executed, mut asked) = (self.execution.executed(), false);
        self.step(env, out, |agreement, cx| asked = agreement.attest_end(cx, executed, root));
        let mut replies = Vec::with_capacity(reads.len());
        for (place, (_, read)) in (0..).zip(reads) {
            self.reads.room.give_back(read.client, size(&read));
            if asked {
                let reply = self.answer_to(&read);
                if self.reads.room.take(reply.client, reply.body.size()) {
                    replies.push((place, reply));
                    continue;
                }
            }
            out.push(refuse(read.client, read.number, true, RefusalReason::NotReady));
        }
        self.reads.proven.under_way = asked.then_some(UnderWay { nonces, replies });
    }

    /// The end is attested: the answers under it go.
    pub(crate) fn end_attested(&mut self, end: &Attestation, out: &mut Outputs<A, X>) {
        let Some(UnderWay { nonces, replies }) = self.reads.proven.under_way.take() else { return };
        let mut tree = Tree::default();
        tree.build(&nonces);
        let mut bytes = Vec::new();
        encode_attestation(end, &mut bytes);
        let attestation = Bytes::from(bytes);
        for (place, reply) in replies {
            self.reads.room.give_back(reply.client, reply.body.size());
            let proof = tree.proof(place).expect("the tree has all nonces");
            let path = proof.path.as_slice().iter().map(|sibling| Digest(*sibling)).collect();
            let (index, count) = (proof.index, proof.count);
            let end = HistoryEnd { attestation: attestation.clone(), index, count, path };
            out.push(Output::Client(ToClient::AttestedRead(AttestedRead { reply, end })));
        }
    }
}
