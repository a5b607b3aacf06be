//! What is asked of a component's logs: durable before, in order, back in order, and repaired after a crash.

use crate::scribe::{ENV, ME, group, word_digest};
use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{
    Authentic, Claim, Evidence, Looked, ModelSigner, Seal, decode_attestation, encode_attestation,
};
use troth_core::{
    Command, Env, Halt, Host, Input, LogRecord, Machine, MachineStart, Output, PeerMessage, RecoveryError,
    Resume, Ticket, To, Voucher, settle_slots,
};
use troth_trusted::a2m::{A2m, Attestation, Content, LOGS, LogId, Operation, Slot, slot_nonce};
use troth_trusted::{Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, VolatileStore};
use troth_trusted_host::repetition::can_be_answered_later;
use troth_trusted_host::{InProcessLogs, TrustedLogs, log_room};
use troth_types::{Digest, GroupId, Malformed, Reader, ReplicaId, Seq, Time, Wire};

const LOG: LogId = LogId(2);

/// A word in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Filled {
    word: u64,
    attestation: Attestation,
}

impl Filled {
    fn slot(&self) -> Slot {
        self.attestation.claim.slot
    }
}

impl Wire for Filled {
    fn encode(&self, out: &mut Vec<u8>) {
        self.word.encode(out);
        encode_attestation(&self.attestation, out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { word: Wire::decode(reader)?, attestation: decode_attestation(reader)? })
    }
}

impl Authentic for Filled {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        let digest = word_digest(self.word, group, ME);
        let evidence = Evidence::Assigned(Looked::settled(LOG, self.slot(), &self.attestation));
        claims.push(Claim { by: ME, digest, evidence });
        Ok(())
    }
}

/// What the machine is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// Fill the next slot with this word.
    Fill(u64),
    /// Look a slot up, under this ticket.
    Look(u64, u64),
    /// Forget what is below a slot.
    Forget(u64),
    /// Ask where the log ends, under this ticket.
    End(u64),
    Persist,
    Draw(u64),
}

/// A machine that fills slots.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Ledger {
    next: u64,
    /// What came back, in order: words with their slots, tickets.
    back: Vec<String>,
    own: Vec<Filled>,
    drawn: Vec<(Ticket, [u8; 32])>,
}

impl Machine for Ledger {
    type Body = u64;
    type Message = Filled;
    type Timer = Ask;
    type Record = u64;
    type Snapshot = Bytes;

    fn start(
        &mut self,
        _: Env,
        start: MachineStart<Self>,
        _: &mut Vec<Output<Self>>,
    ) -> Result<(), &'static str> {
        if let MachineStart::Recovered { own, .. } = start {
            self.next = own.last().map_or(0, |filled| filled.slot().0 as u64);
            self.own = own;
        }
        Ok(())
    }

    fn input(&mut self, _: Env, input: Input<Filled, Ask>, out: &mut Vec<Output<Self>>) {
        match input {
            Input::Timer(Ask::Fill(body)) => {
                self.next += 1;
                let slot = CounterValue(u128::from(self.next));
                out.push(Output::CertifyInLog { log: LOG, slot, body, to: To::Others });
            }
            Input::Timer(Ask::Look(ticket, slot)) => {
                let slot = CounterValue(u128::from(slot));
                let operations = vec![Operation::Lookup { log: LOG, slot, nonce: [7; 32] }; 2];
                out.push(Output::Trusted { ticket: Ticket(ticket), operations });
            }
            Input::Timer(Ask::Forget(slot)) => {
                let slot = CounterValue(u128::from(slot));
                let operations = vec![Operation::Truncate { log: LOG, slot }];
                out.push(Output::Trusted { ticket: Ticket(0), operations });
            }
            Input::Timer(Ask::End(ticket)) => {
                let operations = vec![Operation::End { log: LOG, nonce: [8; 32] }];
                out.push(Output::Trusted { ticket: Ticket(ticket), operations });
            }
            Input::Timer(Ask::Persist) => out.push(Output::Persist(1)),
            Input::Timer(Ask::Draw(ticket)) => out.push(Output::Draw(Ticket(ticket))),
            Input::Message(_, filled) => {
                self.back.push(format!("word {} in {}", filled.word, filled.slot().0));
                self.own.push(filled.into_inner());
            }
            Input::Trusted(ticket, answers) => {
                self.back.push(format!("ticket {} {}", ticket.0, answers.len()))
            }
            Input::Drawn(ticket, nonce) => self.drawn.push((ticket, nonce)),
            _ => {}
        }
    }

    fn digest(body: &u64, group: GroupId, from: ReplicaId) -> Digest {
        word_digest(*body, group, from)
    }

    fn voucher(_: &u64) -> Voucher {
        Voucher::Slot
    }

    fn seal(word: u64, _: Digest, _: ReplicaId, seal: Seal) -> Filled {
        let Seal::Slot(attestation) = seal else { unreachable!("it fills slots and nothing else") };
        Filled { word, attestation }
    }

    fn position(_: &Filled) -> Option<(CounterId, CounterValue)> {
        None
    }

    fn slot(message: &Filled) -> Option<(LogId, Slot)> {
        Some((LOG, message.slot()))
    }

    fn snapshot(&self, _: Seq) -> Option<Bytes> {
        None
    }

    fn retained(&self) -> (Vec<Filled>, Vec<u64>) {
        (self.own.clone(), Vec::new())
    }
}

