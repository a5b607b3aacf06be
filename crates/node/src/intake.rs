//! What a turn takes from the lanes, and what it does with what replicas sent.

use crate::asked::{Asked, CLIENT_MICROS, MUCH};
use crate::charges::{BYTES_PER_MICRO, cost};
use crate::engine::{Engine, MachineInput, Peers, Stopped};
use crate::inbox::{Inbox, Party};
use crate::shares::LEAST_READ;
use std::collections::BTreeSet;
use std::sync::Arc;
use troth_auth::FrameError;
use troth_core::{Agreement, Env, Execution, Input, PeerMessage, Repeated, Replica, Request, VerifiedFrame};
use troth_types::{ClientId, Digest, Frame, Read, ReplicaId, Time, ToReplica, Wire, Wish};

/// Client signatures checked in one turn. More would hold back what replicas wait for and let the
/// whole group convoy.
const CLIENT_CHECKS: usize = 96;
/// Frames of other replicas' answers checked in one turn, beside those of clients.
const PEER_CHECKS: usize = 32;
/// Messages of replicas taken in one turn.
const PEER_MESSAGES: usize = 128;
/// Messages of clients taken in one turn, reads included.
const CLIENT_MESSAGES: usize = 512;
/// Bytes of clients' messages taken in one turn, about: what is large takes long to check.
const CLIENT_BYTES: usize = 1 << 20;
/// Bytes sent in one turn to replicas that asked for state and frames, about.
const FETCHED_BYTES: usize = 1 << 20;
/// Microseconds of them after which the turn goes on.
const FETCHED_MICROS: u64 = 5_000;
/// Of such questions, those answered in one turn.
const FETCHES: usize = 32;
/// Microseconds to check a signature that turns out wrong, or that was not needed.
pub(crate) const CHECK: u64 = 40;

/// Something taken from a lane; frames wait for the turn's batch of signature checks.
pub(crate) enum Item<A: Agreement, X: Execution> {
    /// A replica's, ready for the machine, and what it cost so far.
    Ready(ReplicaId, MachineInput<A, X>, u64),
    /// A message of a replica that is to be verified, and what it cost so far.
    Said(ReplicaId, A::Message, u64),
    /// Frames that a replica showed, and what they cost so far.
    Shown(ReplicaId, Vec<Shown>, u64),
    /// A client's read.
    Read(Read),
    /// The next frame of the batch, from its client.
    Asked(ClientId, u64, Wish),
    /// What a client sent and needs no check: it is held, or executed.
    Known(Asked),
}

/// A frame that a replica showed.
pub(crate) enum Shown {
    /// One that is held, and so was checked.
    Known(VerifiedFrame),
    /// The next frame of the batch.
    New(Arc<Frame>),
}

/// Whether a message that does not decode is of a kind that this release does not know: a later one may send
/// such, and what is not understood is ignored.
fn is_unknown<A: Agreement>(message: &[u8]) -> bool {
    match message {
        [0, kind, ..] => *kind >= A::MESSAGE_KINDS,
        [kind, ..] => *kind >= Peers::<A>::KINDS,
        [] => false,
    }
}

/// What a turn's batch of checks told.
pub(crate) struct Checked {
    /// The verdict on each frame.
    pub(crate) frames: Vec<Result<VerifiedFrame, FrameError>>,
    /// Microseconds that each bad frame has cost.
    pub(crate) bad_frame: u64,
    /// Microseconds that each message with a bad signature of a component has cost, where there is one.
    bad_message: u64,
    /// Microseconds that each other message has cost.
    message: u64,
}

impl Checked {
    /// What the batch has cost for a message.
    pub(crate) fn cost(&self, good: bool) -> u64 {
        if good { self.message } else { self.message + self.bad_message }
    }
}

/// What a client's frame is to a replica that holds it, verified, because others have shown it, or has executed it for
/// good: a replica that lags behind what clients send must not check again what is done.
fn known<A: Agreement, X: Execution>(machine: &Replica<A, X>, frame: &Frame, wish: Wish) -> Option<Asked> {
    let (client, number) = (frame.client(), frame.number());
    if let Some(frame) = machine.agreement().frame(&frame.digest()) {
        let request = Request { frame, wish };
        let much = machine.answer_bytes(&request.frame, wish) >= MUCH;
        return Some(if much { Asked::Again(request) } else { Asked::Request(request) });
    }
    let repeated = || Asked::Repeated(Repeated { client, number, events_seen: frame.events_seen(), wish });
    // Where replies prove their place, one whose proof is forgotten is ordered again.
    let done = !A::PROVES_REPLIES && machine.is_done(client, number);
    done.then(repeated)
}

