//! The trusted process of these tests: as `troth trusted`, with a store in a plain file or the one that
//! ships, and with what a test wants it to do wrong.

use crate::support::{FileStore, Hook, IDENTITY, POINTS, Point, core_in, mac};
use nix::sys::signal::kill;
use nix::unistd::{Pid, Uid, setuid};
use seccompiler::{
    SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use troth_trusted::a2m::{A2m, LOGS, LogStore, Logs, Operation};
use troth_trusted::{Epoch, Identity, Kept, State, Store, StoreFailed, TrustedCore};
use troth_trusted_host::LogRoom;
use troth_trusted_host::conformance::logs::ROOM;
use troth_trusted_host::store::{Both, DiskLogs, DiskStore, Policy, RealDirectory, SLOTS, StoreError};
use troth_trusted_process::{Limits, Sandbox, ServeError, User, bind, harden, serve, serve_with_logs};

/// Where a child with the store that ships keeps its counters, below its state.
pub const COUNTERS: &str = "counters";
/// Where a child keeps its logs, below its state.
pub const LOG_FILES: &str = "logs";
/// The first argument of a child that is a trusted process.
pub const ROLE: &str = "--troth-trusted-child";

/// The exit code of a child whose store was refused.
pub const REFUSED: u8 = 4;

/// What a child is to do.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Task {
    pub state: PathBuf,
    pub socket: PathBuf,
    pub user: Option<u32>,
    pub client: u32,
    pub epoch: Option<u64>,
    /// Stops for good at this point of the store with this number, for the test to kill it there.
    pub stop: Option<(usize, Point)>,
    /// Makes the kernel look as if it had none of these: `landlock`, `seccomp`, `mlockall`.
    pub without: Vec<String>,
    /// Does not harden itself at all.
    pub plain: bool,
    /// Keeps its counters in the store that ships.
    pub disk: bool,
    /// With files of so many slots there, instead of as many as ship.
    pub slots: Option<u32>,
    /// Serves logs too, in the store that ships.
    pub logs: bool,
    /// Has a second thread.
    pub threads: bool,
}

impl Task {
    pub fn to_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("state={}", self.state.display()),
            format!("socket={}", self.socket.display()),
            format!("client={}", self.client),
        ];
        arguments.extend(self.user.map(|user| format!("user={user}")));
        arguments.extend(self.epoch.map(|epoch| format!("epoch={epoch}")));
        arguments.extend(self.stop.map(|(store, point)| format!("stop={store} {point:?}")));
        arguments.extend(self.without.iter().map(|what| format!("without={what}")));
        arguments.extend(self.plain.then(|| "plain=".to_owned()));
        arguments.extend(self.disk.then(|| "disk=".to_owned()));
        arguments.extend(self.slots.map(|slots| format!("slots={slots}")));
        arguments.extend(self.logs.then(|| "logs=".to_owned()));
        arguments.extend(self.threads.then(|| "threads=".to_owned()));
        arguments
    }

    fn from_arguments(arguments: &[String]) -> Self {
        let mut task = Self::default();
        for argument in arguments {
            let (name, value) = argument.split_once('=').expect("name=value");
            let number = || value.parse().expect("a number");
            match name {
                "state" => task.state = value.into(),
                "socket" => task.socket = value.into(),
                "client" => task.client = number(),
                "user" => task.user = Some(number()),
                "epoch" => task.epoch = Some(value.parse().expect("a number")),
                "stop" => {
                    let (store, name) = value.split_once(' ').expect("store and point");
                    let point = POINTS.into_iter().find(|point| format!("{point:?}") == name);
                    task.stop = Some((store.parse().expect("a number"), point.expect("a point")));
                }
                "without" => task.without.push(value.to_owned()),
                "plain" => task.plain = true,
                "disk" => task.disk = true,
                "slots" => task.slots = Some(number()),
                "logs" => task.logs = true,
                "threads" => task.threads = true,
                other => panic!("no such argument: {other}"),
            }
        }
        task
    }
}

pub fn main(arguments: &[String]) -> ExitCode {
    let task = Task::from_arguments(arguments);
    if task.threads {
        std::thread::spawn(std::thread::park);
    }
    let listener = bind(&task.socket, task.client).expect("a socket");
    if !task.without.is_empty() {
        pretend_to_be_older(&task.without);
    }
    if !task.plain {
        let sandbox = Sandbox {
            user: task.user.map(|uid| User { uid, gid: uid }),
            client_uid: task.client,
            directory: task.state.clone(),
            readable: vec!["/proc/sys/kernel/random/boot_id".into()],
        };
        match harden(&sandbox) {
            Ok(report) => println!("{report}"),
            Err(why) => {
                println!("refused: {why}");
                return ExitCode::from(3);
            }
        }
    }
    let identity = Identity { epoch: task.epoch.map_or(IDENTITY.epoch, Epoch), ..IDENTITY };
    if task.logs {
        return with_logs(&listener, &task, identity);
    }
    if task.disk {
        return match core_on_disk(&task, identity) {
            Ok(core) => answer(&listener, &task, core),
            Err(why) => {
                println!("refused: {why}");
                ExitCode::from(REFUSED)
            }
        };
    }
    let core: TrustedCore<FileStore> = core_in(&task.state, identity, mac(), hook(&task));
    answer(&listener, &task, core)
}

