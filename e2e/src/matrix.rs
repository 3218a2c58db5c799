//! Every client in every era against every upstream.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cases::{self, ALICE, ALICE_DIRECT, Session};
use crate::driver::Driver;
use crate::fixtures::Fixture;
use crate::process::Reaper;
use crate::report::Report;
use crate::upstream::{KINDS, Kind, Stack};
use crate::wire;

const MODERN: &str = "2026-07-28";
const LATEST_LEGACY: &str = "2025-11-25";

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

const CLIENTS: [Client; 6] = [
    Client { name: "ts-client legacy", program: "client", mode: "legacy", expected_version: LATEST_LEGACY },
    Client { name: "ts-client auto", program: "client", mode: "auto", expected_version: MODERN },
    Client { name: "ts-sdk legacy", program: "sdk", mode: "legacy", expected_version: LATEST_LEGACY },
    Client { name: "py-mcp legacy", program: "python", mode: "legacy", expected_version: LATEST_LEGACY },
    Client { name: "py-mcp auto", program: "python", mode: "auto", expected_version: MODERN },
    // Does not even ask for the versions: each request must stand on its own.
    Client { name: "py-mcp pinned", program: "python", mode: MODERN, expected_version: MODERN },
];

impl Matrix {
    pub fn run(&self, reaper: &Arc<Reaper>, report: &mut Report) {
        for kind in KINDS {
            let sessions: Vec<&Client> =
                CLIENTS.iter().filter(|client| self.wants(kind, client.name)).collect();
            let wants_wire = self.wants(kind, "wire");
            if sessions.is_empty() && !wants_wire {
                continue;
            }
            let stack = match Stack::start(reaper, &self.home, &self.proxy, kind) {
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
                Ok(session) => run_cases(session, &title, report),
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
            let log = stack.proxy_log();
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
        let (proxy_url, upstream_url) = (stack.proxy_url(), stack.upstream_url());
        let direct_mode = if client.mode == MODERN { "auto" } else { client.mode };
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

fn run_cases(mut session: Session, title: &str, report: &mut Report) {
    report.passed(&format!("{title}: connects"));
    for (name, case) in cases::all(session.fixture) {
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