fn logs() -> InProcessLogs<VolatileStore> {
    let identity = Identity { group: group().id().0, replica: ME.0, epoch: Epoch(1) };
    let certifier = Certifier::Mac(MacKey::new(&[1; 32]));
    InProcessLogs::new(A2m::start(identity, certifier, VolatileStore, log_room([16; LOGS])))
}

struct Home {
    host: Host<Ledger>,
    logs: InProcessLogs<VolatileStore>,
    log: Vec<Bytes>,
    unsynced: Vec<Bytes>,
    sent: Vec<Filled>,
    done: Vec<&'static str>,
    calls: Vec<Vec<Operation>>,
}

impl Home {
    fn new() -> Self {
        let signer = Arc::new(ModelSigner::new(1));
        let host = Host::fresh(Ledger::default(), ME, group(), signer, true, ENV).expect("it starts");
        let (log, unsynced, sent) = (Vec::new(), Vec::new(), Vec::new());
        Self { host, logs: logs(), log, unsynced, sent, done: Vec::new(), calls: Vec::new() }
    }

    fn ask(&mut self, ask: Ask) {
        self.host.input(ENV, Input::Timer(ask));
    }

    /// Carries out commands, as many as there are or until one that `stops`.
    fn run_until(&mut self, stops: impl Fn(&Command<Ledger>) -> bool) -> Option<Command<Ledger>> {
        while let Some(command) = self.host.command() {
            if stops(&command) {
                return Some(command);
            }
            self.done.push(match &command {
                Command::Append(_) => "append",
                Command::Sync => "sync",
                Command::Logs(_) => "logs",
                Command::Peer { .. } => "send",
                _ => "other",
            });
            match command {
                Command::Append(bytes) => self.unsynced.push(bytes),
                Command::Sync => self.log.append(&mut self.unsynced),
                Command::Logs(operations) => {
                    let answers = self.logs.call(&operations);
                    self.calls.push(operations);
                    self.host.logged(ENV, answers);
                }
                Command::Draw(ticket) => self.host.drawn(ENV, ticket, [5; 32]),
                Command::Peer { message: PeerMessage::Protocol(filled), .. } => self.sent.push(filled),
                Command::Halt(why) => panic!("halts: {why:?}"),
                _ => {}
            }
        }
        None
    }

    fn run(&mut self) {
        self.run_until(|_| false);
    }

    /// Crashes and starts again.
    fn again(&mut self) -> Result<(), RecoveryError> {
        self.unsynced.clear();
        let attested = self.settle().0;
        let resume = Resume { counters: &[], logs: &attested };
        let signer = Arc::new(ModelSigner::new(1));
        self.host = Host::recover(Ledger::default(), ME, group(), signer, ENV, None, &self.log, resume)?;
        Ok(())
    }

