//! HTTP servers of somebody else, from Debian's packages, as processes of their own.

use crate::process::guarded;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// nginx or haproxy. It ends when this is dropped, and its files with it.
pub struct Daemon {
    child: Child,
    folder: PathBuf,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Daemon {
    /// Starts `name` with a configuration for a folder of its own and the address that it is to listen on.
    pub async fn start(
        name: &str,
        configuration: impl FnOnce(&Path, SocketAddr) -> String,
    ) -> io::Result<Self> {
        let places = ["/usr/sbin", "/usr/local/sbin"].map(|place| Path::new(place).join(name));
        let binary = places.iter().find(|path| path.exists());
        let binary = binary
            .ok_or_else(|| io::Error::other(format!("{name} is missing (on Debian: apt install {name})")))?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = std::env::temp_dir().join(format!("fire-{name}-{}", address.port()));
        std::fs::create_dir_all(&folder)?;
        let config = folder.join("config");
        std::fs::write(&config, configuration(&folder, address))?;
        let mut command = guarded(binary);
        if name == "nginx" {
            command.arg("-p").arg(&folder).arg("-e").arg(folder.join("error")).arg("-c").arg(&config);
        } else {
            command.arg("-db").arg("-f").arg(&config);
        }
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let daemon = Self { child, folder, address };
        let deadline = Instant::now() + Duration::from_secs(10);
        while TcpStream::connect(address).await.is_err() {
            if Instant::now() > deadline {
                return Err(io::Error::other(format!("{name} does not listen")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(daemon)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _gone = self.child.wait();
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}