impl<A: Agreement, X: Execution> Engine<A, X> {
    /// Gives the machine a replica's message. One that brings the group nothing is charged to the replica, with
    /// what led to it. Returns whether it was.
    pub(crate) fn peer_input(
        &mut self,
        env: Env,
        from: ReplicaId,
        input: MachineInput<A, X>,
        spent: u64,
    ) -> bool {
        let stands = |engine: &Self| {
            let machine = engine.host.machine();
            (machine.progress(), machine.agreement().broken())
        };
        let ((progress, broken), began) = (stands(self), self.clock.now());
        self.input(env, input);
        let (now, broken_now) = stands(self);
        let is_useless = (progress.is_some() && progress == now) || broken_now > broken;
        if is_useless {
            let took = self.clock.now().0.saturating_sub(began.0);
            self.charge(from, spent + took);
        }
        is_useless
    }

    /// Gives the machine what a replica said, if it is authentic. Where its component's signature is none, what that
    /// spoilt is charged to it.
    pub(crate) fn said(
        &mut self,
        env: Env,
        (from, message, spent): (ReplicaId, A::Message, u64),
        batch: impl Fn(bool) -> u64,
    ) {
        let began = self.clock.now();
        // What came before it in this turn may have brought the same.
        if !self.host.machine().agreement().is_worth_checking(&message) {
            self.counters.messages_passed_over += 1;
            if self.host.machine().agreement().waits_here(&message) {
                self.peer_charges.again(from, began, spent + batch(true));
            } else {
                self.charge(from, spent + batch(true));
            }
            return;
        }
        let author = self.host.machine().agreement().author_of_dear(&message);
        let turns = |engine: &Self| author.map(|author| engine.host.machine().agreement().turns(author));
        let verified = self.messages.verify(message);
        let spent = spent + batch(verified.is_ok()) + self.clock.now().0.saturating_sub(began.0);
        match verified {
            Ok(message) => {
                self.counters.messages_verified += 1;
                let before = turns(self);
                let charged = self.peer_input(env, from, Input::Message(from, message), spent);
                // What it brings while views change cannot be told. In its turn it comes once; out of it, without end.
                if !charged && before.is_some() && turns(self) == before {
                    self.peer_charges.again(from, self.clock.now(), spent);
                }
            }
            Err(_) => {
                self.counters.messages_refused += 1;
                self.charge(from, spent);
            }
        }
    }

    /// Checks what a turn has taken: the signatures of clients and of trusted components in one batch, as each takes
    /// less the more there are.
    pub(crate) fn check_together(&mut self, items: &[Item<A, X>], frames: Vec<Arc<Frame>>) -> Checked {
        let said = items.iter().filter_map(|item| match item {
            Item::Said(_, message, _) => Some(message),
            _ => None,
        });
        let began = self.clock.now();
        let signed = self.messages.signed(said);
        let statements: Vec<_> = signed.iter().map(|signed| signed.statement).collect();
        let count = (frames.len() + statements.len()) as u64;
        let (frames, good) = self.frames.verify_beside(frames, &statements);
        let took = self.clock.now().0.saturating_sub(began.0);
        self.messages
            .found_good(signed.iter().zip(&good).filter_map(|(signed, good)| good.then_some(signed)));
        // A bad signature has its company checked again, one by one: who sent it pays for that, and for all of the turn's.
        let of = |bad: usize| took.checked_div(bad as u64).unwrap_or(0).max(CHECK);
        Checked {
            bad_frame: of(frames.iter().filter(|verdict| verdict.is_err()).count()),
            bad_message: match good.iter().filter(|good| !**good).count() {
                0 => 0,
                forged => of(forged),
            },
            message: if statements.is_empty() { 0 } else { took / count },
            frames,
        }
    }

