//! Who asked for which change, and what came of it: one line for each that was handed to the group. What is written down of a
//! request rests on its call, not on its connection: a client that goes away before the answer is told of all the same.

use super::connection::{Connection, Stage};
use super::identities::{fingerprint, remember, who};
use super::line::What;
use super::record::{Record, hexadecimal, line, moment};
use super::{CallId, ConnectionId, Machine};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use troth_client::ClientError;
use troth_types::{Time, Wire};
use troth_zookeeper::jute::{BadRecord, Input};
use troth_zookeeper::{Answer, Change, Code, Operation, changes, may_change, opcode, without_secret};

/// The most lines of the parts of transactions of one call, and their bytes.
const PARTS: usize = 4096;
const PARTS_BYTES: usize = 2 << 20;
/// The most lines of a second of what was not done: clients make as many of them as they like.
const FAILURES: u32 = 200;
/// That second, in microseconds.
const WINDOW: u64 = 1_000_000;
/// The bytes of a node's stat in an answer.
const STAT: usize = 68;

/// Something that was handed to the group.
#[derive(Debug)]
enum Asked {
    /// A session: a new one, or this one.
    Session(Option<i64>),
    /// A change, at this place among the operations of the call.
    Request { at: usize, code: i32, body: Bytes },
    /// The proof, by SASL, of who a client is.
    Identify { at: usize, user: String },
}

/// What is to be written down when a call is answered.
#[derive(Debug)]
pub(super) struct Audited {
    connection: ConnectionId,
    session: Option<i64>,
    address: String,
    who: Vec<String>,
    /// How many more it is.
    who_more: usize,
    asked: Vec<Asked>,
    /// The parts of transactions, and their bytes, of which there may be lines yet.
    room: (usize, usize),
}

/// How many lines there were lately of what was not done.
#[derive(Debug, Default)]
pub(super) struct Failures {
    since: Time,
    lines: u32,
}

impl Failures {
    /// Whether there may be one now.
    fn allows(&mut self, now: Time) -> bool {
        if self.since.after(WINDOW) <= now {
            (self.since, self.lines) = (now, 0);
        }
        self.lines = self.lines.saturating_add(1);
        self.lines <= FAILURES
    }
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Success,
    /// With ZooKeeper's number of the error.
    Failure(i32),
    /// It was not executed and will not be.
    NotExecuted,
    /// It may have been executed.
    Unknown,
}

impl Outcome {
    /// Whether nothing was changed, for certain.
    fn is_nothing(self) -> bool {
        matches!(self, Self::Failure(_) | Self::NotExecuted)
    }
}

/// What the group says of a call's operations.
#[derive(Debug)]
enum Said<'a> {
    Answers(Vec<Option<Answer>>),
    Error(&'a ClientError),
}

impl Said<'_> {
    fn of(results: &Result<Vec<Bytes>, ClientError>) -> Said<'_> {
        match results {
            Ok(results) => Said::Answers(results.iter().map(|one| Answer::from_wire(one).ok()).collect()),
            Err(error) => Said::Error(error),
        }
    }

    fn answer(&self, at: usize) -> Option<&Answer> {
        match self {
            Said::Answers(answers) => answers.get(at).and_then(Option::as_ref),
            Said::Error(_) => None,
        }
    }

    /// What came of an operation, and the last transaction that its answer shows.
    fn outcome(&self, at: usize) -> (Outcome, Option<i64>) {
        match self.answer(at) {
            // Perhaps it stands for an answer that was too large.
            Some(Answer::Reply { zxid: 0, error, .. }) if *error == Code::MarshallingError.number() => {
                (Outcome::Unknown, None)
            }
            Some(Answer::Reply { zxid, error: 0, .. }) => (Outcome::Success, Some(*zxid)),
            Some(Answer::Reply { zxid, error, .. }) => (Outcome::Failure(*error), Some(*zxid)),
            Some(Answer::Attached { .. }) => (Outcome::Success, None),
            Some(Answer::Heard { .. } | Answer::Replies { .. }) => (Outcome::Unknown, None),
            Some(Answer::Ahead(_)) => (Outcome::NotExecuted, None),
            None => match self {
                Said::Error(error) if !error.outcome_unknown() => (Outcome::NotExecuted, None),
                _ => (Outcome::Unknown, None),
            },
        }
    }
}

