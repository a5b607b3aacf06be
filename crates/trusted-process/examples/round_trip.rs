//! What a batch of calls costs over the socket of a hardened process, beside the same component in this
//! process: `cargo run --release -p troth-trusted-process --example round_trip`.
//!
//! Neither keeps anything, so the difference is the socket and the sandbox alone. A store with `fdatasync`
//! adds its own time to both.

#![allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::error::Error;
use std::io::{BufRead, BufReader, stdin};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;
use troth_trusted::{
    Certifier, CounterId, CounterValue, Epoch, Identity, MacKey, SigningKey, TrustedCore, VolatileStore,
};
use troth_trusted_host::{Call, InProcess, TrustedComponent};
use troth_trusted_process::{Limits, Patience, RemoteComponent, Sandbox, User, bind, harden, serve};

const IDENTITY: Identity = Identity { group: [3; 16], replica: 1, epoch: Epoch(1) };
const ROUNDS: usize = 20_000;
/// The user that the process becomes when this is run as root.
const NOBODY: u32 = 65_534;

fn core(kind: &str) -> TrustedCore<VolatileStore> {
    let certifier = match kind {
        "Ed25519" => Certifier::Signature(SigningKey::new(&[6; 32])),
        _ => Certifier::Mac(MacKey::new(&[5; 32])),
    };
    TrustedCore::start(IDENTITY, certifier, VolatileStore)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [role, directory, kind] = arguments.as_slice()
        && role == "serve"
    {
        return serve_here(Path::new(directory), kind);
    }
    let directory = std::env::temp_dir().join(format!("troth-round-trip-{}", std::process::id()));
    std::fs::create_dir(&directory)?;
    let measured = measure(&directory);
    std::fs::remove_dir_all(&directory)?;
    measured
}

fn measure(directory: &Path) -> Result<(), Box<dyn Error>> {
    println!("microseconds per batch, median and 99th percentile of {ROUNDS}");
    println!("{:<14} {:<9} {:>16} {:>16}", "proof", "moves", "in process", "own process");
    for kind in ["HMAC-SHA-256", "Ed25519"] {
        for moves in [1, 8] {
            let (own, theirs) = (state(directory)?, directory.join("socket"));
            let mut child = Command::new(std::env::current_exe()?)
                .args(["serve", directory.to_str().ok_or("a path in UTF-8")?, kind])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()?;
            let mut said = BufReader::new(child.stdout.take().ok_or("piped")?).lines();
            said.next().ok_or("the trusted process did not start")??;
            let mut remote = RemoteComponent::connect(&theirs, Patience::default())?;
            let near = percentiles(&mut InProcess::new(core(kind)), moves)?;
            let far = percentiles(&mut remote, moves)?;
            let shown = |(median, late): (f64, f64)| format!("{median:.1} / {late:.1}");
            println!("{kind:<14} {moves:<9} {:>16} {:>16}", shown(near), shown(far));
            drop(child.stdin.take());
            child.wait()?;
            std::fs::remove_dir_all(own)?;
        }
    }
    Ok(())
}

/// A directory of the trusted process's own.
fn state(directory: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let state = directory.join("state");
    std::fs::create_dir(&state)?;
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700))?;
    if rustix::process::geteuid().is_root() {
        chown(&state, Some(NOBODY), Some(NOBODY))?;
    }
    Ok(state)
}

fn serve_here(directory: &Path, kind: &str) -> Result<(), Box<dyn Error>> {
    let own = rustix::process::geteuid();
    let listener = bind(&directory.join("socket"), own.as_raw())?;
    let sandbox = Sandbox {
        user: own.is_root().then_some(User { uid: NOBODY, gid: NOBODY }),
        client_uid: own.as_raw(),
        directory: directory.join("state"),
        readable: vec![],
    };
    harden(&sandbox)?;
    println!("ready");
    let until = Some(stdin().as_fd().try_clone_to_owned()?);
    Ok(serve(&listener, core(kind), &Limits { until, ..Limits::new(own.as_raw()) }, &mut |_| {})?)
}

/// Median and 99th percentile of batches that each move `moves` counters by one, in microseconds.
fn percentiles(component: &mut dyn TrustedComponent, moves: u16) -> Result<(f64, f64), Box<dyn Error>> {
    let mut took = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS as u128 {
        let calls: Vec<Call> = (0..moves)
            .map(|counter| Call::Attest {
                counter: CounterId(counter),
                previous: CounterValue(round),
                new: CounterValue(round + 1),
                digest: [round as u8; 32],
            })
            .collect();
        let start = Instant::now();
        let answers = component.call(&calls);
        took.push(start.elapsed().as_secs_f64() * 1e6);
        if answers.iter().any(|answer| answer.attested().is_none()) {
            return Err(format!("{answers:?}").into());
        }
    }
    took.sort_by(f64::total_cmp);
    Ok((took[ROUNDS / 2], took[ROUNDS * 99 / 100]))
}
