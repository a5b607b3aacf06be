//! The allocator of the programs. A replica's state is millions of small values: the workspace table says why this one.

use std::ffi::{c_int, c_void};
use thiserror::Error;
pub use tikv_jemallocator::Jemalloc;

/// The allocator refused to start threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the allocator starts no threads of its own (error {0} of the system)")]
pub struct NoThreads(c_int);

/// Has threads of the allocator hand freed memory back to the system from now on. Without them whoever frees or asks for
/// some does it, all of a while's together: after ten seconds of rest it stopped a replica's loop for as long as it takes
/// to give back hundreds of megabytes. A process that locks itself into a sandbox does without, as one is for one thread.
///
/// # Errors
/// [`NoThreads`] where the system has none to give; memory is handed back as before then.
pub fn free_beside() -> Result<(), NoThreads> {
    let wanted = true;
    #[expect(
        unsafe_code,
        reason = "the allocator is told through a function of C; its safe wrapper is not kept"
    )]
    // SAFETY: the name ends with a zero. Nothing is to be read back, so both places for that may be null. What is written
    // is a bool, as the name wants it, and lives until the call returns.
    let refused = unsafe {
        tikv_jemalloc_sys::mallctl(
            c"background_thread".as_ptr(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            (&raw const wanted).cast_mut().cast::<c_void>(),
            size_of::<bool>(),
        )
    };
    if refused == 0 { Ok(()) } else { Err(NoThreads(refused)) }
}

#[cfg(test)]
mod tests {
    #[global_allocator]
    static ALLOCATOR: super::Jemalloc = super::Jemalloc;

    fn threads() -> usize {
        std::fs::read_dir("/proc/self/task").expect("a process sees its threads").count()
    }

    /// The only test of this program, so nobody else starts threads.
    #[test]
    fn the_allocator_has_a_thread_once_it_is_asked() {
        let before = threads();
        super::free_beside().unwrap();
        let after = threads();
        assert!(after > before, "{before} threads before, {after} afterwards");
        super::free_beside().unwrap();
    }
}
