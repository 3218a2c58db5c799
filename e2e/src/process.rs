//! Child processes that never outlive the harness.
//!
//! A [`Running`] is killed when it is dropped, so also while a panic unwinds. The [`Reaper`] covers the ends that run no
//! destructor: a small shell in a process group of its own that holds the list of live children and kills what is left
//! of it when its stdin closes, which the system does for us however the harness ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Reads `+pid` when a child starts and `-pid` when it has ended; at the end of input kills those still alive.
const REAPER: &str = r#"
live=" "
while read -r line; do
  case $line in
    +*) live="$live${line#+} " ;;
    -*) gone=" ${line#-} "; live="${live%%"$gone"*} ${live#*"$gone"}" ;;
  esac
done
[ -z "${live// /}" ] || kill -9 $live
"#;

pub struct Reaper {
    child: Child,
    stdin: Mutex<Option<ChildStdin>>,
}

impl Reaper {
    /// # Errors
    /// When `bash` cannot be started.
    pub fn start() -> Result<Arc<Self>, String> {
        let mut child = Command::new("bash")
            .args(["-c", REAPER])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start bash: {error}"))?;
        let stdin = Mutex::new(child.stdin.take());
        Ok(Arc::new(Self { child, stdin }))
    }

    fn tell(&self, sign: char, pid: u32) {
        let mut stdin = self.stdin.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stdin) = stdin.as_mut() {
            // A reaper that is gone is no reason to fail a run: destructors still end the children.
            let _ = writeln!(stdin, "{sign}{pid}");
        }
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.stdin.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Stream {
    Stdout,
    Stderr,
}

pub struct Running {
    name: String,
    child: Child,
    reaper: Arc<Reaper>,
    stdin: Option<ChildStdin>,
    lines: Receiver<(Stream, String)>,
    log: Arc<Mutex<String>>,
}

impl Running {
    /// # Errors
    /// When the program cannot be started.
    pub fn start(reaper: &Arc<Reaper>, name: &str, command: &mut Command) -> Result<Self, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {name} ({command:?}): {error}"))?;
        reaper.tell('+', child.id());
        let (sender, lines) = mpsc::channel();
        let log = Arc::new(Mutex::new(String::new()));
        if let Some(stdout) = child.stdout.take() {
            collect(stdout, Stream::Stdout, sender.clone(), Arc::clone(&log));
        }
        if let Some(stderr) = child.stderr.take() {
            collect(stderr, Stream::Stderr, sender, Arc::clone(&log));
        }
        let stdin = child.stdin.take();
        Ok(Self { name: name.to_owned(), child, reaper: Arc::clone(reaper), stdin, lines, log })
    }

    /// # Errors
    /// When the program no longer reads.
    pub fn send_line(&mut self, line: &str) -> Result<(), String> {
        let stdin = self.stdin.as_mut().ok_or("stdin is closed")?;
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// The first line, from now on, of which `pick` makes something.
    ///
    /// # Errors
    /// When the program ended or `within` passed before such a line; with all it has printed.
    pub fn wait_for_line<T>(
        &self,
        within: Duration,
        mut pick: impl FnMut(Stream, &str) -> Option<T>,
    ) -> Result<T, String> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let reason = match self.lines.recv_timeout(left) {
                Ok((stream, line)) => match pick(stream, &line) {
                    Some(found) => return Ok(found),
                    None => continue,
                },
                Err(RecvTimeoutError::Timeout) => format!("said nothing fitting within {within:?}"),
                Err(RecvTimeoutError::Disconnected) => "ended".to_owned(),
            };
            return Err(format!("{} {reason}; it printed:\n{}", self.name, self.log()));
        }
    }

    /// # Errors
    /// When the program has ended.
    pub fn check_alive(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                Err(format!("{} ended with {status}; it printed:\n{}", self.name, self.log()))
            }
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }

    /// Waits for its end, and for all it prints until then.
    ///
    /// # Errors
    /// When it runs longer; with all it has printed.
    pub fn wait_for_end(&mut self, within: Duration) -> Result<ExitStatus, String> {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    return Err(format!(
                        "{} has not ended within {within:?}; it printed:\n{}",
                        self.name,
                        self.log()
                    ));
                }
            }
        }
        self.child.wait().map_err(|error| format!("{}: {error}", self.name))
    }

    /// Everything it printed so far, both streams in order of arrival.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A child that ended by itself makes kill fail, and that is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.reaper.tell('-', self.child.id());
    }
}

fn collect(
    from: impl Read + Send + 'static,
    stream: Stream,
    sender: Sender<(Stream, String)>,
    log: Arc<Mutex<String>>,
) {
    thread::spawn(move || {
        for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                log.push_str(&line);
                log.push('\n');
            }
            // Nobody may be waiting any more; the log above still has the line.
            let _ = sender.send((stream, line));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(reaper: &Arc<Reaper>, script: &str) -> Running {
        Running::start(reaper, "shell", Command::new("bash").args(["-c", script])).unwrap()
    }

    #[test]
    fn lines_are_sent_and_awaited() {
        let reaper = Reaper::start().unwrap();
        let mut echo = shell(&reaper, "read -r word; echo noise >&2; echo \"got $word\"");
        echo.send_line("this").unwrap();
        let found = echo.wait_for_line(Duration::from_secs(10), |stream, line| {
            (stream == Stream::Stdout).then(|| line.to_owned())
        });
        assert_eq!(found.unwrap(), "got this");
    }

    #[test]
    fn end_of_program_is_told_with_its_output() {
        let reaper = Reaper::start().unwrap();
        let failing = shell(&reaper, "echo the reason >&2; exit 3");
        let waited =
            failing.wait_for_line(Duration::from_secs(10), |_, line| (line == "never").then_some(()));
        assert!(waited.unwrap_err().contains("the reason"));
    }

    #[test]
    fn end_is_awaited_with_its_status_and_output() {
        let reaper = Reaper::start().unwrap();
        let mut ending = shell(&reaper, "echo last words; exit 3");
        assert_eq!(ending.wait_for_end(Duration::from_secs(10)).unwrap().code(), Some(3));
        assert_eq!(ending.log(), "last words\n");
        let mut lasting = shell(&reaper, "echo busy; exec sleep 60");
        assert!(lasting.wait_for_end(Duration::from_millis(500)).unwrap_err().contains("busy"));
    }

    #[test]
    fn reaper_kills_only_children_that_still_live() {
        let reaper = Reaper::start().unwrap();
        let mut survivor = Command::new("sleep").arg("60").spawn().unwrap();
        let mut left_behind = Command::new("sleep").arg("60").spawn().unwrap();
        reaper.tell('+', survivor.id());
        reaper.tell('+', left_behind.id());
        reaper.tell('-', survivor.id());
        drop(reaper);
        assert!(!left_behind.wait().unwrap().success());
        assert!(survivor.try_wait().unwrap().is_none());
        survivor.kill().unwrap();
        survivor.wait().unwrap();
    }
}