/// What an answer says of a part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// It was done, and this node was made.
    Done(Option<String>),
    /// The transaction failed, and this part with it; the number is 0 where it was not this part that failed.
    Failed(i32),
}

impl Part {
    fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    fn made(&self) -> Option<String> {
        match self {
            Self::Done(path) => path.clone(),
            Self::Failed(_) => None,
        }
    }
}

/// What an answer says of the parts of a transaction.
fn read_parts(body: &Bytes) -> Result<Vec<Part>, BadRecord> {
    let mut input = Input::new(body);
    let mut parts = Vec::new();
    loop {
        let (kind, done, _) = (input.int()?, input.boolean()?, input.int()?);
        if done {
            return Ok(parts);
        }
        let part = match kind {
            opcode::ERROR => Part::Failed(input.int()?),
            opcode::CREATE => Part::Done(input.text()?),
            opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
                let path = input.text()?;
                skip(&mut input, STAT)?;
                Part::Done(path)
            }
            opcode::SET_DATA => {
                skip(&mut input, STAT)?;
                Part::Done(None)
            }
            _ => Part::Done(None),
        };
        parts.push(part);
    }
}

fn skip(input: &mut Input<'_>, bytes: usize) -> Result<(), BadRecord> {
    for _ in 0..bytes / 4 {
        input.int()?;
    }
    Ok(())
}

/// The path of the node that was made, which may have a number behind the name that was asked for.
fn made(code: i32, answer: &Answer) -> Option<String> {
    let Answer::Reply { error: 0, body, .. } = answer else { return None };
    let creates = [opcode::CREATE, opcode::CREATE2, opcode::CREATE_CONTAINER, opcode::CREATE_TTL];
    if creates.contains(&code) { Input::new(body).text().ok()? } else { None }
}

impl Machine {
    /// Has identities of `digest` told with what tells those of one name apart, by a key that nobody knows.
    pub fn fingerprint_with(&mut self, key: [u8; 32]) {
        self.fingerprints = Some(key);
    }

    /// Gives up waiting for the answer to one call, and writes down that nobody knows what came of it; whether there was one.
    /// For the end, when no answer is taken any more.
    pub fn give_up_one(&mut self, now: Time) -> bool {
        let Some(call) = self.audits.keys().next().copied() else { return false };
        self.audit(now, call, &Err(ClientError::Closed { sent: true }));
        true
    }

    /// Writes down that the proof of who a client is did not hold, and who it said that it is.
    pub(super) fn audit_disproved(&mut self, now: Time, id: ConnectionId, user: &str) {
        let Some(connection) = self.connections.get(&id).filter(|_| self.settings.audit.is_some()) else {
            return;
        };
        let audited = audited(id, connection, Vec::new());
        let who = without_secret("sasl", user);
        self.audit_who(now, &audited, &who, (Outcome::Failure(Code::AuthFailed.number()), None));
    }

    /// Remembers what a call asks for, where somebody writes it down.
    pub(super) fn audit_requests(&mut self, call: CallId, id: ConnectionId, numbers: &[u64]) {
        if self.settings.audit.is_none() {
            return;
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let mut asked = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            let Some(pending) = connection.line.get_mut(*number) else { continue };
            if matches!(pending.what, What::Request(code) if !may_change(code)) {
                continue;
            }
            match Operation::from_wire(&pending.operation) {
                Ok(Operation::Request { code, body, .. }) => asked.push(Asked::Request { at, code, body }),
                Ok(Operation::Identify { id, .. }) => asked.push(Asked::Identify { at, user: id.id }),
                _ => {}
            }
        }
        if !asked.is_empty() {
            let audited = audited(id, connection, asked);
            self.audits.insert(call, audited);
        }
    }

    /// The same for a session that is asked for.
    pub(super) fn audit_session(&mut self, call: CallId, id: ConnectionId) {
        if self.settings.audit.is_none() {
            return;
        }
        let Some(connection) = self.connections.get(&id) else { return };
        let Stage::Entering(entering) = &connection.stage else { return };
        let session = Some(entering.request.session).filter(|session| *session != 0);
        let audited = audited(id, connection, vec![Asked::Session(session)]);
        self.audits.insert(call, audited);
    }

