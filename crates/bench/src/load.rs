//! All clients on one thread. In a closed loop each outcome is followed at once by the next request, so that the
//! planned number is outstanding all the time; in an open one requests follow a schedule that knows no outcomes.

use crate::Failure;
use crate::caller::{Caller, Wants};
use crate::hub::{Hub, RETRY, flush};
use crate::open::{Due, Schedule};
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};
use troth_link::{LinkReader, LinkWriter};
use troth_types::{Time, ToClient, Wire};

/// How often clients learn the time when nothing else happens.
const TICK: Duration = Duration::from_millis(10);

/// What the clients have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Requests with their results.
    pub(crate) done: u64,
    /// Frames signed and sent.
    pub(crate) frames: u64,
    /// Bytes written to connections, as on the wire.
    pub(crate) bytes_out: u64,
    /// Bytes read from connections.
    pub(crate) bytes_in: u64,
    /// Write calls.
    pub(crate) writes: u64,
    /// Read calls.
    pub(crate) reads: u64,
}

/// How the measurement steers the running clients.
#[derive(Default)]
pub(crate) struct Controls {
    /// Whether outcomes are followed by new requests.
    pub(crate) go_on: Cell<bool>,
    /// Whether latencies are kept.
    pub(crate) keep: Cell<bool>,
    /// Whether what each client gets done is counted no more.
    pub(crate) counted: Cell<bool>,
    /// What was done.
    pub(crate) progress: Cell<Progress>,
    /// Latencies kept, in microseconds, with the number of requests that had it.
    pub(crate) latencies: RefCell<Vec<(u32, u32)>>,
}

/// Requests that came together.
pub(crate) struct Burst {
    /// The number behind the last of them.
    pub(crate) end: u64,
    /// How many have no outcome yet.
    pub(crate) left: u64,
    /// What their latency is counted from: when they were submitted, and in an open loop when they were due.
    pub(crate) at: Instant,
    /// Whether their latency is of interest.
    pub(crate) counts: bool,
}

struct Client<C> {
    caller: C,
    writers: Vec<LinkWriter>,
    dirty: Vec<bool>,
    share: u32,
    submitted: u64,
    done: u64,
    bursts: VecDeque<Burst>,
    listed: bool,
}

/// Makes the next operation.
pub(crate) type Operations = Box<dyn FnMut() -> Bytes>;

/// The clients of one service.
pub(crate) struct Load<C> {
    clients: Vec<Client<C>>,
    servers: usize,
    hub: Rc<Hub>,
    operation: Operations,
    started: Instant,
    done: u64,
    submitted: u64,
    frames: u64,
    bytes_out: u64,
    writes: u64,
    /// Clients whose bytes no socket has taken yet.
    behind: BTreeSet<usize>,
    /// The server whose connections may end.
    spared: Option<usize>,
}

impl<C: Caller> Load<C> {
    /// Clients that ask for the same again and again.
    pub(crate) fn new(operation: Bytes) -> Self {
        Self::of(Box::new(move || operation.clone()))
    }

    /// Clients that ask for what is made for them.
    pub(crate) fn of(operation: Operations) -> Self {
        let (hub, started) = (Rc::new(Hub::default()), Instant::now());
        Self {
            clients: Vec::new(),
            servers: 0,
            hub,
            operation,
            started,
            done: 0,
            submitted: 0,
            frames: 0,
            bytes_out: 0,
            writes: 0,
            behind: BTreeSet::new(),
            spared: None,
        }
    }

    /// Goes on though the connections to this server end, without it from then on. After the clients were added.
    pub(crate) fn spare(&mut self, server: usize) {
        self.spared = Some(server);
        self.hub.spare(server, self.servers);
    }

