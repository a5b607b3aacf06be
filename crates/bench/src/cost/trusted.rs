//! What a call of a trusted component in its own process costs: of a real one, in both processes, with all that it does.

use super::clock::{Others, look, processor};
use super::prices::stay_on;
use crate::Failure;
use crate::processes::Scratch;
use crate::protocol::Agreed;
use crate::report::median;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use troth_node::config::{Durability, TrustedHome};
use troth_trusted::{CounterId, CounterValue};
use troth_trusted_host::{Answer, Call, TrustedComponent};
use troth_trusted_process::{Patience, RemoteComponent};
use troth_types::ReplicaId;

/// Calls of one look.
const CALLS: u64 = 500;
/// Before each of them, so that the process sleeps.
const PAUSE: Duration = Duration::from_millis(1);
/// How long it may take to listen.
const STARTS_WITHIN: Duration = Duration::from_secs(10);

/// A call, with what follows from it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrustedCall {
    /// Microseconds of processor time of both processes.
    pub(crate) micros: f64,
    /// Writes of files.
    pub(crate) writes: f64,
}

/// Measures it on a component that a group has for one of its replicas, with the program that replicas start.
pub(crate) fn call() -> Result<TrustedCall, Failure> {
    let replica = ReplicaId(0);
    let scratch = Scratch::new(Agreed::minbft(1, TrustedHome::Process), 1, Durability::Memory)?;
    let command = crate::trusted_command(scratch.layout.root(), replica)?;
    let (program, words) = command.split_first().ok_or("there is no program")?;
    let started = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let process = Process(started);
    let mut component = connect(&scratch.layout.trusted_socket(replica))?;
    // Each on its core, as the calls of a replica wake a process on another one.
    let mut there = CpuSet::new();
    there.set(1);
    let pid = i32::try_from(process.0.id()).ok().and_then(Pid::from_raw);
    // Where that is not allowed it runs where it may.
    let _ = sched_setaffinity(pid, &there);
    let here = stay_on(0);
    let measured = calls(&mut component, &process);
    if let Some(before) = here {
        let _ = sched_setaffinity(None, &before);
    }
    measured
}

fn calls(component: &mut RemoteComponent, process: &Process) -> Result<TrustedCall, Failure> {
    let (mut others, clock) = (Others::new(), look());
    let (mut spent, before) = (Vec::new(), process.so_far()?);
    for number in 0..CALLS {
        others.run();
        std::thread::sleep(PAUSE);
        let call = Call::Attest {
            counter: CounterId(0),
            previous: CounterValue(number.into()),
            new: CounterValue((number + 1).into()),
            digest: [number as u8; 32],
        };
        let began = processor();
        let answer = component.call(std::slice::from_ref(&call));
        spent.push(processor() - began - clock);
        if !matches!(answer[..], [Answer::Attested(_)]) {
            return Err(format!("a trusted process answered {answer:?}").into());
        }
    }
    let after = process.so_far()?;
    Ok(TrustedCall {
        micros: median(spent) + (after.0 - before.0) / CALLS as f64,
        writes: (after.1 - before.1) / CALLS as f64,
    })
}

/// Waits until the process listens.
fn connect(socket: &Path) -> Result<RemoteComponent, Failure> {
    let give_up = Instant::now() + STARTS_WITHIN;
    loop {
        match RemoteComponent::connect(socket, Patience::default()) {
            Ok(component) => return Ok(component),
            Err(why) if Instant::now() > give_up => return Err(why.into()),
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Ends with this, by the end of its standard input.
struct Process(Child);

impl Process {
    /// Microseconds of processor time, and writes of files, since it started.
    fn so_far(&self) -> Result<(f64, f64), Failure> {
        let mut micros = 0.0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.0.id()))?.flatten() {
            let said = std::fs::read_to_string(thread.path().join("schedstat"))?;
            let ran = said.split_whitespace().next().and_then(|ran| ran.parse::<f64>().ok());
            micros += ran.ok_or("the kernel does not tell how long a thread has run")? / 1e3;
        }
        let said = std::fs::read_to_string(format!("/proc/{}/io", self.0.id()))?;
        let writes = said.lines().find_map(|line| line.strip_prefix("syscw: "));
        let writes = writes.and_then(|count| count.trim().parse().ok());
        Ok((micros, writes.ok_or("the kernel does not tell how often a process has written")?))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        // It has ended by itself otherwise.
        let _ = self.0.wait();
    }
}
