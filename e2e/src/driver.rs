//! An SDK client in a process of its own: a JSON order a line in, a JSON answer a line out (see `drivers/`).

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::process::{Reaper, Running, Stream};

const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// The field that a client fills in when a tool asks, and its content.
pub const ANSWER: (&str, &str) = ("reason", "no longer needed");
/// A listing is long; its beginning tells enough.
const TRANSCRIPT_LINE_CHARS: usize = 3000;

pub struct Driver {
    running: Running,
    /// What was sent and what came back since the last [`Driver::start_case`].
    transcript: Vec<String>,
}

impl Driver {
    /// `program` is one of `drivers/`, with the short name of the SDK where it carries several.
    ///
    /// # Errors
    /// When the driver cannot be started.
    pub fn start(reaper: &Arc<Reaper>, home: &Path, program: &str) -> Result<Self, String> {
        let third_party = home.join(".third-party");
        let drivers = home.join("drivers");
        let (script, sdk) = program.split_once(' ').unwrap_or((program, ""));
        let mut command = if script.ends_with(".py") {
            Command::new(third_party.join("venv/bin/python"))
        } else {
            Command::new("node")
        };
        command.arg(drivers.join(script)).env("THIRD_PARTY", &third_party);
        if !sdk.is_empty() {
            command.arg(sdk);
        }
        let running = Running::start(reaper, &format!("driver {program}"), &mut command)?;
        Ok(Self { running, transcript: Vec::new() })
    }

    /// Opens a connection and keeps it under `name`. Whatever a tool asks is answered with [`ANSWER`].
    pub fn connect(&mut self, name: &str, url: &str, token: &str, mode: &str) -> Result<Value, Value> {
        let answer = json!({ANSWER.0: ANSWER.1});
        let order = json!({"order": "connect", "as": name, "url": url, "token": token, "mode": mode, "answer": answer});
        self.order(&order)
    }

    /// Opens a connection that logs in by itself, with what the client is known by beforehand.
    pub fn connect_by_login(
        &mut self,
        name: &str,
        url: &str,
        mode: &str,
        known: &Value,
    ) -> Result<Value, Value> {
        let mut order = known.clone();
        for (key, value) in [("order", "connect"), ("as", name), ("url", url), ("mode", mode)] {
            order[key] = json!(value);
        }
        self.order(&order)
    }

    /// All tools a connection lists.
    pub fn list(&mut self, name: &str) -> Result<Vec<Value>, String> {
        match self.order(&json!({"order": "list", "as": name})) {
            Ok(Value::Array(tools)) => Ok(tools),
            Ok(other) | Err(other) => Err(format!("tools/list gave {other}")),
        }
    }

    /// A tool's result as the SDK delivers it, or the SDK's error.
    pub fn call(&mut self, name: &str, tool: &str, arguments: &Value) -> Result<Value, Value> {
        self.order(&json!({"order": "call", "as": name, "name": tool, "arguments": arguments}))
    }

    /// The same with what came beside it: `result`, and `progress`, `logs` and `questions`, a list each. `meta` is the
    /// request's.
    pub fn call_noted(
        &mut self,
        name: &str,
        tool: &str,
        arguments: &Value,
        meta: &Value,
    ) -> Result<Value, Value> {
        let order = json!({"order": "call", "as": name, "name": tool, "arguments": arguments, "noted": true, "meta": meta});
        self.order(&order)
    }

    pub fn start_case(&mut self) {
        self.transcript.clear();
    }

    pub fn transcript(&self) -> String {
        self.transcript.join("\n")
    }

    /// What the driver printed that was no answer.
    pub fn complaints(&self) -> String {
        self.running.log().lines().filter(|line| !line.starts_with('{')).collect::<Vec<_>>().join("\n")
    }

    fn note(&mut self, line: &str) {
        self.transcript.push(line.chars().take(TRANSCRIPT_LINE_CHARS).collect());
    }

    fn order(&mut self, order: &Value) -> Result<Value, Value> {
        self.note(&format!("-> {order}"));
        let line = self.running.send_line(&order.to_string()).and_then(|()| {
            self.running.wait_for_line(ANSWER_WITHIN, |stream, line| {
                (stream == Stream::Stdout && line.starts_with('{')).then(|| line.to_owned())
            })
        });
        let answer = match line {
            Ok(line) => {
                self.note(&format!("<- {line}"));
                serde_json::from_str(&line).unwrap_or(Value::Null)
            }
            Err(message) => json!({"error": {"message": message}}),
        };
        match (answer.get("ok"), answer.get("error")) {
            (Some(ok), _) => Ok(ok.clone()),
            (None, Some(error)) => Err(error.clone()),
            (None, None) => Err(json!({"message": "the driver's answer is not readable"})),
        }
    }
}
