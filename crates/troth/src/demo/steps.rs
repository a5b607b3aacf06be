//! The steps after the start. Each returns the sentence that says what was seen.

use super::model::wrong;
use super::stage::Stage;
use crate::failure::{Failure, NOT_DONE};
use crate::kv;
use crate::print::{foreign, part};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use troth_client::front::Client;
use troth_kv::{Answer, Change, Operation, Watch};
use troth_link::{Identity, LinkKey, PeerId, Settings, connect};
use troth_node::config::ClientSecret;
use troth_types::{ClientId, Read, ReadReply, ReplicaId, Reply, ReplyBody, ToClient, ToReplica, Wire};

/// Keys written in each of the two writing steps.
pub(crate) const KEYS: usize = 2000;
/// Requests outstanding in all.
const AT_ONCE: usize = 32;
/// Changes of the watched keys.
const CHANGES: usize = 60;
/// Rounds of the competition.
const ROUNDS: u64 = 25;
/// How long an event may take.
const EVENT_PATIENCE: Duration = Duration::from_secs(30);

fn text(words: String) -> Bytes {
    Bytes::from(words)
}

/// Writes keys and checks every answer.
pub(crate) async fn write(stage: &mut Stage) -> Result<String, Failure> {
    let began = Instant::now();
    let work = (0..KEYS).map(|i| (format!("key/{i:04}"), text(format!("value {i}")))).collect();
    write_all(stage, work, |_| Ok(())).await?;
    Ok(format!("{KEYS} writes confirmed in {:.2} s", began.elapsed().as_secs_f64()))
}

/// Writes many keys, some at a time. `between` is told how many are confirmed.
async fn write_all(
    stage: &mut Stage,
    mut work: VecDeque<(String, Bytes)>,
    mut between: impl FnMut(&mut Stage) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut running = JoinSet::new();
    let mut progress = Progress::new(work.len());
    loop {
        while running.len() < AT_ONCE
            && let Some((key, value)) = work.pop_front()
        {
            let client = stage.client(running.len() % 2);
            running.spawn(put(client, key, value));
        }
        let Some(ended) = running.join_next().await else { return Ok(()) };
        let (key, value, version) = ended.map_err(|_| Failure::new(NOT_DONE, "a request was dropped"))??;
        stage.model.wrote(&key, version, value)?;
        progress.step();
        if progress.is_half() {
            between(stage)?;
        }
    }
}

async fn put(client: Client, key: String, value: Bytes) -> Result<(String, Bytes, u64), Failure> {
    let operation = Operation::Put { key: text(key.clone()), value: value.clone() };
    match kv::execute(&client, &operation).await? {
        Answer::Written { version } => Ok((key, value, version)),
        other => Err(wrong(format!("writing {key} is answered by {other:?}"))),
    }
}

/// Writes half of the keys once more and as many new ones.
pub(crate) async fn overwrite(stage: &mut Stage, words: &str) -> Result<(), Failure> {
    let key = |i| format!("key/{:04}", KEYS / 2 + i);
    let work = (0..KEYS).map(|i| (key(i), text(format!("value {i}, {words}")))).collect();
    write_all(stage, work, |_| Ok(())).await
}

/// Reads these keys.
pub(crate) async fn read_all(stage: &mut Stage, keys: Vec<String>) -> Result<(), Failure> {
    let mut keys = VecDeque::from(keys);
    let mut running = JoinSet::new();
    let mut progress = Progress::new(keys.len());
    loop {
        while running.len() < AT_ONCE
            && let Some(key) = keys.pop_front()
        {
            let client = stage.client(running.len() % 2);
            running.spawn(async move {
                let answer = kv::get(&client, &key).await;
                (key, answer)
            });
        }
        let Some(ended) = running.join_next().await else { return Ok(()) };
        let (key, answer) = ended.map_err(|_| Failure::new(NOT_DONE, "a request was dropped"))?;
        stage.model.read(&key, answer?.as_ref())?;
        progress.step();
    }
}

