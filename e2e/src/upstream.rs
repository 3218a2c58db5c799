//! An upstream and the proxy in front of it, started together and ended together.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use crate::fixtures::{self, Fixture};
use crate::process::{Reaper, Running};
use crate::proxy::Proxy;

const READY_WITHIN: Duration = Duration::from_secs(60);

/// Which upstream; the aggregate in three ways of speaking.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Everything,
    Aggregate { name: &'static str, era: &'static str },
}

pub const KINDS: [Kind; 4] = [
    Kind::Everything,
    Kind::Aggregate { name: "fastmcp-dual", era: "dual" },
    Kind::Aggregate { name: "fastmcp-sessions", era: "sessions" },
    Kind::Aggregate { name: "fastmcp-stateless", era: "stateless" },
];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Everything => "everything",
            Self::Aggregate { name, .. } => name,
        }
    }

    /// Whether it speaks the era without a handshake.
    pub fn is_modern(self) -> bool {
        matches!(self, Self::Aggregate { era: "dual", .. })
    }

    pub fn program(self) -> Program {
        match self {
            Self::Everything => Program::Everything,
            Self::Aggregate { era, .. } => Program::Python { script: "aggregate.py", era },
        }
    }

    pub fn fixture(self) -> Fixture {
        match self {
            Self::Everything => fixtures::everything(),
            Self::Aggregate { .. } => fixtures::aggregate(),
        }
    }
}

/// A program that serves MCP.
#[derive(Clone, Copy, PartialEq)]
pub enum Program {
    Everything,
    /// A script of `fixtures/`, speaking in one of its three ways.
    Python {
        script: &'static str,
        era: &'static str,
    },
}

/// A server that the proxy does not know yet.
pub struct Upstream {
    pub address: SocketAddr,
    _process: Running,
}

/// The proxy with its upstream behind it.
pub struct Stack {
    pub proxy: Proxy,
    pub upstream: Upstream,
}

impl Stack {
    /// # Errors
    /// When one of the two does not start or is not ready in time.
    pub fn start(reaper: &Arc<Reaper>, home: &Path, proxy: &Path, program: Program) -> Result<Self, String> {
        let upstream = Upstream::start(reaper, home, program)?;
        let proxy = Proxy::start(reaper, proxy, &upstream.url())?;
        Ok(Self { proxy, upstream })
    }
}

impl Upstream {
    /// # Errors
    /// When it does not start in time.
    pub fn start(reaper: &Arc<Reaper>, home: &Path, program: Program) -> Result<Self, String> {
        let third_party = home.join(".third-party");
        match program {
            Program::Everything => {
                // It cannot tell a port that the system chose, so it is given one that was free a moment ago.
                let port = free_port()?;
                let server =
                    third_party.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
                let mut command = Command::new("node");
                command.arg(server).arg("streamableHttp").env("PORT", port.to_string());
                let process = Running::start(reaper, "everything", &mut command)?;
                process.wait_for_line(READY_WITHIN, |_, line| {
                    line.contains("listening on port").then_some(())
                })?;
                Ok(Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), _process: process })
            }
            Program::Python { script, era } => {
                let mut command = Command::new(third_party.join("venv/bin/python"));
                command.arg(home.join("fixtures").join(script)).arg(era);
                let process = Running::start(reaper, script, &mut command)?;
                let port = process.wait_for_line(READY_WITHIN, |_, line| {
                    line.strip_prefix("listening ").and_then(|port| port.parse::<u16>().ok())
                })?;
                // Its socket listens already, so a request waits until the server takes it.
                Ok(Self { address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)), _process: process })
            }
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

/// One that was free a moment ago.
///
/// # Errors
/// When the system has none.
pub fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}
