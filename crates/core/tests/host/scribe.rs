//! A machine that does what it is told, and a home for its host: a disk that loses what was not synced
//! and a trusted component that does not.

use bytes::Bytes;
use std::sync::Arc;
use troth_auth::{Authentic, Claim, Evidence, ModelSigner, Seal, Ui};
use troth_core::{
    Command, Env, Host, Input, Machine, MachineStart, Note, Output, PeerMessage, RecoveryError, Resume, To,
    Voucher,
};
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, Resumed, TrustedCore, VolatileStore,
};
use troth_trusted_host::{Answer, Call, InProcess, TrustedComponent};
use troth_types::{
    ClientId, Digest, Group, GroupId, Hasher, Malformed, Reader, Refusal, RefusalReason, ReplicaId, Seq,
    Signature, Time, ToClient, Wire,
};

pub const COUNTER: CounterId = CounterId(0);
pub const ME: ReplicaId = ReplicaId(1);
pub const ENV: Env = Env { now: Time(5), wall: Time(7) };

/// What the machine is told to want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ask {
    /// Certify this many words at the next values.
    Certify(u64),
    /// Certify one word at the start of the next view.
    Jump,
    /// Sign a word.
    Sign,
    /// Sign a word for every replica.
    SignForAll,
    /// Send a word that needs no certificate.
    Send,
    /// Answer a client.
    Answer,
    /// Make a record durable before anything later leaves.
    Persist,
    /// Keep a record with whatever is made durable next.
    Remember,
    /// Start the log afresh at 4, a state that is there.
    Compact,
    /// Start the log afresh at 5, a state that is not.
    CompactAhead,
    /// The state at 4 came from others.
    Rebase,
    /// The state at 5, which is not there, came from others.
    RebaseAhead,
    /// The state at 5 is there from now on.
    Reach,
    /// Set and cancel a timer, tell the observers.
    Small,
    /// A record, words and a message at once.
    Everything,
}

/// A certified, signed or plain word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    pub from: ReplicaId,
    pub word: u64,
    pub ui: Option<Ui>,
    pub signature: Option<Signature>,
}

impl Said {
    pub fn value(&self) -> CounterValue {
        self.ui.as_ref().map_or(CounterValue(0), Ui::value)
    }
}

pub fn word_digest(word: u64, group: GroupId, from: ReplicaId) -> Digest {
    let mut hasher = Hasher::new("test/word");
    hasher.fixed(&group.0).number(u64::from(from.0)).number(word);
    hasher.finish()
}

impl Wire for Said {
    fn encode(&self, out: &mut Vec<u8>) {
        self.from.encode(out);
        self.word.encode(out);
        self.ui.encode(out);
        self.signature.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            from: Wire::decode(reader)?,
            word: Wire::decode(reader)?,
            ui: Wire::decode(reader)?,
            signature: Wire::decode(reader)?,
        })
    }
}

impl Authentic for Said {
    fn claims<'a>(&'a self, group: GroupId, claims: &mut Vec<Claim<'a>>) -> Result<(), Malformed> {
        let digest = word_digest(self.word, group, self.from);
        if let Some(ui) = &self.ui {
            claims.push(Claim { by: self.from, digest, evidence: Evidence::Ui(COUNTER, ui) });
        }
        if let Some(signature) = &self.signature {
            claims.push(Claim { by: self.from, digest, evidence: Evidence::Signature(signature) });
        }
        Ok(())
    }
}

/// The machine. No two words of all its lives are the same, so whoever compares bodies sees which is
/// which.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Scribe {
    /// Distinguishes the words of its lives.
    pub life: u64,
    words: u64,
    /// The value it asked for last.
    pub requested: CounterValue,
    /// Its own certified messages, as they came back or were recovered.
    pub own: Vec<Said>,
    /// Its own signed messages as they came back.
    pub signed: Vec<Said>,
    pub records: Vec<u64>,
    /// What the snapshot that it started from says.
    pub restored: Option<Bytes>,
    /// Whether the state at 5 is there.
    pub reached: bool,
}

impl Scribe {
    fn word(&mut self) -> u64 {
        self.words += 1;
        self.life * 1_000_000 + self.words
    }

    fn certify(&mut self, new: CounterValue, out: &mut Vec<Output<Self>>) {
        let (previous, body) = (self.requested, self.word());
        self.requested = new;
        out.push(Output::Certify { counter: COUNTER, previous, new, body, to: To::Others });
    }

    fn record(&mut self) -> u64 {
        let record = self.word();
        self.records.push(record);
        record
    }
}

impl Machine for Scribe {
    type Body = u64;
    type Message = Said;
    type Timer = Ask;
    type Record = u64;
    type Snapshot = Bytes;

