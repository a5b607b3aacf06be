//! The socket that the process is asked on.

use rustix::fs::{Gid, Uid, chown};
use std::fs::{Permissions, remove_file, set_permissions, symlink_metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
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
    /// The system refused.
    #[error(
        "cannot listen on {path}: {error}; mend: the directory must exist and be writable for this user, and a socket's path has less than 108 bytes"
    )]
    System {
        /// The path.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
}

/// Makes the socket at `path`, which only the user `client_uid` can connect to where this process may
/// give it away (as root) or is that user itself. Elsewhere everybody can connect, and [`serve`] alone
/// decides. Call it before the sandbox, which makes no sockets. What a process left that was killed is
/// replaced.
///
/// The socket belongs into a directory that the client can search and cannot write, not into the
/// component's own.
///
/// # Errors
/// [`ListenError`].
///
/// [`serve`]: crate::serve
pub fn bind(path: &Path, client_uid: u32) -> Result<UnixListener, ListenError> {
    let failed = |error| ListenError::System { path: path.to_path_buf(), error };
    match symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(ListenError::NoSocket(path.to_path_buf())),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(ListenError::Served(path.to_path_buf())),
        Ok(_) => remove_file(path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let listener = UnixListener::bind(path).map_err(failed)?;
    let own = rustix::process::geteuid();
    let client = Uid::from_raw(client_uid);
    // Whoever connects before the mode is set meets the check of peers as everybody does.
    let mode = if own.is_root() || own == client { 0o600 } else { 0o666 };
    set_permissions(path, Permissions::from_mode(mode)).map_err(failed)?;
    if own.is_root() {
        chown(path, Some(client), None::<Gid>).map_err(|error| failed(error.into()))?;
    }
    Ok(listener)
}
