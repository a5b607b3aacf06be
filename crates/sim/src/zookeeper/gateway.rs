//! Gateways: clients of the group that carry the sessions of others.

use super::talk::{Talk, is_over};
use crate::checks::{Checks, FastRead};
use crate::service::coordination;
use crate::world::{Called, WALL_START, Workload};
use crate::{Options, Rng};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use troth_auth::PublicKey;
use troth_types::{ClientId, Event, Signature, Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::jute::Input;
use troth_zookeeper::{
    Answer, Asked, Attachment, Carrier, Notice, Operation, Password, Said, key_of, looks_at_one, opcode,
    prove,
};

/// The sessions of a gateway that its clients use.
const SESSIONS: usize = 3;
/// The sessions whose passwords their clients still know.
const KNOWN: usize = 24;

/// The clients of all gateways: sessions with their passwords, to be attached wherever their clients go.
#[derive(Debug, Default)]
pub struct Town {
    known: Vec<(Attachment, Password)>,
    shown: Vec<(i64, Signature)>,
}

impl Town {
    fn learn(&mut self, at: Attachment, password: Password) {
        self.forget(at.session);
        if self.known.len() == KNOWN {
            self.known.remove(0);
        }
        self.known.push((at, password));
    }

    /// A proof that a session is to be attached somewhere, which all replicas saw.
    fn show(&mut self, session: i64, proof: Signature) {
        if self.shown.len() == KNOWN {
            self.shown.remove(0);
        }
        self.shown.push((session, proof));
    }

    /// Somebody's proof, for whoever colludes with a replica.
    pub fn shown(&self, rng: &mut Rng) -> Option<(i64, Signature)> {
        (!self.shown.is_empty()).then(|| rng.pick(&self.shown))
    }

    fn forget(&mut self, session: i64) {
        self.known.retain(|(at, _)| at.session != session);
    }

    /// Somebody's session.
    pub fn any(&self, rng: &mut Rng) -> Option<(Attachment, Password)> {
        (!self.known.is_empty()).then(|| rng.pick(&self.known))
    }
}

/// A session that a gateway carries.
#[derive(Clone, Copy, Debug)]
struct Held {
    at: Attachment,
    /// The last transaction that its client saw.
    seen: i64,
    /// Its client says nothing any more.
    silent: bool,
}

/// A gateway.
pub struct Gateway {
    talk: Talk,
    town: Rc<RefCell<Town>>,
    held: Vec<Held>,
    /// The passwords of sessions that it asked for.
    passwords: BTreeMap<PublicKey, Password>,
    /// Of those to which it attaches.
    attaching: BTreeMap<i64, Password>,
    asked: u64,
    id: ClientId,
    /// Its clock is ahead by so much, as those of replicas are.
    skew: u64,
}

impl Gateway {
    /// A gateway of a seed's world.
    #[must_use]
    pub fn new(options: &Options, id: ClientId, town: Rc<RefCell<Town>>) -> Self {
        let talk = Talk::new(id.0, options.keys);
        let skew = match options.skew {
            0 => 0,
            skew => Rng::stream(options.seed, "gateway's clock", id.0).below(skew),
        };
        Self {
            talk,
            town,
            held: Vec::new(),
            passwords: BTreeMap::new(),
            attaching: BTreeMap::new(),
            asked: 0,
            id,
            skew,
        }
    }

    fn said(&self, now: u64, operation: Operation) -> Bytes {
        Said { when: Time(WALL_START + now + self.skew), operation }.to_wire()
    }

    fn timeout(rng: &mut Rng) -> u32 {
        rng.pick(&[0, 300, 700, 1_500, 3_000, 60_000])
    }

    fn open(&mut self, rng: &mut Rng) -> Operation {
        self.asked += 1;
        let mut password = [0; 16];
        password[..8].copy_from_slice(&self.id.0.to_be_bytes());
        password[8..].copy_from_slice(&self.asked.to_be_bytes());
        let key = key_of(&password);
        self.passwords.insert(key, password);
        Operation::Open { timeout: Self::timeout(rng), key, who: self.talk.who(rng) }
    }

    /// A client whose gateway crashed, or who just went away from it, comes to this one.
    fn attach(&mut self, rng: &mut Rng) -> Option<Operation> {
        let (at, mut password) = self.town.borrow().any(rng)?;
        if rng.one_in(16) {
            password[0] ^= 1;
        }
        let (timeout, who) = (Self::timeout(rng), self.talk.who(rng));
        let carrier = Carrier { group: coordination().group, gateway: self.id };
        let proof = prove(&password, carrier, at.session);
        self.town.borrow_mut().show(at.session, proof);
        self.attaching.insert(at.session, password);
        Some(Operation::Attach { session: at.session, proof, timeout, who })
    }

    fn operation(&mut self, rng: &mut Rng) -> Operation {
        let heard: Vec<Held> = self.held.iter().filter(|held| !held.silent).copied().collect();
        if heard.is_empty() || (heard.len() < SESSIONS && rng.one_in(10)) {
            let attached = if rng.one_in(3) { self.attach(rng) } else { None };
            // As many as it waits for already will do.
            let waits = self.passwords.len() >= SESSIONS;
            return attached.unwrap_or_else(|| {
                if waits {
                    Operation::Touch(heard.iter().map(|held| held.at).collect())
                } else {
                    self.open(rng)
                }
            });
        }
        let held = rng.pick(&heard);
        match rng.below(40) {
            0 => {
                // Its client is gone, and nobody says so.
                self.held.iter_mut().filter(|one| one.at == held.at).for_each(|one| one.silent = true);
                Operation::Touch(heard.iter().map(|held| held.at).collect())
            }
            1..3 => {
                let mut all: Vec<Attachment> = heard.iter().map(|held| held.at).collect();
                if rng.one_in(3) {
                    all.push(Attachment { number: held.at.number + 1, ..held.at });
                }
                Operation::Touch(all)
            }
            3 => Operation::Identify {
                at: held.at,
                id: Id::new(rng.pick(&["sasl", "sasl", "digest"]), "somebody"),
            },
            // As where replicas disagree about a read.
            4 => self.reads(rng, held.at),
            _ => {
                let (code, body) = self.talk.request(rng, held.seen);
                Operation::Request { at: held.at, code, body }
            }
        }
    }

    /// What a client reads with several requests, which go together; now and then one that may not.
    fn reads(&self, rng: &mut Rng, at: Attachment) -> Operation {
        let one = |rng: &mut Rng| {
            let (code, body) = loop {
                let (code, body) = self.talk.look(rng);
                if looks_at_one(code) || rng.one_in(30) {
                    break (code, body);
                }
            };
            Asked { code, body }
        };
        let reads = (0..rng.range(2, 6)).map(|_| one(rng)).collect();
        Operation::Reads { at, reads }
    }

    fn lose(&mut self, at: Attachment) {
        self.held.retain(|held| held.at != at);
    }

    fn learn(&mut self, operation: &Operation, answer: Answer) {
        match (operation, answer) {
            (Operation::Open { key, .. }, Answer::Attached { at, .. }) => {
                let Some(password) = self.passwords.remove(key) else { return };
                self.town.borrow_mut().learn(at, password);
                self.held.push(Held { at, seen: 0, silent: false });
            }
            (Operation::Attach { session, .. }, Answer::Attached { at, .. }) => {
                let Some(password) = self.attaching.remove(session) else { return };
                // It may have been its own.
                self.held.retain(|held| held.at.session != *session);
                self.town.borrow_mut().learn(at, password);
                self.held.push(Held { at, seen: 0, silent: false });
            }
            (Operation::Open { key, .. }, _) => {
                self.passwords.remove(key);
            }
            (Operation::Attach { session, .. }, Answer::Reply { .. }) => {
                self.town.borrow_mut().forget(*session);
            }
            (Operation::Request { at, code, .. }, Answer::Reply { zxid, error, body }) => {
                if is_over(error) || (*code == opcode::CLOSE_SESSION && error == 0) {
                    return self.lose(*at);
                }
                let own = |held: &&mut Held| held.at == *at;
                self.held.iter_mut().filter(own).for_each(|held| held.seen = held.seen.max(zxid));
                let creates = matches!(*code, opcode::CREATE | opcode::CREATE2 | opcode::CREATE_TTL);
                let path = Input::new(&body).text().ok().flatten();
                if let Some(path) =
                    path.filter(|path| creates && error == 0 && path.ends_with(char::is_numeric))
                {
                    self.talk.remember(path);
                }
            }
            (Operation::Reads { at, .. }, Answer::Replies { zxid, .. }) => {
                let own = |held: &&mut Held| held.at == *at;
                self.held.iter_mut().filter(own).for_each(|held| held.seen = held.seen.max(zxid));
            }
            (Operation::Reads { at, .. }, Answer::Reply { error, .. }) if is_over(error) => self.lose(*at),
            (Operation::Touch(_), Answer::Heard { over, .. }) => {
                over.into_iter().for_each(|at| self.lose(at))
            }
            _ => {}
        }
    }

    /// Judges what was answered to a read that need not be ordered.
    fn judge(call: &Called<'_>, results: &[Bytes], checks: &mut Checks) {
        let ([operation], [answer]) = (call.operations, results) else { return };
        // What is executed tentatively, no replica has told of yet.
        let until = if call.tentative { troth_types::Seq(u64::MAX) } else { checks.agreed.highest() };
        let read = FastRead {
            client: call.client,
            operation: operation.clone(),
            answer: answer.clone(),
            since: call.since,
            until,
            events: checks.events.delivered_to(call.client),
        };
        let result = checks.reads.answered(read, &checks.replies);
        checks.judge("fast reads", &[], result);
    }
}

impl Workload for Gateway {
    fn operations(&mut self, now: u64, rng: &mut Rng, count: usize) -> Vec<Bytes> {
        if rng.one_in(60) {
            // It crashes. It keeps nothing; its clients know their sessions and passwords.
            self.held.clear();
            self.passwords.clear();
            self.attaching.clear();
        }
        let operations: Vec<Operation> = (0..count).map(|_| self.operation(rng)).collect();
        operations.into_iter().map(|operation| self.said(now, operation)).collect()
    }

    fn read(&mut self, now: u64, rng: &mut Rng) -> Bytes {
        let own: Vec<Attachment> = self.held.iter().map(|held| held.at).collect();
        let at = match self.town.borrow().any(rng) {
            // Sometimes somebody else's.
            Some((at, _)) if own.is_empty() || rng.one_in(20) => at,
            _ if own.is_empty() => Attachment { session: 1, number: 1 },
            _ => rng.pick(&own),
        };
        if rng.one_in(3) {
            return self.said(now, self.reads(rng, at));
        }
        let (code, body) = self.talk.look(rng);
        self.said(now, Operation::Request { at, code, body })
    }

    fn done(&mut self, call: &Called<'_>, checks: &mut Checks) {
        let Some(results) = call.results else {
            // Whatever was asked for may have happened: that is for its clients to find out.
            return self.passwords.clear();
        };
        if call.read {
            Self::judge(call, results, checks);
        } else {
            let done =
                checks.replies.matching(call.client, call.operations, results).map(|done| done.seq).min();
            checks.reads.reveal(done.unwrap_or_default());
        }
        for (operation, result) in call.operations.iter().zip(results) {
            let (said, answer) = (Said::from_wire(operation), Answer::from_wire(result));
            if let (Ok(said), Ok(answer)) = (said, answer) {
                self.learn(&said.operation, answer);
            }
        }
    }

    fn told(&mut self, _: u64, event: &Event, checks: &mut Checks) {
        let known = checks.replies.model.events.get(&event.client);
        let seq = known.and_then(|events| events.get(event.index as usize - 1)).map(|(seq, _)| *seq);
        checks.reads.reveal(seq.unwrap_or_default());
        match Notice::from_wire(&event.payload) {
            Ok(Notice::Over(at)) => {
                self.lose(at);
            }
            Ok(Notice::Fired { at, zxid, .. }) => {
                let own = |held: &&mut Held| held.at == at;
                self.held.iter_mut().filter(own).for_each(|held| held.seen = held.seen.max(zxid));
            }
            Err(_) => {}
        }
    }
}
