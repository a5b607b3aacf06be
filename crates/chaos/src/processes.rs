//! The replicas and their trusted processes as child processes, killed, paused and started again. They end
//! with this process, however it ends: each watches its standard input, whose other end only we hold, and a
//! paused one has a guard that resumes it.

use crate::Failure;
use crate::machines::Machines;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, getrlimit, kill_process, kill_process_group, setrlimit,
};
use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use troth_disk::{Death, Orders};
use troth_node::config::TrustedHome;

/// Seconds after which a paused replica's guard resumes it; above the longest pause.
const GUARD_SECONDS: &str = "30";
/// How long a process may take to die at a sync: one that syncs nothing meanwhile is killed as it is, and
/// loses everything that it had not synced.
const UNTIL_DEAD: Duration = Duration::from_millis(300);
/// Between two looks at a dying process.
const LOOK: Duration = Duration::from_millis(2);
/// By which a process ends that dies as it was told.
const SIGABRT: i32 = 6;

/// One of the two processes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// `troth replica`.
    Replica,
    /// `troth trusted`.
    Trusted,
}

impl Part {
    /// The word of the command line, and of the files' names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Replica => "replica",
            Self::Trusted => "trusted",
        }
    }
}

/// A process that ended though nobody ended it.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    who: String,
    status: ExitStatus,
    log: PathBuf,
    /// What it said last.
    pub(crate) said: String,
}

impl Ended {
    /// Whether it refused to go on with what it found on its disk.
    pub(crate) fn refused(&self) -> bool {
        const MUST_NOT_START: i32 = 3;
        // The component no longer follows its replica, which is told so while it runs.
        const NO_LONGER_FOLLOWS: &str = "the trusted component refused to go on";
        self.status.code() == Some(MUST_NOT_START) || self.said.contains(NO_LONGER_FOLLOWS)
    }

    /// For people.
    pub(crate) fn describe(&self) -> String {
        format!("{} ended by itself ({}); {}:\n{}", self.who, self.status, self.log.display(), self.said)
    }
}

struct Machine {
    directory: PathBuf,
    replica: Option<Child>,
    trusted: Option<Child>,
    /// Resumes the replica where we cannot.
    guard: Option<Child>,
    /// Whether the replica lies when it is started next.
    lies: bool,
}

/// The processes of a cluster.
pub(crate) struct Processes {
    program: PathBuf,
    machines: Vec<Machine>,
    /// Whether trusted components have processes of their own.
    apart: bool,
    plant: Option<&'static str>,
    /// How many died as they were told, in the middle of a sync.
    pub(crate) deaths: u64,
}

impl Processes {
    /// Starts all, with this bug where one is planted.
    pub(crate) fn start(
        program: &Path,
        machines: &Machines,
        plant: Option<&'static str>,
    ) -> Result<Self, Failure> {
        // Dying as told is SIGABRT, and no core file is wanted of it.
        let core = Rlimit { current: Some(0), maximum: getrlimit(Resource::Core).maximum };
        setrlimit(Resource::Core, core)?;
        let replicas = machines.cluster.group.n();
        let all = (0u16..).take(replicas).map(|replica| Machine {
            directory: machines.of(replica),
            replica: None,
            trusted: None,
            guard: None,
            lies: false,
        });
        let mut processes = Self {
            program: program.to_path_buf(),
            machines: all.collect(),
            apart: machines.apart(),
            plant,
            deaths: 0,
        };
        for replica in processes.all() {
            processes.begin(replica)?;
        }
        Ok(processes)
    }

    /// Every replica.
    pub(crate) fn all(&self) -> Vec<u16> {
        (0u16..).zip(&self.machines).map(|(replica, _)| replica).collect()
    }