    /// Gives the machine the frames that a replica showed, without those that do not verify. Those that nobody
    /// wants are charged to the replica.
    pub(crate) fn shown(
        &mut self,
        env: Env,
        (from, shown, spent): (ReplicaId, Vec<Shown>, u64),
        spoilt: u64,
        verdicts: &mut impl Iterator<Item = Result<VerifiedFrame, FrameError>>,
    ) {
        let all = shown.len() as u64;
        let (mut good, mut news, mut doubtful, mut refused) = (Vec::new(), Vec::new(), Vec::new(), 0);
        let (mut again, came) = (0, self.clock.now());
        for shown in shown {
            match shown {
                Shown::Known(frame) => {
                    again += u64::from(!self.peer_charges.was_asked(from, came, frame.size()));
                    good.push(frame);
                }
                Shown::New(shown) => match verdicts.next().expect("one verdict per frame") {
                    Ok(frame) => {
                        news.push(shown);
                        good.push(frame);
                    }
                    // It may be its client's all the same.
                    Err(FrameError::BadTag) => doubtful.push(shown),
                    Err(_) => refused += 1,
                },
            }
        }
        self.counters.frames_refused += refused;
        self.counters.frames_verified += news.len() as u64;
        let before = self.host.machine().progress();
        let mut unkept = 0;
        if !doubtful.is_empty() {
            let digests: Vec<Digest> = doubtful.iter().map(|frame| frame.digest()).collect();
            self.counters.frames_doubtful += digests.len() as u64;
            self.input(env, Input::Doubtful(from, doubtful));
            let agreement = self.host.machine().agreement();
            unkept = digests.iter().filter(|digest| agreement.wants_unsigned(digest)).count() as u64;
        }
        // What is executed a primary may name, and show, as often as it likes.
        let machine = self.host.machine();
        let by_primary = A::PRIMARY_SHOWS && !news.is_empty() && machine.status().primary == from;
        let is_new = |frame: &Arc<Frame>| by_primary && !machine.is_done(frame.client(), frame.number());
        let is_new: Vec<bool> = news.iter().map(is_new).collect();
        let began = self.clock.now();
        self.input(env, Input::Frames(from, good));
        let now = self.clock.now();
        let machine = self.host.machine();
        let moved = before != machine.progress();
        // What somebody else sent first costs nobody; what it was not asked for it may send on, but not without end. What
        // follows from a new frame is no work with the others.
        if again > 0 {
            let led_to = if news.is_empty() && !moved { now.0.saturating_sub(began.0) } else { 0 };
            self.peer_charges.again(from, now, (spent + led_to) * again / all);
        }
        let wanted = |frame: &Arc<Frame>| machine.agreement().frame(&frame.digest()).is_some();
        let (mut taken, mut repeated) = (0, 0);
        for (frame, is_new) in news.iter().zip(is_new).filter(|(frame, _)| wanted(frame)) {
            taken += 1;
            if by_primary && !is_new {
                repeated += 1;
            } else if is_new {
                // Its client sent it, to the primary alone perhaps.
                let (client, number) = (frame.client(), frame.number());
                let waits = machine.answers_shown(client, number) && !machine.is_done(client, number);
                self.client_charges.borrow_mut().asked(client, now, frame.size(), waits);
            }
        }
        self.peer_charges.again(from, now, repeated * CHECK);
        let told = before.is_some() && !moved;
        let in_vain = if told { news.len() as u64 - taken } else { 0 };
        // For a client's good frame there may be no room here, though there was where it was shown: a primary that shows what it
        // alone was sent cannot know that.
        if in_vain > 0 {
            self.peer_charges.again(from, now, in_vain * CHECK + spent * in_vain / all);
        }
        let cost = unkept * CHECK + refused * spoilt;
        if cost > 0 {
            self.charge(from, spent + cost);
        }
    }

    /// Charges useless work to a replica.
    pub(crate) fn charge(&mut self, from: ReplicaId, micros: u64) {
        self.counters.peer_useless_micros += micros;
        self.peer_charges.useless(from, self.clock.now(), micros);
    }