/// What one replica alone says that a key holds: no client would believe it.
pub(crate) async fn alone(stage: &Stage, replica: ReplicaId, key: &str) -> Result<ReplyBody, Failure> {
    let id = ClientId(4);
    let secret = ClientSecret::load(&stage.layout.client_secret(id), &stage.cluster)?;
    let identity = Identity::new(PeerId::Client(id), secret.link);
    let settings = Settings::new(stage.cluster.group.id());
    let entry = stage.cluster.replica(replica);
    let failed = |why: &dyn std::fmt::Display| {
        Failure::new(NOT_DONE, format!("asking replica {} alone failed: {why}", replica.0))
    };
    let (mut reader, mut writer) =
        connect(entry.address.as_str(), &identity, &LinkKey(entry.link_key), &settings)
            .await
            .map_err(|why| failed(&why))?;
    // The replica that owes the full answer is named by client and number.
    let owes = |number: &u64| stage.cluster.group.designated(id, *number) == replica;
    let number = (1..).find(owes).ok_or_else(|| failed(&"it never answers in full"))?;
    let operation = Operation::Get { key: text(key.to_owned()) }.to_wire();
    let question = ToReplica::Read(Read { client: id, number, nonce: None, least: None, operation });
    writer.queue(&question.to_wire()).map_err(|why| failed(&why))?;
    writer.flush().await.map_err(|why| failed(&why))?;
    let answer = tokio::time::timeout(EVENT_PATIENCE, reader.next())
        .await
        .map_err(|_| failed(&"it does not answer"))?
        .map_err(|why| failed(&why))?
        .ok_or_else(|| failed(&"it hangs up"))?;
    match ToClient::from_wire(&answer) {
        Ok(ToClient::ReadReply(ReadReply { body, .. })) => Ok(body),
        other => Err(failed(&format!("it answers {other:?}"))),
    }
}

pub(crate) fn is_result(body: &ReplyBody, expected: &Bytes) -> bool {
    match body {
        ReplyBody::Full(results) => results.as_slice() == std::slice::from_ref(expected),
        ReplyBody::Digest(digest) => *digest == Reply::results_digest(std::slice::from_ref(expected)),
    }
}

pub(crate) fn describe(body: &ReplyBody) -> String {
    match body {
        ReplyBody::Full(results) => {
            let words: Vec<_> = results.iter().map(|result| String::from_utf8_lossy(result)).collect();
            format!("\"{}\"", foreign(&words.join(", ")))
        }
        ReplyBody::Digest(_) => "with the digest of something else".to_owned(),
    }
}

/// Watches keys with one client while the other changes them.
pub(crate) async fn watch(stage: &mut Stage) -> Result<String, Failure> {
    let (watcher, writer) = (stage.client(0), stage.client(1));
    let mut events = watcher.events().await?;
    let watch = Watch::Prefix(Bytes::from_static(b"watched/"));
    match kv::execute(&watcher, &Operation::Watch(watch.clone())).await? {
        Answer::Watching => {}
        other => return Err(wrong(format!("a watch is answered by {other:?}"))),
    }
    let mut expected = Vec::new();
    let mut progress = Progress::new(CHANGES);
    for i in 0..CHANGES {
        let (key, value) = (format!("watched/{}", i % 7), text(format!("change {i}")));
        let (key, value, version) = put(writer.clone(), key, value).await?;
        stage.model.wrote(&key, version, value)?;
        expected.push(Change { key: text(key), deleted: false, version });
        progress.step();
    }
    for change in &expected {
        let event = tokio::time::timeout(EVENT_PATIENCE, events.recv())
            .await
            .ok()
            .flatten()
            .ok_or_else(|| Failure::new(NOT_DONE, "an event did not arrive in time"))?;
        let told = Change::from_wire(&event.payload).ok();
        stage
            .model
            .check(told.as_ref() == Some(change), || format!("told of {told:?} instead of {change:?}"))?;
    }
    kv::execute(&watcher, &Operation::Unwatch(watch)).await?;
    let surplus = events.try_recv().ok();
    stage.model.check(surplus.is_none(), || format!("told of {surplus:?}, which never happened"))?;
    Ok(format!("{CHANGES} changes told, once each and in order; nothing else was told"))
}

/// Two clients compare and swap the same key.
pub(crate) async fn compete(stage: &mut Stage) -> Result<String, Failure> {
    let key = "prize";
    let mut held = None;
    let mut progress = Progress::new(usize::try_from(ROUNDS).expect("small"));
    let mut wins = [0; 2];
    for round in 0..ROUNDS {
        let swap = |who: usize| {
            let operation = Operation::CompareAndSwap {
                key: Bytes::from_static(b"prize"),
                expected: held,
                value: Some(text(format!("client {who}, round {round}"))),
            };
            let client = stage.client(who);
            async move { kv::execute(&client, &operation).await }
        };
        // Whoever asks first mostly wins; so they take turns.
        let (one, other) = if round.is_multiple_of(2) {
            tokio::join!(swap(0), swap(1))
        } else {
            let (other, one) = tokio::join!(swap(1), swap(0));
            (one, other)
        };
        let (winner, version) = match (one?, other?) {
            (Answer::Written { version }, Answer::Mismatch { current }) if current == Some(version) => {
                (0, version)
            }
            (Answer::Mismatch { current }, Answer::Written { version }) if current == Some(version) => {
                (1, version)
            }
            answers => return Err(wrong(format!("in round {round} two swaps were answered by {answers:?}"))),
        };
        wins[winner] += 1;
        held = Some(version);
        stage.model.wrote(key, version, text(format!("client {winner}, round {round}")))?;
        let answer = kv::get(&stage.client(1 - winner), key).await?;
        stage.model.read(key, answer.as_ref())?;
        progress.step();
    }
    Ok(format!("{ROUNDS} rounds, one winner each: {} to {}", wins[0], wins[1]))
}

