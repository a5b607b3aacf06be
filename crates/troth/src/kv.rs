//! `troth kv`: the key-value service by hand.

use crate::cli::{Kv, KvOperation};
use crate::failure::{Failure, NO, NOT_DONE, UNKNOWN};
use crate::print::{self, note};
use crate::reach::Reach;
use crate::session::{self, Patience, Session};
use bytes::Bytes;
use std::io::Read;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use troth_client::front::Client;
use troth_kv::{Answer, Change, Entry, Operation, Watch};
use troth_node::config::{Layout, Service};
use troth_types::{ClientId, Wire};

/// How long the group may take to end the watch of somebody who wants to leave.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(kv: &Kv) -> Result<(), Failure> {
    let layout = Layout::new(&kv.dir.dir);
    let cluster = session::present(&layout)?;
    if cluster.service != Service::Kv {
        let (serves, way) = (
            cluster.service.name(),
            match cluster.service {
                Service::ZooKeeper => "; its clients are ZooKeeper's, through `troth gateway zookeeper`",
                Service::Kv | Service::Null => "",
            },
        );
        return Err(Failure::usage(format!(
            "the group serves {serves}, not kv (`service` in cluster.toml){way}"
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::system("cannot start", &why))?;
    runtime.block_on(async {
        let patience = Patience::asked(kv.wait);
        let session = Session::open(&layout, &cluster, kv.client.map(ClientId), patience).await?;
        let client = session.client.clone();
        let result = operate(&client, &kv.operation, Reach::new(&cluster).tell(&client, &kv.dir.dir)).await;
        client.close().await;
        result
    })
}

/// Does what was asked for; `telling` goes on beside what lasts.
async fn operate(
    client: &Client,
    operation: &KvOperation,
    telling: impl Future<Output = ()>,
) -> Result<(), Failure> {
    match operation {
        KvOperation::Get { key, version } => match get(client, key).await? {
            Some((number, value)) => {
                if *version {
                    print::output(format!("{number} ").as_bytes())?;
                }
                print::stored(&value)?;
                print::output(b"\n")
            }
            None => Err(absent(key)),
        },
        KvOperation::Put { key, value } => {
            let operation = Operation::Put { key: bytes(key), value: value_of(value)? };
            written(key, execute(client, &operation).await?)
        }
        KvOperation::Delete { key } => {
            written(key, execute(client, &Operation::Delete { key: bytes(key) }).await?)
        }
        KvOperation::Cas { key, value, version, absent } => {
            let expected = if *absent { None } else { *version };
            let value = Some(value_of(value)?);
            let operation = Operation::CompareAndSwap { key: bytes(key), expected, value };
            written(key, execute(client, &operation).await?)
        }
        KvOperation::Scan { prefix, limit } => scan(client, prefix, *limit).await,
        KvOperation::Watch { key, prefix, count } => watch(client, telling, key, *prefix, *count).await,
    }
}

async fn scan(client: &Client, prefix: &str, limit: u32) -> Result<(), Failure> {
    let mut left = limit;
    let Operation::Scan { mut start, end, .. } = Operation::scan_prefix(&bytes(prefix), limit) else {
        unreachable!("scanning a prefix is a scan")
    };
    while left > 0 {
        let operation = Operation::Scan { start: start.clone(), end: end.clone(), limit: left };
        match read(client, &operation).await? {
            Answer::Entries { entries, next } => {
                for Entry { key, value, .. } in &entries {
                    print::stored(key)?;
                    print::output(b"\t")?;
                    print::stored(value)?;
                    print::output(b"\n")?;
                }
                left = left.saturating_sub(u32::try_from(entries.len()).unwrap_or(u32::MAX));
                match next {
                    Some(next) => start = next,
                    None => return Ok(()),
                }
            }
            other => return Err(refused(prefix, &other)),
        }
    }
    note!("these are the first {limit}, and there may be more: --limit says how many are printed");
    Ok(())
}

/// Prints changes until there were enough or Ctrl-C, and ends the watch; `telling` goes on beside it.
async fn watch(
    client: &Client,
    telling: impl Future<Output = ()>,
    key: &str,
    prefix: bool,
    count: Option<u64>,
) -> Result<(), Failure> {
    let watch = if prefix { Watch::Prefix(bytes(key)) } else { Watch::Key(bytes(key)) };
    // Listened to from here to the end, so that a Ctrl-C counts whatever is being waited for.
    let mut interrupt =
        signal(SignalKind::interrupt()).map_err(|why| Failure::system("cannot listen for signals", &why))?;
    let told = tokio::select! {
        told = follow(client, key, &watch, count) => told.map(|()| true),
        () = telling => Err(Failure::new(NOT_DONE, "the session ended")),
        _ = interrupt.recv() => Ok(false),
    };
    // Whoever wants to leave, or has seen the group fail, does not wait for it as long as for an answer.
    let patience = if matches!(told, Ok(true)) { Duration::MAX } else { FAREWELL };
    let stays = || {
        Failure::new(
            UNKNOWN,
            "the group has not confirmed that the watch has ended: whoever uses this client next may be told of its changes, too",
        )
    };
    let unwatch = Operation::Unwatch(watch);
    let leaves = matches!(told, Ok(false));
    let ended = tokio::select! {
        // What keeps somebody who leaves anyway from being heard is not theirs to mend.
        ended = execute(client, &unwatch) => ended.map(drop).map_err(|why| if leaves { stays() } else { why }),
        () = tokio::time::sleep(patience) => Err(stays()),
        _ = interrupt.recv() => Err(stays()),
    };
    told.and(ended)
}

/// Has changes told and prints them, until there were enough.
async fn follow(client: &Client, key: &str, watch: &Watch, count: Option<u64>) -> Result<(), Failure> {
    let prefix = matches!(watch, Watch::Prefix(_));
    let mut events = client.events().await?;
    match execute(client, &Operation::Watch(watch.clone())).await? {
        Answer::Watching => {}
        other => return Err(refused(key, &other)),
    }
    note!("Watching {key}{}; Ctrl-C ends it.", if prefix { "*" } else { "" });
    let mut left = count;
    while left != Some(0) {
        let Some(event) = events.recv().await else {
            return Err(Failure::new(NOT_DONE, "the session ended"));
        };
        if event.payload.is_empty() {
            say("(changes were missed: they came faster than they were read; read the keys afresh)"
                .to_owned())?;
            continue;
        }
        let Ok(change) = Change::from_wire(&event.payload) else {
            return Err(Failure::new(
                NOT_DONE,
                "the service tells something that this version does not know",
            ));
        };
        // A watch that an earlier process left behind may tell of other keys.
        let wanted = if prefix { change.key.starts_with(key.as_bytes()) } else { change.key == key };
        if wanted {
            show(client, &change).await?;
            left = left.map(|left| left - 1);
        }
    }
    Ok(())
}

/// Prints a change, with the value where the key still has the version that the change tells of.
async fn show(client: &Client, change: &Change) -> Result<(), Failure> {
    let key = print::foreign(&String::from_utf8_lossy(&change.key));
    if change.deleted {
        return say(format!("{key} deleted (version {})", change.version));
    }
    match read(client, &Operation::Get { key: change.key.clone() }).await? {
        Answer::Value { version, value } if version == change.version => {
            let value = print::foreign(&String::from_utf8_lossy(&value));
            say(format!("{key} = {value} (version {version})"))
        }
        _ => say(format!("{key} written (version {}), and changed again since", change.version)),
    }
}

/// Reads a key: its version and value.
pub(crate) async fn get(client: &Client, key: &str) -> Result<Option<(u64, Bytes)>, Failure> {
    match read(client, &Operation::Get { key: bytes(key) }).await? {
        Answer::Value { version, value } => Ok(Some((version, value))),
        Answer::NotFound => Ok(None),
        other => Err(refused(key, &other)),
    }
}

/// Has an operation ordered and executed.
pub(crate) async fn execute(client: &Client, operation: &Operation) -> Result<Answer, Failure> {
    understand(&client.execute(operation.to_wire()).await?)
}

/// Has a reading operation answered.
pub(crate) async fn read(client: &Client, operation: &Operation) -> Result<Answer, Failure> {
    understand(&client.read(operation.to_wire()).await?)
}

fn understand(result: &Bytes) -> Result<Answer, Failure> {
    Answer::from_wire(result).map_err(|why| {
        Failure::new(NOT_DONE, format!("the group answers what is no answer ({why}); does it serve kv?"))
    })
}

fn written(key: &str, answer: Answer) -> Result<(), Failure> {
    match answer {
        Answer::Written { version } => say(format!("version {version}")),
        Answer::Deleted { .. } => say("deleted".to_owned()),
        other => Err(refused(key, &other)),
    }
}

fn absent(key: &str) -> Failure {
    Failure::new(NO, format!("there is no key {key}"))
}

fn refused(key: &str, answer: &Answer) -> Failure {
    match answer {
        Answer::NotFound => absent(key),
        Answer::Mismatch { current: Some(version) } => {
            Failure::new(NO, format!("{key} has version {version}; nothing was changed"))
        }
        Answer::Mismatch { current: None } => {
            Failure::new(NO, format!("{key} does not exist; nothing was changed"))
        }
        Answer::KeyTooLong => Failure::new(NO, format!("a key has at most {} bytes", troth_kv::MAX_KEY)),
        Answer::ValueTooLarge => {
            Failure::new(NO, format!("a value has at most {} bytes", troth_kv::MAX_VALUE))
        }
        Answer::TooManyWatches => {
            Failure::new(NO, "this client, or the key, has as many watches as are allowed, or prefixes of too many different lengths over \
                 48 bytes are watched: watch a prefix of at most 48 bytes, or end other watches"
                    .to_owned())
        }
        other => Failure::new(NOT_DONE, format!("the service answers {other:?}, which is no answer to this")),
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn value_of(argument: &str) -> Result<Bytes, Failure> {
    if argument != "-" {
        return Ok(bytes(argument));
    }
    let mut value = Vec::new();
    std::io::stdin()
        .take(troth_kv::MAX_VALUE as u64 + 1)
        .read_to_end(&mut value)
        .map_err(|why| Failure::system("cannot read standard input", &why))?;
    Ok(Bytes::from(value))
}

/// Prints a line that was asked for.
fn say(line: String) -> Result<(), Failure> {
    print::output(format!("{line}\n").as_bytes())
}