    /// What the component says of open slots, and how often it was asked.
    fn settle(&mut self) -> (Vec<Attestation>, usize) {
        let mut asked = 0;
        let settled = settle_slots::<Ledger>(&self.log, ME, group().id(), |operations| {
            asked += 1;
            self.logs.call(operations)
        });
        (settled.expect("the component answers"), asked)
    }

    fn words(&self) -> Vec<(u64, u128)> {
        self.host.machine().own.iter().map(|filled| (filled.word, filled.slot().0)).collect()
    }
}

#[test]
fn bodies_are_durable_before_one_call_for_all_that_was_asked() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.ask(Ask::Fill(20));
    home.ask(Ask::Look(1, 1));
    home.run();
    assert_eq!(home.done[..4], ["append", "append", "sync", "logs"]);
    assert_eq!(home.done.iter().filter(|done| **done == "logs").count(), 1);
    assert_eq!(home.host.machine().back, ["word 10 in 1", "word 20 in 2", "ticket 1 2"]);
    assert_eq!(home.sent, home.host.machine().own);
}

#[test]
fn a_call_ends_where_it_could_not_be_answered_again_or_waits_for_its_own_room() {
    let calls = |asks: &[Ask]| {
        let mut home = Home::new();
        asks.iter().for_each(|ask| home.ask(*ask));
        home.run();
        home.calls
    };
    let weights = |asks: &[Ask]| calls(asks).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(weights(&[Ask::Fill(1), Ask::Fill(2), Ask::Forget(1), Ask::Look(1, 2)]), [5]);
    assert_eq!(weights(&[Ask::Fill(1), Ask::Look(1, 2), Ask::Fill(2)]), [3, 1], "it asks, then changes");
    assert_eq!(weights(&[Ask::Fill(1), Ask::Look(1, 1), Ask::Fill(2)]), [4], "what it asks for stays so");
    assert_eq!(
        weights(&[Ask::Fill(1), Ask::Fill(2), Ask::Look(1, 1), Ask::Fill(3), Ask::Forget(2)]),
        [5, 1],
        "what it looks up is forgotten"
    );
    assert_eq!(
        weights(&[Ask::Fill(1), Ask::Fill(2), Ask::Forget(2)]),
        [2, 1],
        "what it attests is forgotten"
    );
    let asks = [Ask::Fill(1), Ask::Fill(2), Ask::Forget(1), Ask::Fill(3), Ask::Fill(4)];
    assert_eq!(weights(&asks), [3, 2], "the room is there in the next call");
    for call in [calls(&asks), calls(&[Ask::Fill(1), Ask::Fill(2), Ask::Forget(2)])].concat() {
        assert!(can_be_answered_later(&call), "{call:?}");
    }
}

#[test]
fn a_log_does_not_change_in_a_call_after_it_was_asked_for_its_end() {
    let mut home = Home::new();
    for ask in [Ask::Fill(10), Ask::End(1), Ask::Look(2, 1), Ask::End(3), Ask::Fill(20), Ask::End(4)] {
        home.ask(ask);
    }
    let mut calls = Vec::new();
    while let Some(command) = home.run_until(|command| matches!(command, Command::Logs(_))) {
        let Command::Logs(operations) = command else { continue };
        calls.push(operations.iter().map(Operation::changes).collect::<Vec<_>>());
        let answers = home.logs.call(&operations);
        home.host.logged(ENV, answers);
    }
    // An answer that is lost can be had again only as long as the end is where it was.
    assert_eq!(calls, [vec![true, false, false, false, false], vec![true, false]]);
    let back = ["word 10 in 1", "ticket 1 1", "ticket 2 2", "ticket 3 1", "word 20 in 2", "ticket 4 1"];
    assert_eq!(home.host.machine().back, back);
}

#[test]
fn an_answer_says_what_the_slot_holds_and_nothing_is_named_otherwise() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run();
    let filled = home.sent[0].clone();
    let digest = word_digest(10, group().id(), ME);
    let claim = &filled.attestation.claim;
    assert_eq!((claim.log, claim.slot.0, claim.nonce), (LOG, 1, slot_nonce(CounterValue(1))));
    assert!(matches!(claim.content, Content::Assigned { value, .. } if value == digest.0));
}

