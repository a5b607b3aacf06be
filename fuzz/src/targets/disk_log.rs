//! Opening a log: from any bytes, from headers that are right and say anything, and from a log that was written
//! and then damaged, of which only the front may come back.

use crate::bytes::{Steps, damage};
use crate::{Bound, Target};
use bytes::Bytes;
use troth_disk::{Identity, Log, LogOptions, MemoryDisk};

pub(super) const TARGET: Target = Target {
    name: "disk-log",
    run,
    seeds,
    // The window that a file is read through, twice, and the room that a new segment makes.
    bound: Bound { fixed: 4 << 20, per_byte: 64 },
    longest: 4096,
};

const ME: Identity = Identity { group: [7; 32], replica: 2 };
/// Segments so small that a few records need several.
const SMALL: LogOptions = LogOptions { segment_bytes: 300, step_bytes: 512, salt: 0x5eed };
/// Bytes of a segment's header, of which the last four are the checksum of the others.
const HEADER: usize = 81;

fn run(input: &[u8]) {
    let mut steps = Steps::new(input);
    match steps.byte() % 3 {
        0 => anything(&mut steps),
        1 => headers(&mut steps),
        _ => damaged(&mut steps),
    }
}

/// The name of a segment.
fn name(number: u64) -> String {
    format!("log-{number:016x}")
}

/// Opens it; opened a second time it must say the same, for whatever was cut is gone.
fn open(disk: &MemoryDisk) -> Option<(Option<u64>, Vec<Bytes>)> {
    let (log, recovered) = Log::open(disk.clone(), ME, SMALL).ok()?;
    drop(log);
    let again = Log::open(disk.clone(), ME, SMALL).map(|(_, again)| again).expect("what was opened opens");
    assert!(again.cut.is_none(), "what was cut is still there");
    assert_eq!(
        (again.base, &again.records),
        (recovered.base, &recovered.records),
        "another log the second time"
    );
    Some((recovered.base, recovered.records))
}

fn anything(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    for _ in 0..1 + steps.byte() % 3 {
        let number = u64::from(steps.byte());
        let length = usize::from(steps.short());
        disk.put(&name(number), steps.take(length).to_vec());
    }
    open(&disk);
}

fn headers(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    for _ in 0..1 + steps.byte() % 4 {
        let number = match steps.byte() {
            255 => u64::MAX,
            small => u64::from(small),
        };
        let value = if steps.byte() == 255 { u64::MAX } else { u64::from(steps.short()) };
        let mut bytes =
            [&b"TROTHLOG"[..], &1_u16.to_le_bytes(), &ME.group, &ME.replica.to_le_bytes()].concat();
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.push(steps.byte() % 4);
        for number in [value, u64::from(steps.short()), 1] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        assert_eq!(bytes.len(), HEADER);
        bytes.extend_from_slice(steps.chunk());
        disk.put(&name(number), bytes);
    }
    open(&disk);
}

fn damaged(steps: &mut Steps<'_>) {
    let disk = MemoryDisk::default();
    let (mut log, _) = Log::open(disk.clone(), ME, SMALL).expect("an empty directory");
    let mut written: Vec<Bytes> = Vec::new();
    // Where the log may begin: at each base the records before it are gone.
    let mut starts = vec![0];
    let mut place = None;
    for _ in 0..steps.byte() % 12 {
        match steps.byte() % 8 {
            0 => log.sync().expect("it has room"),
            1 => log.housekeep().expect("it has room"),
            2 => {
                log.begin_base(written.len() as u64, &[]).expect("small");
                starts.push(written.len());
                place = None;
            }
            3 => {
                log.place().expect("it has room");
                place = Some(written.len());
            }
            4 => {
                if let Some(place) = place {
                    log.stand_on(written.len() as u64).expect("it has room");
                    starts.push(place);
                }
            }
            _ => {
                let record = Bytes::copy_from_slice(steps.chunk());
                log.append(&record).expect("small");
                written.push(record);
            }
        }
    }
    log.sync().expect("it has room");
    drop(log);
    let names = troth_disk::Disk::list(&disk).expect("in memory");
    for _ in 0..1 + steps.byte() % 3 {
        let name = steps.one_of(&names).expect("a log has a segment");
        let mut bytes = disk.contents(name).unwrap_or_default();
        damage(steps, &mut bytes);
        disk.put(name, bytes);
    }
    if let Some((_, records)) = open(&disk) {
        let front = |start: &usize| {
            let from = &written[*start..];
            records.len() <= from.len() && records[..] == from[..records.len()]
        };
        assert!(starts.iter().any(front), "records came back that are no front of what was written");
    }
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        vec![0, 1, 1, 40, 0, b'T'],
        [&[1, 0, 1, 0, 0, 0, 0, 81, 0][..], &[20; 21]].concat(),
        [&[2, 9, 3, 5][..], b"first", &[0, 3, 6], b"second", &[1, 2, 3, 4], b"last", &[1, 0, 0, 90, 0, 1]]
            .concat(),
    ]
}