    /// The processes of one machine, the trusted one first.
    pub(crate) fn parts(&self) -> &'static [Part] {
        if self.apart { &[Part::Trusted, Part::Replica] } else { &[Part::Replica] }
    }

    fn machine(&mut self, replica: u16) -> &mut Machine {
        &mut self.machines[usize::from(replica)]
    }

    /// Starts what does not run of a machine. Output goes to `replica.log` and `trusted.log` in its directory.
    pub(crate) fn begin(&mut self, replica: u16) -> Result<(), Failure> {
        for part in self.parts() {
            if self.machine(replica).child(*part).is_none() {
                let child = self.spawn(replica, *part)?;
                *self.machine(replica).child(*part) = Some(child);
            }
        }
        Ok(())
    }

    fn spawn(&mut self, replica: u16, part: Part) -> Result<Child, Failure> {
        let machine = &self.machines[usize::from(replica)];
        let log = File::options().create(true).append(true).open(machine.log(part))?;
        let mut command = Command::new(&self.program);
        command.args([part.word(), "--until-stdin-ends", "--dir"]).arg(&machine.directory);
        command.args(["--id", &replica.to_string()]).arg("--orders").arg(machine.orders(part));
        if let Some(plant) = self.plant {
            command.args(["--plant", plant]);
        }
        if part == Part::Replica {
            if self.apart {
                // Only waits for it: both are ours to kill and to start.
                command.arg("--trusted-socket").arg(machine.socket(replica));
            }
            if machine.lies {
                command.args(["--adversary", "liar"]);
            }
        }
        let child = command.stdin(Stdio::piped()).stdout(log.try_clone()?).stderr(log).spawn();
        Ok(child.map_err(|why| format!("{} does not start: {why}", self.program.display()))?)
    }

    /// Where a replica's files are.
    pub(crate) fn directory(&self, replica: u16) -> &Path {
        &self.machines[usize::from(replica)].directory
    }

    /// Where trusted components live.
    pub(crate) fn trusted_home(&self) -> TrustedHome {
        if self.apart { TrustedHome::Process } else { TrustedHome::InProcess }
    }

    /// Whether a replica lies when it is started next.
    pub(crate) fn lies(&mut self, replica: u16, lies: bool) {
        self.machine(replica).lies = lies;
    }

    /// Tells a process what its disk and clock are like.
    pub(crate) fn order(&mut self, replica: u16, part: Part, orders: Orders) -> Result<(), Failure> {
        Ok(orders.write(&self.machine(replica).orders(part))?)
    }

    /// Kills with SIGKILL, as close together as can be: every signal before the first wait. What a process
    /// had not synced is gone with it.
    pub(crate) fn kill(&mut self, victims: &[u16], parts: &[Part]) -> Result<(), Failure> {
        let mut dying = self.take(victims, parts);
        for (_, _, child) in &mut dying {
            child.kill()?;
        }
        for (_, _, mut child) in dying {
            child.wait()?;
        }
        Ok(())
    }

    /// Has processes die in the middle of one of their next syncs, losing a part of what is not synced that
    /// the seed chooses, torn writes among it.
    pub(crate) async fn lose(&mut self, victims: &[u16], parts: &[Part], seed: u64) -> Result<(), Failure> {
        let mut dying = self.take(victims, parts);
        for (number, (replica, part, _)) in (0u64..).zip(&dying) {
            let death =
                Some(Death { at_sync: 1 + (seed >> 8).wrapping_add(number) % 3, seed: seed ^ number });
            self.order(*replica, *part, Orders { death, ..Orders::default() })?;
        }
        let give_up = Instant::now() + UNTIL_DEAD;
        while !dying.is_empty() {
            let mut alive = Vec::new();
            for (replica, part, mut child) in dying {
                if Instant::now() >= give_up {
                    child.kill()?;
                    child.wait()?;
                } else {
                    match child.try_wait()? {
                        Some(status) => self.deaths += u64::from(status.signal() == Some(SIGABRT)),
                        None => {
                            alive.push((replica, part, child));
                            continue;
                        }
                    }
                }
                self.order(replica, part, Orders::default())?;
            }
            dying = alive;
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// Those that run, no longer ours to miss.
    fn take(&mut self, victims: &[u16], parts: &[Part]) -> Vec<(u16, Part, Child)> {
        let mut taken = Vec::new();
        for part in self.parts().iter().filter(|part| parts.contains(part)) {
            for victim in victims {
                let child = self.machine(*victim).child(*part).take();
                taken.extend(child.map(|child| (*victim, *part, child)));
            }
        }
        taken
    }

    /// Stops a replica where it is (SIGSTOP).
    pub(crate) fn pause(&mut self, replica: u16) -> Result<(), Failure> {
        let machine = self.machine(replica);
        let Some(child) = &machine.replica else { return Ok(()) };
        let guard = Command::new("sh")
            .args(["-c", "sleep \"$1\"; kill -CONT \"$0\"", &child.id().to_string(), GUARD_SECONDS])
            // Ctrl-C in a terminal must not end the guard with us.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        kill_process(id(child)?, Signal::STOP)?;
        machine.guard = Some(guard);
        Ok(())
    }

    /// Lets a paused one go on (SIGCONT).
    pub(crate) fn resume(&mut self, replica: u16) -> Result<(), Failure> {
        if let Some(child) = &self.machine(replica).replica {
            kill_process(id(child)?, Signal::CONT)?;
        }
        self.dismiss(replica)
    }

    fn dismiss(&mut self, replica: u16) -> Result<(), Failure> {
        if let Some(mut guard) = self.machine(replica).guard.take() {
            kill_process_group(id(&guard)?, Signal::KILL)?;
            guard.wait()?;
        }
        Ok(())
    }

    /// How often a replica's log says something.
    pub(crate) fn said(&self, replica: u16, what: &str) -> usize {
        let log = self.machines[usize::from(replica)].log(Part::Replica);
        std::fs::read_to_string(log).unwrap_or_default().matches(what).count()
    }

    /// One that ended though nobody ended it.
    pub(crate) fn ended(&mut self) -> Option<Ended> {
        self.all().into_iter().find_map(|replica| self.ended_of(replica))
    }

    /// The same of one machine. A replica whose trusted process refuses to run ends for that, so the latter is
    /// looked at first.
    pub(crate) fn ended_of(&mut self, replica: u16) -> Option<Ended> {
        let machine = self.machine(replica);
        for part in [Part::Trusted, Part::Replica] {
            let status = machine.child(part).as_mut().and_then(|child| child.try_wait().ok().flatten());
            if let Some(status) = status {
                *machine.child(part) = None;
                let log = machine.log(part);
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let lines: Vec<&str> = said.lines().collect();
                let said = lines[lines.len().saturating_sub(5)..].join("\n");
                let who = match part {
                    Part::Replica => format!("replica {replica}"),
                    Part::Trusted => format!("the trusted process of replica {replica}"),
                };
                return Some(Ended { who, status, log, said });
            }
        }
        None
    }
}

impl Machine {
    fn child(&mut self, part: Part) -> &mut Option<Child> {
        match part {
            Part::Replica => &mut self.replica,
            Part::Trusted => &mut self.trusted,
        }
    }

    fn log(&self, part: Part) -> PathBuf {
        self.directory.join(format!("{}.log", part.word()))
    }

    fn orders(&self, part: Part) -> PathBuf {
        Machines::orders(&self.directory, part)
    }

    fn socket(&self, replica: u16) -> PathBuf {
        troth_node::config::Layout::new(&self.directory).trusted_socket(troth_types::ReplicaId(replica))
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Each may fail only where the process has ended meanwhile.
        let (all, parts) = (self.all(), self.parts());
        let _ = self.kill(&all, parts);
        for replica in all {
            let _ = self.dismiss(replica);
        }
    }
}

fn id(child: &Child) -> Result<Pid, Failure> {
    Ok(Pid::from_raw(i32::try_from(child.id())?).ok_or("a process without an id")?)
}