    /// Sends replicas what they asked for, each in turn, as far as the turn and their accounts allow.
    pub(crate) fn serve_replicas(&mut self, env: Env) -> Result<(), Stopped> {
        // What the turn has left to do is nobody's question.
        self.commands()?;
        let began = self.clock.now();
        for _ in 0..FETCHES {
            // The disk is nearly always waited for under load: answers then leave with what waits for it.
            let now = self.clock.now();
            let is_late = now.0.saturating_sub(began.0) >= FETCHED_MICROS;
            if self.fetched_bytes >= FETCHED_BYTES || is_late || self.is_crowded() {
                break;
            }
            let charges = &self.peer_charges;
            let may = |replica| charges.may_fetch_from(replica, env.now).is_none();
            let Some((from, question)) = self.fetches.take(may) else { break };
            let (waited, told) = (self.host.backlog_bytes(), self.shown_bytes);
            self.input(env, question);
            // Little may come of much work: pages are compared for an answer that says that nothing differs.
            let done = self.clock.now();
            self.peer_charges.looked_up(from, done, done.0.saturating_sub(now.0));
            self.commands()?;
            // What is shown to it for other reasons it has not asked for.
            let waits = self.host.backlog_bytes().saturating_sub(waited);
            let bytes = waits + (self.shown_bytes - told);
            self.fetched_bytes += bytes;
            self.peer_charges.fetched(from, done, bytes);
        }
        Ok(())
    }

    /// When a replica that asked for something may have it, if one waits.
    pub(crate) fn next_fetch(&self) -> Option<Time> {
        if self.is_crowded() {
            return None;
        }
        let now = self.clock.now();
        let waiting = self.fetches.waiting();
        waiting.map(|replica| self.peer_charges.may_fetch_from(replica, now).unwrap_or(now)).min()
    }

    pub(crate) fn take_replicas(
        &mut self,
        inbox: &Inbox,
        items: &mut Vec<Item<A, X>>,
        frames: &mut Vec<Arc<troth_types::Frame>>,
    ) {
        let mut left = PEER_MESSAGES;
        let (charges, clock) = (&self.peer_charges, &self.clock);
        let mut rested = 0;
        let rests = |party| match party {
            Party::Replica(replica) => charges.rests(replica, clock.now()).inspect(|_| rested += 1),
            Party::Client(_) => None,
        };
        inbox.take_replicas(rests, |party, bytes| {
            let Party::Replica(from) = party else { return true };
            self.counters.peer_messages_in += 1;
            let began = clock.now();
            let spent = || cost(bytes.len(), clock.now().0.saturating_sub(began.0));
            let mut in_vain = |spent| {
                self.counters.peer_useless_micros += spent;
                charges.useless(from, began, spent);
            };
            let agreement = self.host.machine().agreement();
            match Peers::<A>::from_wire(&bytes) {
                Err(_) if is_unknown::<A>(&bytes) => {
                    self.counters.unknown += 1;
                    in_vain(spent());
                }
                Err(_) => {
                    self.counters.malformed += 1;
                    in_vain(spent());
                }
                Ok(PeerMessage::Protocol(message)) if !agreement.is_worth_checking(&message) => {
                    self.counters.messages_passed_over += 1;
                    // What merely waits here its author may have had to send again.
                    if agreement.waits_here(&message) {
                        charges.again(from, began, spent());
                    } else {
                        in_vain(spent());
                    }
                }
                Ok(PeerMessage::Protocol(message)) => items.push(Item::Said(from, message, spent())),
                Ok(PeerMessage::Frames(frames_shown)) => {
                    let (agreement, all) = (self.host.machine().agreement(), frames_shown.len() as u64);
                    let mut distinct = BTreeSet::new();
                    let held = |frame: Arc<Frame>| {
                        let digest = frame.digest();
                        if !distinct.insert(digest) {
                            return None;
                        }
                        if let Some(known) = agreement.frame(&digest) {
                            return Some(Shown::Known(known));
                        }
                        let useless = !frame.is_signed() && !agreement.wants_unsigned(&digest);
                        (!useless).then(|| {
                            frames.push(Arc::clone(&frame));
                            Shown::New(frame)
                        })
                    };
                    let shown: Vec<_> = frames_shown.into_iter().filter_map(held).collect();
                    let (useless, spent) = (all - shown.len() as u64, spent());
                    if shown.is_empty() {
                        in_vain(spent);
                    } else {
                        if useless > 0 {
                            in_vain(spent * useless / all);
                        }
                        items.push(Item::Shown(from, shown, spent));
                    }
                }
                Ok(PeerMessage::FetchFrames(digests)) => {
                    in_vain(spent());
                    // The frames that it wants now; what it wanted before has come, or is among them.
                    let repeats = |earlier: &MachineInput<A, X>| matches!(earlier, Input::FetchFrames(..));
                    if !self.fetches.push(from, Input::FetchFrames(from, digests), repeats) {
                        self.counters.fetches_dropped += 1;
                    }
                }
                Ok(PeerMessage::FetchState(fetch)) => {
                    in_vain(spent());
                    let asked = fetch.clone();
                    let repeats = |earlier: &MachineInput<A, X>| {
                        matches!(earlier, Input::FetchState(_, fetch) if *fetch == asked)
                    };
                    if !self.fetches.push(from, Input::FetchState(from, fetch), repeats) {
                        self.counters.fetches_dropped += 1;
                    }
                }
                Ok(PeerMessage::StatePiece(piece)) => {
                    items.push(Item::Ready(from, Input::StatePiece(from, piece), spent()));
                }
            }
            left -= 1;
            left > 0 && frames.len() < PEER_CHECKS
        });
        self.counters.peer_rests += rested;
    }