    fn start(
        &mut self,
        _: Env,
        start: MachineStart<Self>,
        _: &mut Vec<Output<Self>>,
    ) -> Result<(), &'static str> {
        if let MachineStart::Recovered { snapshot, own, records } = start {
            if snapshot.as_deref() == Some(b"bad") {
                return Err("a bad snapshot");
            }
            self.restored = snapshot;
            self.requested = own.last().map_or(CounterValue(0), Said::value);
            self.own = own;
            self.records = records;
        }
        Ok(())
    }

    fn input(&mut self, _: Env, input: Input<Said, Ask>, out: &mut Vec<Output<Self>>) {
        let ask = match input {
            Input::Timer(ask) => ask,
            Input::Message(_, said) => {
                let said = said.into_inner();
                if said.ui.is_some() {
                    self.own.push(said);
                } else {
                    self.signed.push(said);
                }
                return;
            }
            _ => return,
        };
        let plain = |word| PeerMessage::Protocol(Said { from: ME, word, ui: None, signature: None });
        match ask {
            Ask::Certify(count) => {
                for _ in 0..count {
                    let next = self.requested.next().expect("not spent");
                    self.certify(next, out);
                }
            }
            Ask::Jump => self.certify(CounterValue::new(self.requested.view() + 1, 0), out),
            Ask::Sign => {
                let body = self.word();
                out.push(Output::Sign { body, to: To::One(ReplicaId(0)) });
            }
            Ask::SignForAll => {
                let body = self.word();
                out.push(Output::BroadcastSigned(body));
            }
            Ask::Send => {
                let message = plain(self.word());
                out.push(Output::Peer { to: To::Others, message });
            }
            Ask::Answer => out.push(Output::Client(ToClient::Refusal(Refusal {
                client: ClientId(1),
                number: 1,
                read: false,
                reason: RefusalReason::TooOld,
            }))),
            Ask::Persist => {
                let record = self.record();
                out.push(Output::Persist(record));
            }
            Ask::Remember => {
                let record = self.record();
                out.push(Output::Remember(record));
            }
            Ask::Compact => out.push(Output::Compact(Seq(4))),
            Ask::CompactAhead => out.push(Output::Compact(Seq(5))),
            Ask::Rebase => out.push(Output::Rebase(Seq(4))),
            Ask::RebaseAhead => out.push(Output::Rebase(Seq(5))),
            Ask::Reach => self.reached = true,
            Ask::Small => {
                out.push(Output::SetTimer { timer: Ask::Small, at: Time(9) });
                out.push(Output::CancelTimer(Ask::Send));
                out.push(Output::Note(Note::TransferStarted { seq: Seq(1) }));
            }
            Ask::Everything => {
                let message = plain(self.word());
                out.push(Output::Peer { to: To::Others, message });
                let next = self.requested.next().expect("not spent");
                self.certify(next, out);
                let record = self.record();
                out.push(Output::Persist(record));
                let next = self.requested.next().expect("not spent");
                self.certify(next, out);
            }
        }
    }

    fn digest(body: &u64, group: GroupId, from: ReplicaId) -> Digest {
        word_digest(*body, group, from)
    }

    fn voucher(_: &u64) -> Voucher {
        Voucher::Counter
    }

    fn seal(body: u64, _: Digest, from: ReplicaId, seal: Seal) -> Said {
        let (ui, signature) = match seal {
            Seal::Ui(ui) => (Some(ui), None),
            Seal::Slot(_) => unreachable!("it fills no slots"),
            Seal::Signature(signature) => (None, Some(signature)),
        };
        Said { from, word: body, ui, signature }
    }

    fn position(message: &Said) -> Option<(CounterId, CounterValue)> {
        message.ui.as_ref().map(|ui| (ui.certificate.counter, ui.value()))
    }

    fn snapshot(&self, seq: Seq) -> Option<Bytes> {
        match seq.0 {
            4 => Some(Bytes::from_static(b"snapshot at 4")),
            5 if self.reached => Some(Bytes::from_static(b"snapshot at 5")),
            _ => None,
        }
    }

    fn retained(&self) -> (Vec<Said>, Vec<u64>) {
        (self.own.clone(), self.records.clone())
    }
}

pub fn group() -> Group {
    Group::hybrid(GroupId([3; 16]), 3).expect("three is odd")
}

pub fn component() -> InProcess<VolatileStore> {
    let identity = Identity { group: group().id().0, replica: ME.0, epoch: Epoch(1) };
    InProcess::new(TrustedCore::start(identity, Certifier::Mac(MacKey::new(&[1; 32])), VolatileStore))
}

pub type Todo = Command<Scribe>;

