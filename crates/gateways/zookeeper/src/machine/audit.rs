//! Who asked for which change, and what came of it: one line for each that was handed to the group. What is written down of a
//! request rests on its call, not on its connection: a client that goes away before the answer is told of all the same.

use super::connection::{Connection, Stage};
use super::line::What;
use super::record::{Record, hexadecimal, line, moment};
use super::{CallId, ConnectionId, Machine};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use troth_client::ClientError;
use troth_types::{Time, Wire};
use troth_zookeeper::acl::Id;
use troth_zookeeper::jute::{BadRecord, Input};
use troth_zookeeper::{Answer, Change, Code, Operation, changes, may_change, opcode, without_secret};

/// The most identities that are told of a session.
const MOST_WHO: usize = 64;
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
    asked: Vec<Asked>,
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
            Some(Answer::Over(_)) => (Outcome::Unknown, None),
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

fn shown(id: &Id) -> String {
    without_secret(&id.scheme, &id.id)
}

impl Machine {
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
                    self.audit_changes(now, &audited, (at, code, &body), &said)
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
            && connection.proven.len() < MOST_WHO
            && !connection.proven.iter().any(|known| known == who)
        {
            connection.proven.push(who.to_owned());
        }
    }

    fn audit_changes(
        &mut self,
        now: Time,
        audited: &Audited,
        (at, code, body): (usize, i32, &Bytes),
        said: &Said<'_>,
    ) {
        let (outcome, zxid) = said.outcome(at);
        let parts = match said.answer(at) {
            Some(Answer::Reply { error: 0, body, .. }) if code == opcode::MULTI => read_parts(body).ok(),
            _ => None,
        };
        let mut path = said.answer(at).and_then(|answer| made(code, answer));
        for (number, change) in changes(code, body).into_iter().enumerate() {
            let (outcome, made) = match &parts {
                Some(parts) => match parts.get(number) {
                    Some(Part::Done(path)) => (Outcome::Success, path.clone()),
                    Some(Part::Failed(error)) => (Outcome::Failure(*error), None),
                    None => (Outcome::Unknown, None),
                },
                None => (outcome, path.take()),
            };
            let Change { operation, path: asked, kind, acl, who } = change;
            match (operation, who) {
                // That part of a transaction changes nothing.
                ("check", _) => {}
                (_, Some(who)) => self.audit_who(now, audited, &who, (outcome, zxid)),
                (operation, None) => {
                    let mut fields = Map::new();
                    let mut put = |name: &str, value: Option<Value>| {
                        value.map(|value| fields.insert(name.to_owned(), value))
                    };
                    put("path", made.or(asked).map(Value::from));
                    put("kind", kind.map(Value::from));
                    put("acl", acl.map(Value::from));
                    put("multi", (code == opcode::MULTI).then_some(Value::Bool(true)));
                    self.tell(now, audited, audited.session, fields, operation, (outcome, zxid));
                }
            }
        }
    }

    fn tell(
        &mut self,
        now: Time,
        audited: &Audited,
        session: Option<i64>,
        mut fields: Map<String, Value>,
        operation: &str,
        (outcome, zxid): (Outcome, Option<i64>),
    ) {
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("time", json!(moment(now)));
        put("session", json!(session.map(hexadecimal)));
        put("client", json!(audited.address));
        put("who", json!(audited.who));
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
        self.records.0.push_back(Record::Audit(line(fields)));
    }

    /// The session that a connection has.
    pub(super) fn session_number(&self, id: ConnectionId) -> Option<i64> {
        match &self.connections.get(&id)?.stage {
            Stage::Attached(session) => Some(session.at.session),
            Stage::New | Stage::Entering(_) => None,
        }
    }
}

fn audited(id: ConnectionId, connection: &Connection, asked: Vec<Asked>) -> Audited {
    let session = match &connection.stage {
        Stage::Attached(session) => Some(session.at.session),
        Stage::New | Stage::Entering(_) => None,
    };
    let who = connection.who.iter().map(shown).chain(connection.proven.iter().cloned()).collect();
    Audited { connection: id, session, address: connection.address.to_string(), who, asked }
}
