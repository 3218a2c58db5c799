//! The proxy as a process of its own, in front of any URL.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::http;
use crate::process::{Reaper, Running};

const READY_WITHIN: Duration = Duration::from_secs(60);

pub struct Proxy {
    pub listen: SocketAddr,
    pub admin: SocketAddr,
    process: Running,
}

impl Proxy {
    /// # Errors
    /// When it does not start or is not ready in time.
    pub fn start(reaper: &Arc<Reaper>, binary: &Path, upstream_url: &str) -> Result<Self, String> {
        Self::start_with(reaper, binary, upstream_url, &["--listen", "127.0.0.1:0"])
    }

    /// # Errors
    /// When it does not start or is not ready in time.
    pub fn start_with(
        reaper: &Arc<Reaper>,
        binary: &Path,
        upstream_url: &str,
        options: &[&str],
    ) -> Result<Self, String> {
        let mut command = Command::new(binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOOLSEARCH_") {
                command.env_remove(name);
            }
        }
        command
            .args(["serve", "--admin-listen", "127.0.0.1:0", "--upstream", upstream_url])
            .args(options)
            .env("NO_COLOR", "1");
        let mut process = Running::start(reaper, "the proxy", &mut command)?;
        let bound = bound_addresses(&process)?;
        let (listen, admin) = tell_apart(&mut process, bound)?;
        Ok(Self { listen, admin, process })
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.listen)
    }

    pub fn log(&self) -> String {
        self.process.log()
    }
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