    /// Writes down what a call asked for, and what came of it.
    pub(super) fn audit(&mut self, now: Time, call: CallId, results: &Result<Vec<Bytes>, ClientError>) {
        let Some(mut audited) = self.audits.remove(&call) else { return };
        rule!("ZKG-W2");
        let said = Said::of(results);
        for asked in core::mem::take(&mut audited.asked) {
            match asked {
                Asked::Session(session) => self.audit_entry(now, &audited, session, &said),
                Asked::Request { at, code, body } => {
                    self.audit_changes(now, &mut audited, (at, code, &body), &said)
                }
                Asked::Identify { at, user } => {
                    let who = without_secret("sasl", &user);
                    self.audit_who(now, &audited, &who, said.outcome(at));
                }
            }
        }
    }

    fn audit_entry(&mut self, now: Time, audited: &Audited, session: Option<i64>, said: &Said<'_>) {
        let operation = if session.is_some() { "attachSession" } else { "createSession" };
        let of = match said.answer(0) {
            Some(Answer::Attached { at, .. }) => Some(at.session),
            _ => session,
        };
        self.tell(now, audited, of, Map::new(), operation, said.outcome(0));
    }

    fn audit_who(
        &mut self,
        now: Time,
        audited: &Audited,
        who: &str,
        (outcome, zxid): (Outcome, Option<i64>),
    ) {
        let mut fields = Map::new();
        fields.insert("as".to_owned(), json!(who));
        self.tell(now, audited, audited.session, fields, "auth", (outcome, zxid));
        if outcome == Outcome::Success
            && let Some(connection) = self.connections.get_mut(&audited.connection)
        {
            remember(connection, who);
        }
    }

    fn audit_changes(
        &mut self,
        now: Time,
        audited: &mut Audited,
        (at, code, body): (usize, i32, &Bytes),
        said: &Said<'_>,
    ) {
        let came = said.outcome(at);
        let all = changes(code, body);
        if code == opcode::MULTI {
            return self.audit_transaction(now, audited, all, (said.answer(at), came));
        }
        let made = said.answer(at).and_then(|answer| made(code, answer));
        for change in all {
            match &change.who {
                Some(who) => {
                    let print = self
                        .fingerprints
                        .as_ref()
                        .zip(change.identity.as_deref())
                        .map(|(key, of)| fingerprint(key, of));
                    let who = format!("{who}{}", print.unwrap_or_default());
                    self.audit_who(now, audited, &who, came);
                }
                None => {
                    let operation = change.operation;
                    let fields = fields(change, made.clone());
                    self.tell(now, audited, audited.session, fields, operation, came);
                }
            }
        }
    }

