//! Each fault, tool, cache state and kind of upstream: an allowed end, in time, a healthy next request, and nothing left
//! behind.
//!
//! Cold, the fault hits the listing that the request waits for; stale, the listing that runs behind it; warm, the call
//! itself. So a search must succeed when its caller's tools are kept, whatever happens to the upstream.

use super::{Options, Secrets, nothing_private};
use crate::client::{Answer, Ask, Client, Era};
use crate::gateway::{Fault, Gateway, Kind, Settings, fault::FAULTS};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::relay::{Break, Door, Relay};
use crate::report::{Report, Times};
use crate::rng::Rng;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

const DEADLINE: Duration = Duration::from_secs(1);
const GRACE: Duration = Duration::from_millis(100);
const AT_ONCE: usize = 12;
/// Pauses of one, two and four seconds at most come together while a door is closed.
const FOUND_AGAIN: Duration = Duration::from_secs(8);
const TOOLS: [&str; 5] = ["search", "describe", "read", "reads", "write"];
const STATES: [&str; 3] = ["cold", "warm", "stale"];

/// What goes wrong for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Answer(Fault),
    Wire(Break),
    Door(Door),
}

const WIRE: &[(&str, Break)] = &[
    ("request-cut-early", Break::CutRequest(10)),
    ("request-cut-in-headers", Break::CutRequest(200)),
    ("request-cut-late", Break::CutRequest(480)),
    ("answer-reset-early", Break::ResetAnswer(5)),
    ("answer-reset-in-headers", Break::ResetAnswer(40)),
    ("answer-reset-in-body", Break::ResetAnswer(160)),
    ("answer-closed-in-body", Break::TruncateAnswer(160)),
    ("slow-answer", Break::Delay(Duration::from_millis(300))),
    ("dripping-answer", Break::Drip(40, Duration::from_millis(2))),
    ("foreign-answer-behind", Break::Extra(Duration::from_micros(500))),
    ("foreign-answer-before", Break::Before),
    ("answer-lost", Break::BlackHole),
    ("never-read", Break::Deaf),
];

const DOORS: &[(&str, Door)] = &[
    ("connection-refused", Door::Closed),
    ("connection-reset", Door::Slams),
    ("connection-silent", Door::Silent),
];

/// Faults that leave bytes on a connection which somebody else may use next, so that they are tried alone.
fn is_poison(trouble: Trouble) -> bool {
    matches!(
        trouble,
        Trouble::Answer(
            Fault::SecondResponse | Fault::LengthTooShort | Fault::InvalidUtf8 | Fault::StatusWith(101, _)
        ) | Trouble::Wire(Break::Extra(_) | Break::Before)
    )
}

/// How one cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Ok,
    Told,
    Login,
    Late,
    Wrong,
}

