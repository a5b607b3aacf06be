//! Users of this machine by name or number.

use crate::failure::Failure;
use std::fs::File;
use std::io::Read;
use troth_trusted_process::User;

/// The users of the machine itself. Those of a directory service are named by their numbers.
const USERS: &str = "/etc/passwd";
/// More than any machine's own users take.
const MOST: u64 = 16 << 20;

/// The user that `name` means: a name of this machine, a UID, or UID:GID.
pub(crate) fn find(name: &str) -> Result<User, Failure> {
    if let Some((uid, gid)) = name.split_once(':')
        && let (Ok(uid), Ok(gid)) = (uid.parse(), gid.parse())
    {
        return Ok(User { uid, gid });
    }
    let mut users = Vec::new();
    File::open(USERS)
        .and_then(|file| file.take(MOST).read_to_end(&mut users))
        .map_err(|why| Failure::system(&format!("cannot read {USERS}"), &why))?;
    find_in(&String::from_utf8_lossy(&users), name).ok_or_else(|| {
        Failure::usage(format!(
            "this machine has no user {name:?} in {USERS}; make one (`useradd --system {name}`), or give a user as UID or \
             UID:GID"
        ))
    })
}

/// Looks a user up in a text of `passwd`'s form. A number that it does not name has the group of the same number.
pub(crate) fn find_in(users: &str, name: &str) -> Option<User> {
    let wanted: Option<u32> = name.parse().ok();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let called = fields.next()?;
        let uid: u32 = fields.nth(1)?.parse().ok()?;
        let gid: u32 = fields.next()?.parse().ok()?;
        (called == name || Some(uid) == wanted).then_some(User { uid, gid })
    });
    found.or(wanted.map(|uid| User { uid, gid: uid }))
}
