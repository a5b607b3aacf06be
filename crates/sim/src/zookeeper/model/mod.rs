//! A coordination service on plain maps, one request after the other: what the replicated one must be. It shares records and
//! messages with the service, and no line of what they mean; where the service keeps an index, this looks through everything.

mod access;
mod quota;
mod reads;
mod request;
mod sessions;
mod tree;
mod watches;

use bytes::Bytes;
use request::{Ask, Look};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use troth_auth::PublicKey;
use troth_types::{ClientId, Digest, Time, Wire};
use troth_zookeeper::acl::{Acl, Id, perms};
use troth_zookeeper::{
    Answer, Asked, Attachment, Code, MAX_SHOWN, Notice, Operation, Replied, Said, Tally, ZooKeeper,
};
use watches::Manner;

pub use tree::Node;

/// What is told to whom, in order.
pub type Told = Vec<(ClientId, Notice)>;

/// A session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// As it is attached.
    pub at: Attachment,
    /// Through whom.
    pub gateway: ClientId,
    /// Whether it is: not where its client has to connect anew.
    is_attached: bool,
    key: PublicKey,
    /// Milliseconds.
    timeout: u32,
    /// The agreed time of the last sign of life, microseconds.
    heard: u64,
    /// When the client sent that, on the clock that is right.
    sent: u64,
    /// When it ends, but for the time that the service stood still.
    ends: u64,
    who: Vec<Id>,
    watches: BTreeMap<String, BTreeSet<Manner>>,
}

/// The most nodes and entries of their lists that reads in one operation look at.
const LOOKED_AT_ONCE: usize = 4096;

/// Something that happened to a node, with the list that says who may know.
#[derive(Clone, Debug)]
struct Change {
    kind: watches::Happening,
    path: String,
    acl: Vec<Acl>,
}

/// What an operation has done so far, of which nobody knows whether it happens.
#[derive(Clone, Debug, Default)]
struct Effort {
    told: Told,
    /// Events for each session.
    heard: BTreeMap<i64, usize>,
    over: Vec<Attachment>,
    /// Of telling, as [`MAX_WORK`](troth_zookeeper::events::MAX_WORK) has it.
    work: usize,
    /// Entries of lists of access control.
    looked: usize,
    began_quota: bool,
}

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The gateway.
    pub client: ClientId,
    /// The agreed time, microseconds.
    pub now: u64,
    /// When the client sent it, on the clock that is right, microseconds.
    pub sent: u64,
    /// What no other operation has.
    pub unique: &'a Digest,
}

/// The service after a prefix of the order.
#[derive(Clone, Debug)]
pub struct Model {
    settings: ZooKeeper,
    /// The last transaction.
    pub zxid: i64,
    attachments: u64,
    /// Microseconds by which sessions end later, because nobody could be heard.
    stood_still: u64,
    /// When sessions grew older last.
    beat: u64,
    nodes: BTreeMap<Rc<str>, Rc<Node>>,
    sessions: BTreeMap<i64, Rc<Session>>,
    effort: Effort,
    /// How often what happened: for the guard against runs in which too little did.
    pub counts: BTreeMap<&'static str, u64>,
    /// What a service of this kind must never do, and this one did.
    pub broken: Option<String>,
}

