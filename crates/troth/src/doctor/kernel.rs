//! The kernel, and what the trusted process's walls are made of.

use super::{Finding, text};
use troth_node::config::TrustedHome;
use troth_trusted_process::probe::landlock_version;

/// Locked memory that a trusted process grows into, with room to spare; bytes.
const ENOUGH_LOCKED: u64 = 64 << 20;
/// The least that a replica needs: connections of all clients and replicas, and its files.
const ENOUGH_FILES: u64 = 1024;

pub(super) fn look(home: TrustedHome) -> Vec<Finding> {
    let release = text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let seccomp = text("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let ptrace = text("/proc/sys/kernel/yama/ptrace_scope");
    let limits = text("/proc/self/limits").unwrap_or_default();
    vec![
        kernel(&release),
        self::seccomp(&seccomp, home),
        landlock(landlock_version(), home),
        self::ptrace(ptrace.as_deref(), home),
        memlock(limit(&limits, "Max locked memory"), home),
        files(limit(&limits, "Max open files")),
    ]
}

/// Major and minor number of a release like `6.12.3-arch1`.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

pub(crate) fn kernel(release: &str) -> Finding {
    const SUBJECT: &str = "kernel";
    match version(release) {
        None => Finding::warn(SUBJECT, format!("its release {release:?} is not understood"), "run on Linux"),
        Some(version) if version < (5, 13) => Finding::warn(
            SUBJECT,
            format!("Linux {release} has no Landlock"),
            "Linux 5.13 or later, 6.12 or later for all of it",
        ),
        Some(_) => Finding::ok(SUBJECT, format!("Linux {release}")),
    }
}

/// What is missing matters where the trusted component has a process of its own; else it is only said.
fn lacking(subject: &'static str, home: TrustedHome, said: &str, mend: &str) -> Finding {
    match home {
        TrustedHome::Process => Finding::warn(subject, said, mend),
        TrustedHome::InProcess => {
            Finding::ok(subject, format!("{said}; nothing here uses it (trusted_home = \"in-process\")"))
        }
        TrustedHome::Nowhere => {
            Finding::ok(subject, format!("{said}; nothing here uses it (no trusted components)"))
        }
    }
}

pub(crate) fn seccomp(actions: &str, home: TrustedHome) -> Finding {
    const SUBJECT: &str = "seccomp";
    if actions.split_whitespace().any(|action| action == "kill_process") {
        return Finding::ok(SUBJECT, "system calls can be filtered");
    }
    lacking(
        SUBJECT,
        home,
        "this kernel cannot filter system calls, so a taken-over trusted process may make any",
        "a kernel with CONFIG_SECCOMP_FILTER",
    )
}

pub(crate) fn landlock(version: Option<u8>, home: TrustedHome) -> Finding {
    const SUBJECT: &str = "landlock";
    match version {
        Some(6..) => Finding::ok(SUBJECT, "all restrictions (version 6)"),
        Some(version) => lacking(
            SUBJECT,
            home,
            &format!("version {version} of 6: fewer restrictions on the trusted process"),
            "Linux 6.12 or later",
        ),
        None => lacking(
            SUBJECT,
            home,
            "not there: the trusted process reaches every file of its user",
            "boot with landlock in the kernel's lsm= list, Linux 5.13 or later; in a container, let its profile allow it",
        ),
    }
}

pub(crate) fn ptrace(scope: Option<&str>, home: TrustedHome) -> Finding {
    const SUBJECT: &str = "ptrace";
    match scope.map(str::parse::<u32>) {
        Some(Ok(1..)) => {
            Finding::ok(SUBJECT, "no process may attach to another that is not its child (Yama)")
        }
        Some(_) => lacking(
            SUBJECT,
            home,
            "processes of one user may attach to each other (kernel.yama.ptrace_scope = 0)",
            "sysctl -w kernel.yama.ptrace_scope=1, and put it into /etc/sysctl.d",
        ),
        None => lacking(
            SUBJECT,
            home,
            "this kernel has no Yama: processes of one user may attach to each other",
            "give the trusted process a user of its own, which keeps all others out; or a kernel with CONFIG_SECURITY_YAMA",
        ),
    }
}

/// The soft limit in a text like /proc/self/limits; nothing where it is not named there.
pub(crate) fn limit(limits: &str, name: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

pub(crate) fn memlock(bytes: Option<u64>, home: TrustedHome) -> Finding {
    const SUBJECT: &str = "memlock";
    match bytes {
        Some(u64::MAX) => Finding::ok(SUBJECT, "memory may be locked without a limit"),
        Some(bytes) if bytes >= ENOUGH_LOCKED => {
            Finding::ok(SUBJECT, format!("{} MiB may be locked", bytes >> 20))
        }
        Some(bytes) => lacking(
            SUBJECT,
            home,
            &format!("only {} kiB may be locked: the trusted process's key may reach the swap", bytes >> 10),
            "LimitMEMLOCK=infinity in the service (the limit seen here is this shell's), or `ulimit -l unlimited`",
        ),
        None => lacking(SUBJECT, home, "the limit on locked memory cannot be read", "mount /proc"),
    }
}

pub(crate) fn files(most: Option<u64>) -> Finding {
    const SUBJECT: &str = "open files";
    match most {
        Some(most) if most < ENOUGH_FILES => Finding::warn(
            SUBJECT,
            format!("a process may have {most} open: connections are refused beyond"),
            "LimitNOFILE=65536 in the service (the limit seen here is this shell's)",
        ),
        Some(u64::MAX) => Finding::ok(SUBJECT, "no limit"),
        Some(most) => Finding::ok(SUBJECT, format!("{most} per process")),
        None => Finding::warn(SUBJECT, "the limit cannot be read", "mount /proc"),
    }
}
