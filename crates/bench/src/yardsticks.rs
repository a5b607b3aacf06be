//! What the machine itself can do: a byte over TCP and back between two processes, the disk's own sync, the price of
//! a hash and of signatures. Every figure of a run stands beside these.

use crate::Failure;
use crate::durable::bare_sync;
use crate::processes::Server;
use crate::report::median;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};
use troth_auth::{Check, Ed25519, Ed25519Signer, SignatureScheme, Signer};
use troth_types::{Digest, Hasher};

/// Round trips of one look.
const TRIPS: u32 = 2_000;
/// Hashes and signatures of one look.
const TIMES: u32 = 200;
/// Signatures of a batch.
const BATCH: usize = 64;
/// Bytes of the frame that is echoed: what 62 operations of the null service take.
const FRAME: usize = 512;

/// Looks at the machine so far.
#[derive(Default)]
pub(crate) struct Yardsticks {
    figures: Vec<[f64; FIGURES.len()]>,
}

/// Title and name in JSON.
const FIGURES: [(&str, &str); 7] = [
    ("a byte over TCP and back, between two processes, µs", "tcp_round_trip_us"),
    ("512 bytes over TCP and back, µs", "tcp_frame_round_trip_us"),
    ("write of 4 KiB + fdatasync, µs", "sync_us"),
    ("SHA-256 of 1 KiB, µs", "hash_1k_us"),
    ("Ed25519 signature, µs", "sign_us"),
    ("Ed25519 check, one alone, µs", "check_us"),
    ("Ed25519 check, in a batch of 64, µs each", "check_in_a_batch_us"),
];

impl Yardsticks {
    /// Looks at the machine once.
    pub(crate) fn look(&mut self) -> Result<(), Failure> {
        let directory = std::env::temp_dir().join(format!("troth-yardsticks-{}", std::process::id()));
        std::fs::create_dir_all(&directory)?;
        let looked = look(&directory);
        // A few small files below the system's own directory for such.
        let _ = std::fs::remove_dir_all(&directory);
        self.figures.push(looked?);
        Ok(())
    }

    /// How many looks there were.
    pub(crate) fn looks(&self) -> usize {
        self.figures.len()
    }

    fn median(&self, index: usize) -> f64 {
        median(self.figures.iter().map(|figures| figures[index]))
    }

    /// Prints the medians.
    pub(crate) fn print(&self) {
        for (index, (title, _)) in FIGURES.iter().enumerate() {
            println!("{title:<55} {:>9.2}", self.median(index));
        }
    }

    /// The medians with all looks.
    pub(crate) fn json(&self) -> Value {
        let figures: serde_json::Map<String, Value> = FIGURES
            .iter()
            .enumerate()
            .map(|(index, (_, name))| {
                let all: Vec<f64> = self.figures.iter().map(|figures| figures[index]).collect();
                ((*name).to_owned(), json!({ "median": median(all.clone()), "looks": all }))
            })
            .collect();
        figures.into()
    }
}

fn look(directory: &std::path::Path) -> Result<[f64; FIGURES.len()], Failure> {
    let (byte, frame) = round_trips(directory)?;
    let sync = bare_sync(&directory.join("syncs"))?;
    let content = vec![7_u8; 1024];
    let hash = each(|| {
        let mut hasher = Hasher::new("troth/yardstick");
        hasher.fixed(&content);
        std::hint::black_box(hasher.finish());
    });
    let signer = Ed25519Signer::from_seed([7; 32]);
    let sign = each(|| {
        std::hint::black_box(signer.sign(&Digest([9; 32])));
    });
    let digests: Vec<Digest> = (0..BATCH).map(|number| Digest([number as u8; 32])).collect();
    let checks: Vec<Check> = digests
        .iter()
        .map(|digest| Check { key: signer.public_key(), digest: *digest, signature: signer.sign(digest) })
        .collect();
    let scheme = Ed25519;
    let check = each(|| {
        std::hint::black_box(scheme.verify_all(&checks[..1]));
    });
    let batch = each(|| {
        std::hint::black_box(scheme.verify_all(&checks));
    });
    Ok([byte, frame, sync, hash, sign, check, batch / BATCH as f64])
}

/// Microseconds that something takes, for half of the times.
fn each(mut what: impl FnMut()) -> f64 {
    let mut took = Vec::new();
    for _ in 0..TIMES {
        let began = Instant::now();
        what();
        took.push(began.elapsed().as_secs_f64() * 1e6);
    }
    median(took)
}

/// The p50 of round trips to another process, of one byte and of a frame.
fn round_trips(directory: &std::path::Path) -> Result<(f64, f64), Failure> {
    let echo = Server::start(&["echo"], directory, "")?;
    let give_up = Instant::now() + Duration::from_secs(5);
    let address = loop {
        if let Some(line) = echo.said().lines().next().filter(|line| line.contains(':')) {
            break line.to_owned();
        }
        if Instant::now() > give_up {
            return Err("the process that echoes does not start".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut stream = TcpStream::connect(&address)?;
    stream.set_nodelay(true)?;
    let mut measure = |length: usize| -> Result<f64, Failure> {
        let (sent, mut came) = (vec![1; length], vec![0; length]);
        let mut took = Vec::new();
        for _ in 0..TRIPS {
            let began = Instant::now();
            stream.write_all(&sent)?;
            stream.read_exact(&mut came)?;
            took.push(began.elapsed().as_secs_f64() * 1e6);
        }
        Ok(median(took))
    };
    Ok((measure(1)?, measure(FRAME)?))
}

/// Sends back what comes on one connection, until that ends.
pub(crate) fn echo() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let (mut stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count])?,
        }
    }
}