impl Model {
    /// A group's service in the beginning.
    #[must_use]
    pub fn new(settings: ZooKeeper) -> Self {
        let mut model = Self {
            settings,
            zxid: 0,
            attachments: 0,
            stood_still: 0,
            beat: 0,
            nodes: BTreeMap::new(),
            sessions: BTreeMap::new(),
            effort: Effort::default(),
            counts: BTreeMap::new(),
            broken: None,
        };
        model.plant();
        model
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Executes an operation.
    pub fn execute(&mut self, turn: Turn<'_>, operation: &Bytes, told: &mut Told) -> Bytes {
        let answer = match Said::from_wire(operation) {
            Ok(Said { when, .. }) if self.is_ahead(turn, when) => {
                self.count("said ahead of the agreed time");
                Ok(Answer::Ahead(Time(turn.now)))
            }
            Ok(said) => self.operation(turn, said.operation, told),
            Err(_) => Err(Code::MarshallingError),
        };
        self.answer(answer)
    }

    /// Whether nothing is done of it: the clock of who said it is ahead by more than half of the grace.
    fn is_ahead(&self, turn: Turn<'_>, when: Time) -> bool {
        when.0.saturating_sub(turn.now) > u64::from(self.settings.grace) * 500
    }

    fn answer(&mut self, answer: Result<Answer, Code>) -> Bytes {
        let answer = answer.unwrap_or_else(|why| self.refusal(why));
        self.count(match answer {
            Answer::Reply { error: 0, .. } => "answers",
            Answer::Reply { .. } => "refusals",
            _ => "sessions attached or touched",
        });
        answer.to_wire()
    }

    fn refusal(&self, why: Code) -> Answer {
        Answer::Reply { zxid: self.zxid, error: why.number(), body: Bytes::new() }
    }

    fn operation(&mut self, turn: Turn<'_>, operation: Operation, told: &mut Told) -> Result<Answer, Code> {
        match operation {
            Operation::Open { timeout, key, who } => self.open(turn, timeout, key, who),
            Operation::Attach { session, proof, timeout, who } => {
                self.attach(turn, session, &proof, timeout, who, told)
            }
            Operation::Touch(all) => {
                let mut over = Vec::new();
                for (at, one) in all.iter().enumerate() {
                    // Each once, and where it was said first.
                    if !all[..at].contains(one) && self.hear(turn, *one).is_err() {
                        over.push(*one);
                    }
                }
                Ok(Answer::Heard { over, tally: self.tally(turn.now) })
            }
            Operation::Identify { at, id } => {
                self.hear(turn, at)?;
                if !access::attestable(&id) {
                    return Err(Code::AuthFailed);
                }
                self.identify(at.session, id)?;
                Ok(self.reply(Bytes::new()))
            }
            Operation::Request { at, code, body } => {
                self.hear(turn, at)?;
                let ask = request::read(code, &body)?;
                let body = self.request(turn, at.session, ask, told)?;
                Ok(self.reply(body))
            }
            Operation::Reads { at, reads } => {
                self.hear(turn, at)?;
                self.replies(at.session, &reads)
            }
        }
    }

    /// What there is, counted anew each time.
    fn tally(&self, now: u64) -> Tally {
        let number = |length: usize| u64::try_from(length).expect("far below");
        let bytes = self.nodes.iter().map(|(path, node)| path.len() + node.data.len()).sum();
        let ephemerals = self.nodes.values().filter(|node| node.session().is_some()).count();
        let watches = self.sessions.values().map(|session| session.watches.len()).sum();
        Tally {
            time: Time(now),
            nodes: number(self.nodes.len()),
            ephemerals: number(ephemerals),
            bytes: number(bytes),
            watches: number(watches),
        }
    }

    fn reply(&self, body: Bytes) -> Answer {
        Answer::Reply { zxid: self.zxid, error: 0, body }
    }

    fn request(&mut self, turn: Turn<'_>, id: i64, ask: Ask, told: &mut Told) -> Result<Bytes, Code> {
        let nothing = Ok(Bytes::new());
        match ask {
            Ask::Look { look, watch } => {
                let answer = self.look(id, &look);
                if watch {
                    self.watch_what_was_looked_at(id, &look, answer.as_ref().err());
                }
                answer
            }
            Ask::MultiRead(looks) => self.looks(id, &looks),
            Ask::Write(write) => {
                let body =
                    self.transact(told, |model, changes| model.write(id, turn.now, &write, changes))?;
                match write {
                    // By itself it answers with the node's stat.
                    request::Write::Check { path, .. } => {
                        Ok(self.node(&path)?.stat(self.children(&path).len()))
                    }
                    _ => Ok(body),
                }
            }
            Ask::Multi(writes) => Ok(self.multi(id, turn.now, &writes, told)),
            Ask::Sync(path) => {
                access::check_path(&path)?;
                Ok(tree::text(&path))
            }
            Ask::Auth { scheme, credentials } => {
                self.authenticate(id, &scheme, &credentials)?;
                nothing
            }
            Ask::Rewatch { seen, lists } => {
                self.watch_again(id, seen, &lists, told)?;
                nothing
            }
            Ask::AddWatch { path, recursive } => {
                access::check_path(&path)?;
                self.watch(id, &path, if recursive { Manner::Recursive } else { Manner::Persistent });
                // An error number of its own: 0.
                Ok(Bytes::from_static(&[0; 4]))
            }
            Ask::Watched { path, meant, remove } => {
                self.watched(id, &path, meant, remove)?;
                nothing
            }
            Ask::Reconfig => {
                access::may(&self.node("/zookeeper/config")?.acl, perms::WRITE, self.who(id))?;
                Err(Code::ReconfigDisabled)
            }
            Ask::Ping => nothing,
            Ask::Close => {
                self.count("sessions closed");
                self.transact(told, |model, changes| {
                    model.end(id, turn.now, changes);
                    nothing
                })
            }
        }
    }

    /// Runs a transaction: all of it under the next number, or nothing.
    fn transact<T>(
        &mut self,
        told: &mut Told,
        run: impl FnOnce(&mut Self, &mut Vec<Change>) -> Result<T, Code>,
    ) -> Result<T, Code> {
        let before = (self.nodes.clone(), self.sessions.clone(), self.attachments);
        let mut changes = Vec::new();
        self.zxid += 1;
        self.effort = Effort::default();
        let done = run(self, &mut changes);
        match &done {
            Ok(_) => {
                self.tell(&mut changes);
                self.say(told);
            }
            Err(_) => {
                (self.nodes, self.sessions, self.attachments) = before;
                self.zxid -= 1;
            }
        }
        done
    }

    /// Answers a read that was not ordered, as it stands now.
    #[must_use]
    pub fn query(&self, client: ClientId, operation: &Bytes) -> Bytes {
        let one = |at: Attachment, code, body| {
            self.attached(client, at)?;
            let body = match request::read(code, &body)? {
                Ask::Look { look, watch: false } => self.look(at.session, &look)?,
                Ask::MultiRead(looks) => self.looks(at.session, &looks)?,
                Ask::Ping => Bytes::new(),
                _ => return Err(Code::BadArguments),
            };
            Ok(self.reply(body))
        };
        let answer = match Said::from_wire(operation).map(|said| said.operation) {
            Ok(Operation::Request { at, code, body }) => one(at, code, body),
            Ok(Operation::Reads { at, reads }) => {
                self.attached(client, at).and_then(|_| self.replies(at.session, &reads))
            }
            _ => Err(Code::MarshallingError),
        };
        answer.unwrap_or_else(|why| self.refusal(why)).to_wire()
    }

    /// What several requests are answered that came as one.
    fn replies(&self, session: i64, all: &[Asked]) -> Result<Answer, Code> {
        let mut looked = 0;
        let mut one = |asked: &Asked| match request::read(asked.code, &asked.body)? {
            Ask::Look {
                look: look @ (Look::Exists(_) | Look::Data(_) | Look::Acl(_) | Look::Who),
                watch: false,
            } => {
                looked += self.looked_at(&look);
                self.shown(session, &look)
            }
            // Lists may be long, and the rest does more than look.
            _ => Err(Code::BadArguments),
        };
        let replies: Vec<Replied> = all
            .iter()
            .map(|asked| match one(asked) {
                Ok(body) => Replied { error: 0, body },
                Err(why) => Replied { error: why.number(), body: Bytes::new() },
            })
            .collect();
        if replies.iter().map(|reply| reply.body.len()).sum::<usize>() > MAX_SHOWN {
            return Err(Code::MarshallingError);
        }
        if looked > LOOKED_AT_ONCE {
            return Err(Code::QuotaExceeded);
        }
        Ok(Answer::Replies { zxid: self.zxid, replies })
    }

    /// All nodes.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(|path| &**path)
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values().map(|session| &**session)
    }

    /// What must hold of the model itself.
    ///
    /// # Errors
    /// What does not.
    pub fn look_over(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        for (path, node) in &self.nodes {
            if let Some(owner) = node.session().filter(|owner| !self.sessions.contains_key(owner)) {
                return Err(format!("{path} outlives its session {owner:x}"));
            }
            if !self.nodes.contains_key(access::parent(path)) {
                return Err(format!("{path} has no parent"));
            }
        }
        Ok(())
    }
}
