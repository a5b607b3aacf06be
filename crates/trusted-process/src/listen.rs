//! The socket that the process is asked on.

use rustix::fs::{Gid, Uid, chown};
use std::fs::{Permissions, remove_file, set_permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody answers there.
    #[error("a trusted process serves {0} already; mend: stop it first, a component never runs twice")]
    Served(PathBuf),
    /// What is there is no socket.
    #[error("{0} is there and is no socket; mend: name another path, or remove it")]
    NoSocket(PathBuf),
    /// Somebody else could put something in the socket's place.
    #[error(
        "{directory} belongs to user {owner} with mode {mode:o}, and the trusted process starts as root: whoever can write \
         there could have it change other files; mend: chown it to root and chmod it to 755, or name another --socket"
    )]
    Directory {
        /// The directory of the socket, or one above it.
        directory: PathBuf,
        /// Its owner.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
    /// The system refused.
    #[error("cannot listen on {path}: {error}; mend: {mend}", mend = mend_of(error))]
    System {
        /// The path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

fn mend_of(error: &io::Error) -> &'static str {
    match error.kind() {
        // Where it is root's, that is the isolation: a replica that may write there can put a component of its own there.
        io::ErrorKind::PermissionDenied => {
            "start `troth trusted` as root with --user, and give the replica --trusted-socket; leave the directory as it is"
        }
        io::ErrorKind::NotFound => "the directory must exist: make it, or name another path",
        _ => {
            "the directory must exist and be writable for this user, and a socket's path has less than 108 bytes"
        }
    }
}

/// Makes the socket at `path`, which only the user `client_uid` can connect to where this process may
/// give it away (as root) or is that user itself. Elsewhere everybody can connect, and [`serve`] alone
/// decides. Call it before the sandbox, which makes no sockets. What a process left that was killed is
/// replaced.
///
/// The socket belongs into a directory that the client can search and cannot write, not into the
/// component's own. As root, neither it nor any above may be one that others can write.
///
/// # Errors
/// [`ListenError`].
///
/// [`serve`]: crate::serve
pub fn bind(path: &Path, client_uid: u32) -> Result<UnixListener, ListenError> {
    let failed = |error| ListenError::System { path: path.to_path_buf(), error };
    let own = rustix::process::geteuid();
    if own.is_root() {
        guarded(path)?;
    }
    match symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NoSocket(path.to_path_buf())),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(ListenError::Served(path.to_path_buf())),
        Ok(_) => remove_file(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let client = Uid::from_raw(client_uid);
    // Whoever connects before the mode is set meets the check of peers as everybody does.
    let mode = if own.is_root() || own == client { 0o600 } else { 0o666 };
    set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    if own.is_root() {
        chown(path, Some(client), None::<Gid>).map_err(|error| failed(error.into()))?;
    }
    Ok(listener)
}

/// Demands that only root can change what the path means: between making a socket and giving it away, a
/// link put in its place would have root give away what the link names. In a directory with the sticky
/// bit, others cannot replace what is not theirs.
fn guarded(path: &Path) -> Result<(), ListenError> {
    let failed = |error| ListenError::System { path: path.to_path_buf(), error };
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    for directory in std::fs::canonicalize(parent).map_err(failed)?.ancestors() {
        let found = symlink_metadata(directory).map_err(failed)?;
        let (owner, mode) = (found.uid(), found.mode() & 0o7777);
        if owner != 0 || (mode & 0o022 != 0 && mode & 0o1000 == 0) {
            return Err(ListenError::Directory { directory: directory.to_path_buf(), owner, mode });
        }
    }
    Ok(())
}
