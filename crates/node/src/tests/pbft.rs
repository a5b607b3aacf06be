//! A PBFT group's files, what its backups rest on, and whose log a directory holds.

use super::config::{Scratch, plan};
use crate::Options;
use crate::backup::serve::give;
use crate::backup::wire::Offer;
use crate::backup::{BackupError, Source};
use crate::config::{
    Cluster, ConfigError, Durability, Layout, Plan, Protocol, ReplicaKeys, ReplicaSecret, TrustedHome,
    TrustedKind, make,
};
use crate::durable::{DurableError, Footing, open};
use crate::served::largest_message;
use crate::standing::{Unproven, take_over};
use bytes::Bytes;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use troth_auth::{Seal, Signer};
use troth_core::Agreement;
use troth_disk::{Identity, Log, LogOptions, MemoryDisk};
use troth_exec::{MerkleMap, Snapshot};
use troth_pbft::{
    Body, Checkpoint, Entry, MOST_PRE_PREPARED, Message, NewView, Pbft, Signed, StableProof, ViewChange,
};
use troth_trusted_host::store::directory::BootId;
use troth_types::{Batch, Digest, ReplicaId, Seq, Time, View, Wire};

const SEQ: Seq = Seq(64);

fn of(faults: u16) -> Plan {
    let address = |i: u16| (format!("127.0.0.1:{}", 4700 + i), format!("127.0.0.1:{}", 4800 + i));
    let addresses = (0..Protocol::Pbft.replicas(faults)).map(address).collect();
    Plan { protocol: Protocol::Pbft, faults, addresses, ..plan(TrustedKind::Hmac) }
}

fn made(name: &str, faults: u16) -> (Scratch, Layout) {
    let scratch = Scratch::new(name);
    let layout = Layout::new(&scratch.0);
    make(&layout, &of(faults)).expect("a fresh directory");
    (scratch, layout)
}

fn secrets(layout: &Layout, cluster: &Cluster) -> Vec<ReplicaSecret> {
    let load = |id| ReplicaSecret::load(&layout.replica_secret(id), cluster).expect("just made");
    cluster.group.all().map(load).collect()
}

#[test]
fn a_replica_that_keeps_nothing_starts_once() {
    let (_scratch, layout) = made("pbft-keeps-nothing", 1);
    let mut cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secret = ReplicaSecret::load(&layout.replica_secret(ReplicaId(0)), &cluster).expect("just made");
    let options = Options { keeps_nothing: true, ..Options::default() };
    cluster.durability = Durability::Always;
    assert!(
        matches!(open(&cluster, &secret, &layout, &options), Ok(Footing::Durable(_))),
        "it is told to keep all"
    );
    cluster.durability = Durability::Memory;
    let (_other, layout) = made("pbft-keeps-nothing-in-memory", 1);
    assert!(matches!(open(&cluster, &secret, &layout, &options), Ok(Footing::Volatile(_))));
    assert!(open(&cluster, &secret, &layout, &options).is_err(), "it would not know what it voted for");
    let keeps = Options::default();
    assert!(matches!(open(&cluster, &secret, &layout, &keeps), Err(DurableError::LogLost { .. })));
}

#[test]
fn a_group_has_3f_plus_1_replicas_and_nothing_trusted() {
    for faults in 1..=3 {
        let (_scratch, layout) = made(&format!("pbft-{faults}"), faults);
        let cluster = Cluster::load(&layout.cluster()).expect("just made");
        let (n, f) = (3 * usize::from(faults) + 1, usize::from(faults));
        assert_eq!((cluster.group.n(), cluster.group.f(), cluster.group.quorum()), (n, f, 2 * f + 1));
        assert_eq!(cluster.protocol, Protocol::Pbft);
        assert_eq!((cluster.trusted, cluster.trusted_home), (TrustedKind::Nothing, TrustedHome::Nowhere));
        let text = std::fs::read_to_string(layout.cluster()).expect("just made");
        assert!(!text.contains("trusted") && !text.contains("epoch"), "{text}");
        for secret in secrets(&layout, &cluster) {
            assert!(secret.trusted.is_none() && secret.mac.is_none());
            assert_eq!(secret.epoch.0, 0);
            let file = std::fs::read_to_string(layout.replica_secret(secret.replica)).expect("just made");
            assert!(!file.contains("trusted"), "{file}");
            // There is no component of which a replica could be given another one.
            assert!(ReplicaKeys::load(&layout, &cluster, secret.replica).is_err());
        }
    }
}

