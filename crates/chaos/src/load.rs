//! The load: clients with a few strands each, every strand asking for one thing after the other, and
//! all of it noted in the history.

use crate::Failure;
use crate::cli::Plan;
use crate::history::{History, Outcome, Record, Verb};
use crate::ledger::Ledger;
use crate::machines::Machines;
use crate::random::Random;
use bytes::Bytes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use troth_client::front::{Client, ConnectError};
use troth_kv::{Answer, Operation};
use troth_types::Wire;

/// Keys in use at a time: few, so that strands meet on them.
const KEYS: usize = 8;
/// Operations on a key until another takes its place: what the judge needs grows with the square of it.
const KEY_LIFE: u32 = 2000;
/// How long operations of clients in turn may wait for their outcome before it counts as unknown: the
/// hasty ones leave writes behind that may be done at any time later.
const DEADLINES: [Duration; 2] = [Duration::from_millis(700), Duration::from_secs(5)];
/// The longest rest of a strand between two operations, in microseconds.
const REST: u64 = 20_000;
/// Between two attempts of what must succeed in the end.
const AGAIN: Duration = Duration::from_millis(200);

/// How keys begin that one strand alone writes, and what comes after all of them.
const ALONE: &str = "alone-";
const AFTER_ALONE: &str = "alone.";
/// Keys that a strand of the flood writes in turn.
const FLOOD_KEYS: u64 = 16;

/// What all strands share.
pub(crate) struct Shared {
    pub(crate) history: RefCell<History>,
    pub(crate) ledger: RefCell<Ledger>,
    go_on: Cell<bool>,
    keys: RefCell<Keys>,
    /// Distinguishes all values ever written.
    values: Cell<u64>,
    /// Operations that were answered, when the last one was, and the longest time between two.
    answered: Cell<u64>,
    last_answer: Cell<Instant>,
    silence: Cell<Duration>,
}

/// The keys, and what was last heard of them.
struct Keys {
    /// Per place, how often its key was replaced and how much the present one was used.
    places: Vec<(u32, u32)>,
    /// The newest version heard of; none for an absent key.
    versions: BTreeMap<String, Option<u64>>,
}

impl Keys {
    fn pick(&mut self, random: &mut Random) -> String {
        let place = random.index(self.places.len());
        let (generation, used) = &mut self.places[place];
        *used += 1;
        if *used > KEY_LIFE {
            (*generation, *used) = (*generation + 1, 1);
        }
        let key = format!("key-{place}-{generation}");
        self.versions.entry(key.clone()).or_insert(None);
        key
    }

    fn heard(&mut self, record: &Record) {
        if let Some(known) = self.versions.get_mut(&record.key) {
            *known = record.version.max(*known);
        }
    }
}

/// The running load.
pub(crate) struct Load {
    pub(crate) shared: Rc<Shared>,
    clients: Vec<Client>,
    strands: Vec<JoinHandle<()>>,
}

impl Load {
    /// Connects all clients, for `patience` at most, and starts their strands. Needs a `LocalSet`.
    pub(crate) async fn start(
        plan: &Plan,
        seed: u64,
        machines: &Machines,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let mut clients = Vec::new();
        let give_up = Instant::now() + patience;
        for number in 1..=plan.clients {
            let mut config = machines.client(number)?;
            let deadline = DEADLINES[usize::from(number) % DEADLINES.len()];
            config.timing.deadline = u64::try_from(deadline.as_micros()).expect("seconds");
            let client = loop {
                match Client::connect(config.clone()).await {
                    Err(ConnectError::Unavailable { .. }) if Instant::now() < give_up => {}
                    connected => break connected?,
                }
            };
            clients.push(client);
        }
        let shared = Rc::new(Shared {
            history: RefCell::new(History::new()),
            go_on: Cell::new(true),
            keys: RefCell::new(Keys { places: vec![(0, 0); KEYS], versions: BTreeMap::new() }),
            values: Cell::new(0),
            ledger: RefCell::default(),
            answered: Cell::new(0),
            last_answer: Cell::new(Instant::now()),
            silence: Cell::new(Duration::ZERO),
        });
        let mut strands = Vec::new();
        for client in &clients {
            for _ in 0..plan.outstanding {
                let number = u32::try_from(strands.len()).expect("few");
                let random = Random::stream(seed, 1 + u64::from(number));
                let strand = strand(Rc::clone(&shared), client.clone(), number, random);
                strands.push(tokio::task::spawn_local(strand));
            }
        }
        Ok(Self { shared, clients, strands })
    }

