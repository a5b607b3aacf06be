//! The async front: a [`Client`] handle, and behind it one task that owns the machine and one per
//! replica that owns its connection. No delay is added anywhere: what is ready when the task wakes
//! becomes one frame and one write per connection.

mod config;
mod connection;
mod engine;

pub use config::{ClientConfig, ConnectError, ReplicaAddress, Session};

use crate::{ClientError, Course, Standing, SubmitError};
use bytes::Bytes;
use engine::{Command, Engine};
use tokio::sync::{mpsc, oneshot};
use troth_types::{ClientId, Event, GroupId, ReplicaId, Seq, View};

/// Commands on their way to the task; callers beyond wait.
const COMMANDS: usize = 4096;

/// What a client knows of its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The view that the replies of as many replicas have reached as are believed.
    pub view: View,
    /// The primary of that view.
    pub primary: ReplicaId,
    /// The replicas without a connection.
    pub unreachable: Vec<ReplicaId>,
    /// Calls without an outcome.
    pub outstanding: usize,
    /// The highest batch in which something of this client was executed, by the word of as many replicas as are believed: every
    /// batch that was acknowledged to anybody before that call began has a lower number.
    pub confirmed: Seq,
    /// Reads that were answered without being ordered.
    pub fast_reads: u64,
    /// Those of them for which too few replicas answered alike in time: they were ordered then.
    pub fallen_back: u64,
    /// How each replica does, in their order.
    pub replicas: Vec<Standing>,
}

/// A client of a replica group. Clones share one session; any number of calls may be outstanding,
/// from any number of tasks. The session ends when the last clone is dropped. Dropping the future
/// of a call does not take its operations back.
#[derive(Clone, Debug)]
pub struct Client {
    id: ClientId,
    group: GroupId,
    commands: mpsc::Sender<Command>,
}

impl Client {
    /// Starts a session on the current tokio runtime and waits until as many replicas are connected as are believed,
    /// for [`Timing::unavailable_after`](crate::Timing) at most.
    ///
    /// # Errors
    /// See [`ConnectError`].
    ///
    /// # Panics
    /// Outside a tokio runtime with time and I/O.
    pub async fn connect(config: ClientConfig) -> Result<Self, ConnectError> {
        let (expected, listed) = (config.group.n(), config.replicas.len());
        if expected != listed {
            return Err(ConnectError::Replicas { expected, listed });
        }
        if config.limits.client_window == 0 {
            return Err(ConnectError::NoWindow);
        }
        let (commands, receiver) = mpsc::channel(COMMANDS);
        let (ready, is_ready) = oneshot::channel();
        tokio::spawn(Engine::new(&config, receiver, ready)?.run());
        let unreachable = config.group.all().collect();
        is_ready.await.unwrap_or(Err(ConnectError::Unavailable { unreachable }))?;
        Ok(Self { id: config.client, group: config.group.id(), commands })
    }

    /// Its number in the group.
    #[must_use]
    pub fn id(&self) -> ClientId {
        self.id
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Has one operation ordered and executed.
    ///
    /// # Errors
    /// [`ClientError`] says whether it may have been executed.
    pub async fn execute(&self, operation: Bytes) -> Result<Bytes, ClientError> {
        let results = self.execute_all(vec![operation]).await?;
        Ok(only(results))
    }

    /// Has operations ordered together and executed one after the other, nothing between them.
    /// Answers one result per operation.
    ///
    /// # Errors
    /// As [`Client::execute`], for all of them alike.
    pub async fn execute_all(&self, operations: Vec<Bytes>) -> Result<Vec<Bytes>, ClientError> {
        self.execute_all_noting(operations).await.0
    }

    /// The same, and where the time went.
    ///
    /// # Errors
    /// The result is as that of [`Client::execute_all`].
    pub async fn execute_all_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> (Result<Vec<Bytes>, ClientError>, Course) {
        self.execute_one(operations, false).await
    }

    /// The same, in a frame that no other call shares: of its answers none is left out because of those to others.
    ///
    /// # Errors
    /// As [`Client::execute_all_noting`].
    pub async fn execute_apart_noting(
        &self,
        operations: Vec<Bytes>,
    ) -> (Result<Vec<Bytes>, ClientError>, Course) {
        self.execute_one(operations, true).await
    }

    async fn execute_one(
        &self,
        operations: Vec<Bytes>,
        apart: bool,
    ) -> (Result<Vec<Bytes>, ClientError>, Course) {
        if operations.is_empty() {
            return (Ok(Vec::new()), Course::default());
        }
        let asked = self.ask(|answer| Command::Execute { operations, apart, answer }).await;
        asked.unwrap_or_else(|error| (Err(error), Course::default()))
    }

    /// Has an operation answered that changes nothing: without ordering where all replicas agree.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub async fn read(&self, operation: Bytes) -> Result<Bytes, ClientError> {
        self.read_noting(operation).await.0
    }

