//! Login through the proxy, from the first 401 to a tool call, with the OAuth clients of the official SDKs.
//!
//! The fixture is a protected server with an authorization server of its own (`fixtures/login.py`). A client is given
//! nothing but the proxy's URL. Whether it got in the right way is read from the authorization server's ledger: each
//! token must be for the very URL that the client dialled. [`challenged`] looks at the same without a client.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::authority::Authority;
use crate::challenged;
use crate::checks::{Checked, ensure};
use crate::driver::Driver;
use crate::plain::{LEGACY, MODERN};
use crate::process::Reaper;
use crate::proxy::Proxy;
use crate::report::Report;
use crate::upstream::{Program, Upstream, free_port};

/// How the protected server speaks.
const UPSTREAMS: [(&str, &str); 2] = [("modern upstream", "dual"), ("upstream with sessions", "sessions")];

struct Client {
    name: &'static str,
    program: &'static str,
    mode: &'static str,
    version: &'static str,
}

const fn client(
    name: &'static str,
    program: &'static str,
    mode: &'static str,
    version: &'static str,
) -> Client {
    Client { name, program, mode, version }
}

const CLIENTS: [Client; 5] = [
    client("ts-client legacy", "login.cjs", "legacy", LEGACY),
    client("ts-client auto", "login.cjs", "auto", MODERN),
    client("py-mcp legacy", "login.py", "legacy", LEGACY),
    client("py-mcp auto", "login.py", "auto", MODERN),
    // Asks for nothing before the call, so that the call itself meets the 401.
    client("py-mcp pinned", "login.py", MODERN, MODERN),
];

/// What the proxy is told of its own URL.
#[derive(Clone, Copy, PartialEq)]
pub enum Told {
    /// Nothing: it goes by the requests.
    Nothing,
    /// The URL that it has.
    ItsUrl,
    /// That of a gateway in front of it, which the harness does not have: only for a look at the answers.
    AnotherUrl,
}

const TOLD: [Told; 3] = [Told::Nothing, Told::ItsUrl, Told::AnotherUrl];
const GATEWAY: &str = "https://gateway.example/mcp/search";

impl Told {
    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "without a public URL",
            Self::ItsUrl => "with its public URL",
            Self::AnotherUrl => "with a gateway's URL",
        }
    }
}

/// A proxy in front of the protected server.
pub struct Protected<'a> {
    pub proxy: Proxy,
    pub upstream: &'a Upstream,
    pub authority: &'a Authority,
    pub is_upstream_modern: bool,
    /// The one resource, or none where each path is one.
    pub public_url: Option<String>,
}

impl Protected<'_> {
    /// The resource for a client that dials this path.
    pub fn resource(&self, path: &str) -> String {
        self.public_url.clone().unwrap_or_else(|| format!("http://{}{path}", self.proxy.listen))
    }
}

pub struct Login<'a> {
    pub home: &'a Path,
    pub proxy: &'a Path,
    pub filter: &'a str,
}

impl Login<'_> {
    pub fn run(&self, reaper: &Arc<Reaper>, report: &mut Report) {
        for (upstream_name, era) in UPSTREAMS {
            let wanted = |told: &Told| {
                self.wants(&title(*told, upstream_name, "wire")) || self.has_client(*told, upstream_name)
            };
            let places: Vec<Told> = TOLD.into_iter().filter(wanted).collect();
            if places.is_empty() {
                continue;
            }
            let started = Upstream::start(reaper, self.home, Program::Python { script: "login.py", era })
                .and_then(|upstream| Authority::of(upstream.address).map(|authority| (upstream, authority)));
            let (upstream, authority) = match started {
                Ok(started) => started,
                Err(error) => {
                    report.failed(&format!("login, {upstream_name}: starts"), &error);
                    continue;
                }
            };
            for told in places {
                match self.protected(reaper, told, &upstream, &authority, era == "dual") {
                    Ok(protected) => self.run_at(reaper, told, upstream_name, &protected, report),
                    Err(error) => report.failed(&title(told, upstream_name, "starts"), &error),
                }
            }
        }
    }

    fn wants(&self, title: &str) -> bool {
        title.contains(self.filter)
    }

    fn has_client(&self, told: Told, upstream: &str) -> bool {
        told != Told::AnotherUrl
            && CLIENTS.iter().any(|client| self.wants(&title(told, upstream, client.name)))
    }

    fn protected<'a>(
        &self,
        reaper: &Arc<Reaper>,
        told: Told,
        upstream: &'a Upstream,
        authority: &'a Authority,
        is_upstream_modern: bool,
    ) -> Checked<Protected<'a>> {
        let port = if told == Told::ItsUrl { free_port()? } else { 0 };
        let listen = format!("127.0.0.1:{port}");
        let public_url = match told {
            Told::Nothing => None,
            Told::ItsUrl => Some(format!("http://{listen}/mcp/search")),
            Told::AnotherUrl => Some(GATEWAY.to_owned()),
        };
        let mut options = vec!["--listen", &listen];
        options.extend(public_url.iter().flat_map(|url| ["--public-url", url]));
        let proxy = Proxy::start_with(reaper, self.proxy, &upstream.url(), &options)?;
        Ok(Protected { proxy, upstream, authority, is_upstream_modern, public_url })
    }

    fn run_at(
        &self,
        reaper: &Arc<Reaper>,
        told: Told,
        upstream: &str,
        protected: &Protected,
        report: &mut Report,
    ) {
        for client in &CLIENTS {
            let title = title(told, upstream, client.name);
            if told == Told::AnotherUrl || !self.wants(&title) {
                continue;
            }
            if told == Told::ItsUrl {
                let outcome = goes_astray(reaper, self.home, client, protected);
                report.case(&format!("{title}: does not log in where metadata is for another URL"), outcome);
            }
            match Session::start(reaper, self.home, client, protected) {
                Ok(session) => session.run(&title, report),
                Err(error) => report.failed(&format!("{title}: starts"), &error),
            }
        }
        let title = title(told, upstream, "wire");
        if self.wants(&title) {
            for (case, outcome) in challenged::run(protected) {
                report.case(&format!("{title}: {case}"), outcome);
            }
        }
    }
}