struct Kitchen {
    proxy: Proxy,
    gateway: Gateway,
    relay: Relay,
    secrets: Secrets,
    /// Token to what goes wrong for it, and for which method.
    troubles: Arc<Mutex<HashMap<String, (&'static str, Trouble)>>>,
    report: Report,
    seed: u64,
}

struct Cell {
    fault: &'static str,
    trouble: Trouble,
    tool: &'static str,
    state: &'static str,
    number: usize,
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    let mut table: HashMap<(&'static str, Kind), String> = HashMap::new();
    let kinds: Vec<Kind> = Kind::ALL.into_iter().filter(|kind| kind.name().contains(&options.only)).collect();
    let mut rows: Vec<(&'static str, Trouble)> = Vec::new();
    rows.extend(FAULTS.iter().map(|(name, fault)| (*name, Trouble::Answer(*fault))));
    rows.extend(WIRE.iter().map(|(name, broken)| (*name, Trouble::Wire(*broken))));
    rows.extend(DOORS.iter().map(|(name, door)| (*name, Trouble::Door(*door))));
    for kind in &kinds {
        one_kind(*kind, &rows, options, report, &mut table).await?;
    }
    println!(
        "\n       {:<24} {}",
        "",
        kinds.iter().map(|kind| format!("{:<20}", kind.name())).collect::<String>()
    );
    println!("       {:<24} {}", "", "cold- warm- stale-  ".repeat(kinds.len()));
    println!(
        "       {:<24} {}",
        "",
        "sdRrw sdRrw sdRrw   ".replace('R', "r").replace("rr", "rb").repeat(kinds.len())
    );
    for (name, _) in &rows {
        let cells: String = kinds.iter().map(|kind| format!("{:<20}", table[&(*name, *kind)])).collect();
        println!("       {name:<24} {cells}");
    }
    println!(
        "       s search, d describe, r read, b batch of reads, w write; . answered, t told why not, l to log in, X wrong\n"
    );
    let cells = rows.len() * kinds.len() * TOOLS.len() * STATES.len();
    report.figure("cells", cells);
    Ok(())
}

async fn one_kind(
    kind: Kind,
    rows: &[(&'static str, Trouble)],
    options: &Options,
    report: &Report,
    table: &mut HashMap<(&'static str, Kind), String>,
) -> io::Result<()> {
    println!("{}:", kind.name());
    let kitchen = Arc::new(Kitchen::open(kind, options).await?);
    let idle = kitchen.idle().await;
    let mut ends: HashMap<(&'static str, &'static str, &'static str), End> = HashMap::new();
    let mut late = Times::default();
    let (alone, together): (Vec<_>, Vec<_>) =
        rows.iter().copied().partition(|(_, trouble)| is_poison(*trouble));
    let (doors, together): (Vec<_>, Vec<_>) =
        together.into_iter().partition(|(_, trouble)| matches!(trouble, Trouble::Door(_)));
    let mut number = 0;
    let batches =
        [(together, AT_ONCE), (alone, 1)].into_iter().chain(doors.into_iter().map(|row| (vec![row], 15)));
    for (rows, at_once) in batches {
        let cells: Vec<Cell> = cells(&rows, &mut number);
        let mut done = kitchen.cook(cells, at_once).await?;
        // A machine that is busy with other things makes a cell late once, a wrong deadline every time.
        let (again, rest): (Vec<_>, Vec<_>) = done.into_iter().partition(|(_, end, _)| *end == End::Late);
        let again = again.into_iter().map(|(mut cell, ..)| {
            number += 1;
            cell.number = number;
            cell
        });
        done = kitchen.cook(again.collect(), at_once.min(3)).await?;
        for (cell, _, took) in done.iter().filter(|(_, end, _)| *end == End::Late) {
            kitchen.report.fail("an answer after the deadline", format!("{}: {took:?}", cell.label()));
        }
        for (cell, end, took) in rest.into_iter().chain(done) {
            ends.insert((cell.fault, cell.tool, cell.state), end);
            late.add(took);
        }
    }
    for (name, _) in rows {
        let letters = STATES.map(|state| {
            TOOLS.map(|tool| match ends.get(&(*name, tool, state)) {
                Some(End::Ok) => '.',
                Some(End::Told) => 't',
                Some(End::Login) => 'l',
                _ => 'X',
            })
        });
        table.insert((name, kind), letters.map(String::from_iter).join(" "));
    }
    report.figure("longest answer", format!("{:?} with a deadline of {DEADLINE:?}", late.quantile(1000)));
    let wrong = kitchen.report.failures();
    report.must("cells that ended wrongly", wrong == 0, wrong);
    let twice = kitchen.gateway.ledger().executed_twice();
    report.must("calls executed twice", twice == 0, twice);
    kitchen.nothing_left(&idle, report).await;
    nothing_private(&kitchen.proxy, &kitchen.secrets, report).await
}

fn cells(rows: &[(&'static str, Trouble)], number: &mut usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (fault, trouble) in rows {
        for state in STATES {
            for tool in TOOLS {
                *number += 1;
                cells.push(Cell { fault, trouble: *trouble, tool, state, number: *number });
            }
        }
    }
    cells
}

/// What an idle proxy has: tasks and descriptors.
#[derive(Clone, Copy, Debug)]
struct Idle {
    tasks: f64,
    descriptors: usize,
}

impl Kitchen {
    async fn open(kind: Kind, options: &Options) -> io::Result<Self> {
        let secrets = Secrets::new(options.seed);
        let troubles: Arc<Mutex<HashMap<String, (&'static str, Trouble)>>> = Arc::default();
        let known = Arc::clone(&troubles);
        let trouble_of = move |token: &str, method: &str| {
            let troubles = known.lock().unwrap_or_else(PoisonError::into_inner);
            troubles.get(token).filter(|(hit, _)| *hit == method).map(|(_, trouble)| *trouble)
        };
        let of_answer = trouble_of.clone();
        let settings = Settings {
            canary: secrets.upstream.clone(),
            deadline: DEADLINE,
            plan: Box::new(move |asked| match of_answer(asked.token, asked.method) {
                Some(Trouble::Answer(fault)) => Some(fault),
                _ => None,
            }),
            ..Settings::new(kind, options.seed)
        };
        let gateway = Gateway::start(settings).await?;
        let relay = Relay::start(gateway.address, move |exchange| {
            let body = exchange.request.text();
            let method = ["tools/list", "tools/call"]
                .into_iter()
                .find(|method| body.contains(&format!(r#""method":"{method}""#)));
            match method.and_then(|method| trouble_of(exchange.request.token(), method)) {
                Some(Trouble::Wire(broken)) => broken,
                _ => Break::Pass,
            }
        });
        let relay = relay.await?;
        // A place that leaks is missed soon.
        let flags = [
            "--upstream-timeout",
            "1s",
            "--list-timeout",
            "1s",
            "--connect-timeout",
            "500ms",
            "--max-in-flight",
            "32",
            "--max-in-flight-per-caller",
            "4",
            "--max-response-bytes",
            "2MiB",
            "--max-listing-bytes",
            "4MiB",
        ];
        let proxy = Proxy::start(&options.proxy, relay.address, &flags).await?;
        Ok(Self { proxy, gateway, relay, secrets, troubles, report: Report::default(), seed: options.seed })
    }

    /// Runs cells, so many at once.
    async fn cook(
        self: &Arc<Self>,
        cells: Vec<Cell>,
        at_once: usize,
    ) -> io::Result<Vec<(Cell, End, Duration)>> {
        let door = cells.iter().find_map(|cell| match cell.trouble {
            Trouble::Door(door) => Some(door),
            _ => None,
        });
        let places = Arc::new(Semaphore::new(at_once));
        for cell in &cells {
            self.warm(cell).await;
        }
        if let Some(door) = door {
            self.relay.set_door(door).await;
        }
        let tasks: Vec<_> = cells
            .into_iter()
            .map(|cell| {
                let (this, places) = (Arc::clone(self), Arc::clone(&places));
                tokio::spawn(async move {
                    let _place = places.acquire_owned().await;
                    let (end, took) = this.one(&cell).await;
                    if door.is_none() {
                        this.next_is_healthy(&cell).await;
                    }
                    (cell, end, took)
                })
            })
            .collect();
        let mut done = Vec::new();
        for task in tasks {
            done.push(task.await.map_err(io::Error::other)?);
        }
        if door.is_some() {
            self.relay.set_door(Door::Open).await;
            self.is_found_again().await;
            for (cell, ..) in &done {
                self.next_is_healthy(cell).await;
            }
        }
        Ok(done)
    }

    /// What can't be connected to is left alone for a second and more, and then tried again. Each look is of a caller whose
    /// tools nobody keeps.
    async fn is_found_again(&self) {
        let opened = Instant::now();
        for look in 0_u32.. {
            let token = format!("{}-again-{look}-{:?}", self.secrets.token, opened);
            let token: String = token.chars().filter(char::is_ascii_alphanumeric).collect();
            let mut client = Client::new(self.proxy.mcp, &token, Era::Modern);
            if client.ask(&Ask::search("notes")).await.as_ref().is_ok_and(Answer::is_ok) {
                return;
            }
            if opened.elapsed() > FOUND_AGAIN {
                self.report.fail("the upstream is not found again", format!("{:?}", opened.elapsed()));
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn client(&self, cell: &Cell) -> Client {
        let token = format!("{}-{}-{}", self.secrets.token, cell.number, cell.state);
        let era = if cell.number.is_multiple_of(2) { Era::Modern } else { Era::Legacy };
        Client::new(self.proxy.mcp, &token, era)
    }

    /// Brings the caller's cache into its state; listings for a token with `-stale` are fresh for a millisecond.
    async fn warm(&self, cell: &Cell) {
        if cell.state == "cold" {
            return;
        }
        let mut client = self.client(cell);
        let listed = client.ask(&Ask::search("notes")).await;
        if !listed.as_ref().is_ok_and(Answer::is_ok) {
            self.report.fail("a cell could not be prepared", format!("{}: {listed:?}", cell.label()));
        }
    }

    async fn one(&self, cell: &Cell) -> (End, Duration) {
        let mut client = self.client(cell);
        let own = self.gateway.mark(&client.token);
        let method = if cell.state == "warm" { "tools/call" } else { "tools/list" };
        self.set_trouble(&client.token, Some((method, cell.trouble)));
        let nonce = format!("{NONCE}{}", Rng::new(self.seed, cell.number as u64).hex());
        let ask = match cell.tool {
            "search" => Ask::search(&format!("notes {}", self.secrets.query)),
            "describe" => Ask::describe(&format!("own_{own}__read")),
            "read" => Ask::read(&format!("own_{own}__read"), &nonce),
            "reads" => Ask::reads(&[&format!("own_{own}__read"), "notes_2__read"], &nonce),
            _ => Ask::write(&format!("own_{own}__write"), &nonce, &self.secrets.argument),
        };
        let started = Instant::now();
        let answer = tokio::time::timeout(DEADLINE * 5, client.ask(&ask)).await;
        let took = started.elapsed();
        if cell.state == "stale" {
            // The listing behind it should meet the trouble too.
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        self.set_trouble(&client.token, None);
        let Ok(Ok(answer)) = answer else {
            self.report.fail("no answer", format!("{}: {answer:?}", cell.label()));
            return (End::Wrong, took);
        };
        if took > DEADLINE + GRACE {
            return (End::Late, took);
        }
        (self.judge(cell, &answer, &own, &nonce), took)
    }

    fn judge(&self, cell: &Cell, answer: &Answer, own: &str, nonce: &str) -> End {
        let is_call = !matches!(cell.tool, "search" | "describe");
        let is_kept = cell.state != "cold";
        let must_be_ok =
            is_kept && (!is_call || (cell.state == "stale" && !matches!(cell.trouble, Trouble::Door(_))));
        let wrong = |why: &str| {
            self.report.fail(why, format!("{}: {} {}", cell.label(), answer.status, answer.body));
            End::Wrong
        };
        if crate::mark::foreign(&answer.body, own).is_some() {
            return wrong("somebody else's answer");
        }
        if cell.tool == "write" {
            let (text, executed) = (answer.text(), self.gateway.ledger().executions(nonce));
            let says_not = text.contains("Nothing was executed") || text.contains("Nothing was called");
            let says_done = answer.is_ok() && text.contains(nonce);
            if (says_not && executed > 0) || (says_done && executed != 1) {
                return wrong("a write is reported wrongly");
            }
        }
        let refuses_login = matches!(
            cell.trouble,
            Trouble::Answer(Fault::Status(401 | 403) | Fault::StatusWith(401 | 403, _))
        );
        let asks_input = cell.trouble == Trouble::Answer(Fault::InputRequired);
        match answer.status {
            200 if answer.is_ok() => End::Ok,
            // A result passes as it is, also one that is too deep for the reader here.
            200 if cell.trouble == Trouble::Answer(Fault::Deep) && answer.body.contains("[[[[") => End::Ok,
            _ if must_be_ok => wrong("kept tools did not help"),
            200 if answer.text().len() > 10 || asks_input || is_own_error(cell) => End::Told,
            401 | 403 if refuses_login => End::Login,
            400 if asks_input => End::Told,
            _ => wrong("an end that is not allowed"),
        }
    }

    /// The next requests of the same caller are as if nothing had been. Where stray bytes were left on a connection, one
    /// more may be told so.
    async fn next_is_healthy(&self, cell: &Cell) {
        let mut client = self.client(cell);
        let own = self.gateway.mark(&client.token);
        // An upstream that says that there are no tools is believed until it is asked again.
        if cell.trouble == Trouble::Answer(Fault::EmptyList) && cell.state == "cold" {
            return;
        }
        let mut rng = Rng::new(self.seed, cell.number as u64 | 1 << 40);
        let search = Ask::search("notes");
        let tries = if is_poison(cell.trouble) { 3 } else { 1 };
        for tool in ["search", "read"] {
            let mut last = String::new();
            let mut is_healthy = false;
            for _ in 0..tries {
                let nonce = format!("{NONCE}{}", rng.hex());
                let read = Ask::read(&format!("own_{own}__read"), &nonce);
                let answer = client.ask(if tool == "read" { &read } else { &search }).await;
                is_healthy = answer.as_ref().is_ok_and(Answer::is_ok);
                if is_healthy {
                    break;
                }
                last = format!("{answer:?}");
                client.hang_up();
            }
            if !is_healthy {
                self.report
                    .fail("the next request is not healthy", format!("{} {tool}: {last:.300}", cell.label()));
            }
        }
    }

    fn set_trouble(&self, token: &str, trouble: Option<(&'static str, Trouble)>) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        match trouble {
            Some(trouble) => troubles.insert(token.to_owned(), trouble),
            None => troubles.remove(token),
        };
    }

    /// Tasks and descriptors when nothing is asked and no connection is kept.
    async fn idle(&self) -> Idle {
        let mut client = Client::new(self.proxy.mcp, &self.secrets.token, Era::Modern);
        let _first = client.ask(&Ask::search("notes")).await;
        client.hang_up();
        self.relay.set_door(Door::Open).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
        Idle { tasks: self.proxy.metric("toolsearch_tasks").await, descriptors: self.proxy.descriptors() }
    }

    async fn nothing_left(&self, idle: &Idle, report: &Report) {
        self.relay.set_door(Door::Open).await;
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            let in_flight = self.proxy.metric("toolsearch_requests_in_flight").await;
            let tasks = self.proxy.metric("toolsearch_tasks").await;
            let descriptors = self.proxy.descriptors();
            let is_idle = in_flight == 0.0 && tasks <= idle.tasks && descriptors <= idle.descriptors;
            if (is_idle && tasks > 0.0) || Instant::now() > deadline {
                let seen =
                    format!("{in_flight} requests, {tasks} tasks, {descriptors} descriptors; idle {idle:?}");
                report.must("nothing is left behind", is_idle && tasks > 0.0, seen);
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Whether the upstream's own words are the whole answer, however short.
fn is_own_error(cell: &Cell) -> bool {
    matches!(cell.trouble, Trouble::Answer(Fault::ToolError | Fault::Rpc(_)))
}

impl Cell {
    fn label(&self) -> String {
        format!("{} {} {}", self.fault, self.state, self.tool)
    }
}
