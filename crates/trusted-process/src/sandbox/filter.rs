//! seccomp: the system calls of serving, and death for any other.

use super::{HardenError, Outcome, Step};
use libc::c_long;
use rustix::io::Errno;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// Allowed whatever their arguments are.
const ALLOWED: &[c_long] = &[
    // The socket. No call makes a socket or connects one: the process speaks to who comes to it.
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_ppoll,
    // Files, which Landlock keeps to one directory: the store, its compaction, the key, the log.
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_lseek,
    libc::SYS_fdatasync,
    libc::SYS_fsync,
    libc::SYS_fallocate,
    libc::SYS_ftruncate,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_getdents64,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    // Memory. Mapping and protecting are below. On machines with several memory nodes the allocator asks
    // which one it runs on.
    libc::SYS_getcpu,
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // What the C library and the kernel do by themselves. The restart follows a stop and continue.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The same under the names that only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLD_NAMES: &[c_long] = &[libc::SYS_poll, libc::SYS_rename, libc::SYS_renameat, libc::SYS_unlink];
#[cfg(target_arch = "aarch64")]
const OLD_NAMES: &[c_long] = &[libc::SYS_renameat];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const OLD_NAMES: &[c_long] = &[];

/// What std asks of a file descriptor, none of which changes who can reach the process.
const FCNTL: &[i32] = &[libc::F_GETFD, libc::F_GETFL, libc::F_DUPFD_CLOEXEC];

pub(super) fn apply() -> Result<Outcome, HardenError> {
    let failed = |why| HardenError::Failed { step: Step::Seccomp, why };
    let program = match program() {
        Ok(program) => program,
        Err(BackendError::InvalidTargetArch(arch)) => {
            return Ok(Outcome::NotAvailable(format!("no list of system calls for {arch}")));
        }
        Err(why) => return Err(failed(io::Error::other(why))),
    };
    match apply_filter(&program) {
        Ok(()) => Ok(Outcome::Done),
        Err(seccompiler::Error::Prctl(why) | seccompiler::Error::Seccomp(why)) if unknown(&why) => {
            Ok(Outcome::NotAvailable(format!("{why}; mend: a kernel with CONFIG_SECCOMP_FILTER")))
        }
        Err(why) => Err(failed(io::Error::other(why))),
    }
}

/// Whether the kernel does not know what it was asked for.
fn unknown(why: &io::Error) -> bool {
    [Errno::NOSYS, Errno::INVAL].iter().any(|errno| why.raw_os_error() == Some(errno.raw_os_error()))
}

fn program() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> =
        ALLOWED.iter().chain(OLD_NAMES).map(|call| (*call, vec![])).collect();
    // Memory is never made executable, so what is smuggled in as data stays data.
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![rule(&[(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC as u64), 0)])?]);
    }
    let fcntl: Result<_, _> =
        FCNTL.iter().map(|command| rule(&[(1, SeccompCmpOp::Eq, *command as u64)])).collect();
    rules.insert(libc::SYS_fcntl, fcntl?);
    rules.insert(
        libc::SYS_getsockopt,
        vec![rule(&[
            (1, SeccompCmpOp::Eq, libc::SOL_SOCKET as u64),
            (2, SeccompCmpOp::Eq, libc::SO_PEERCRED as u64),
        ])?],
    );
    // The allocator names the memory that it maps. Whether it may be read by others is another option.
    rules.insert(libc::SYS_prctl, vec![rule(&[(0, SeccompCmpOp::Eq, libc::PR_SET_VMA as u64)])?]);
    // A panic ends the process by a signal to itself; no other process gets one.
    let own = u64::from(std::process::id());
    rules.insert(libc::SYS_tgkill, vec![rule(&[(0, SeccompCmpOp::Eq, own)])?]);
    let target = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, target)?.try_into()
}

/// A rule that holds where all these arguments compare so.
fn rule(arguments: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions: Result<Vec<_>, _> = arguments
        .iter()
        .map(|(index, comparison, value)| {
            SeccompCondition::new(*index, SeccompCmpArgLen::Dword, comparison.clone(), *value)
        })
        .collect();
    SeccompRule::new(conditions?)
}