    /// The same, and where the time went.
    ///
    /// # Errors
    /// The result is as that of [`Client::read`].
    pub async fn read_noting(&self, operation: Bytes) -> (Result<Bytes, ClientError>, Course) {
        let asked = self.ask(|answer| Command::Read { operation, recent: false, answer }).await;
        let (result, course) = asked.unwrap_or_else(|error| (Err(error), Course::default()));
        (result.map(only), course)
    }

    /// From now on the courses of calls that take so long name the replicas that had not answered.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub async fn name_late_after(&self, micros: u64) -> Result<(), ClientError> {
        let sent = self.commands.send(Command::NameLateAfter { micros }).await;
        sent.map_err(|_| ClientError::Closed { sent: false })
    }

    /// The same from a state that need not be the present one, but shows all that this client was told before, by the outcomes
    /// of what it had executed and by events ([`ClientCore::read_recent`](crate::ClientCore::read_recent)): then enough
    /// replicas must agree for one of them to be correct, and others may be away. Two such reads may show states in either
    /// order.
    ///
    /// # Errors
    /// As [`Client::execute`].
    pub async fn read_recent(&self, operation: Bytes) -> Result<Bytes, ClientError> {
        self.read_recent_noting(operation).await.0
    }

    /// The same, and where the time went.
    ///
    /// # Errors
    /// The result is as that of [`Client::read_recent`].
    pub async fn read_recent_noting(&self, operation: Bytes) -> (Result<Bytes, ClientError>, Course) {
        let asked = self.ask(|answer| Command::Read { operation, recent: true, answer }).await;
        let (result, course) = asked.unwrap_or_else(|error| (Err(error), Course::default()));
        (result.map(only), course)
    }

    /// The events that the service tells this client from now on, in order, each before the
    /// result that reveals it. Call it before the operation that causes events: those that come
    /// while nobody listens are dropped. A second call takes over from the first.
    ///
    /// An event with an empty payload says that the event of its index is lost, and perhaps others between the last and the next
    /// that come, because the application took them too slowly; it should read afresh what it follows. It is there before each result
    /// that reveals what is lost, like an event itself: what was lost later than it was taken has a marker of its own.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub async fn events(&self) -> Result<mpsc::Receiver<Event>, ClientError> {
        self.ask(|answer| Command::Events { answer }).await
    }

    /// What the client knows of its group now.
    ///
    /// # Errors
    /// [`ClientError::Closed`].
    pub async fn status(&self) -> Result<Status, ClientError> {
        self.ask(|answer| Command::Status { answer }).await
    }

    /// Ends the session for all clones. Outstanding calls end with [`ClientError::Closed`].
    pub async fn close(self) {
        // An error means that it is closed already.
        let _ = self.ask(|answer| Command::Close { answer }).await;
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, ClientError> {
        let (answer, answered) = oneshot::channel();
        self.commands.send(command(answer)).await.map_err(|_| ClientError::Closed { sent: false })?;
        // Another handle closed the session while the command was on its way to the task. It was
        // probably not sent, but nothing here proves it.
        answered.await.map_err(|_| ClientError::Closed { sent: true })
    }
}

fn only(results: Vec<Bytes>) -> Bytes {
    results.into_iter().next().expect("a submission of one operation ends with one result")
}

impl From<SubmitError> for ClientError {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::TooLarge => Self::TooLarge,
            SubmitError::Unavailable { unreachable } => Self::Unavailable { unreachable, sent: false },
            // The front submits at least one operation, and holds back what is too much.
            SubmitError::Empty | SubmitError::Busy => Self::Unsent,
        }
    }
}