/// The store that ships, which fails once a file named `broken` lies beside it.
struct Breakable {
    store: DiskStore,
    broken: PathBuf,
}

impl Store for Breakable {
    fn store(&mut self, state: &State) -> Result<(), StoreFailed> {
        if self.broken.exists() { Err(StoreFailed::Unknown) } else { self.store.store(state) }
    }

    fn store_beside(&mut self, state: &State, blob: &[u8]) -> Result<Kept, StoreFailed> {
        if self.broken.exists() { Err(StoreFailed::Unknown) } else { self.store.store_beside(state, blob) }
    }

    fn blob(&self, index: usize) -> Option<&[u8]> {
        self.store.blob(index)
    }
}

/// A component that starts or goes on from the counters below a directory.
fn core_on_disk(task: &Task, identity: Identity) -> Result<TrustedCore<Breakable>, StoreError> {
    let directory = RealDirectory::new(&task.state.join(COUNTERS)).expect("its directory");
    let slots = task.slots.unwrap_or(SLOTS);
    let opened = DiskStore::open_in(directory, identity, Policy::Always, slots)?;
    let store = Breakable { store: opened.store, broken: task.state.join("broken") };
    Ok(match opened.last {
        None => TrustedCore::start(identity, mac(), store),
        Some(last) => TrustedCore::restart(identity, mac(), store, last).expect("its own state"),
    })
}

/// Counters and logs of one epoch. The logs fail once a file named `broken` lies beside them.
fn with_logs(listener: &UnixListener, task: &Task, identity: Identity) -> ExitCode {
    let both =
        Both { identity, policy: Policy::Always, room: [ROOM; LOGS], slots: task.slots.unwrap_or(SLOTS) };
    let (counters, logs) = match both.open(&task.state.join(COUNTERS), &task.state.join(LOG_FILES)) {
        Ok(opened) => opened,
        Err(why) => {
            println!("refused: {why}");
            return ExitCode::from(REFUSED);
        }
    };
    let core = match counters.last {
        None => TrustedCore::start(identity, mac(), counters.store),
        Some(last) => TrustedCore::restart(identity, mac(), counters.store, last).expect("its own state"),
    };
    let store = BreakableLogs { store: logs.store, broken: task.state.join("broken") };
    let logs = A2m::restart(identity, mac(), store, logs.logs).expect("its own logs");
    let (limits, observe) = (limits(task), &mut |event| println!("event: {event}"));
    ended(serve_with_logs(listener, core, logs, &limits, observe))
}

struct BreakableLogs {
    store: DiskLogs,
    broken: PathBuf,
}

impl LogStore<LogRoom> for BreakableLogs {
    fn store(&mut self, before: &Logs<LogRoom>, operations: &[Operation]) -> Result<(), StoreFailed> {
        if self.broken.exists() { Err(StoreFailed::Unknown) } else { self.store.store(before, operations) }
    }
}

/// Says that it serves, and until when.
fn limits(task: &Task) -> Limits {
    let until = std::io::stdin().as_fd().try_clone_to_owned().expect("a descriptor");
    println!("ready");
    Limits { until: Some(until), ..Limits::new(task.client) }
}

fn answer<S: Store + Send>(listener: &UnixListener, task: &Task, core: TrustedCore<S>) -> ExitCode {
    ended(serve(listener, core, &limits(task), &mut |event| println!("event: {event}")))
}

fn ended(how: Result<(), ServeError>) -> ExitCode {
    match how {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("ended: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A filter over the real kernel that knows less.
fn pretend_to_be_older(without: &[String]) {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for what in without {
        match what.as_str() {
            "landlock" => {
                rules.insert(libc::SYS_landlock_create_ruleset, vec![]);
                rules.insert(libc::SYS_landlock_restrict_self, vec![]);
            }
            "seccomp" => {
                rules.insert(libc::SYS_seccomp, vec![]);
                let set = libc::PR_SET_SECCOMP as u64;
                let asked = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, set);
                let asked = SeccompRule::new(vec![asked.expect("a condition")]).expect("a rule");
                rules.insert(libc::SYS_prctl, vec![asked]);
            }
            "mlockall" => {
                rules.insert(libc::SYS_mlockall, vec![]);
            }
            other => panic!("nothing is done without {other}"),
        }
    }
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let target = std::env::consts::ARCH.try_into().expect("a known architecture");
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, missing, target).expect("a filter");
    let program: seccompiler::BpfProgram = filter.try_into().expect("a program");
    seccompiler::apply_filter(&program).expect("seccomp");
}

/// The digest of a message that makes the child misbehave before it stores the move.
pub fn forbidden(deed: Deed) -> [u8; 32] {
    let mut digest = [0xee; 32];
    digest[31] = deed as u8;
    digest
}

/// What a process that an attacker has taken over might try.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Deed {
    /// Opens another socket.
    Connect,
    /// Starts a program.
    Execute,
    /// Starts a thread.
    Thread,
    /// Attaches to a process.
    Trace,
    /// Sends a signal.
    Signal,
    /// Becomes root again.
    Root,
    /// Makes its memory readable to others again.
    Dumpable,
    /// Makes a directory.
    Directory,
    /// Reads a file outside its directory, and says how it went.
    Read,
    /// Writes a file outside its directory, and says how it went.
    Write,
    /// Reads the boot id, which it may.
    BootId,
    /// Does all that a store may do, and says how it went.
    Store,
}

