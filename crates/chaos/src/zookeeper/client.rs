//! A client of our own: one session, over one connection after the other, and a journal of it.

use super::journal::{Ask, Aspect, Change, Done, Entry, Watches, watch_set};
use super::wire::{self, Packet};
use super::world::World;
use crate::random::Random;
use bytes::{Bytes, BytesMut};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};

/// How long a gateway may take to accept and to give a session.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// The longest rest before the next connection, in milliseconds.
const REST: u64 = 200;
/// Addresses from which clients connect: a server may bound the connections of one.
const SOURCES: usize = 16;

/// Why there is no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The connection is over: the request may have been executed.
    Lost,
    /// The session is.
    Over,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The last transaction that it reflects.
    pub(crate) zxid: i64,
    /// An error is ZooKeeper's number of it.
    pub(crate) outcome: Result<Done, i32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Away,
    There,
    Over,
}

enum Order {
    /// End without a word.
    Stop,
    /// Drop the connection, and connect anew so much later.
    Away(Duration),
}

/// Why a connection is over.
enum End {
    Broken,
    Away(Duration),
    Stopped,
    Expired,
    Closed,
}

struct Pending {
    xid: i32,
    /// Where the request stands in the journal.
    place: usize,
    answer: Option<oneshot::Sender<Reply>>,
}

struct State {
    session: i64,
    /// Milliseconds.
    timeout: u32,
    password: Bytes,
    /// The last transaction that a reply showed.
    seen: i64,
    xid: i32,
    pending: VecDeque<Pending>,
    out: Option<mpsc::UnboundedSender<Bytes>>,
    watches: Watches,
    /// Who waits for an event of a node.
    waiting: Vec<(String, oneshot::Sender<Change>)>,
}

struct Inner {
    world: Rc<World>,
    /// Of its journal.
    number: usize,
    state: RefCell<State>,
    phase: watch::Sender<Phase>,
    orders: mpsc::UnboundedSender<Order>,
    gateway: Cell<usize>,
}

/// A session.
#[derive(Clone)]
pub(crate) struct Session(Rc<Inner>);

impl Session {
    /// Opens one and waits for it. Needs a `LocalSet`.
    pub(crate) async fn open(world: &Rc<World>, timeout: u32, random: Random) -> Self {
        let (orders, ordered) = mpsc::unbounded_channel();
        let state = State {
            session: 0,
            timeout,
            password: Bytes::from_static(&[0; 16]),
            seen: 0,
            xid: 0,
            pending: VecDeque::new(),
            out: None,
            watches: Watches::new(),
            waiting: Vec::new(),
        };
        let inner = Rc::new(Inner {
            world: Rc::clone(world),
            number: world.begin(timeout),
            state: RefCell::new(state),
            phase: watch::Sender::new(Phase::Away),
            orders,
            gateway: Cell::new(0),
        });
        tokio::task::spawn_local(drive(Rc::clone(&inner), ordered, random));
        let session = Self(inner);
        session.until(|phase| phase != Phase::Away).await;
        session
    }

    async fn until(&self, is: impl Fn(Phase) -> bool) -> Phase {
        let mut phase = self.0.phase.subscribe();
        // We hold the sender.
        phase.wait_for(|phase| is(*phase)).await.map_or(Phase::Over, |phase| *phase)
    }

    /// Which journal it has.
    pub(crate) fn number(&self) -> usize {
        self.0.number
    }

    /// The session as the servers know it; 0 until it is open.
    pub(crate) fn id(&self) -> i64 {
        self.0.state.borrow().session
    }

    /// Whether it is watched so already.
    pub(crate) fn watches(&self, aspect: Aspect, path: &str) -> bool {
        self.0.state.borrow().watches.contains(&(aspect, path.to_owned()))
    }

    /// Asks once the session has a connection, in the order of the calls.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<Reply, Failed> {
        let answer = loop {
            if self.until(|phase| phase != Phase::Away).await == Phase::Over {
                return Err(Failed::Over);
            }
            if let Some(answer) = self.0.send(&ask) {
                break answer;
            }
        };
        answer.await.map_err(|_| match *self.0.phase.borrow() {
            Phase::Over => Failed::Over,
            Phase::Away | Phase::There => Failed::Lost,
        })
    }

    /// The next event of a node; an error where the session ends before.
    pub(crate) fn next_event(&self, path: &str) -> oneshot::Receiver<Change> {
        let (tell, told) = oneshot::channel();
        self.0.state.borrow_mut().waiting.push((path.to_owned(), tell));
        told
    }

    /// Drops the connection; it is made anew, to another gateway, so much later.
    pub(crate) fn go_away(&self, time: Duration) {
        // Where nobody listens the session is over.
        let _ = self.0.orders.send(Order::Away(time));
    }

    /// Ends the client without a word to anybody.
    pub(crate) async fn abandon(&self) {
        let _ = self.0.orders.send(Order::Stop);
        self.until(|phase| phase == Phase::Over).await;
    }

    /// Closes the session, however often it takes.
    pub(crate) async fn close(&self) {
        while self.ask(Ask::Close).await != Err(Failed::Over) {
            // An answer is followed by the end; without one it is asked again.
        }
    }
}