#[test]
fn what_was_persisted_is_durable_before_a_call_without_bodies() {
    let mut home = Home::new();
    home.ask(Ask::Persist);
    home.ask(Ask::Look(1, 1));
    home.run();
    assert_eq!(home.done, ["append", "sync", "logs"]);
    home.done.clear();
    home.ask(Ask::Look(2, 1));
    home.run();
    assert_eq!(home.done, ["logs"], "nothing waits for a sync that has nothing to do");
}

#[test]
fn a_crash_after_the_call_is_repaired_by_asking() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run();
    home.ask(Ask::Fill(20));
    home.ask(Ask::Fill(30));
    let Some(Command::Logs(operations)) = home.run_until(|command| matches!(command, Command::Logs(_)))
    else {
        panic!("the component is asked")
    };
    home.logs.call(&operations).expect("done, and the answer is lost");
    home.again().expect("it starts");
    assert_eq!(home.words(), [(10, 1), (20, 2), (30, 3)]);
    // The attestations that it was given again are in the log with what comes next.
    home.ask(Ask::Fill(40));
    home.run();
    home.ask(Ask::Persist);
    home.ask(Ask::Look(1, 1));
    home.run();
    assert_eq!(home.settle().1, 0, "no slot is open");
    home.again().expect("it starts");
    assert_eq!(home.words(), [(10, 1), (20, 2), (30, 3), (40, 4)]);
}

#[test]
fn a_body_that_was_about_to_be_certified_is_at_the_next_start() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run_until(|command| matches!(command, Command::Logs(_)));
    home.again().expect("it starts");
    assert_eq!(home.words(), [(10, 1)]);
    home.ask(Ask::Fill(20));
    home.run();
    assert_eq!(home.words(), [(10, 1), (20, 2)]);
    home.again().expect("it starts");
    assert_eq!(home.words(), [(10, 1), (20, 2)]);
}

#[test]
fn a_component_set_back_by_a_call_attests_the_same_again() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run();
    let before = home.logs.clone();
    home.ask(Ask::Fill(20));
    home.run();
    let sent = home.sent.clone();
    // The attestation of the last call reaches the disk with what comes next, so the log does not have it.
    home.logs = before;
    home.again().expect("it starts");
    assert_eq!(home.words(), [(10, 1), (20, 2)]);
    assert_eq!(home.host.machine().own[1], sent[1]);
}

#[test]
fn what_was_let_go_is_not_certified_at_the_next_start() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run_until(|command| matches!(command, Command::Logs(_)));
    home.log.push(LogRecord::CarriedOver(0).to_wire());
    home.again().expect("it starts");
    assert_eq!(home.words(), []);
    home.ask(Ask::Fill(20));
    home.run();
    assert_eq!(home.words(), [(20, 1)]);
}

#[test]
fn a_refusal_ends_the_host() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    let Some(Command::Logs(operations)) = home.run_until(|command| matches!(command, Command::Logs(_)))
    else {
        panic!("the component is asked")
    };
    home.logs.call(&operations).expect("done");
    let refusal = home.logs.call(&operations).expect_err("a slot is filled once");
    home.host.logged(ENV, Err(refusal));
    assert_eq!(home.host.command(), Some(Command::Halt(Halt::Logs(refusal))));
    assert!(home.sent.is_empty());
}

#[test]
fn nonces_come_back_under_their_tickets() {
    let mut home = Home::new();
    home.ask(Ask::Draw(3));
    home.run();
    assert_eq!(home.host.machine().drawn, [(Ticket(3), [5; 32])]);
}

#[test]
fn records_of_slots_survive_their_encoding() {
    let mut home = Home::new();
    home.ask(Ask::Fill(10));
    home.run();
    let attested = LogRecord::Attested(home.sent[0].attestation.clone());
    let own = LogRecord::OwnInLog { log: LOG, slot: CounterValue(9), body: Bytes::from_static(b"body") };
    for record in [attested, own] {
        assert_eq!(LogRecord::from_wire(&record.to_wire()), Ok(record));
    }
    assert!(Time(0) < ENV.now.after(1));
}
