//! What the operating system may do with this process, how much it gives it, and how it says that it is time to stop.
//!
//! The memory of the process holds the tokens of its callers, so it is kept out of core dumps and away from debuggers of
//! the same user where the system lets a program say so. Its descriptors are shared by clients and by the connections
//! to the upstream.

#[cfg(unix)]
mod memory;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use memory::{ALLOCATOR, Allocator, give_memory_back, resident_bytes};
#[cfg(unix)]
pub use unix::{StopSignals, connections_allowed, forbid_core_dumps};
#[cfg(windows)]
pub use windows::{
    ALLOCATOR, Allocator, StopSignals, connections_allowed, forbid_core_dumps, give_memory_back,
    resident_bytes,
};

/// Who wants the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    /// What supervises it: balancers may still have to learn of it.
    Terminate,
    /// A person at the terminal, or a session that ends.
    Interrupt,
}
