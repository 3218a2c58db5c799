//! Load from `wrk` (Debian's), whose answers come as numbers from a script.

use crate::process::scratch;
use std::process::Command;

/// What a run of `wrk` gave.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub per_second: f64,
    /// Microseconds.
    pub p50: f64,
    pub p99: f64,
}

/// What is sent: for each token in turn, each body in turn.
pub struct Requests {
    pub tokens: Vec<String>,
    pub tool: String,
    pub bodies: Vec<String>,
}

impl Requests {
    /// Those of the first token.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let token = self.tokens.first().map_or("", String::as_str);
        vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Authorization", format!("Bearer {token}")),
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", "tools/call".to_owned()),
            ("Mcp-Name", self.tool.clone()),
        ]
    }

    fn script(&self) -> String {
        let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default().replace("\\u", "\\\\u");
        let long = |text: &str| format!("[==[{text}]==]");
        let headers: Vec<String> = self
            .headers()
            .iter()
            .map(|(name, value)| format!("[{}]={}", quoted(name), quoted(value)))
            .collect();
        let bodies: Vec<String> = self.bodies.iter().map(|body| long(body)).collect();
        let tokens: Vec<String> = self.tokens.iter().map(|token| quoted(token)).collect();
        format!(
            "local headers = {{{}}}\nlocal bodies = {{{}}}\nlocal tokens = {{{}}}\nlocal requests = {{}}\nlocal at = 0\n\
             function init() for _, token in ipairs(tokens) do headers['Authorization'] = 'Bearer ' .. token\n\
             for _, body in ipairs(bodies) do requests[#requests + 1] = wrk.format('POST', '/mcp', headers, body) end end end\n\
             function request() at = at % #requests + 1; return requests[at] end\n\
             function done(summary, latency) local e = summary.errors\n\
             io.write(string.format('RESULT %d %d %d %d %d\\n', summary.requests, summary.duration, latency:percentile(50), \
             latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout)) end\n",
            headers.join(","),
            bodies.join(",\n"),
            tokens.join(","),
        )
    }
}

/// Sends for so many seconds on so many connections kept alive.
///
/// # Errors
/// When `wrk` is missing, or any request failed.
pub fn run(address: &str, requests: &Requests, connections: usize, seconds: u64) -> Result<Load, String> {
    let script = scratch("wrk")?.join("script.lua");
    std::fs::write(&script, requests.script()).map_err(|error| error.to_string())?;
    let output = Command::new("wrk")
        .args([
            "-t",
            "1",
            "-c",
            &connections.to_string(),
            "-d",
            &format!("{seconds}s"),
            "--timeout",
            "20s",
            "-s",
        ])
        .arg(&script)
        .arg(format!("http://{address}/mcp"))
        .output()
        .map_err(|error| format!("wrk: {error} (on Debian: apt install wrk)"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT "));
    let numbers: Vec<f64> =
        line.unwrap_or_default().split(' ').filter_map(|number| number.parse().ok()).collect();
    let [sent, micros, p50, p99, errors] = numbers[..] else {
        return Err(format!("wrk said: {text}{}", String::from_utf8_lossy(&output.stderr)));
    };
    if errors > 0.0 {
        return Err(format!("{errors} of {sent} requests to {address} failed"));
    }
    Ok(Load { per_second: sent / micros * 1e6, p50, p99 })
}
