//! The service: a deterministic state machine that orders what gateways send it.

use crate::acl::{Id, digest_id};
use crate::application::too_large;
use crate::counters::Counters;
use crate::events::Events;
use crate::jute::Output;
use crate::message::{Answer, Attachment, Operation, Said};
use crate::proof::Carrier;
use crate::request::{self, Look as Reading, Request, Write};
use crate::sessions::{self, Lives, Opening, Session};
use crate::store::Changes;
use crate::tree::{Done, Transaction, find, plant, stat_of};
use crate::watches::{self, CHILDREN, DATA, PERSISTENT, RECURSIVE};
use crate::{Code, acl, opcode, path, reads};
use bytes::Bytes;
use std::collections::BTreeSet;
use troth_exec::{OpContext, State};
use troth_types::{GroupId, Time, Wire};

mod attaching;
mod due;
mod frame;

pub(crate) use frame::Count;
use frame::Spent;
pub use frame::{MAX_COUNTED, MAX_GIVEN_UP, MAX_PROOFS};

/// The service, with what all replicas must have alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZooKeeper {
    /// The group, which proofs of sessions name.
    pub group: GroupId,
    /// The digest identity (`super:` and more) that may do everything; nobody where there is none.
    pub superuser: Option<String>,
    /// What `/zookeeper/config` says in the beginning.
    pub config: Bytes,
    /// Milliseconds between which a session's time-out must lie.
    pub timeouts: (u32, u32),
    /// Milliseconds that a session lives on after its time-out, because a faulty primary has a say in the agreed time. From
    /// a sign of life to the end it may run ahead of the client's clock by what proposals may be ahead of the replicas'
    /// clocks and behind them together, which is to be within half of this. The other half is what it goes on by at once for
    /// sessions, however long nothing was ordered.
    pub grace: u32,
    /// The most sessions that one gateway may have.
    pub sessions: u64,
    /// Whether hard limits of quotas are enforced.
    pub enforces_quotas: bool,
}

impl Default for ZooKeeper {
    fn default() -> Self {
        Self {
            group: GroupId::default(),
            superuser: None,
            config: Bytes::new(),
            timeouts: (4_000, 40_000),
            grace: 4_000,
            sessions: 100_000,
            enforces_quotas: false,
        }
    }
}

/// One execution: the state as it is being changed, and what is told to whom.
pub(crate) struct Work<'w, 'a, 's, 'e> {
    service: &'w ZooKeeper,
    changes: Changes<'a, 's>,
    counters: Counters,
    /// As the state has them.
    written: Counters,
    spent: Spent,
    /// Whether a list was too long to be shown.
    pub(crate) is_too_long: bool,
    now: u64,
    cx: &'w mut OpContext<'e>,
}

pub(crate) fn refused(counters: &Counters, why: Code) -> Answer {
    Answer::Reply { zxid: counters.zxid, error: why.number(), body: Bytes::new() }
}

impl<'w, 'a, 's, 'e> Work<'w, 'a, 's, 'e> {
    /// The next operation of a frame, with the counters that the one before left; of the first there is none.
    pub(crate) fn begin(
        service: &'w ZooKeeper,
        state: &'a mut State<'s>,
        cx: &'w mut OpContext<'e>,
        before: Option<Count>,
    ) -> Self {
        let mut changes = Changes::over(state);
        let now = cx.time.0;
        if let Some(Count { now: counters, written, spent }) = before {
            return Self { service, changes, counters, written, spent, is_too_long: false, now, cx };
        }
        let counters = Counters::of(&mut changes).unwrap_or_else(|| {
            let mut counters = Counters::default();
            plant(&mut changes, &mut counters, &service.config);
            counters.keep(&mut changes);
            // Whatever becomes of the operation.
            changes.apply();
            counters
        });
        let spent = Spent::default();
        Self { service, changes, counters, written: counters, spent, is_too_long: false, now, cx }
    }

    /// What was changed happens. The counters are not written yet: one operation may change them more than once.
    fn keep(&mut self) {
        self.changes.apply();
    }

    /// The counters as the operation left them, for the next one.
    pub(crate) fn count(&self) -> Count {
        Count { now: self.counters, written: self.written, spent: self.spent }
    }

