//! What the operating system may do with this process, and how much it gives it.
//!
//! The memory of the process holds the tokens of its callers, so it is kept out of core dumps and away from debuggers of
//! the same user. Its descriptors are shared by clients and by the connections to the upstream.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Keeps the memory of this process out of core dumps. Best effort: a system that does not allow it is no reason not to
/// serve.
pub fn forbid_core_dumps() {
    let _best_effort = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    // A dump that is piped to a program is not bound by the limit.
    #[cfg(target_os = "linux")]
    let _best_effort = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// How many of `wanted` connections of clients the descriptors of this process allow, once it may have as many as the
/// system lets it: half of them, as each client may need one towards the upstream.
pub fn connections_allowed(wanted: usize) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let descriptors = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let half = descriptors.map_or(usize::MAX, |count| usize::try_from(count / 2).unwrap_or(usize::MAX));
    wanted.min(half.max(1))
}