/// The error that a change to a good file brings.
fn broken(name: &str, change: impl Fn(&str) -> String) -> ConfigError {
    let (_scratch, layout) = made(name, 1);
    let good = std::fs::read_to_string(layout.cluster()).expect("just made");
    let bad = change(&good);
    assert_ne!(bad, good, "{name} changes something");
    std::fs::write(layout.cluster(), bad).expect("our own directory");
    Cluster::load(&layout.cluster()).expect_err(name)
}

#[test]
fn what_is_a_trusted_components_is_refused_where_there_is_none() {
    for line in ["trusted = \"hmac\"", "trusted_home = \"process\"", "trusted_home = \"in-process\""] {
        let error = broken("pbft-trusted", |text| text.replace("nonce =", &format!("{line}\nnonce =")));
        assert!(error.problem.contains("no trusted components") && error.place.is_some(), "{error}");
        assert!(error.mend.contains("remove"), "{error}");
    }
    for line in ["epoch = 1".to_owned(), format!("trusted_key = \"{}\"", "7".repeat(64))] {
        let error = broken("pbft-key", |text| text.replacen("host_key =", &format!("{line}\nhost_key ="), 1));
        assert!(error.mend.contains("remove"), "{error}");
    }
    let (_scratch, layout) = made("pbft-secret", 1);
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let file = layout.replica_secret(ReplicaId(0));
    let good = std::fs::read_to_string(&file).expect("just made");
    for line in [format!("trusted_secret = \"{}\"", "7".repeat(64)), "epoch = 2".to_owned()] {
        std::fs::write(&file, format!("{good}{line}\n")).expect("our own directory");
        let error = ReplicaSecret::load(&file, &cluster).err().expect("nothing here has one");
        assert!(error.mend.contains("remove this line"), "{error}");
    }
}

#[test]
fn a_size_or_a_protocol_that_does_not_fit_is_refused_with_the_ones_that_do() {
    let cut = |text: &str, tables: usize| {
        let (head, clients) = text.split_at(text.find("\n[[client]]").expect("there are clients"));
        let starts: Vec<usize> = head.match_indices("\n[[replica]]").map(|(at, _)| at).collect();
        head[..starts[tables]].to_owned() + clients
    };
    for tables in [1, 2, 3] {
        let error = broken(&format!("pbft-size-{tables}"), |text| cut(text, tables));
        assert!(error.problem.contains(&format!("{tables} replicas cannot form a group")), "{error}");
        assert!(error.mend.contains("4, 7, 10"), "{error}");
    }
    // The same replicas under the other protocol lack what that needs, whatever their number.
    let error = broken("pbft-other", |text| text.replace("\"pbft\"", "\"minbft\""));
    assert!(error.problem.contains("missing field `trusted`"), "{error}");
    let error = broken("pbft-unknown", |text| text.replace("\"pbft\"", "\"raft\""));
    assert!(error.mend.contains("\"minbft\" or \"pbft\""), "{error}");
    // And MinBFT's replicas have an epoch each.
    let scratch = Scratch::new("minbft-epoch");
    let layout = Layout::new(&scratch.0);
    make(&layout, &plan(TrustedKind::Hmac)).expect("a fresh directory");
    let text = std::fs::read_to_string(layout.cluster()).expect("just made").replacen("epoch = 1\n", "", 1);
    std::fs::write(layout.cluster(), text).expect("our own directory");
    let error = Cluster::load(&layout.cluster()).expect_err("one has none");
    assert!(error.problem.contains("replica 0 has no epoch"), "{error}");
}