    /// Executes what a gateway says.
    pub(crate) fn execute(&mut self, operation: &Bytes) -> Answer {
        match Said::from_wire(operation) {
            Ok(said) if self.is_ahead(said.when) => Answer::Ahead(Time(self.now)),
            Ok(said) => self.operation(said.operation),
            Err(_) => refused(&self.counters, Code::MarshallingError),
        }
    }

    /// The same where nothing more is shown: what reads lists is heard and not done. What changes something happens, and what
    /// reads one node costs little: others' requests may stand in the same frame.
    pub(crate) fn execute_unless_shown(&mut self, operation: &Bytes) -> Answer {
        let at = match Said::from_wire(operation) {
            Ok(said) if self.is_ahead(said.when) => None,
            Ok(Said { operation: Operation::Request { at, code, body }, .. })
                if !request::looks_at_one(code) =>
            {
                matches!(request::read(code, &body), Ok(Request::Look { .. } | Request::MultiRead(_)))
                    .then_some(at)
            }
            _ => None,
        };
        match at.map(|at| self.hear(at)) {
            None => self.execute(operation),
            Some(Ok(_)) => too_large(),
            Some(Err(why)) => refused(&self.counters, why),
        }
    }

    /// Runs a transaction, which happens as a whole, with everything that it has to tell, or not at all.
    fn transact<T>(
        &mut self,
        run: impl FnOnce(&mut Transaction<'_, 'a, 's>) -> Result<T, Code>,
    ) -> Result<T, Code> {
        let (mut events, mut counters) = (Events::of(self.service.group), self.counters);
        let zxid = self.counters.zxid + 1;
        let mut transaction = Transaction {
            changes: &mut self.changes,
            counters: &mut counters,
            zxid,
            now: self.now,
            enforces: self.service.enforces_quotas,
            events: &mut events,
            looked: 0,
            began_quota: false,
            counts: MAX_COUNTED - self.spent.counted,
        };
        let done = run(&mut transaction);
        self.spent.counted = MAX_COUNTED - transaction.counts;
        match done {
            Ok(done) => {
                self.counters = Counters { zxid, ..counters };
                self.keep();
                self.emit(events);
                Ok(done)
            }
            Err(why) => {
                self.changes.forget();
                Err(why)
            }
        }
    }

    /// Whether something was said so far ahead of the agreed time that nothing can be made of it. What an honest primary
    /// proposes it received before, so only its clock and the gateway's are between the two. Were more borne, a session
    /// that was heard of could end before its time-out has passed.
    fn is_ahead(&self, said: Time) -> bool {
        said.0 > self.now.saturating_add(u64::from(self.service.grace) * 1000 / 2)
    }

    fn lives(&self) -> Lives {
        Lives { now: self.now, grace: self.service.grace }
    }

    /// The gateway of this group, if it is one, is told that an attachment is over.
    fn end_of(&mut self, carrier: Carrier, at: Attachment) {
        let mut events = Events::of(self.service.group);
        events.end(carrier, at);
        self.emit(events);
    }

    /// Who speaks, as one who carries sessions.
    fn carrier(&self) -> Carrier {
        Carrier { group: self.service.group, gateway: self.cx.client }
    }

    fn emit(&mut self, events: Events) {
        for (to, notice) in events.into_notices() {
            self.cx.emit(to, notice.to_wire());
        }
    }

    fn operation(&mut self, operation: Operation) -> Answer {
        let opening = |work: &Self, timeout: u32, who: Vec<Id>| Opening {
            carrier: work.carrier(),
            timeout: timeout.clamp(work.service.timeouts.0, work.service.timeouts.1),
            who: who.into_iter().filter(attestable).collect(),
            lives: work.lives(),
        };
        let answer = match operation {
            Operation::Open { timeout, key, who } => {
                let (opening, unique) = (opening(self, timeout, who), self.cx.unique());
                let most = self.service.sessions;
                let opened =
                    sessions::open(&mut self.changes, &mut self.counters, opening, &unique, key, most);
                self.attached(opened)
            }
            Operation::Attach { session, proof, timeout, who } => {
                let opening = opening(self, timeout, who);
                let attached = self.attach(opening, session, &proof);
                self.attached(attached)
            }
            Operation::Identify { at, id } => self.answer(at, |work, mut session| {
                if !attestable(&id) {
                    return Err(Code::AuthFailed);
                }
                session.identify(&mut work.changes, id)?;
                Ok(Bytes::new())
            }),
            Operation::Request { at, code, body } => self.answer(at, |work, session| {
                let request = request::read(code, &body)?;
                work.request(session, request)
            }),
            Operation::Touch(touched) => {
                let over = self.touch(touched);
                Answer::Heard { over, tally: self.counters.tally(self.now) }
            }
            Operation::Reads { at, reads } => {
                let session = self.hear(at);
                let replies = session.and_then(|session| {
                    let reader = reads::Reader::of(&session);
                    self.shown(reads::each(&self.changes.state(), &reader, &reads))
                });
                match replies {
                    Ok(replies) => Answer::Replies { zxid: self.counters.zxid, replies },
                    Err(why) => refused(&self.counters, why),
                }
            }
        };
        self.keep();
        answer
    }

    fn touch(&mut self, touched: Vec<Attachment>) -> Vec<Attachment> {
        let (lives, carrier, mut over) = (self.lives(), self.carrier(), Vec::new());
        let mut heard = BTreeSet::new();
        for at in touched {
            // What is said twice is heard once.
            if !heard.insert(at) {
                continue;
            }
            match Session::attached(&mut self.changes, at, carrier) {
                Ok(mut session) => session.touch(&mut self.changes, &self.counters, lives),
                Err(_) => over.push(at),
            }
        }
        over
    }

    /// Answers a session, which has given a sign of life by asking.
    fn answer(
        &mut self,
        at: Attachment,
        run: impl FnOnce(&mut Self, Session) -> Result<Bytes, Code>,
    ) -> Answer {
        let done = self.hear(at).and_then(|session| run(self, session));
        match done {
            Ok(body) => Answer::Reply { zxid: self.counters.zxid, error: 0, body },
            Err(why) => {
                self.changes.forget();
                refused(&self.counters, why)
            }
        }
    }

    /// The session that says something, and has given a sign of life with it.
    fn hear(&mut self, at: Attachment) -> Result<Session, Code> {
        let (lives, carrier) = (self.lives(), self.carrier());
        let session = Session::attached(&mut self.changes, at, carrier).map(|mut session| {
            session.touch(&mut self.changes, &self.counters, lives);
            session
        });
        // What follows may not happen; that does.
        self.keep();
        session
    }

    fn request(&mut self, session: Session, request: Request) -> Result<Bytes, Code> {
        match request {
            Request::Look { look, watch } => self.look(session, &look, watch),
            Request::MultiRead(looks) => {
                let reader = reads::Reader::of(&session);
                self.shown(reads::looks(&self.changes.state(), &reader, &looks))
            }
            Request::Write(write) => {
                let done =
                    self.transact(|transaction| transaction.write(session.id, &session.who, &write))?;
                Ok(match (&write, done) {
                    // By itself it answers with the node's stat, as ZooKeeper's does.
                    (Write::Check { path, .. }, _) => {
                        reads::done(&Done::Set { stat: stat_of(&mut self.changes, path)? })
                    }
                    (_, done) => reads::done(&done),
                })
            }
            Request::Multi(writes) => Ok(self.multi(&session, &writes)),
            Request::Sync { path } => {
                path::check(&path)?;
                let mut out = Output::new();
                out.text(&path);
                Ok(out.finish())
            }
            Request::Auth { scheme, credentials } => self.authenticate(session, &scheme, &credentials),
            Request::Rewatch(wanted) => {
                self.watch_again(session, &wanted);
                Ok(Bytes::new())
            }
            Request::AddWatch { path, recursive } => {
                path::check(&path)?;
                self.watch(session, &path, if recursive { RECURSIVE } else { PERSISTENT })?;
                // That nothing went wrong, once more: Java's client reads it, and takes an answer without it for none.
                let mut out = Output::new();
                out.int(0);
                Ok(out.finish())
            }
            Request::Watched { path, which, remove } => {
                let mut session = session;
                let (changes, counters) = (&mut self.changes, &mut self.counters);
                watches::look(changes, counters, &mut session, &path, which, remove)?;
                session.keep(&mut self.changes);
                Ok(Bytes::new())
            }
            Request::Reconfig => {
                // Who the replicas are is changed by their operator, and by no session, whoever it is.
                let config = find(&mut self.changes, path::CONFIG)?;
                let may = acl::permits(&config.acl, acl::perms::WRITE, &session.who);
                Err(if may { Code::ReconfigDisabled } else { Code::NoAuth })
            }
            Request::Ping => Ok(Bytes::new()),
            Request::Close => {
                self.transact(|transaction| {
                    sessions::close(transaction, session);
                    Ok(())
                })?;
                Ok(Bytes::new())
            }
        }
    }

    /// Notes where what is read is too long to be shown: nothing else has this error here.
    fn shown<T>(&mut self, answer: Result<T, Code>) -> Result<T, Code> {
        self.is_too_long |= matches!(answer, Err(Code::MarshallingError));
        answer
    }

    fn watch(&mut self, mut session: Session, path: &str, bits: u8) -> Result<(), Code> {
        watches::add(&mut self.changes, &mut self.counters, &mut session, path, bits)?;
        session.keep(&mut self.changes);
        Ok(())
    }

    fn look(&mut self, session: Session, look: &Reading, watch: bool) -> Result<Bytes, Code> {
        let reader = reads::Reader::counting(&session, MAX_COUNTED - self.spent.counted);
        let answer = self.shown(reads::look(&self.changes.state(), &reader, look));
        self.spent.counted = MAX_COUNTED - reader.counts();
        let (path, bits) = match look {
            Reading::Exists { path } | Reading::Data { path } => (path, DATA),
            Reading::Children { path, .. } => (path, CHILDREN),
            _ => return answer,
        };
        // Whether a node comes is watched too; nothing else is where there is none.
        let waits = matches!((look, &answer), (Reading::Exists { .. }, Err(Code::NoNode)));
        if watch && (answer.is_ok() || waits) {
            self.watch(session, path, bits)?;
            self.keep();
        }
        answer
    }

    fn multi(&mut self, session: &Session, writes: &[Write]) -> Bytes {
        if self.spent.given_up == MAX_GIVEN_UP {
            return reads::none_done(writes.len(), 0, Code::QuotaExceeded);
        }
        let (mut failed, mut given_up) = ((0, Code::RuntimeInconsistency), false);
        let done = self.transact(|transaction| {
            transaction.events.give_up_when_spent();
            let mut all = Vec::with_capacity(writes.len());
            for (number, write) in writes.iter().enumerate() {
                match transaction.write(session.id, &session.who, write) {
                    Ok(_) if transaction.events.is_spent() => {
                        (failed, given_up) = ((number, Code::QuotaExceeded), true);
                        return Err(Code::QuotaExceeded);
                    }
                    Ok(done) => all.push((code_of(write), done)),
                    Err(why) => {
                        failed = (number, why);
                        return Err(why);
                    }
                }
            }
            Ok(all)
        });
        self.spent.given_up += u32::from(given_up);
        match done {
            Ok(all) => reads::all_done(&all),
            Err(_) => reads::none_done(writes.len(), failed.0, failed.1),
        }
    }

    /// Who knows a user's password is that user.
    fn authenticate(
        &mut self,
        mut session: Session,
        scheme: &str,
        credentials: &Bytes,
    ) -> Result<Bytes, Code> {
        match scheme {
            "digest" => {
                // As Java makes a text of any bytes.
                let id = digest_id(&String::from_utf8_lossy(credentials));
                if self.service.superuser.as_ref() == Some(&id) {
                    session.identify(&mut self.changes, Id::new("super", ""))?;
                }
                session.identify(&mut self.changes, Id::new("digest", &id))?;
                Ok(Bytes::new())
            }
            // The gateway has attested the address already.
            "ip" => Ok(Bytes::new()),
            _ => Err(Code::AuthFailed),
        }
    }
}

/// What a gateway may say that a client is: what only it can see. A password is shown to the service itself.
fn attestable(id: &Id) -> bool {
    matches!(id.scheme.as_str(), "ip" | "x509" | "sasl")
}

fn code_of(write: &Write) -> i32 {
    match write {
        Write::Create(create) if create.shows_stat => opcode::CREATE2,
        Write::Create(_) => opcode::CREATE,
        Write::Delete { .. } => opcode::DELETE,
        Write::SetData { .. } => opcode::SET_DATA,
        Write::SetAcl { .. } => opcode::SET_ACL,
        Write::Check { .. } => opcode::CHECK,
        Write::ContinueSequence { .. } => opcode::CONTINUE_SEQUENCE,
    }
}