    /// How many clients there are.
    pub(crate) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Adds a client with its connections, by server, and the requests it keeps outstanding.
    pub(crate) fn add(&mut self, caller: C, links: Vec<(LinkReader, LinkWriter)>, share: u32) {
        self.servers = caller.servers();
        assert_eq!(links.len(), self.servers, "one connection per server");
        let mut writers = Vec::new();
        for (server, (reader, writer)) in links.into_iter().enumerate() {
            self.hub.read(self.clients.len() * self.servers + server, reader);
            writers.push(writer);
        }
        let dirty = vec![false; self.servers];
        let bursts = VecDeque::new();
        self.clients.push(Client {
            caller,
            writers,
            dirty,
            share,
            submitted: 0,
            done: 0,
            bursts,
            listed: false,
        });
    }

    /// Keeps the planned requests outstanding until told not to go on, then waits for the last
    /// outcomes.
    pub(crate) async fn run(&mut self, controls: &Controls) -> Result<(), Failure> {
        for client in 0..self.clients.len() {
            let share = self.clients[client].share;
            self.submit(client, share, Instant::now());
        }
        self.drive(controls, None).await
    }

    /// Asks what is due when it is due until the schedule is over, then waits for the last outcomes. Nothing is
    /// asked because of an outcome as long as the controls do not say to go on.
    pub(crate) async fn follow(
        &mut self,
        controls: &Controls,
        schedule: &mut Schedule,
    ) -> Result<(), Failure> {
        self.drive(controls, Some(schedule)).await
    }

