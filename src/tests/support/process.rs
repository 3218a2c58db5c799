//! The binary as a process of its own.

use super::{PATIENCE, exchange};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Output, Stdio};
use tokio::sync::mpsc;

/// A process of the proxy that is killed at the end of the test.
pub(crate) struct Proxy {
    child: Child,
    lines: mpsc::UnboundedReceiver<String>,
    /// Everything on standard error so far.
    pub(crate) seen: Vec<String>,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

fn command(args: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolsearch-proxy"));
    command.env_clear().envs(variables.iter().copied()).args(args).stdin(Stdio::null());
    command
}

impl Proxy {
    /// Runs to the end.
    pub(crate) async fn run(args: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = command(args, variables);
        let output = tokio::task::spawn_blocking(move || command.output());
        tokio::time::timeout(PATIENCE, output).await.expect("the process ends").unwrap().unwrap()
    }

    /// Runs to the end with a standard error that takes nothing.
    #[cfg(target_os = "linux")]
    pub(crate) async fn run_unheard(args: &[&str]) -> Option<i32> {
        let mut command = command(args, &[]);
        command.stderr(std::fs::File::options().write(true).open("/dev/full").unwrap());
        let status = tokio::task::spawn_blocking(move || command.status());
        tokio::time::timeout(PATIENCE, status).await.expect("the process ends").unwrap().unwrap().code()
    }

    /// Serves in front of an upstream, on free ports.
    pub(crate) async fn serve(upstream: &str, flags: &[&str]) -> Self {
        let usual =
            ["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        // Most tests stop the process, and do not want to wait for anything else.
        let at_once = if flags.contains(&"--drain-delay") { &[][..] } else { &["--drain-delay", "0s"] };
        Self::started(command(&[&usual, flags, at_once].concat(), &[])).await
    }

    /// The same, with these variables in its environment.
    pub(crate) async fn serve_in(variables: &[(&str, &str)], upstream: &str) -> Self {
        let args =
            ["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        Self::started(command(&args, variables)).await
    }

    /// The same, as a child of a shell that has set limits first, such as `ulimit -n 256`.
    #[cfg(target_os = "linux")]
    pub(crate) async fn serve_within(limits: &str, upstream: &str) -> Self {
        let mut command = Command::new("sh");
        command.env_clear().stdin(Stdio::null());
        command.args([
            "-c",
            &format!("{limits} && exec \"$0\" \"$@\""),
            env!("CARGO_BIN_EXE_toolsearch-proxy"),
        ]);
        command.args(["serve", "--upstream", upstream]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        Self::started(command).await
    }

    /// Serves with a standard error that nobody reads once the process listens.
    pub(crate) async fn serve_unread(upstream: &str, flags: &[&str]) -> Self {
        let usual =
            ["serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
        Self::started_up_to(command(&[&usual, flags].concat(), &[]), Some("listening on")).await
    }

    async fn started(command: Command) -> Self {
        Self::started_up_to(command, None).await
    }

    async fn started_up_to(mut command: Command, last: Option<&'static str>) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stderr.take().unwrap(), last);
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut proxy = Self { child, lines, seen: Vec::new(), address: nowhere, admin: nowhere };
        let line = proxy.line_with("listening on").await;
        let mut addresses =
            line.split("listening on ").nth(1).unwrap().split(" for MCP at /mcp/search, and on ");
        proxy.address = addresses.next().unwrap().parse().unwrap();
        proxy.admin = addresses.next().unwrap().split(' ').next().unwrap().parse().unwrap();
        proxy
    }

    /// The next line that holds some text.
    pub(crate) async fn line_with(&mut self, text: &str) -> String {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.recv()).await;
            let Some(line) = line.unwrap_or_default() else {
                panic!("no line with {text:?} came, but {:?}", self.seen)
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// How a process ends that was sent a signal.
    #[cfg(target_os = "linux")]
    pub(crate) async fn ended(mut self) -> std::process::ExitStatus {
        while tokio::time::timeout(PATIENCE, self.lines.recv()).await.expect("the process ends").is_some() {}
        self.child.wait().unwrap()
    }

    /// A file of the process under `/proc`.
    #[cfg(target_os = "linux")]
    pub(crate) fn proc(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).unwrap()
    }

    /// The exit code of a process that ends by itself, and all its lines.
    pub(crate) async fn exit(mut self) -> (Option<i32>, Vec<String>) {
        while let Some(line) =
            tokio::time::timeout(PATIENCE, self.lines.recv()).await.expect("the process ends")
        {
            self.seen.push(line);
        }
        // Standard error is closed, so the process is at its end.
        (self.child.wait().unwrap().code(), std::mem::take(&mut self.seen))
    }

    /// Posts one legacy request with a token: the head and the body of the answer.
    pub(crate) async fn post(&self, token: &str, body: &str) -> (String, String) {
        exchange(self.address, request(token, body)).await
    }

    /// The status line and the body of a page of the operator's port.
    pub(crate) async fn admin_page(&self, path: &str) -> (String, String) {
        let (head, body) =
            exchange(self.admin, format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).await;
        (head.lines().next().unwrap().to_owned(), body)
    }
}

/// A legacy request on the wire.
pub(crate) fn request(token: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _may_be_gone = self.child.kill();
        let _status = self.child.wait();
    }
}

/// All lines, or those up to one that has a text; nobody reads the others, and nobody closes the stream.
fn lines_of(
    stream: impl Read + Send + 'static,
    last: Option<&'static str>,
) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
            let is_last = last.is_some_and(|last| line.contains(last));
            if sender.send(line.trim_end_matches('\n').to_owned()).is_err() {
                break;
            }
            if is_last {
                std::mem::forget((stream, sender));
                return;
            }
            line.clear();
        }
    });
    receiver
}
