//! Asks a running proxy's own port for probes whether it lives: for containers and units without curl.

use crate::config::HealthcheckConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// No answer of a probe is longer.
const BYTES_MAX: u64 = 4096;

/// Why a proxy is not healthy.
#[derive(Debug, thiserror::Error)]
pub enum HealthError {
    /// Nobody listens there, or the connection broke.
    #[error("no proxy answers at {0}: {1}; is it running, and is --admin-listen the same?")]
    Unreachable(std::net::SocketAddr, std::io::Error),
    /// It took longer than it may.
    #[error("no answer came from {0} within the --timeout")]
    Late(std::net::SocketAddr),
    /// It answered that it takes no requests.
    #[error("the proxy at {0} answered: {1}")]
    Unhealthy(std::net::SocketAddr, String),
}

/// Asks once.
///
/// # Errors
/// When the proxy does not answer in time, or says that it is stopping.
pub async fn run(config: &HealthcheckConfig) -> Result<(), HealthError> {
    let answer = tokio::time::timeout(config.timeout.0, ask(config)).await;
    let answer = answer.map_err(|_| HealthError::Late(config.admin))?;
    let answer = answer.map_err(|error| HealthError::Unreachable(config.admin, error))?;
    let status = answer.lines().next().unwrap_or_default();
    if status.starts_with("HTTP/1.1 200 ") {
        return Ok(());
    }
    // Something else may have the port: its words are not trusted with the terminal.
    let shown: String = status.chars().take(100).collect();
    Err(HealthError::Unhealthy(config.admin, shown.escape_debug().to_string()))
}

async fn ask(config: &HealthcheckConfig) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(config.admin).await?;
    let path = if config.is_live { "/livez" } else { "/readyz" };
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", config.admin);
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