#[test]
fn a_directory_says_whose_protocol_it_is_and_that_of_minbft_as_ever() {
    const BOOT: BootId = BootId([1; 16]);
    let kept = |protocol| {
        let disk = MemoryDisk::default();
        take_over(&disk, protocol, Durability::Always, BOOT).expect("it is new");
        (String::from_utf8(disk.contents("kept").expect("just written")).expect("text"), disk)
    };
    let boot = "01".repeat(16);
    assert_eq!(
        kept(Protocol::MinBft).0,
        format!("troth kept 1\nalways\n{boot}\n"),
        "as every release wrote it"
    );
    assert_eq!(kept(Protocol::Pbft).0, format!("troth kept 1\nalways\n{boot}\npbft\n"));
    for (kept_by, wanted) in [(Protocol::MinBft, Protocol::Pbft), (Protocol::Pbft, Protocol::MinBft)] {
        let (before, disk) = kept(kept_by);
        for durability in [Durability::Always, Durability::Memory] {
            let refused = take_over(&disk, wanted, durability, BOOT).expect_err("it is the other's");
            let DurableError::Unproven(Unproven::OtherProtocol { found, wanted: asked }) = &refused else {
                panic!("{refused}");
            };
            assert_eq!((*found, *asked), (kept_by, wanted));
            assert!(!refused.must_not_vote(), "under its own protocol it may: {refused}");
        }
        assert_eq!(disk.contents("kept").expect("still there"), before.as_bytes(), "nothing is taken over");
        take_over(&disk, kept_by, Durability::Always, BOOT).expect("its own");
    }
    // A log from before there was such a file is MinBFT's.
    let disk = MemoryDisk::default();
    let owner = Identity { group: [4; 32], replica: 1 };
    drop(Log::open(disk.clone(), owner, LogOptions::new(1)).expect("a fresh one"));
    let refused = take_over(&disk, Protocol::Pbft, Durability::Always, BOOT);
    assert!(matches!(refused, Err(DurableError::Unproven(Unproven::OtherProtocol { .. }))), "{refused:?}");
    take_over(&disk, Protocol::MinBft, Durability::Always, BOOT).expect("its own");
}

/// A replica's CHECKPOINT, signed with its host's key.
fn vote(cluster: &Cluster, secret: &ReplicaSecret, digest: Digest) -> Arc<Signed> {
    let body = Body::Checkpoint(Checkpoint { seq: SEQ, digest });
    let covered = Pbft::digest(&body, cluster.group.id(), secret.replica);
    let seal = Seal::Signature(secret.host.sign(&covered));
    match Pbft::seal(body, covered, secret.replica, seal) {
        Message::Signed(vote) => vote,
        other => panic!("a CHECKPOINT is signed: {other:?}"),
    }
}