    pub(crate) fn take_clients(
        &mut self,
        inbox: &Inbox,
        items: &mut Vec<Item<A, X>>,
        frames: &mut Vec<Arc<troth_types::Frame>>,
    ) {
        let most = frames.len() + CLIENT_CHECKS;
        let mut left = CLIENT_MESSAGES;
        let mut bytes_left = CLIENT_BYTES;
        // As much as it may come to, and as much as it probably does.
        let (mut micros_left, mut expected) = (CLIENT_MICROS, 0);
        let (charges, machine) = (&self.client_charges, self.host.machine());
        let now = self.clock.now();
        let leads = machine.status().primary == self.links.me();
        let (mut rested, mut full, mut contended) = (0, false, false);
        let rests = |party| match party {
            Party::Client(client) => charges.borrow_mut().rests(client, now).inspect(|_| rested += 1),
            Party::Replica(_) => None,
        };
        inbox.take_clients(rests, |party, bytes| {
            let Party::Client(client) = party else { return true };
            self.counters.client_messages_in += 1;
            bytes_left = bytes_left.saturating_sub(bytes.len());
            let mut charges = charges.borrow_mut();
            match ToReplica::from_wire(&bytes) {
                Ok(ToReplica::Request { frame, wish }) if frame.client() == client => {
                    // What one replica alone is sent, that one sends to all others.
                    let copies = if wish == Wish::Alone { machine.replicas() - 1 } else { 1 };
                    charges.asked(client, now, bytes.len() * copies, wish != Wish::Nothing);
                    match known(machine, &frame, wish) {
                        Some(known) => {
                            // To be asked again is small, and the answer need not be.
                            let kept = match &known {
                                Asked::Again(_) | Asked::Repeated(_) => machine.answer_bytes(&frame, wish),
                                _ => 0,
                            };
                            bytes_left = bytes_left.saturating_sub(kept);
                            expected += kept as u64 / BYTES_PER_MICRO;
                            items.push(Item::Known(known));
                        }
                        None if !machine.agreement().may_use(&frame) => {
                            self.counters.frames_refused += 1;
                            charges.useless(client, now, cost(bytes.len(), 0));
                        }
                        None => {
                            expected += charges.taken(client);
                            // It is shown to the primary all the same, when it has waited.
                            let passes_on = wish == Wish::Alone && !leads;
                            let wish =
                                if passes_on && !charges.may_pass_on(now) { Wish::Usual } else { wish };
                            items.push(Item::Asked(client, frame.number(), wish));
                            frames.push(frame);
                        }
                    }
                }
                Ok(ToReplica::Read(read)) if read.client == client => {
                    let takes = charges.read(client, now, bytes.len());
                    micros_left = micros_left.saturating_sub(takes.max(LEAST_READ));
                    expected += takes;
                    items.push(Item::Read(read));
                }
                // A connection speaks for the client whose key opened it, and for no other.
                Ok(_) | Err(_) => {
                    self.counters.malformed += 1;
                    charges.useless(client, now, cost(bytes.len(), 0));
                }
            }
            left -= 1;
            contended = !(left > 0 && bytes_left > 0 && expected < CLIENT_MICROS && frames.len() < most);
            full = contended || micros_left == 0;
            !full
        });
        self.client_charges.borrow_mut().contended(contended);
        self.counters.client_rests += rested;
    }
}
