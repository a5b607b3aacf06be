//! A process of some user that tries to get at a trusted process.

use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::kill;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use troth_trusted_process::{Patience, RemoteComponent};

/// The first argument of a child that is an attacker; `attack`, process and path follow.
pub const ROLE: &str = "--troth-attacker-child";

/// Exit codes: got through, or was kept out.
pub const THROUGH: u8 = 40;
pub const KEPT_OUT: u8 = 41;

/// The ways to its memory.
pub const ON_MEMORY: [&str; 4] = ["mem", "vm_readv", "ptrace", "environ"];

pub fn main(arguments: &[String]) -> ExitCode {
    let [attack, process, path] = arguments else {
        panic!("attack, process and path");
    };
    let (process, path) = (Pid::from_raw(process.parse().expect("a number")), Path::new(path));
    let tried: Result<(), String> = match attack.as_str() {
        "mem" => memory(process).map_err(|why| why.to_string()),
        "vm_readv" => vm_readv(process).map_err(|why| why.to_string()),
        "ptrace" => trace(process).map_err(|why| why.to_string()),
        "environ" => {
            std::fs::read(format!("/proc/{process}/environ")).map(drop).map_err(|why| why.to_string())
        }
        "signal" => kill(process, None).map_err(|why| why.to_string()),
        "list" => std::fs::read_dir(path).map(drop).map_err(|why| why.to_string()),
        "read" => std::fs::read(path).map(drop).map_err(|why| why.to_string()),
        "write" => File::options().write(true).open(path).map(drop).map_err(|why| why.to_string()),
        "connect" => {
            let soon = Duration::from_secs(30);
            let patience = Patience { answer: soon, beside: soon, reconnect: soon };
            RemoteComponent::connect(path, patience).map(drop).map_err(|why| why.to_string())
        }
        other => panic!("no such attack: {other}"),
    };
    match tried {
        Ok(()) => ExitCode::from(THROUGH),
        Err(why) => {
            println!("{why}");
            ExitCode::from(KEPT_OUT)
        }
    }
}

/// An address that the process can read, if its map can be read.
fn address(process: Pid) -> io::Result<usize> {
    let map = std::fs::read_to_string(format!("/proc/{process}/maps"))?;
    let stack = map.lines().find(|line| line.ends_with("[stack]")).ok_or(io::ErrorKind::NotFound)?;
    let start = stack.split('-').next().and_then(|start| usize::from_str_radix(start, 16).ok());
    start.ok_or(io::ErrorKind::InvalidData.into())
}

fn memory(process: Pid) -> io::Result<()> {
    let memory = File::open(format!("/proc/{process}/mem"))?;
    memory.read_exact_at(&mut [0; 64], address(process)? as u64)
}

fn vm_readv(process: Pid) -> Result<(), Errno> {
    // Where the map is hidden any address does: the right to read is asked for before the address.
    let base = address(process).unwrap_or(4096);
    let mut bytes = [0; 64];
    process_vm_readv(process, &mut [IoSliceMut::new(&mut bytes)], &[RemoteIoVec { base, len: 64 }]).map(drop)
}

fn trace(process: Pid) -> Result<(), Errno> {
    ptrace::attach(process)?;
    waitpid(process, None)?;
    ptrace::detach(process, None)
}
