//! An upstream and the proxy in front of it, started together and ended together.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::fixtures::{self, Fixture};
use crate::http;
use crate::process::{Reaper, Running};

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

    pub fn fixture(self) -> Fixture {
        match self {
            Self::Everything => fixtures::everything(),
            Self::Aggregate { .. } => fixtures::aggregate(),
        }
    }
}

/// The proxy with its upstream behind it.
pub struct Stack {
    pub upstream: SocketAddr,
    pub proxy: SocketAddr,
    pub admin: SocketAddr,
    proxy_process: Running,
    _upstream_process: Running,
}

impl Stack {
    /// # Errors
    /// When one of the two does not start or is not ready in time.
    pub fn start(reaper: &Arc<Reaper>, home: &Path, proxy: &Path, kind: Kind) -> Result<Self, String> {
        let (upstream_process, upstream) = start_upstream(reaper, home, kind)?;
        let mut command = Command::new(proxy);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOOLSEARCH_") {
                command.env_remove(name);
            }
        }
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"])
            .args(["--upstream", &format!("http://{upstream}/mcp")])
            .env("NO_COLOR", "1");
        let mut proxy_process = Running::start(reaper, "the proxy", &mut command)?;
        let bound = bound_addresses(&proxy_process)?;
        let (proxy, admin) = tell_apart(&mut proxy_process, bound)?;
        Ok(Self { upstream, proxy, admin, proxy_process, _upstream_process: upstream_process })
    }

    pub fn proxy_url(&self) -> String {
        format!("http://{}/mcp", self.proxy)
    }

    pub fn upstream_url(&self) -> String {
        format!("http://{}/mcp", self.upstream)
    }

    pub fn proxy_log(&self) -> String {
        self.proxy_process.log()
    }
}

fn start_upstream(reaper: &Arc<Reaper>, home: &Path, kind: Kind) -> Result<(Running, SocketAddr), String> {
    let third_party = home.join(".third-party");
    match kind {
        Kind::Everything => {
            // It cannot tell a port that the system chose, so it is given one that was free a moment ago.
            let port = free_port()?;
            let server =
                third_party.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
            let mut command = Command::new("node");
            command.arg(server).arg("streamableHttp").env("PORT", port.to_string());
            let running = Running::start(reaper, kind.name(), &mut command)?;
            running
                .wait_for_line(READY_WITHIN, |_, line| line.contains("listening on port").then_some(()))?;
            Ok((running, SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
        }
        Kind::Aggregate { era, .. } => {
            let mut command = Command::new(third_party.join("venv/bin/python"));
            command.arg(home.join("fixtures/aggregate.py")).arg(era);
            let running = Running::start(reaper, kind.name(), &mut command)?;
            let port = running.wait_for_line(READY_WITHIN, |_, line| {
                line.strip_prefix("listening ").and_then(|port| port.parse::<u16>().ok())
            })?;
            // Its socket listens already, so a request waits until the server takes it.
            Ok((running, SocketAddr::from((Ipv4Addr::LOCALHOST, port))))
        }
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|listener| listener.local_addr());
    listener.map(|address| address.port()).map_err(|error| format!("no free port: {error}"))
}

/// The two addresses the proxy says it listens on, in one log line or in two.
fn bound_addresses(proxy: &Running) -> Result<[SocketAddr; 2], String> {
    let mut bound = Vec::new();
    proxy.wait_for_line(READY_WITHIN, |_, line| {
        if line.contains("listening") {
            bound.extend(loopback_addresses(line));
        }
        <[SocketAddr; 2]>::try_from(bound.get(..2)?).ok()
    })
}

fn loopback_addresses(line: &str) -> Vec<SocketAddr> {
    let starts = line.match_indices("127.0.0.1:").map(|(start, _)| &line[start..]);
    let addresses = starts.filter_map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(rest.len());
        rest[..end].trim_end_matches(['.', ':']).parse().ok()
    });
    addresses.collect()
}

/// Waits for `/readyz`, which only the admin port answers with 200.
fn tell_apart(proxy: &mut Running, bound: [SocketAddr; 2]) -> Result<(SocketAddr, SocketAddr), String> {
    let deadline = Instant::now() + READY_WITHIN;
    let is_ready = |address| http::get(address, "/readyz").is_ok_and(|response| response.status == 200);
    loop {
        for (listen, admin) in [(bound[0], bound[1]), (bound[1], bound[0])] {
            if is_ready(admin) {
                return Ok((listen, admin));
            }
        }
        proxy.check_alive()?;
        if Instant::now() > deadline {
            return Err(format!(
                "the proxy was not ready within {READY_WITHIN:?}; it printed:\n{}",
                proxy.log()
            ));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_any_log_format() {
        let expected: Vec<SocketAddr> =
            vec!["127.0.0.1:8080".parse().unwrap(), "127.0.0.1:9".parse().unwrap()];
        for line in [
            "INFO listening listen=127.0.0.1:8080 admin_listen=127.0.0.1:9",
            r#"{"message":"listening","listen":"127.0.0.1:8080","admin":"127.0.0.1:9"}"#,
            "listening on http://127.0.0.1:8080/mcp and 127.0.0.1:9.",
        ] {
            assert_eq!(loopback_addresses(line), expected, "{line}");
        }
    }
}