    /// Adds strands that write without a rest, so many per client. Each has keys of its own, which are in the
    /// ledger and not in the history: the judge's work grows too fast with what is under way at a time.
    pub(crate) fn flood(&mut self, per_client: u16) {
        for (client, number) in
            self.clients.iter().flat_map(|client| (0..per_client).map(move |n| (client, n)))
        {
            let (shared, client) = (Rc::clone(&self.shared), client.clone());
            let own = self.strands.len();
            self.strands.push(tokio::task::spawn_local(async move {
                let mut turn = u64::from(number);
                while shared.go_on.get() {
                    turn += 1;
                    shared.write_alone(&client, &format!("{ALONE}flood-{own}-{}", turn % FLOOD_KEYS)).await;
                }
            }));
        }
    }

    /// Every acknowledged write of a key that nobody else wrote must be there, and the store must have counted
    /// as many writes as were acknowledged, and no more than were asked for.
    pub(crate) async fn count_up(&self, patience: Duration) -> Result<(), String> {
        let client = self.clients.first().ok_or("there are no clients")?;
        let give_up = Instant::now() + patience;
        let mut found = BTreeMap::new();
        let mut next = Bytes::from_static(ALONE.as_bytes());
        loop {
            let scan = Operation::Scan {
                start: next,
                end: Some(Bytes::from_static(AFTER_ALONE.as_bytes())),
                limit: 500,
            };
            let answer = loop {
                match client.execute(scan.to_wire()).await {
                    Ok(answer) => break answer,
                    Err(why) if Instant::now() > give_up => {
                        return Err(format!("a scan has no answer: {why}"));
                    }
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            };
            let Ok(Answer::Entries { entries, next: more }) = Answer::from_wire(&answer) else {
                return Err("a scan was answered with something else".to_owned());
            };
            for entry in entries {
                let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
                found.insert(text(&entry.key), (entry.version, text(&entry.value)));
            }
            let Some(more) = more else { break };
            next = more;
        }
        self.shared.ledger.borrow_mut().compare(&found);
        Ok(())
    }

    /// Lets every strand end what it has under way.
    pub(crate) async fn stop(&mut self) -> Result<(), Failure> {
        self.shared.go_on.set(false);
        for strand in self.strands.drain(..) {
            strand.await?;
        }
        Ok(())
    }

    /// Every client writes every key in use and reads every key ever used, and must succeed within
    /// `patience`; else says what has no outcome.
    pub(crate) async fn finish(&self, patience: Duration) -> Result<(), String> {
        let (in_use, ever) = {
            let keys = self.shared.keys.borrow();
            let in_use = (0..).zip(&keys.places).map(|(place, (now, _))| format!("key-{place}-{now}"));
            (in_use.collect::<Vec<_>>(), keys.versions.keys().cloned().collect::<Vec<_>>())
        };
        let give_up = Instant::now() + patience;
        let mut finishing = Vec::new();
        for (number, client) in (0u32..).zip(&self.clients) {
            let (shared, client) = (Rc::clone(&self.shared), client.clone());
            let (in_use, ever) = (in_use.clone(), ever.clone());
            // Numbered above all strands.
            let process = 1_000_000 + number;
            finishing.push(tokio::task::spawn_local(async move {
                let writes = in_use.iter().map(|key| (key, Verb::Put));
                for (key, verb) in writes.chain(ever.iter().map(|key| (key, Verb::Get))) {
                    loop {
                        let value = if verb == Verb::Put { shared.value() } else { String::new() };
                        let record = Record::new(process, key, verb, &value, None);
                        if !matches!(
                            shared.ask(&client, record, false).await,
                            Outcome::Unknown | Outcome::Failed
                        ) {
                            break;
                        }
                        if Instant::now() > give_up {
                            let client = number + 1;
                            return Err(format!("client {client} has no answer to a {verb:?} of {key}"));
                        }
                        tokio::time::sleep(AGAIN).await;
                    }
                }
                Ok(())
            }));
        }
        for finished in finishing {
            finished.await.map_err(|why| why.to_string())??;
        }
        Ok(())
    }
}

impl Shared {
    /// A value that nobody wrote before.
    fn value(&self) -> String {
        let next = self.values.get() + 1;
        self.values.set(next);
        format!("value-{next}")
    }

