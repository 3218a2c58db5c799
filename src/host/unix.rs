//! Resource limits and signals.

use super::StopSignal;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::signal::unix::{Signal, SignalKind, signal};

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

/// SIGTERM and SIGINT, as they come.
#[derive(Debug)]
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// From here on these signals no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system does not let it listen.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
        }
    }
}
