//! Console events. Windows has neither core files nor a limit of descriptors that a process could set for itself.

use super::StopSignal;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

/// What gives the program its memory.
pub type Allocator = std::alloc::System;

/// For the program's `#[global_allocator]`.
pub const ALLOCATOR: Allocator = std::alloc::System;

/// Does nothing: the system's heap gives back by itself what it does.
pub fn give_memory_back() {}

/// Not looked up here: memory is bounded by what the program counts.
pub fn resident_bytes() -> Option<usize> {
    None
}

/// Does nothing: what Windows Error Reporting writes down is for the administrator of the machine to say.
pub fn forbid_core_dumps() {}

/// As many as are wanted: handles are bound by memory alone.
pub fn connections_allowed(wanted: usize) -> usize {
    wanted
}

/// What a console tells its programs, as it comes.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: CtrlC,
    terminate: CtrlBreak,
    close: CtrlClose,
    shutdown: CtrlShutdown,
}

impl StopSignals {
    /// From here on these events no longer end the process by themselves.
    ///
    /// # Errors
    /// When the system does not let it listen.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            terminate: ctrl_break()?,
            close: ctrl_close()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Waits for the next one. Ctrl-Break is what a supervisor can send. After the other two the system gives a process
    /// a few seconds, so nothing is waited for that can be left out.
    pub async fn next(&mut self) -> StopSignal {
        tokio::select! {
            _ = self.terminate.recv() => StopSignal::Terminate,
            _ = self.interrupt.recv() => StopSignal::Interrupt,
            _ = self.close.recv() => StopSignal::Interrupt,
            _ = self.shutdown.recv() => StopSignal::Interrupt,
        }
    }
}