async fn drive(inner: Rc<Inner>, mut orders: mpsc::UnboundedReceiver<Order>, mut random: Random) {
    let gateways = inner.world.gateways.len();
    inner.gateway.set(random.index(gateways));
    loop {
        let end = inner.connection(&mut orders).await;
        inner.lost();
        let rest = match end {
            End::Away(time) => time,
            End::Broken => Duration::from_millis(random.range(REST / 10, REST)),
            End::Expired => break inner.over(Some(Entry::Expired)),
            End::Closed => break inner.over(None),
            End::Stopped => break inner.over(Some(Entry::Abandoned)),
        };
        tokio::time::sleep(rest).await;
        if gateways > 1 {
            let further = 1 + random.index(gateways - 1);
            inner.gateway.set((inner.gateway.get() + further) % gateways);
        }
    }
}

impl Inner {
    fn note(&self, entry: Entry) -> usize {
        self.world.note(self.number, entry)
    }

    /// Sends a request, if there is a connection.
    fn send(&self, ask: &Ask) -> Option<oneshot::Receiver<Reply>> {
        let state = &mut *self.state.borrow_mut();
        let out = state.out.clone()?;
        state.xid += 1;
        let xid = wire::xid(ask, state.xid);
        let place = self.note(Entry::Sent(ask.clone()));
        let (answer, answered) = oneshot::channel();
        state.pending.push_back(Pending { xid, place, answer: Some(answer) });
        // Where the connection has just ended, the request counts as lost with it.
        let _ = out.send(wire::request(xid, ask));
        Some(answered)
    }

    /// The connection is over.
    fn lost(&self) {
        let state = &mut *self.state.borrow_mut();
        state.pending.clear();
        if state.out.take().is_some() {
            self.note(Entry::Lost);
            self.phase.send_replace(Phase::Away);
        }
    }

    /// The session is over.
    fn over(&self, how: Option<Entry>) {
        let state = &mut *self.state.borrow_mut();
        if let Some(entry) = how {
            self.note(entry);
        }
        state.waiting.clear();
        self.phase.send_replace(Phase::Over);
    }

    /// The session is attached to a connection: what it watches is said first of all.
    fn attached(&self, attached: wire::Attached, out: mpsc::UnboundedSender<Bytes>) {
        {
            let state = &mut *self.state.borrow_mut();
            state.session = attached.session;
            state.timeout = u32::try_from(attached.timeout).unwrap_or(0);
            self.world.journal(self.number, |journal| {
                (journal.session, journal.timeout) = (state.session, state.timeout);
            });
            state.password = attached.password;
            state.out = Some(out);
            self.note(Entry::Connected { gateway: self.gateway.get() });
        }
        let rewatch = {
            let state = self.state.borrow();
            let of = |aspect: Aspect| {
                let own = state.watches.iter().filter(move |(of, _)| *of == aspect);
                own.map(|(_, path)| path.clone()).collect()
            };
            (!state.watches.is_empty()).then(|| Ask::Rewatch {
                seen: state.seen,
                data: of(Aspect::Data),
                exists: of(Aspect::Coming),
                children: of(Aspect::Children),
            })
        };
        if let Some(rewatch) = rewatch {
            // Nobody waits for its answer.
            drop(self.send(&rewatch));
        }
        self.phase.send_replace(Phase::There);
    }

    /// One connection, from its beginning to its end.
    async fn connection(&self, orders: &mut mpsc::UnboundedReceiver<Order>) -> End {
        let entering = tokio::time::timeout(HANDSHAKE, self.enter());
        let entered = tokio::select! {
            entered = entering => entered,
            order = orders.recv() => return of(order),
        };
        let Ok(Some((stream, mut buffer, attached))) = entered else { return End::Broken };
        if attached.timeout <= 0 || attached.session == 0 {
            let is_new = self.state.borrow().session == 0;
            return if is_new { End::Broken } else { End::Expired };
        }
        let timeout = Duration::from_millis(u64::try_from(attached.timeout).unwrap_or(0));
        let (out, mut outgoing) = mpsc::unbounded_channel();
        self.attached(attached, out);
        let (mut reader, mut writer) = stream.into_split();
        let mut looks = tokio::time::interval(timeout / 12);
        let (mut heard, mut said) = (Instant::now(), Instant::now());
        let mut pings = 0_u32;
        loop {
            loop {
                match wire::take(&mut buffer) {
                    Ok(None) => break,
                    Ok(Some(packet)) => {
                        heard = Instant::now();
                        if let Some(end) = self.packet(&packet, &mut pings) {
                            return end;
                        }
                    }
                    Err(why) => return self.strange(&why.to_string()),
                }
            }
            tokio::select! {
                read = reader.read_buf(&mut buffer) => match read {
                    Ok(0) | Err(_) => return End::Broken,
                    Ok(_) => {}
                },
                packet = outgoing.recv() => {
                    let Some(packet) = packet else { return End::Broken };
                    said = Instant::now();
                    if writer.write_all(&packet).await.is_err() {
                        return End::Broken;
                    }
                }
                _ = looks.tick() => {
                    if heard.elapsed() > timeout * 2 / 3 {
                        return End::Broken;
                    }
                    if said.elapsed() > timeout / 4 {
                        said = Instant::now();
                        pings += 1;
                        if writer.write_all(&wire::ping()).await.is_err() {
                            return End::Broken;
                        }
                    }
                }
                order = orders.recv() => return of(order),
            }
        }
    }

