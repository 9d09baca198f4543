//! Provides stack space for recursion.

use std::{panic, thread};

/// The maximum depth of an expression that is evaluated on the current stack.
pub const SHALLOW: u32 = 200;

/// The stack size, in bytes, for each level of a tree.
const BYTES_A_LEVEL: usize = 16 * 1024;

/// Runs a recursive function over a tree of this depth, on a thread with a large stack if the tree is deep.
///
/// The stack size is bounded, because the parser limits the nesting of rules and operators. Returns `None` if the
/// thread cannot be started.
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
