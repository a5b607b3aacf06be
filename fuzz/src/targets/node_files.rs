//! What a replica and its operator find in files and on sockets beside the configuration: a backup's state, how a
//! directory is kept, the head of a request for a page, a frame of a backup.

use crate::bytes::Steps;
use crate::trees;
use crate::{Bound, Target};
use std::path::PathBuf;
use std::sync::OnceLock;
use troth_node::{Snapshot, fuzzing};
use troth_types::Digest;

pub(super) const TARGET: Target = Target {
    name: "node-files",
    run,
    seeds,
    // The reader's buffer of 1 MiB.
    bound: Bound { fixed: 3 << 20, per_byte: 256 },
    longest: 4096,
};

fn place() -> PathBuf {
    static PLACE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let place = PLACE.get_or_init(|| tempfile::tempdir().expect("a directory for temporary files"));
    place.path().join(format!("{:?}", std::thread::current().id()))
}

fn run(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    match which % 5 {
        0 => state(rest),
        1 => state(&sealed(rest)),
        2 => kept(rest),
        3 => page(rest),
        _ => {
            let frame = fuzzing::backup_frame(rest, 64);
            assert!(frame.is_none_or(|frame| frame.len() <= 64 && rest[4..].starts_with(&frame)));
        }
    }
}

fn state(bytes: &[u8]) {
    let file = place();
    std::fs::write(&file, bytes).expect("our own directory");
    let _ = fuzzing::backup_state(&file);
}

/// A file whose parts have the digests that name them.
fn sealed(input: &[u8]) -> Vec<u8> {
    let parts = trees::parts(&mut Steps::new(input));
    let root = parts.last().map_or(Digest::ZERO, |(digest, _)| *digest);
    let mut bytes =
        [&b"TROTHSTA"[..], &1_u16.to_le_bytes(), &7_u64.to_le_bytes(), &9_u64.to_le_bytes()].concat();
    bytes.extend_from_slice(&root.0);
    for (digest, part) in &parts {
        bytes.extend_from_slice(&digest.0);
        bytes.extend_from_slice(&u32::try_from(part.len()).expect("short").to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes.extend_from_slice(&[0; 32]);
    bytes.extend_from_slice(&(parts.len() as u64).to_le_bytes());
    bytes
}

fn kept(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    if let Some(again) = fuzzing::kept(text) {
        assert!(again.eq_ignore_ascii_case(&text.replace("\r\n", "\n")), "other words than were read");
    }
    if let Some(again) = fuzzing::component(text) {
        assert_eq!(fuzzing::component(&again), Some(again), "another component than was read");
    }
}

fn page(head: &[u8]) {
    let (status, body) = fuzzing::page(head, &Snapshot::default);
    assert!(!body.is_empty() && status.len() > 3);
}

fn seeds() -> Vec<Vec<u8>> {
    let file = place();
    let _ = std::fs::remove_file(&file);
    fuzzing::write_backup_state(&file, &trees::snapshot());
    let state = std::fs::read(&file).expect("just written");
    let mut seeds = vec![
        [&[0], &state[..]].concat(),
        [&[2][..], b"troth kept 1\nalways\n00112233445566778899aabbccddeeff\n"].concat(),
        [&[3][..], b"GET /status HTTP/1.1\r\n\r\n"].concat(),
        [&[3][..], b"GET /metrics HTTP/1.1\r\n\r\n"].concat(),
        [&[4][..], &[3, 0, 0, 0], b"abc"].concat(),
    ];
    seeds.extend(trees::seeds().into_iter().map(|tree| [&[1], &tree[..]].concat()));
    seeds
}