    /// One line of a transaction that came to nothing, and else one of each part that changes something; of so many of them that
    /// nobody can fill the log with one.
    fn audit_transaction(
        &mut self,
        now: Time,
        audited: &mut Audited,
        all: Vec<Change>,
        (answer, (outcome, zxid)): (Option<&Answer>, (Outcome, Option<i64>)),
    ) {
        rule!("ZKG-W5");
        let parts = match answer {
            Some(Answer::Reply { error: 0, body, .. }) => read_parts(body).unwrap_or_default(),
            _ => Vec::new(),
        };
        // That part of a transaction changes nothing.
        let changing = |change: &Change| change.operation != "check";
        if !all.iter().any(changing) {
            return;
        }
        let number = all.len();
        let failed = |of: &Part| matches!(of, Part::Failed(error) if *error != 0);
        let failing = parts.iter().position(failed).or_else(|| parts.iter().position(|part| !part.is_done()));
        if failing.is_some() || outcome.is_nothing() {
            let outcome = match failing.and_then(|at| parts.get(at)) {
                Some(Part::Failed(error)) => Outcome::Failure(*error),
                _ => outcome,
            };
            let mut fields = Map::new();
            fields.insert("parts".to_owned(), json!(number));
            if let Some((at, change)) = failing.and_then(|at| Some((at, all.get(at)?))) {
                fields.insert("part".to_owned(), json!(at));
                fields.insert("part_operation".to_owned(), json!(change.operation));
                fields.insert("path".to_owned(), json!(change.path));
            }
            return self.tell(now, audited, audited.session, fields, "multiOperation", (outcome, zxid));
        }
        let mut untold = 0;
        for (at, change) in all.into_iter().enumerate().filter(|(_, change)| changing(change)) {
            let made = parts.get(at).and_then(Part::made);
            let outcome = if !parts.is_empty() && at >= parts.len() { Outcome::Unknown } else { outcome };
            let text = (audited.room.0 > 0).then(|| {
                let operation = change.operation;
                let mut fields = fields(change, made);
                fields.insert("multi".to_owned(), Value::Bool(true));
                text(now, audited, audited.session, fields, operation, (outcome, zxid))
            });
            match text.filter(|text| text.len() <= audited.room.1) {
                Some(text) => {
                    audited.room = (audited.room.0 - 1, audited.room.1 - text.len());
                    self.records.0.push_back(Record::Audit(text));
                }
                None => {
                    audited.room.0 = 0;
                    untold += 1;
                }
            }
        }
        if untold > 0 {
            let fields = [("parts", json!(number)), ("parts_untold", json!(untold))];
            let fields = fields.map(|(name, value)| (name.to_owned(), value)).into_iter().collect();
            self.tell(now, audited, audited.session, fields, "multiOperation", (outcome, zxid));
            self.records.lose(untold);
        }
    }

    fn tell(
        &mut self,
        now: Time,
        audited: &Audited,
        session: Option<i64>,
        fields: Map<String, Value>,
        operation: &str,
        came: (Outcome, Option<i64>),
    ) {
        rule!("ZKG-W5");
        let nothing = came.0.is_nothing();
        if nothing && !self.failures.allows(now) {
            return self.records.lose(1);
        }
        let text = text(now, audited, session, fields, operation, came);
        self.records.0.push_back(if nothing { Record::Refused(text) } else { Record::Audit(text) });
    }

    /// The session that a connection has.
    pub(super) fn session_number(&self, id: ConnectionId) -> Option<i64> {
        match &self.connections.get(&id)?.stage {
            Stage::Attached(session) => Some(session.at.session),
            Stage::New | Stage::Entering(_) => None,
        }
    }
}

/// What a line says of a change by itself.
fn fields(change: Change, made: Option<String>) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Option<Value>| value.map(|value| fields.insert(name.to_owned(), value));
    put("path", made.or(change.path).map(Value::from));
    put("kind", change.kind.map(Value::from));
    put("acl", change.acl.map(Value::from));
    fields
}

/// A line, of who asked for something and what came of it.
fn text(
    now: Time,
    audited: &Audited,
    session: Option<i64>,
    mut fields: Map<String, Value>,
    operation: &str,
    (outcome, zxid): (Outcome, Option<i64>),
) -> String {
    let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    put("time", json!(moment(now)));
    put("session", json!(session.map(hexadecimal)));
    put("client", json!(audited.address));
    put("who", json!(audited.who));
    if audited.who_more > 0 {
        put("who_more", json!(audited.who_more));
    }
    put("operation", json!(operation));
    let result = match outcome {
        Outcome::Success => "success",
        Outcome::Failure(_) => "failure",
        Outcome::NotExecuted => "not executed",
        Outcome::Unknown => "unknown",
    };
    put("result", json!(result));
    if let Outcome::Failure(error) = outcome {
        put("error", json!(error));
    }
    if let Some(zxid) = zxid {
        put("zxid", json!(hexadecimal(zxid)));
    }
    line(fields)
}

fn audited(id: ConnectionId, connection: &Connection, asked: Vec<Asked>) -> Audited {
    let session = match &connection.stage {
        Stage::Attached(session) => Some(session.at.session),
        Stage::New | Stage::Entering(_) => None,
    };
    let (address, (who, who_more)) = (connection.address.to_string(), who(connection));
    Audited { connection: id, session, address, who, who_more, asked, room: (PARTS, PARTS_BYTES) }
}
