//! The allocator, and giving memory back.
//!
//! A listing of a caller takes megabytes for a moment, and is replaced by another one. The C library's allocator keeps most of
//! that. To give back at once what each request frees would cost a fourth of a search, so it is done when memory is short,
//! and now and then.

use rustix::param::page_size;
use tikv_jemalloc_ctl::{Access, AsName, arenas};

/// What gives the program its memory.
pub type Allocator = tikv_jemallocator::Jemalloc;

/// For the program's `#[global_allocator]`.
pub const ALLOCATOR: Allocator = tikv_jemallocator::Jemalloc;

/// How long freed memory waits to be used again, in milliseconds: the allocator's own default.
const DELAY_MS: isize = 10_000;

/// Gives freed memory back to the operating system now, which the allocator else does after some seconds, and only where
/// threads go on working. Best effort: the program works with memory that comes back late.
///
/// # Cost
/// A call of the system for each piece that is free, and a page fault when it is used again: not for each request.
pub fn give_memory_back() {
    let (Ok(parts), Ok(mut delay)) =
        (arenas::narenas::read(), "arena.0.dirty_decay_ms\0".name().mib::<[usize; 3]>())
    else {
        return;
    };
    for part in 0..parts as usize {
        delay[1] = part;
        for milliseconds in [0, DELAY_MS] {
            let _best_effort = delay.write(milliseconds);
        }
    }
}

/// The memory that the process takes now, in bytes; `None` where the system does not say.
pub fn resident_bytes() -> Option<usize> {
    // Pages: all that is mapped, then what of it is in memory.
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: usize = pages.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(page_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_given_back_once_and_then_kept_for_a_while_again() {
        let delay = || Access::<isize>::read("arena.0.dirty_decay_ms\0".name());
        give_memory_back();
        assert_eq!(delay(), Ok(DELAY_MS));
        assert!(resident_bytes().is_none_or(|bytes| bytes > 1 << 20));
    }
}