/// Kills the primary while writes are under way.
pub(crate) async fn kill_primary(stage: &mut Stage) -> Result<String, Failure> {
    let before = stage.look().await?;
    let view = before.iter().map(|snapshot| snapshot.view).max().unwrap_or(0);
    let primary = ReplicaId(
        before.iter().find(|snapshot| snapshot.view == view).map(|snapshot| snapshot.primary).unwrap_or(0),
    );
    let work =
        (0..KEYS).map(|i| (format!("key/{:04}", KEYS / 2 + i), text(format!("later value {i}")))).collect();
    let mut killed_at = None;
    write_all(stage, work, |stage| {
        killed_at = Some(Instant::now());
        stage.kill(primary)
    })
    .await?;
    let took = killed_at.map_or(0.0, |at| at.elapsed().as_secs_f64());
    let after = stage
        .until("the correct replicas work in a new view", |now| {
            now.iter().all(|snapshot| snapshot.view > view && snapshot.active)
        })
        .await?;
    let now = after.iter().map(|snapshot| snapshot.view).max().unwrap_or(0);
    let suspicions: u64 = after.iter().map(|snapshot| snapshot.suspicions).sum();
    Ok(format!(
        "replica {} is dead; the other {} writes were confirmed within {took:.2} s. View {view} became view {now} \
         (primary {}), after {suspicions} suspicions",
        primary.0,
        KEYS / 2,
        after.iter().find(|snapshot| snapshot.view == now).map_or(0, |snapshot| snapshot.primary),
    ))
}

/// Compares the whole store and the replicas' own words.
pub(crate) async fn compare(stage: &mut Stage) -> Result<String, Failure> {
    let mut entries = BTreeMap::new();
    let mut start = Some(Bytes::new());
    while let Some(from) = start {
        match kv::read(&stage.client(0), &Operation::Scan { start: from, end: None, limit: 1000 }).await? {
            Answer::Entries { entries: some, next } => {
                let some = some.into_iter();
                entries.extend(some.map(|entry| {
                    (String::from_utf8_lossy(&entry.key).into_owned(), (entry.version, entry.value))
                }));
                start = next;
            }
            other => return Err(wrong(format!("a scan is answered by {other:?}"))),
        }
    }
    stage.model.scanned(&entries)?;
    let now = stage
        .until("the correct replicas have executed the same", |now| {
            now.iter().all(|snapshot| snapshot.executed == now[0].executed && snapshot.pending == 0)
        })
        .await?;
    let correct: Vec<u16> = stage.correct().iter().map(|replica| replica.0).collect();
    let framed = now.iter().flat_map(|snapshot| &snapshot.accused).next().copied();
    stage.model.check(framed.is_none(), || format!("replica {framed:?} is accused and did nothing wrong"))?;
    let refused: u64 =
        now.iter().map(|snapshot| snapshot.counters.messages_refused + snapshot.counters.malformed).sum();
    Ok(format!(
        "{} keys equal; replicas {correct:?} have executed {} batches each; they refused {refused} forged or \
         senseless messages",
        entries.len(),
        now[0].executed
    ))
}

/// A line that grows while work is done.
struct Progress {
    done: usize,
    total: usize,
}

impl Progress {
    fn new(total: usize) -> Self {
        part("      ");
        Self { done: 0, total }
    }

    fn step(&mut self) {
        self.done += 1;
        let dots = |done: usize| done * 40 / self.total;
        if dots(self.done) > dots(self.done - 1) {
            part(&".".repeat(dots(self.done) - dots(self.done - 1)));
        }
        if self.done == self.total {
            part("\n");
        }
    }

    fn is_half(&self) -> bool {
        self.done == self.total / 2
    }
}
