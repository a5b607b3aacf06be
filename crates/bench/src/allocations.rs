//! The allocator of the programs, with a count of how often it is asked, and how a server tells that count.
//!
//! The count is one more atomic addition for each allocation. All servers of a measurement pay it, as they are all
//! this program; `troth` itself is built without.
#![expect(unsafe_code, reason = "an allocator cannot be written without; it only counts and hands on")]

use crate::Failure;
use std::alloc::{GlobalAlloc, Layout};
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use troth_allocator::Jemalloc;

/// How often this process asked for memory since it started.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// The name of the socket in a server's directory.
const SOCKET: &str = "allocations.sock";
/// How long a server may take to tell.
const PATIENCE: Duration = Duration::from_secs(5);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() {
    // Nothing is ordered by it: who reads it wants to know how many there were about then.
    COUNT.fetch_add(1, Ordering::Relaxed);
}

// SAFETY: every call is handed to the allocator of `troth` as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { Jemalloc.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { Jemalloc.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        unsafe { Jemalloc.realloc(pointer, layout, new_size) }
    }
}

/// How often this process asked for memory so far, to grow some that it had included.
pub(crate) fn so_far() -> u64 {
    COUNT.load(Ordering::Relaxed)
}

/// Tells the count of this process to whoever connects to a socket in `directory`, from a thread of its own: the
/// server's loop does nothing for it.
pub(crate) fn tell(directory: &Path) -> Result<(), Failure> {
    let path = directory.join(SOCKET);
    if path.exists() {
        // Of this server before it was started again.
        std::fs::remove_file(&path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::thread::spawn(move || {
        for asker in listener.incoming().flatten() {
            // Who hangs up early goes without.
            let _ = (&asker).write_all(&so_far().to_le_bytes());
        }
    });
    Ok(())
}

/// Asks the server in `directory`, while whatever else this thread does goes on.
pub(crate) async fn ask(directory: &Path) -> Result<u64, Failure> {
    let told = async {
        let mut socket = UnixStream::connect(directory.join(SOCKET)).await?;
        socket.read_u64_le().await
    };
    Ok(tokio::time::timeout(PATIENCE, told).await??)
}
