//! What faulty replicas say of the coordination service that is not so, and what clients ask who want to harm.

use super::Town;
use super::talk::Talk;
use crate::Rng;
use crate::service::coordination;
use bytes::Bytes;
use troth_types::{ClientId, Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::{Answer, Attachment, Carrier, Code, Notice, Operation, Replied, key_of, prove};

/// An answer that might be true: another version, another place of the order, an error where there is none, a session that
/// is over or attached otherwise.
#[must_use]
pub fn lie_about(rng: &mut Rng, truth: Option<&Bytes>) -> Bytes {
    let truth = truth.and_then(|bytes| Answer::from_wire(bytes).ok());
    let invented = Answer::Reply { zxid: rng.below(40) as i64, error: 0, body: Bytes::from(vec![0; 68]) };
    let lie = match truth.unwrap_or(invented) {
        Answer::Attached { mut at, timeout } => {
            if rng.one_in(2) {
                at.number += 1;
            } else {
                at.session ^= 1;
            }
            Answer::Attached { at, timeout: timeout + 1 }
        }
        Answer::Heard { mut over, mut tally } => {
            match rng.below(3) {
                0 => tally.nodes += 1,
                1 => tally.time.0 += 5_000_000,
                _ if over.pop().is_none() => {
                    over.push(Attachment { session: rng.below(9) as i64, number: rng.below(9) });
                }
                _ => {}
            }
            Answer::Heard { over, tally }
        }
        Answer::Ahead(agreed) => Answer::Ahead(Time(agreed.0 + 1)),
        Answer::Replies { zxid, mut replies } => {
            let at = rng.index(replies.len().max(1));
            match (rng.below(4), replies.get_mut(at)) {
                (0, Some(reply)) => *reply = Replied { error: Code::NoNode.number(), body: Bytes::new() },
                (1, Some(_)) => {
                    replies.swap_remove(at);
                }
                (2, Some(reply)) if !reply.body.is_empty() => {
                    let mut body = reply.body.to_vec();
                    let byte = body.len() - 1 - rng.index(body.len().min(40));
                    body[byte] ^= 1;
                    reply.body = Bytes::from(body);
                }
                _ => return Answer::Replies { zxid: zxid + 1, replies }.to_wire(),
            }
            Answer::Replies { zxid, replies }
        }
        Answer::Reply { zxid, error, body } => match rng.below(6) {
            0 => Answer::Reply { zxid: zxid + 1 + rng.below(3) as i64, error, body },
            1 => {
                let error =
                    rng.pick(&[Code::NoNode, Code::BadVersion, Code::SessionExpired, Code::NodeExists]);
                Answer::Reply { zxid, error: error.number(), body: Bytes::new() }
            }
            2 => Answer::Reply { zxid, error: 0, body: Bytes::new() },
            3 => Answer::Ahead(Time(rng.below(9))),
            _ => {
                // Somewhere in the data, or in the versions behind them.
                let mut body = body.to_vec();
                if !body.is_empty() {
                    let at = body.len() - 1 - rng.index(body.len().min(40));
                    body[at] ^= 1;
                }
                Answer::Reply { zxid, error: 0, body: Bytes::from(body) }
            }
        },
    };
    lie.to_wire()
}

/// An event that might be true: another change, or the end of a session that has not ended.
#[must_use]
pub fn lie_of_an_event(rng: &mut Rng, truth: Option<&Bytes>) -> Bytes {
    let lie = match truth.and_then(|bytes| Notice::from_wire(bytes).ok()) {
        Some(Notice::Fired { at, kind, path, zxid }) => match rng.below(4) {
            0 => Notice::Over(at),
            1 => Notice::Fired { at, kind: kind % 4 + 1, path, zxid },
            2 => Notice::Fired { at, kind, path: format!("{path}0"), zxid },
            _ => Notice::Fired { at, kind, path, zxid: zxid + 1 },
        },
        Some(Notice::Over(at)) => Notice::Over(Attachment { number: at.number + 1, ..at }),
        None => Notice::Over(Attachment { session: 1, number: 1 + rng.below(4) }),
    };
    lie.to_wire()
}

/// What a client asks that wants to harm: in sessions that are not its own, with passwords that it does not know, and more
/// sessions than it may have.
pub fn nuisance(rng: &mut Rng, me: ClientId, town: &Town, talk: &mut Talk) -> Bytes {
    let (mut at, password) =
        town.any(rng).unwrap_or((Attachment { session: rng.below(9) as i64, number: 1 }, [0; 16]));
    // Its next attachment, if nobody else's comes first.
    at.number += u64::from(rng.one_in(4));
    let operation = match rng.below(8) {
        0 | 1 => Operation::Open { timeout: rng.next() as u32, key: key_of(&password), who: talk.who(rng) },
        2 => {
            // With a password that it guesses, or with what a replica saw of somebody's.
            let mut password = password;
            password[rng.index(16)] ^= 1 << rng.below(8);
            let carrier = Carrier { group: coordination().group, gateway: me };
            let guessed = (at.session, prove(&password, carrier, at.session));
            let (session, proof) = town.shown(rng).filter(|_| rng.one_in(2)).unwrap_or(guessed);
            Operation::Attach { session, proof, timeout: 1, who: talk.who(rng) }
        }
        3 => Operation::Touch(vec![at; rng.index(4)]),
        4 => Operation::Identify { at, id: Id::new("x509", "CN=1") },
        5 => return Bytes::from(vec![rng.below(6) as u8; rng.index(40)]),
        _ => {
            let (code, body) = talk.request(rng, 0);
            Operation::Request { at, code, body }
        }
    };
    operation.to_wire()
}