pub const DEADLY: [Deed; 8] = [
    Deed::Connect,
    Deed::Execute,
    Deed::Thread,
    Deed::Trace,
    Deed::Signal,
    Deed::Root,
    Deed::Dumpable,
    Deed::Directory,
];

fn hook(task: &Task) -> Hook {
    let (stop, state, socket) = (task.stop, task.state.clone(), task.socket.clone());
    Box::new(move |store, point, after: &State| {
        if stop == Some((store, point)) {
            println!("stopped");
            // The parent writes nothing, so this ends with the process only.
            let _ = std::io::stdin().read(&mut [0]);
            unreachable!("the test kills a process that has stopped");
        }
        if point == Point::BeforeWrite {
            for counter in after.counters.iter().filter(|counter| counter.digest[..31] == [0xee; 31]) {
                misbehave(counter.digest[31], &state, &socket);
            }
        }
    })
}

fn misbehave(deed: u8, state: &Path, socket: &Path) {
    let said = match deed {
        deed if deed == Deed::Connect as u8 => format!("{:?}", UnixStream::connect(socket).is_ok()),
        deed if deed == Deed::Execute as u8 => format!("{:?}", Command::new("/bin/true").spawn().is_ok()),
        deed if deed == Deed::Thread as u8 => {
            format!("{:?}", std::thread::Builder::new().spawn(|| ()).is_ok())
        }
        deed if deed == Deed::Trace as u8 => {
            format!("{:?}", nix::sys::ptrace::attach(Pid::from_raw(std::process::id() as i32)))
        }
        deed if deed == Deed::Signal as u8 => {
            format!("{:?}", kill(Pid::from_raw(std::process::id() as i32), None))
        }
        deed if deed == Deed::Root as u8 => format!("{:?}", setuid(Uid::from_raw(0))),
        deed if deed == Deed::Dumpable as u8 => format!(
            "{:?}",
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)
        ),
        deed if deed == Deed::Directory as u8 => format!("{:?}", std::fs::create_dir(state.join("made"))),
        deed if deed == Deed::Read as u8 => match std::fs::read("/etc/passwd") {
            Ok(_) => "read".to_owned(),
            Err(why) => format!("{:?}", why.kind()),
        },
        deed if deed == Deed::Write as u8 => match std::fs::write("/tmp/troth-outside", "x") {
            Ok(()) => "written".to_owned(),
            Err(why) => format!("{:?}", why.kind()),
        },
        deed if deed == Deed::BootId as u8 => {
            match std::fs::read_to_string("/proc/sys/kernel/random/boot_id") {
                Ok(id) => format!("read {} characters", id.trim().len()),
                Err(why) => format!("{:?}", why.kind()),
            }
        }
        _ => match store_work(state) {
            Ok(()) => "done".to_owned(),
            Err(why) => format!("{why}"),
        },
    };
    println!("deed: {said}");
}

/// What a durable store with compaction asks of the system.
fn store_work(state: &Path) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
    use std::os::unix::fs::FileExt;
    let (next, now) = (state.join("next"), state.join("now"));
    std::fs::write(&now, b"old")?;
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&next)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    file.lock_shared()?;
    fallocate(&file, FallocateFlags::empty(), 0, 1 << 20)?;
    file.set_len(1 << 20)?;
    file.write_all_at(&vec![7; 300_000], 4096)?;
    file.sync_data()?;
    file.sync_all()?;
    let mut back = vec![0; 300_000];
    file.read_exact_at(&mut back, 4096)?;
    std::fs::rename(&next, &now)?;
    let directory = std::fs::File::open(state)?;
    directory.sync_all()?;
    let names = std::fs::read_dir(state)?.count();
    let length = std::fs::metadata(&now)?.len();
    let copy = file.try_clone()?;
    std::fs::remove_file(&now)?;
    directory.sync_all()?;
    let right = names >= 2 && length == 1 << 20 && copy.metadata()?.len() == 1 << 20 && !now.exists();
    let grown: Vec<u64> = (0..100_000).collect();
    let right = right && grown.iter().sum::<u64>() == 4_999_950_000 && back.iter().all(|byte| *byte == 7);
    if right { Ok(()) } else { Err(std::io::Error::other("the files are not as they should be")) }
}
