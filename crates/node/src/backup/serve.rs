//! The replica's side: whoever may enter its directory is served its last stable checkpoint.

use super::wire::{Greeting, MAX_FETCH, Offer, receive, send};
use crate::runtime::Shared;
use crate::served::Served;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::net::UnixListener;
use troth_core::Execution;
use troth_exec::Snapshot as State;
use troth_types::{StateFetch, Wire};

/// How long the other end may take to ask or to take an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Listens in the replica's directory, for its own user and root. To be called by the one process that runs
/// the replica: what an earlier one left behind is removed.
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|left| left.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    // The directory keeps others out already, where it was made by `troth init`.
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Serves until dropped, one backup at a time. The loop is never waited for longer than a look at where the
/// replica stands.
pub(crate) async fn serve<A: Served, X: Execution<Snapshot = State> + 'static>(
    shared: Rc<Shared<A, X>>,
    listener: UnixListener,
    path: PathBuf,
) {
    let busy = Arc::new(AtomicBool::new(false));
    let own = std::fs::metadata(&path).map(|data| std::os::unix::fs::MetadataExt::uid(&data)).ok();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let caller = stream.peer_cred().map(|caller| caller.uid()).ok();
        if caller != Some(0) && (caller.is_none() || caller != own) {
            tracing::warn!(?caller, "refused a backup to another user");
            continue;
        }
        let Ok(stream) = stream.into_std().and_then(patient) else { continue };
        let served = if busy.swap(true, Ordering::Acquire) {
            Err("another backup is being made from it; wait for that one".to_owned())
        } else {
            offer(&shared).inspect_err(|_| busy.store(false, Ordering::Release))
        };
        match served {
            Ok((offer, state)) => {
                let ends = Free(Arc::clone(&busy));
                let spawned = thread::Builder::new().name("backup".to_string()).spawn(move || {
                    let _ends = ends;
                    let seq = state.seq();
                    match give(stream, offer, &state) {
                        // Whoever only looks which checkpoint is stable hangs up.
                        Ok(0) => tracing::debug!(%seq, "showed a checkpoint"),
                        Ok(pieces) => tracing::info!(%seq, pieces, "served a backup"),
                        Err(why) => tracing::warn!(%seq, %why, "a backup was not finished"),
                    }
                });
                if let Err(why) = spawned {
                    tracing::warn!(%why, "cannot serve a backup");
                }
            }
            Err(reason) => refuse(stream, reason),
        }
    }
}

/// Lets the next backup begin.
struct Free(Arc<AtomicBool>);

impl Drop for Free {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn patient(stream: UnixStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// What the replica has to offer now.
fn offer<A: Served, X: Execution<Snapshot = State>>(
    shared: &Shared<A, X>,
) -> Result<(Offer<A::Message>, State), String> {
    let engine = shared.engine.borrow();
    let machine = engine.host.machine();
    let stable = machine.agreement().stable();
    let (seq, proof) = stable.ok_or_else(|| "the group has no stable checkpoint yet".to_owned())?;
    let state = machine.execution().snapshot(seq).ok_or_else(|| {
        format!("it is behind: it does not have the state of the stable checkpoint {} yet", seq.0)
    })?;
    Ok((Offer { executed: machine.execution().executed(), proof }, state))
}

/// An answer that fits any socket's buffer.
fn refuse(mut stream: UnixStream, reason: String) {
    // Whoever asked and went away needs none.
    drop(send(&mut stream, &Greeting::<u8>::Refused(reason).to_wire()));
}

/// Answers fetches from the held state until the operator has enough; says how many.
pub(crate) fn give<M: Wire>(mut stream: UnixStream, offer: Offer<M>, state: &State) -> io::Result<u64> {
    match send(&mut stream, &Greeting::Offer(offer).to_wire()) {
        // It looked whether somebody listens, and is gone.
        Err(why) if matches!(why.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {
            return Ok(0);
        }
        sent => sent?,
    }
    let mut pieces = 0;
    while let Some(asked) = receive(&mut stream, MAX_FETCH)? {
        let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let fetch = StateFetch::from_wire(&asked).map_err(|why| bad(&why.to_string()))?;
        let piece = state.serve(&fetch).ok_or_else(|| bad("it asks for what the state does not have"))?;
        send(&mut stream, &piece.to_wire())?;
        pieces += 1;
    }
    Ok(pieces)
}
