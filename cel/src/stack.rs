//! Room for recursion.

use std::{panic, thread};

/// The depth of a tree up to which walks run where they are called.
const SHALLOW: u32 = 200;

/// How many bytes of stack a level of a tree may take.
const BYTES_A_LEVEL: usize = 16 * 1024;

/// Runs a walk over a tree of a depth: that of a deep tree on a thread with a stack that holds it. Depths are bounded,
/// for the parser bounds how deep rules and operators are nested. None if no thread can be started.
pub(crate) fn with_room<T: Send>(depth: u32, walk: impl FnOnce() -> T + Send) -> Option<T> {
    if depth <= SHALLOW {
        return Some(walk());
    }
    thread::scope(|scope| {
        let stack = depth as usize * BYTES_A_LEVEL;
        let thread = thread::Builder::new().stack_size(stack).spawn_scoped(scope, walk).ok()?;
        Some(thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    })
}