/// A host at home.
pub struct Home {
    pub host: Option<Host<Scribe>>,
    pub component: InProcess<VolatileStore>,
    pub snapshot: Option<Bytes>,
    pub log: Vec<Bytes>,
    pub unsynced: Vec<(bool, Bytes)>,
    pub sent: Vec<Said>,
    pub lives: u64,
}

impl Home {
    pub fn new(durable: bool) -> Self {
        let signer = Arc::new(ModelSigner::new(1));
        let host = Host::fresh(Scribe::default(), ME, group(), signer, durable, ENV).expect("it starts");
        Self {
            host: Some(host),
            component: component(),
            snapshot: None,
            log: Vec::new(),
            unsynced: Vec::new(),
            sent: Vec::new(),
            lives: 1,
        }
    }

    pub fn host(&mut self) -> &mut Host<Scribe> {
        self.host.as_mut().expect("it runs")
    }

    pub fn scribe(&self) -> &Scribe {
        self.host.as_ref().expect("it runs").machine()
    }

    pub fn ask(&mut self, ask: Ask) {
        self.host().input(ENV, Input::Timer(ask));
    }

    /// Carries out one command.
    pub fn obey(&mut self, command: Todo) {
        match command {
            Command::Append(bytes) => self.unsynced.push((false, bytes)),
            Command::NewSegment { snapshot: bytes, .. } => self.unsynced.push((true, bytes)),
            Command::Sync => {
                for (segment, bytes) in self.unsynced.drain(..) {
                    if segment {
                        self.snapshot = Some(bytes);
                        self.log.clear();
                    } else {
                        self.log.push(bytes);
                    }
                }
            }
            Command::Attest(call) => {
                let answer = self.attest(call);
                self.host().attested(ENV, answer);
            }
            Command::Peer { message: PeerMessage::Protocol(said), .. } => self.sent.push(said),
            Command::Halt(refusal) => panic!("halts: {refusal:?}"),
            _ => {}
        }
    }

    pub fn attest(&mut self, call: Call) -> Answer {
        self.component.call(&[call]).pop().expect("one answer")
    }

    /// Everything there is to do; the commands in order.
    pub fn run(&mut self) -> Vec<Todo> {
        let mut done = Vec::new();
        while let Some(command) = self.host().command() {
            done.push(command.clone());
            self.obey(command);
        }
        done
    }

    /// The commands until the component is asked, which it is not.
    pub fn run_until_asked(&mut self) -> Call {
        loop {
            match self.host().command().expect("the component is asked") {
                Command::Attest(call) => return call,
                other => self.obey(other),
            }
        }
    }

    pub fn resumed(&mut self) -> Resumed {
        match self.component.call(&[Call::Resume { counter: COUNTER }]).pop() {
            Some(Answer::Resumed(resumed)) => *resumed,
            other => panic!("the component answers: {other:?}"),
        }
    }

    /// Crashes and starts again.
    pub fn again(&mut self) -> Result<(), RecoveryError> {
        self.host = None;
        self.unsynced.clear();
        let resumed = self.resumed();
        let machine = Scribe { life: self.lives, ..Scribe::default() };
        self.lives += 1;
        let signer = Arc::new(ModelSigner::new(1));
        let (snapshot, log) = (self.snapshot.clone(), self.log.clone());
        let counters = [resumed];
        let resume = Resume { counters: &counters, logs: &[] };
        self.host = Some(Host::recover(machine, ME, group(), signer, ENV, snapshot, &log, resume)?);
        Ok(())
    }

    /// Where the component's counter stands.
    pub fn counter(&mut self) -> CounterValue {
        match self.component.call(&[Call::Read { counter: COUNTER }]).pop() {
            Some(Answer::Value(value)) => value,
            other => panic!("the component answers: {other:?}"),
        }
    }
}

/// A command's name.
pub fn name(command: &Todo) -> &'static str {
    match command {
        Command::Append(_) => "append",
        Command::NewSegment { .. } => "segment",
        Command::Sync => "sync",
        Command::Attest(_) => "attest",
        Command::Logs(_) => "logs",
        Command::Draw(_) => "draw",
        Command::Peer { message: PeerMessage::Protocol(said), .. } if said.ui.is_some() => "certified",
        Command::Peer { .. } => "send",
        Command::Return(_) => "return",
        Command::Client(_) => "answer",
        Command::SetTimer { .. } => "timer",
        Command::CancelTimer(_) => "cancel",
        Command::Note(_) => "note",
        Command::Configured(_) => "configured",
        Command::Halt(_) => "halt",
    }
}

pub fn names(commands: &[Todo]) -> Vec<&'static str> {
    commands.iter().map(name).collect()
}