    /// Asks for one thing and notes what comes of it.
    async fn ask(&self, client: &Client, record: Record, fast: bool) -> Outcome {
        let operation = record.operation();
        let writes = record.verb != Verb::Get;
        self.ledger.borrow_mut().asked(writes);
        let place = self.history.borrow_mut().begin(record);
        let result = if fast { client.read(operation).await } else { client.execute(operation).await };
        let mut history = self.history.borrow_mut();
        let record = history.end(place, result);
        self.keys.borrow_mut().heard(record);
        if record.returned.is_some() {
            self.heard();
        }
        if record.wrote() {
            self.ledger.borrow_mut().wrote(record.version.unwrap_or(0));
        }
        record.outcome
    }

    /// Writes a key that nobody else writes.
    async fn write_alone(&self, client: &Client, key: &str) {
        let value = self.value();
        self.ledger.borrow_mut().asked(true);
        let (wire_key, wire_value) = (Bytes::from(key.to_owned()), Bytes::from(value.clone()));
        let result = client.execute(Operation::Put { key: wire_key, value: wire_value }.to_wire()).await;
        let Ok(answer) = result else { return };
        self.heard();
        let mut ledger = self.ledger.borrow_mut();
        match Answer::from_wire(&answer) {
            Ok(Answer::Written { version }) => {
                ledger.wrote(version);
                ledger.alone(key, version, value);
            }
            other => ledger.strange(format!("a put of {key} was answered with {other:?}")),
        }
    }

    /// Notes that something was answered.
    fn heard(&self) {
        let now = Instant::now();
        self.silence.set(self.silence.get().max(now - self.last_answer.replace(now)));
        self.answered.set(self.answered.get() + 1);
    }

    /// How many operations were answered.
    pub(crate) fn requests(&self) -> u64 {
        self.answered.get()
    }

    /// The longest time without an answer since this was asked last, up to now.
    pub(crate) fn longest_silence(&self) -> Duration {
        self.silence.replace(Duration::ZERO).max(self.last_answer.replace(Instant::now()).elapsed())
    }
}

async fn strand(shared: Rc<Shared>, client: Client, number: u32, mut random: Random) {
    while shared.go_on.get() {
        if random.range(0, 9) == 0 {
            // A key of its own for one write: whether that is there in the end, no other write can hide.
            let key = format!("{ALONE}{number}-{}", shared.values.get());
            shared.write_alone(&client, &key).await;
            tokio::time::sleep(Duration::from_micros(random.range(0, REST))).await;
            continue;
        }
        let key = shared.keys.borrow_mut().pick(&mut random);
        let expected = shared.keys.borrow().versions[&key];
        let (verb, fast) = match random.range(0, 9) {
            0..=1 => (Verb::Get, true),
            2..=3 => (Verb::Get, false),
            4..=6 => (Verb::Put, false),
            _ => (Verb::Cas, false),
        };
        let record = match verb {
            Verb::Get => Record::new(number, &key, verb, "", None),
            Verb::Put => Record::new(number, &key, verb, &shared.value(), None),
            Verb::Cas => Record::new(number, &key, verb, &shared.value(), expected),
        };
        // How it ended is in the history.
        let _ = shared.ask(&client, record, fast).await;
        tokio::time::sleep(Duration::from_micros(random.range(0, REST))).await;
    }
}
