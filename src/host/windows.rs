//! Console events. Windows has neither core files nor a limit of descriptors that a process could set for itself.

use super::StopSignal;
use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown,
};

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
