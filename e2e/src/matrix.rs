//! Every client in every era against every upstream.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cases::{self, ALICE, ALICE_DIRECT, Across, Case, Session};
use crate::driver::Driver;
use crate::fixtures::Fixture;
use crate::plain::{LEGACY, MODERN};
use crate::process::Reaper;
use crate::report::Report;
use crate::upstream::{KINDS, Kind, Stack};
use crate::wire;

pub struct Matrix {
    pub home: PathBuf,
    pub proxy: PathBuf,
    pub filter: String,
}

/// A client SDK and how it chooses its era.
struct Client {
    name: &'static str,
    program: &'static str,
    mode: &'static str,
    expected_version: &'static str,
}

const fn client(
    name: &'static str,
    program: &'static str,
    mode: &'static str,
    expected: &'static str,
) -> Client {
    Client { name, program, mode, expected_version: expected }
}

const CLIENTS: [Client; 10] = [
    client("ts-client legacy", "typescript.cjs client", "legacy", LEGACY),
    client("ts-client auto", "typescript.cjs client", "auto", MODERN),
    client("ts-sdk legacy", "typescript.cjs sdk", "legacy", LEGACY),
    client("py-mcp legacy", "python.py mcp", "legacy", LEGACY),
    client("py-mcp auto", "python.py mcp", "auto", MODERN),
    // Does not even ask for the versions: each request must stand on its own.
    client("py-mcp pinned", "python.py mcp", MODERN, MODERN),
    client("py-fastmcp legacy", "python.py fastmcp", "legacy", LEGACY),
    client("py-fastmcp auto", "python.py fastmcp", "auto", MODERN),
    client("inspector legacy", INSPECTOR, "legacy", LEGACY),
    client("inspector modern", INSPECTOR, "modern", MODERN),
];

/// A command line: each order is a run of it, so it works through fewer cases.
const INSPECTOR: &str = "inspector.cjs";

impl Matrix {
    pub fn run(&self, reaper: &Arc<Reaper>, report: &mut Report) {
        for kind in KINDS {
            let sessions: Vec<&Client> =
                CLIENTS.iter().filter(|client| self.wants(kind, client.name)).collect();
            let wants_wire = self.wants(kind, "wire");
            if sessions.is_empty() && !wants_wire {
                continue;
            }
            let stack = match Stack::start(reaper, &self.home, &self.proxy, kind.program()) {
                Ok(stack) => stack,
                Err(error) => {
                    report.failed(&format!("{}: starts with the proxy in front", kind.name()), &error);
                    continue;
                }
            };
            self.run_upstream(reaper, kind, &stack, &sessions, wants_wire, report);
        }
    }

    fn wants(&self, kind: Kind, client: &str) -> bool {
        format!("{} {client}", kind.name()).contains(&self.filter)
    }

    fn run_upstream(
        &self,
        reaper: &Arc<Reaper>,
        kind: Kind,
        stack: &Stack,
        clients: &[&Client],
        wants_wire: bool,
        report: &mut Report,
    ) {
        let failures_before = report.failures();
        let fixture = kind.fixture();
        for client in clients {
            let title = format!("{} {}", kind.name(), client.name);
            match self.open(reaper, stack, &fixture, client, &title) {
                Ok(session) => {
                    let across = Across {
                        is_modern_client: client.expected_version == MODERN,
                        is_modern_upstream: kind.is_modern(),
                    };
                    let cases = if client.program == INSPECTOR {
                        cases::for_a_command_line()
                    } else {
                        cases::all(&fixture, across)
                    };
                    run_cases(session, &cases, &title, report);
                }
                Err(error) => report.failed(&format!("{title}: connects (its cases did not run)"), &error),
            }
        }
        if wants_wire {
            for (case, outcome) in wire::run(kind, stack, &fixture) {
                let case = format!("{} wire: {case}", kind.name());
                match outcome {
                    Ok(()) => report.passed(&case),
                    Err(error) => report.failed(&case, &error),
                }
            }
        }
        if report.failures() > failures_before {
            println!("       the proxy's log before {}:", kind.name());
            let log = stack.proxy.log();
            let lines: Vec<&str> = log.lines().collect();
            for line in &lines[lines.len().saturating_sub(20)..] {
                println!("       | {line}");
            }
        }
    }

    fn open<'a>(
        &self,
        reaper: &Arc<Reaper>,
        stack: &Stack,
        fixture: &'a Fixture,
        client: &Client,
        title: &str,
    ) -> Result<Session<'a>, String> {
        let mut driver = Driver::start(reaper, &self.home, client.program)?;
        let (proxy_url, upstream_url) = (stack.proxy.url(), stack.upstream.url());
        let is_era_fixed = client.mode == MODERN || client.mode == "modern";
        let direct_mode = if is_era_fixed { "auto" } else { client.mode };
        let connected = driver.connect(ALICE, &proxy_url, "alice-token", client.mode).and_then(|connected| {
            driver.connect(ALICE_DIRECT, &upstream_url, "alice-token", direct_mode).map(|_| connected)
        });
        let connected = connected.map_err(|error| explained(&error.to_string(), &driver))?;
        if connected["protocolVersion"] != client.expected_version {
            return Err(explained(
                &format!("expected version {}: {connected}", client.expected_version),
                &driver,
            ));
        }
        // A pinned client has asked nothing yet, so it cannot know the server's name.
        let server = connected["serverInfo"]["name"].as_str().unwrap_or_default();
        if client.mode != MODERN && !server.contains("toolsearch") {
            return Err(explained(&format!("the server's name is {server:?}"), &driver));
        }
        let upstream_tools = driver.list(ALICE_DIRECT).map_err(|error| explained(&error, &driver))?;
        let marker = title.replace(' ', "-");
        Ok(Session {
            driver,
            fixture,
            marker,
            upstream_tools,
            proxy_url,
            upstream_url,
            mode: client.mode,
            direct_mode,
        })
    }
}

fn run_cases(mut session: Session, cases: &[Case], title: &str, report: &mut Report) {
    report.passed(&format!("{title}: connects"));
    for (name, case) in cases {
        session.driver.start_case();
        let name = format!("{title}: {name}");
        match case(&mut session) {
            Ok(()) => report.passed(&name),
            Err(error) => report.failed(&name, &explained(&error, &session.driver)),
        }
    }
}

fn explained(error: &str, driver: &Driver) -> String {
    let (transcript, complaints) = (driver.transcript(), driver.complaints());
    let mut text = format!("{error}\n{transcript}");
    if !complaints.is_empty() {
        text.push_str(&format!("\nthe driver printed:\n{complaints}"));
    }
    text
}