fn title(told: Told, upstream: &str, client: &str) -> String {
    format!("login {}, {upstream} {client}", told.name())
}

/// The public URL is not the only one that the proxy answers at. This is no wish, but the proof that the clients compare.
fn goes_astray(reaper: &Arc<Reaper>, home: &Path, client: &Client, protected: &Protected) -> Checked {
    let (mut driver, url) = (Driver::start(reaper, home, client.program)?, protected.proxy.url());
    protected.authority.steer(&json!({"accept": url}))?;
    let call = json!({"name": "notes_find", "arguments": {"word": "milk"}});
    let connected = driver.connect(ME, &url, "", client.mode);
    let error = match connected.and_then(|_| driver.call(ME, "call_read_tool", &call)) {
        Ok(result) => return Err(format!("it logged in at {url}: {result}")),
        Err(error) => error.to_string(),
    };
    ensure(error.contains("does not match expected"), || format!("it failed otherwise: {error}"))?;
    protected.authority.steer(&json!({}))?.shows_nothing()
}

/// One client that starts with nothing and keeps what it gets.
struct Session<'a> {
    client: &'a Client,
    authority: &'a Authority,
    driver: Driver,
    url: String,
}

type Step<'a> = (&'static str, fn(&mut Session<'a>) -> Checked);

const ME: &str = "me";
/// What tokens are told to last before the one that expires: not to be over within one step, however slow the machine is.
/// The server takes them until the harness says otherwise.
const SHORT: Duration = Duration::from_secs(2);

impl<'a> Session<'a> {
    fn start(
        reaper: &Arc<Reaper>,
        home: &Path,
        client: &'a Client,
        protected: &'a Protected,
    ) -> Checked<Self> {
        let url = protected.resource("/mcp");
        let authority = protected.authority;
        authority.steer(&json!({"accept": url, "told_seconds": 3600}))?;
        let driver = Driver::start(reaper, home, client.program)?;
        Ok(Self { client, authority, driver, url })
    }

    /// Each step needs what the one before it left.
    fn run(mut self, title: &str, report: &mut Report) {
        let steps: [Step; 3] = [
            ("logs in, from the first 401 to a tool call", Self::logs_in),
            ("asks for more where a call needs more scope, and goes on", Self::steps_up),
            ("refreshes an expired token and goes on", Self::refreshes),
        ];
        for (name, step) in steps {
            self.driver.start_case();
            let name = format!("{title}: {name}");
            if let Err(error) = step(&mut self) {
                let (transcript, complaints) = (self.driver.transcript(), self.driver.complaints());
                return report
                    .failed(&name, &format!("{error}\n{transcript}\nthe driver printed:\n{complaints}"));
            }
            report.passed(&name);
        }
    }

    fn logs_in(&mut self) -> Checked {
        let connected = self.driver.connect(ME, &self.url, "", self.client.mode);
        let connected = connected.map_err(|error| format!("cannot connect: {error}"))?;
        ensure(connected["protocolVersion"] == self.client.version, || {
            format!("expected version {}: {connected}", self.client.version)
        })?;
        self.finds_a_note()?;
        let ledger = self.authority.steer(&json!({}))?;
        ledger.shows(&["register", "authorize", "authorization_code"], &self.url, "notes_find")?;
        ensure(ledger.scope() == "notes:read", || {
            format!("more scope than the challenge named: {}", ledger.scope())
        })
    }

    fn steps_up(&mut self) -> Checked {
        self.authority.steer(&json!({"told_seconds": SHORT.as_secs()}))?;
        let arguments = json!({"name": "notes_add", "arguments": {"text": "buy bread"}});
        self.calls("call_write_tool", &arguments, "kept: buy bread")?;
        let ledger = self.authority.steer(&json!({}))?;
        ledger.shows(&["authorize", "authorization_code"], &self.url, "notes_add")?;
        ensure(ledger.scope().split(' ').any(|scope| scope == "notes:write"), || {
            format!("the scope of the 403 was not asked for: {}", ledger.scope())
        })
    }

    /// One SDK refreshes when the time that it was told is over, another when it meets the 401.
    fn refreshes(&mut self) -> Checked {
        thread::sleep(SHORT + Duration::from_millis(100));
        self.authority.steer(&json!({"expire": true, "told_seconds": 3600}))?;
        self.finds_a_note()?;
        self.authority.steer(&json!({}))?.shows(&["refresh_token"], &self.url, "notes_find")
    }

    fn finds_a_note(&mut self) -> Checked {
        let arguments = json!({"name": "notes_find", "arguments": {"word": "milk"}});
        self.calls("call_read_tool", &arguments, "Buy milk and oat flakes")
    }

    fn calls(&mut self, tool: &str, arguments: &Value, text: &str) -> Checked {
        let result = self.driver.call(ME, tool, arguments);
        let result = result.map_err(|error| format!("{tool} failed in the SDK: {error}"))?;
        ensure(result["content"][0]["text"] == text, || format!("expected {text:?}: {result}"))
    }
}