    /// Connects and shows the session, or asks for one.
    async fn enter(&self) -> Option<(TcpStream, BytesMut, wire::Attached)> {
        let first = {
            let state = self.state.borrow();
            wire::connect(state.seen, state.timeout, state.session, &state.password)
        };
        let last = u8::try_from(1 + self.number % SOURCES).ok()?;
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(([127, 0, 0, last], 0).into()).ok()?;
        let mut stream = socket.connect(self.world.gateways[self.gateway.get()]).await.ok()?;
        stream.set_nodelay(true).ok()?;
        stream.write_all(&first).await.ok()?;
        let mut buffer = BytesMut::new();
        loop {
            if let Some(packet) = wire::take(&mut buffer).ok()? {
                return Some((stream, buffer, wire::attached(&packet).ok()?));
            }
            if stream.read_buf(&mut buffer).await.ok()? == 0 {
                return None;
            }
        }
    }

    fn strange(&self, what: &str) -> End {
        self.world.strange(format!("session {:#x}: {what}", self.state.borrow().session));
        End::Broken
    }

    /// What the server said; the end of the connection, where it is that.
    fn packet(&self, packet: &Bytes, pings: &mut u32) -> Option<End> {
        match wire::packet(packet) {
            Err(why) => Some(self.strange(&why.to_string())),
            Ok(Packet::Pong) => {
                if *pings == 0 {
                    return Some(self.strange("an answer to no ping"));
                }
                *pings -= 1;
                self.note(Entry::Pong);
                None
            }
            Ok(Packet::Fired { zxid, change, path }) => {
                self.fired(zxid, change, &path);
                None
            }
            Ok(Packet::Reply { xid, zxid, error, body }) => self.reply(xid, zxid, error, &body),
        }
    }

    fn fired(&self, zxid: i64, change: Change, path: &str) {
        let state = &mut *self.state.borrow_mut();
        self.note(Entry::Fired { zxid, change, path: path.to_owned() });
        state.watches.retain(|(aspect, watched)| watched != path || !aspect.is_told_of(change));
        let (told, others) =
            std::mem::take(&mut state.waiting).into_iter().partition(|(waits, _)| waits == path);
        state.waiting = others;
        let told: Vec<(String, oneshot::Sender<Change>)> = told;
        for (_, waiting) in told {
            // Who gave up waiting need not hear it.
            let _ = waiting.send(change);
        }
    }

    fn reply(&self, xid: i32, zxid: i64, error: i32, body: &Bytes) -> Option<End> {
        let state = &mut *self.state.borrow_mut();
        let expected = state.pending.pop_front().filter(|pending| pending.xid == xid);
        let Some(mut pending) = expected else {
            self.world.strange(format!("a reply to request {xid} came out of order"));
            return Some(End::Broken);
        };
        let (ask, sent) = self.world.journal(self.number, |journal| {
            Some((journal.asked(pending.place)?.clone(), journal.lines[pending.place].at))
        })?;
        let outcome = if error == 0 { wire::done(&ask, body).map(Ok) } else { Ok(Err(error)) };
        let Ok(outcome) = outcome else {
            self.world.strange(format!("the answer to {ask:?} is malformed"));
            return Some(End::Broken);
        };
        state.seen = state.seen.max(zxid);
        self.world.answered(sent);
        state.watches.extend(watch_set(&ask, &outcome));
        let closed = matches!((&ask, &outcome), (Ask::Close, Ok(_)));
        self.note(Entry::Reply { to: pending.place, zxid, outcome: outcome.clone() });
        if let Some(answer) = pending.answer.take() {
            // Nobody waits for some.
            let _ = answer.send(Reply { zxid, outcome });
        }
        closed.then_some(End::Closed)
    }
}

fn of(order: Option<Order>) -> End {
    match order {
        Some(Order::Away(time)) => End::Away(time),
        Some(Order::Stop) | None => End::Stopped,
    }
}
