//! Programs that are measured: started, looked at through the operating system, and ended with the bench.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that ends when it is dropped.
pub struct Running {
    child: Child,
    /// `127.0.0.1:port`.
    pub address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _gone_already = self.child.kill();
        let _status = self.child.wait();
    }
}

impl Running {
    /// This program again in another role; the first line that it prints is its address.
    pub fn role(role: &str, argument: &str) -> Result<Self, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(own);
        command.args(["--role", role, argument]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{role}: {error}"))?;
        let mut address = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut address).map_err(|error| error.to_string())?;
        }
        let address = address.trim().to_owned();
        if address.is_empty() { Err(format!("{role} did not start")) } else { Ok(Self { child, address }) }
    }

    /// The proxy in front of an upstream, and how long it took until `/readyz` said so.
    pub fn proxy(program: &Path, upstream: &str, settings: &[&str]) -> Result<(Self, Duration), String> {
        let (port, admin_port) = (free_port()?, free_port()?);
        let started = Instant::now();
        let child = Command::new(program)
            .args(["serve", "--upstream", &format!("http://{upstream}/mcp"), "--allow-plaintext-upstream"])
            .args([
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--admin-listen",
                &format!("127.0.0.1:{admin_port}"),
            ])
            .args(settings)
            .stdin(Stdio::null())
            .stderr(log("proxy")?)
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let running = Self { child, address: format!("127.0.0.1:{port}") };
        wait_for(
            &format!("127.0.0.1:{admin_port}"),
            "GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            started,
        )?;
        Ok((running, started.elapsed()))
    }

    /// nginx in front of an upstream, with kept-alive connections on both sides and its defaults otherwise.
    pub fn nginx(upstream: &str) -> Result<Self, String> {
        let port = free_port()?;
        let folder = scratch("nginx")?;
        let shown = folder.display();
        let config = format!(
            "daemon off;\nworker_processes auto;\npid {shown}/pid;\nerror_log {shown}/error.log;\nevents {{ worker_connections 1024; }}\n\
             http {{\n  access_log {shown}/access.log;\n  client_body_temp_path {shown}/body;\n  proxy_temp_path {shown}/proxy;\n  \
             fastcgi_temp_path {shown}/f;\n  uwsgi_temp_path {shown}/u;\n  scgi_temp_path {shown}/s;\n  keepalive_requests 100000000;\n  \
             upstream origin {{ server {upstream}; keepalive 64; keepalive_requests 100000000; }}\n  \
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection \"\"; }} }}\n}}\n"
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, config).map_err(|error| error.to_string())?;
        let program = if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" };
        let child = Command::new(program)
            .arg("-e")
            .arg(folder.join("start.log"))
            .arg("-c")
            .arg(&file)
            .stdin(Stdio::null())
            .spawn()
            .map_err(|error| format!("nginx: {error} (on Debian: apt install nginx)"))?;
        let running = Self { child, address: format!("127.0.0.1:{port}") };
        wait_for(
            &running.address,
            "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
            Instant::now(),
        )?;
        Ok(running)
    }

    /// A line of `/proc/PID/status` in KiB: `VmRSS`, `VmHWM`.
    pub fn memory_kib(&self, line: &str) -> Result<f64, String> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))
            .map_err(|error| error.to_string())?;
        let found = text
            .lines()
            .find_map(|text| text.strip_prefix(line)?.strip_prefix(':')?.split_whitespace().next());
        found.and_then(|number| number.parse().ok()).ok_or_else(|| format!("no {line} in /proc"))
    }

    /// `SIGTERM`, so that nginx ends its workers too.
    pub fn stop(mut self) {
        let _sent = Command::new("kill").arg(self.child.id().to_string()).status();
        let _status = self.child.wait();
    }
}

/// Waits until a request is answered with anything.
fn wait_for(address: &str, request: &str, started: Instant) -> Result<(), String> {
    use std::io::{Read, Write};
    while started.elapsed() < Duration::from_secs(20) {
        if let Ok(mut stream) = std::net::TcpStream::connect(address) {
            let mut answer = [0; 16];
            if stream.write_all(request.as_bytes()).is_ok()
                && stream.read(&mut answer).is_ok_and(|read| read > 0)
            {
                return Ok(());
            }
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    Err(format!("nothing answers at {address}"))
}

fn free_port() -> Result<u16, String> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

/// A folder of the bench's own.
pub fn scratch(name: &str) -> Result<PathBuf, String> {
    let folder = std::env::temp_dir().join(format!("toolsearch-bench-{}", std::process::id())).join(name);
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    Ok(folder)
}

/// Log lines go to a file, as they do in earnest.
fn log(name: &str) -> Result<Stdio, String> {
    let file = std::fs::File::create(scratch("log")?.join(name)).map_err(|error| error.to_string())?;
    Ok(file.into())
}

/// The release binary, built as `cargo build --release` builds it.
pub fn build_proxy() -> Result<PathBuf, String> {
    let root = crate::catalogue::root();
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--quiet", "--bin", "toolsearch-proxy"])
        .current_dir(&root)
        .status();
    if !status.map_err(|error| error.to_string())?.success() {
        return Err("the proxy could not be built".to_owned());
    }
    let target = std::env::current_exe().map_err(|error| error.to_string())?;
    Ok(target.with_file_name("toolsearch-proxy"))
}
