//! The proxy as a process of its own, and what the system and its operator's port tell of it.

use crate::http::{Message, Wire};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

const READY_WITHIN: Duration = Duration::from_secs(30);

/// A running proxy. It is killed when this is dropped.
pub struct Proxy {
    /// Where clients connect.
    pub mcp: SocketAddr,
    /// The operator's port.
    pub admin: SocketAddr,
    child: Child,
    log: PathBuf,
}

impl Proxy {
    /// Starts it in front of an upstream on free ports, with all log levels on.
    ///
    /// # Errors
    /// When it does not get ready; with what it printed.
    pub async fn start(binary: &Path, upstream: SocketAddr, flags: &[&str]) -> io::Result<Self> {
        Self::start_on(binary, upstream, ["127.0.0.1:0", "127.0.0.1:0"], flags).await
    }

    /// The same on these ports, for clients and for the operator.
    ///
    /// # Errors
    /// When it does not get ready; with what it printed.
    pub async fn start_on(
        binary: &Path,
        upstream: SocketAddr,
        [listen, admin]: [&str; 2],
        flags: &[&str],
    ) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let log = std::env::temp_dir().join(format!("fire-{}-{number}.log", std::process::id()));
        let mut command = guarded(binary);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TOOLSEARCH_") {
                command.env_remove(name);
            }
        }
        command
            .args(["serve", "--listen", listen, "--admin-listen", admin])
            .args(["--upstream", &format!("http://{upstream}/mcp")])
            .args(flags)
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?);
        if !flags.contains(&"--log-level") {
            command.args(["--log-level", "trace"]);
        }
        let child = command.spawn()?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut proxy = Self { mcp: nowhere, admin: nowhere, child, log };
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let printed = String::from_utf8_lossy(&proxy.log_bytes()?).into_owned();
            if let Some([mcp, admin]) = addresses(&printed) {
                (proxy.mcp, proxy.admin) = (mcp, admin);
                return Ok(proxy);
            }
            if proxy.child.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(io::Error::other(format!("the proxy is not ready; it printed:\n{printed}")));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Everything on standard error so far.
    ///
    /// # Errors
    /// When the file can't be read.
    pub fn log_bytes(&self) -> io::Result<Vec<u8>> {
        fs::read(&self.log)
    }

    /// Open file descriptors.
    pub fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.pid())).map_or(0, Iterator::count)
    }

    /// Threads.
    pub fn threads(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid())).map_or(0, Iterator::count)
    }

    /// Memory that is resident, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.trim().trim_end_matches(" kB").trim().parse().unwrap_or(0)
    }

    /// Processor time used so far.
    pub fn cpu(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let after_name = stat.rsplit(") ").next().unwrap_or_default();
        let ticks: u64 =
            after_name.split(' ').skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        Duration::from_millis(ticks * 10)
    }

    /// Sends a signal by its name.
    ///
    /// # Errors
    /// When there is no `kill`.
    pub fn signal(&self, name: &str) -> io::Result<()> {
        Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().map(drop)
    }

    /// Waits for its end; `None` when it runs on.
    ///
    /// # Errors
    /// When the system can't tell.
    pub async fn ends_within(&mut self, within: Duration) -> io::Result<Option<ExitStatus>> {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() > deadline {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// A page of the operator's port.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn operator(&self, path: &str) -> io::Result<Message> {
        get(self.admin, path).await
    }

    /// All samples of `/metrics` by name and labels.
    ///
    /// # Errors
    /// When the port does not answer.
    pub async fn metrics(&self) -> io::Result<BTreeMap<String, f64>> {
        let page = self.operator("/metrics").await?;
        let samples = page.text().lines().filter(|line| !line.starts_with('#'));
        Ok(samples
            .filter_map(|line| line.rsplit_once(' '))
            .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)))
            .collect())
    }

    /// One sample; 0 without it.
    pub async fn metric(&self, name: &str) -> f64 {
        self.metrics().await.ok().and_then(|all| all.get(name).copied()).unwrap_or(0.0)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        if std::env::var_os("FIRE_KEEP_LOGS").is_none() {
            let _gone = fs::remove_file(&self.log);
        }
    }
}

/// The command, ended with this program however that ends.
pub fn guarded(binary: &Path) -> Command {
    let setpriv = Path::new("/usr/bin/setpriv");
    if !setpriv.exists() {
        return Command::new(binary);
    }
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary);
    command
}

fn addresses(printed: &str) -> Option<[SocketAddr; 2]> {
    let line = printed.lines().find(|line| line.contains("listening on "))?;
    let address = |behind: &str| line.split(behind).nth(1)?.split(' ').next()?.parse().ok();
    Some([address("listening on ")?, address(", and on ")?])
}

/// A plain GET.
///
/// # Errors
/// When nothing answers.
pub async fn get(address: SocketAddr, path: &str) -> io::Result<Message> {
    let mut wire = Wire::new(TcpStream::connect(address).await?);
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    wire.write(request.as_bytes()).await?;
    wire.read().await?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ports_are_read_from_the_first_log_line() {
        let expected = ["127.0.0.1:1", "127.0.0.1:2"].map(|address| address.parse().unwrap());
        for line in [
            "2026 INFO listening on 127.0.0.1:1 for MCP at /x, and on 127.0.0.1:2 for probes listen=127.0.0.1:1",
            r#"{"message":"listening on 127.0.0.1:1 for MCP at /x, and on 127.0.0.1:2 for probes","a":"b"}"#,
        ] {
            assert_eq!(addresses(line), Some(expected));
        }
        assert_eq!(addresses("INFO listening on"), None);
    }
}