#[test]
fn a_backup_rests_on_the_signatures_of_2f_plus_1_distinct_replicas() {
    let (_scratch, layout) = made("pbft-backup", 1);
    let cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secrets = secrets(&layout, &cluster);
    let mut map = MerkleMap::new();
    map.insert(b"\x01key", Bytes::from_static(b"value"));
    let state = Snapshot::of(SEQ, Time(5), map.tree_now());
    let ask = |votes: Vec<Arc<Signed>>| {
        let (theirs, ours) = UnixStream::pair().expect("a pair of sockets");
        let offer = Offer { executed: Seq(70), proof: Message::Stable(Arc::new(StableProof { votes })) };
        let serves = state.clone();
        let replica = thread::spawn(move || give(theirs, offer, &serves));
        let got = Source::over(ours, &cluster, &cluster.configuration(), None)
            .and_then(|mut source| source.fetch(|_| {}));
        drop(replica.join().expect("the replica does not panic"));
        got
    };
    let votes = |who: &[usize]| -> Vec<Arc<Signed>> {
        who.iter().map(|id| vote(&cluster, &secrets[*id], state.digest())).collect()
    };
    assert_eq!(ask(votes(&[0, 2, 3])).expect("it is certified"), state);

    let other = vote(&cluster, &secrets[3], Digest([7; 32]));
    let good = vote(&cluster, &secrets[3], state.digest());
    // As if replica 3 had signed what replica 2 did, and as if it had signed this.
    let borrowed = Signed { from: ReplicaId(3), ..(*votes(&[2])[0]).clone() };
    let forged = Signed { signature: other.signature, ..(*good).clone() };
    let stranger = Signed { from: ReplicaId(9), ..(*good).clone() };
    let with = |vote: Arc<Signed>| [votes(&[0, 2]), vec![vote]].concat();
    for (what, bad) in [
        ("none", Vec::new()),
        ("two", votes(&[0, 2])),
        ("one of them twice", votes(&[0, 2, 2])),
        ("another state", with(other)),
        ("borrowed", with(Arc::new(borrowed))),
        ("forged", with(Arc::new(forged))),
        ("a stranger", with(Arc::new(stranger))),
    ] {
        let got = ask(bad);
        // One that no correct replica writes does not even decode.
        let refused = matches!(got, Err(BackupError::Uncertified(_) | BackupError::Foreign(_)));
        assert!(refused, "{what}: {got:?}");
    }
}

#[test]
fn the_largest_message_holds_the_largest_honest_new_view() {
    let (_scratch, layout) = made("pbft-largest", 1);
    let mut cluster = Cluster::load(&layout.cluster()).expect("just made");
    let secrets = secrets(&layout, &cluster);
    for (window, frames) in [(2, 1), (256, 128), (2048, 256)] {
        cluster.timing.window = window;
        cluster.limits.batch_frames = frames;
        let votes = secrets.iter().map(|secret| vote(&cluster, secret, Digest([1; 32]))).collect();
        let entry = |seq: u64| Entry { seq: Seq(SEQ.0 + seq), digest: Digest([2; 32]), view: View(3) };
        let change = Body::ViewChange(ViewChange {
            to: View(4),
            stable: StableProof { votes },
            prepared: (1..=window).map(entry).collect(),
            pre_prepared: (1..=window).flat_map(|seq| vec![entry(seq); MOST_PRE_PREPARED]).collect(),
        });
        let signed = |secret: &ReplicaSecret| {
            let signature = secret.host.sign(&Digest::ZERO);
            Arc::new(Signed { from: secret.replica, body: change.clone(), digest: Digest::ZERO, signature })
        };
        let batch = Batch { time: Time(1), frames: vec![Digest([3; 32]); frames] };
        let new_view = Body::NewView(NewView {
            view: View(4),
            changes: secrets.iter().map(signed).collect(),
            base: (SEQ, Digest([1; 32])),
            chosen: vec![batch; usize::try_from(window).expect("small")],
        });
        let signature = secrets[0].host.sign(&Digest::ZERO);
        let message = Signed { from: ReplicaId(0), body: new_view, digest: Digest::ZERO, signature };
        let bytes = Message::Signed(Arc::new(message)).to_wire().len();
        let bound = largest_message(&cluster);
        assert!(bytes <= bound && bound < 4 * bytes + (1 << 16), "{window}: {bytes} of {bound}");
    }
}

#[test]
fn a_new_view_that_no_log_can_hold_is_refused_beforehand() {
    let (_scratch, layout) = made("pbft-too-large", 11);
    let file = layout.cluster();
    let text = std::fs::read_to_string(&file).expect("just made");
    let with = |window: u64| {
        let table = format!("\n[timing]\nwindow = {window}\n\n[[replica]]");
        std::fs::write(&file, text.replacen("\n[[replica]]", &table, 1)).expect("our own file");
        Cluster::load(&file)
    };
    let fits = with(1024).expect("34 replicas and half the largest window");
    assert!(largest_message(&fits) < troth_disk::MAX_RECORD);
    let why = with(2048).expect_err("larger than a record").to_string();
    assert!(why.contains("more than a record of the log can hold") && why.contains("make window"), "{why}");
}
