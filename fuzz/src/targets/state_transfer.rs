//! State transfer: fetches for anything, pieces that nobody asked for, pieces of a state that was certified
//! though it is none, and snapshots as bytes.

use crate::bytes::{Steps, damage};
use crate::trees::{self, state_digest};
use crate::{Bound, Target};
use bytes::Bytes;
use std::collections::BTreeMap;
use troth_core::{Execution, Installing};
use troth_exec::{Executor, Gathering, Snapshot};
use troth_kv::Kv;
use troth_types::{Digest, Limits, Seq, StateFetch, StatePiece, Time, Wire, put_bytes};

pub(super) const TARGET: Target = Target {
    name: "state-transfer",
    run,
    seeds,
    // Two small states and what is moved between them.
    bound: Bound { fixed: 2 << 20, per_byte: 1024 },
    longest: 4096,
};

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    match steps.byte() % 4 {
        0 => serve(&mut steps),
        1 => tampered(&mut steps),
        2 => certified(&mut steps),
        _ => snapshot(steps.rest()),
    }
}

fn serve(steps: &mut Steps<'_>) {
    let mut server = trees::executor(&[("one", 3), ("two", 700)]);
    let (seq, digest) = trees::checkpoint(&mut server);
    let fetch = StateFetch { seq, digest, path: Bytes::copy_from_slice(steps.rest()) };
    if let Some(piece) = server.serve(&fetch) {
        assert_eq!((piece.seq, piece.digest), (seq, digest));
        assert!(fetch.path.starts_with(&piece.path), "the answer to another question");
    }
}

/// A transfer in which some pieces are not as they were sent. At its end the state is the right one.
fn tampered(steps: &mut Steps<'_>) {
    let keys: Vec<String> = (0..40).map(|number| format!("key{number}")).collect();
    let keys: Vec<(&str, usize)> = keys.iter().map(|key| (key.as_str(), key.len() * 100)).collect();
    let mut server = trees::executor(&keys);
    let (seq, digest) = trees::checkpoint(&mut server);
    let mut replica = trees::executor(&keys[..usize::from(steps.byte()) % keys.len()]);
    let mut wants = replica.begin_install(seq, digest);
    for _ in 0..1_000 {
        if wants.is_empty() {
            wants = replica.wanted();
        }
        // In the order in which they were asked: the first finds out whether differences are answered.
        let fetch = wants.remove(0);
        let piece = server.serve(&fetch).expect("it is kept");
        if !steps.is_over() {
            let mut bytes = piece.to_wire().to_vec();
            damage(steps, &mut bytes);
            // What is good in spite of it, as a piece that was cut between two items, is good.
            match StatePiece::from_wire(&Bytes::from(bytes)).map(|other| replica.on_piece(&other)) {
                Ok(Installing::Wants(more)) => wants.extend(more),
                Ok(Installing::Done) => break,
                Ok(Installing::Rejected | Installing::NotWanted) | Err(_) => {}
            }
        }
        match replica.on_piece(&piece) {
            Installing::Wants(more) => wants.extend(more),
            Installing::Done => break,
            Installing::Rejected => panic!("a good piece was rejected"),
            // The answer to a probe, or the damaged one was taken in its place.
            Installing::NotWanted => {}
        }
    }
    assert_eq!(
        (replica.executed(), replica.digest_now()),
        (seq, digest),
        "the transfer ended with another state"
    );
}

/// The target was certified, and its certifiers may say what they like of what is in it.
fn certified(steps: &mut Steps<'_>) {
    let list = trees::parts(steps);
    let Some(root) = list.last().map(|(digest, _)| *digest) else { return };
    let parts: BTreeMap<Digest, Vec<u8>> = list.into_iter().collect();
    install(root, &parts);
    // The same as a snapshot that is read from a disk.
    let part = |digest: &Digest| parts.get(digest).map(|bytes| Bytes::copy_from_slice(bytes));
    let built = Snapshot::from_parts(Seq(1), Time(1), root, &part);
    let mut gathering = Gathering::new(Seq(1), Time(1), root);
    let gathered = loop {
        let offered: Result<Vec<bool>, _> = parts
            .iter()
            .map(|(digest, bytes)| gathering.offer(*digest, &Bytes::copy_from_slice(bytes)))
            .collect();
        match offered {
            Ok(taken) if taken.contains(&true) => {}
            Ok(_) => break gathering.finish(),
            Err(why) => break Err(why),
        }
    };
    assert_eq!(gathered.ok(), built.ok(), "in another order it is another state");
}

fn install(root: Digest, parts: &BTreeMap<Digest, Vec<u8>>) {
    let (seq, time) = (Seq(5), Time(77));
    let mut replica = Executor::new(Kv::default(), Limits::DEFAULT);
    let digest = state_digest(seq, time, &root);
    let mut wants = replica.begin_install(seq, digest);
    let head = [&time.0.to_le_bytes(), &parts[&root][..]].concat();
    for _ in 0..200 {
        let Some(fetch) = wants.pop() else { return };
        let contents: Vec<Vec<u8>> = if fetch.path.is_empty() {
            vec![head.clone()]
        } else {
            // Whichever part it is that was asked for: all are offered, and one place at a time.
            parts
                .values()
                .map(|part| {
                    let mut content = Vec::new();
                    put_bytes(&mut content, part);
                    content
                })
                .collect()
        };
        for content in contents {
            let piece = StatePiece { seq, digest, path: fetch.path.clone(), content: Bytes::from(content) };
            match replica.on_piece(&piece) {
                Installing::Wants(more) => {
                    wants.extend(more);
                    break;
                }
                Installing::Done => return,
                Installing::Rejected | Installing::NotWanted => {}
            }
        }
    }
}

fn snapshot(bytes: &[u8]) {
    let bytes = Bytes::copy_from_slice(bytes);
    if let Some(snapshot) = Snapshot::decode(&bytes) {
        let again = Snapshot::decode(&snapshot.encode()).expect("what was encoded decodes");
        assert_eq!(again, snapshot, "another snapshot the second time");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![
        vec![0],
        vec![0, 0, 255, 0, 0],
        vec![0, 255, 1, 0, 0, 0, 0, 255, 1, 2, 7, 7, 8, 8],
        vec![1, 3, 60, 0, 0, 7, 200, 0, 1],
        vec![1, 0],
        [&[3], &trees::snapshot().encode()[..]].concat(),
    ];
    seeds.extend(trees::seeds().into_iter().map(|tree| [&[2], &tree[..]].concat()));
    seeds
}
