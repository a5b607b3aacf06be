//! Leaving root for a user of the process's own.

use super::{HardenError, Isolation, Sandbox, Step};
use rustix::process::{Gid, Resource, Rlimit, Uid, getegid, geteuid, getgid, getuid, setrlimit, umask};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid,
    set_thread_res_uid, set_thread_uid,
};
use std::io;
use std::os::unix::fs::MetadataExt;

/// A user of the system and its one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct User {
    /// The user's number.
    pub uid: u32,
    /// The number of its group. It gets no other.
    pub gid: u32,
}

impl User {
    /// The user that this process acts as, with its group.
    pub fn current() -> Self {
        Self { uid: geteuid().as_raw(), gid: getegid().as_raw() }
    }
}

/// Becomes the sandbox's user where the process is root, gives up all capabilities, and says what is
/// isolated then.
pub(super) fn leave_root(sandbox: &Sandbox) -> Result<Isolation, HardenError> {
    let failed = |why: io::Error| HardenError::Failed { step: Step::OwnUser, why };
    let own = geteuid();
    if own.is_root() || getuid().is_root() {
        let user = sandbox.user.filter(|user| user.uid != 0).ok_or(HardenError::StillRoot)?;
        // Only root raises it, and locking memory comes after root is gone.
        let unlimited = Rlimit { current: None, maximum: None };
        // Root of a container may not; the report on locked memory says so then.
        let _ = setrlimit(Resource::Memlock, unlimited);
        become_user(user).map_err(failed)?;
    } else if let Some(wanted) = sandbox.user.filter(|user| user.uid != own.as_raw()) {
        return Err(HardenError::OtherUser { own: own.as_raw(), wanted: wanted.uid });
    }
    give_up_capabilities().map_err(failed)?;
    if set_thread_uid(Uid::ROOT).is_ok() {
        return Err(HardenError::RightsLeft);
    }
    umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let uid = geteuid().as_raw();
    private(sandbox, uid)?;
    Ok(match sandbox.client_uid {
        0 => Isolation::ReplicaIsRoot,
        client if client == uid => Isolation::SameUser(uid),
        _ => Isolation::OwnUser(uid),
    })
}

/// Groups first, user last: each needs the rights that the last one drops. The real and the saved user
/// go too, or the effective one could come back.
fn become_user(user: User) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(user.uid), Gid::from_raw(user.gid));
    set_thread_groups(&[])?;
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)?;
    let now = (getuid(), geteuid(), getgid(), getegid());
    if now == (uid, uid, gid, gid) { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// The kernel clears capabilities with the user unless secure bits keep them, and a service manager may
/// have given some to a user that is not root.
fn give_up_capabilities() -> io::Result<()> {
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    if capabilities(None)? != none {
        set_capabilities(None, none)?;
    }
    Ok(())
}

/// Demands that nobody else reaches the component's files.
fn private(sandbox: &Sandbox, uid: u32) -> Result<(), HardenError> {
    let failed = |why| HardenError::Failed { step: Step::OwnUser, why };
    let found = std::fs::metadata(&sandbox.directory).map_err(failed)?;
    let mode = found.mode() & 0o7777;
    if found.is_dir() && found.uid() == uid && mode & 0o077 == 0 {
        return Ok(());
    }
    let directory = sandbox.directory.clone();
    Err(HardenError::Directory { directory, owner: found.uid(), mode, wanted: uid })
}