    async fn drive(
        &mut self,
        controls: &Controls,
        mut schedule: Option<&mut Schedule>,
    ) -> Result<(), Failure> {
        let mut arrived = Vec::new();
        let mut wants = Wants::default();
        let mut active: Vec<usize> = (0..self.clients.len()).collect();
        let mut ticked = Instant::now();
        loop {
            if let Some(schedule) = schedule.as_deref_mut() {
                self.ask_what_is_due(schedule, &mut active);
            }
            for index in active.drain(..) {
                self.serve(index, &mut wants, controls)?;
            }
            controls.progress.set(self.progress());
            let over = schedule.as_deref().is_none_or(Schedule::is_over);
            if self.done == self.submitted && over && !controls.go_on.get() {
                return Ok(());
            }
            let behind = !self.behind.is_empty();
            let next = async {
                match schedule.as_deref_mut() {
                    Some(schedule) => schedule.wait().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.hub.woken() => {}
                waited = next => waited?,
                () = tokio::time::sleep(if behind { RETRY } else { TICK }) => {}
            }
            // Whoever has bytes to read reads them now, so that one turn takes them together.
            tokio::task::yield_now().await;
            if let Some(why) = self.hub.lost() {
                return Err(why.into());
            }
            let now = Instant::now();
            self.hub.swap(&mut arrived);
            for (connection, bytes) in arrived.drain(..) {
                let (index, from) = (connection / self.servers, connection % self.servers);
                let message = ToClient::from_wire(&bytes).map_err(|why| format!("server {from}: {why}"))?;
                let time = self.time(now);
                let client = &mut self.clients[index];
                client.caller.on_message(time, from, message);
                if !std::mem::replace(&mut client.listed, true) {
                    active.push(index);
                }
            }
            active.extend(self.behind.iter().copied());
            if now.duration_since(ticked) >= TICK {
                ticked = now;
                let time = self.time(now);
                for (index, client) in self.clients.iter_mut().enumerate() {
                    // What a client does at a time, it does in `serve`.
                    if client.caller.next_wake().is_some_and(|wake| wake <= time)
                        && !std::mem::replace(&mut client.listed, true)
                    {
                        active.push(index);
                    }
                }
            }
        }
    }

    /// Does what a client wants: notes outcomes, follows them by new requests, writes once per server.
    fn serve(&mut self, index: usize, wants: &mut Wants, controls: &Controls) -> Result<(), Failure> {
        self.clients[index].listed = false;
        // Whatever has become due by what came is done now, as the client's front does it.
        let time = self.time(Instant::now());
        self.clients[index].caller.on_time(time);
        loop {
            self.clients[index].caller.poll(wants);
            if let Some(why) = wants.failed.pop() {
                return Err(format!("a request failed: {why}").into());
            }
            self.frames += std::mem::take(&mut wants.frames);
            let client = &mut self.clients[index];
            for (server, bytes) in wants.sends.drain(..) {
                // What does not reach a server that may go reaches nobody.
                if let Err(why) = client.writers[server].queue(&bytes)
                    && self.spared != Some(server)
                {
                    return Err(format!("client {index}, server {server}: {why}").into());
                }
                client.dirty[server] = true;
            }
            if wants.done.is_empty() {
                break;
            }
            let now = Instant::now();
            let done = wants.done.len() as u64;
            self.done += done;
            client.done += if controls.counted.get() { 0 } else { done };
            note(&mut client.bursts, wants.done.drain(..), now, controls);
            if controls.go_on.get() {
                self.submit(index, u32::try_from(done).expect("bounded by the plan"), now);
            }
        }
        let client = &mut self.clients[index];
        for (server, (writer, dirty)) in client.writers.iter_mut().zip(&mut client.dirty).enumerate() {
            if *dirty {
                let before = writer.counters();
                *dirty = match flush(writer) {
                    Err(_) if self.spared == Some(server) => false,
                    Err(why) => return Err(format!("client {index}, server {server}: {why}").into()),
                    Ok(more) => more,
                };
                let after = writer.counters();
                self.bytes_out += after.bytes - before.bytes;
                self.writes += after.calls - before.calls;
            }
        }
        if client.dirty.contains(&true) {
            self.behind.insert(index);
        } else {
            self.behind.remove(&index);
        }
        Ok(())
    }

    /// What each client got done.
    pub(crate) fn done_of_each(&self) -> Vec<u64> {
        self.clients.iter().map(|client| client.done).collect()
    }

    fn ask_what_is_due(&mut self, schedule: &mut Schedule, active: &mut Vec<usize>) {
        let now = Instant::now();
        let time = self.time(now);
        while let Some(Due { client: index, at, counts }) = schedule.due(now, self.submitted - self.done) {
            let client = &mut self.clients[index];
            client.caller.submit(time, (self.operation)());
            client.submitted += 1;
            self.submitted += 1;
            client.bursts.push_back(Burst { end: client.submitted, left: 1, at, counts });
            if !std::mem::replace(&mut client.listed, true) {
                active.push(index);
            }
        }
    }

    fn submit(&mut self, index: usize, count: u32, now: Instant) {
        let time = self.time(now);
        let client = &mut self.clients[index];
        for _ in 0..count {
            client.caller.submit(time, (self.operation)());
        }
        client.submitted += u64::from(count);
        self.submitted += u64::from(count);
        if count > 0 {
            let (end, left) = (client.submitted, u64::from(count));
            client.bursts.push_back(Burst { end, left, at: now, counts: true });
        }
    }

    fn time(&self, now: Instant) -> Time {
        let since = now.duration_since(self.started) + Duration::from_secs(1);
        Time(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn progress(&self) -> Progress {
        let (bytes_in, reads) = self.hub.counters();
        let (bytes_out, writes) = (self.bytes_out, self.writes);
        Progress { done: self.done, frames: self.frames, bytes_out, bytes_in, writes, reads }
    }
}

/// Notes how long requests took.
pub(crate) fn note(
    bursts: &mut VecDeque<Burst>,
    done: impl Iterator<Item = u64>,
    now: Instant,
    controls: &Controls,
) {
    let mut latencies = controls.latencies.borrow_mut();
    for number in done {
        let index = bursts.partition_point(|burst| burst.end <= number);
        let burst = &mut bursts[index];
        burst.left -= 1;
        if controls.keep.get() && burst.counts {
            let took = u32::try_from(now.duration_since(burst.at).as_micros()).unwrap_or(u32::MAX);
            match latencies.last_mut() {
                Some((same, count)) if *same == took => *count += 1,
                _ => latencies.push((took, 1)),
            }
        }
        while bursts.front().is_some_and(|burst| burst.left == 0) {
            bursts.pop_front();
        }
    }
}
