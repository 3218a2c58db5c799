//! Behind an HTTP server of somebody else that keeps one connection to the proxy for all of its clients: what one of them
//! sends is one request for both, or for none. Otherwise the answer to a smuggled request reaches the next client.

use super::{Options, Secrets, nothing_private};
use crate::client::{Ask, Client, Era, post};
use crate::daemon::Daemon;
use crate::gateway::{Gateway, Kind, Settings};
use crate::mark::NONCE;
use crate::process::Proxy;
use crate::report::Report;
use crate::rng::Rng;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// No more comes after a pause of this length.
const SILENCE: Duration = Duration::from_millis(120);

/// An HTTP server in front of something.
async fn front(name: &str, behind: SocketAddr) -> io::Result<Daemon> {
    let configuration = |folder: &Path, address| match name {
        "nginx" => nginx(folder, address, behind),
        _ => haproxy(address, behind),
    };
    Daemon::start(name, configuration).await
}

/// One worker, one kept connection, and bodies passed on as they come.
fn nginx(folder: &Path, address: SocketAddr, behind: SocketAddr) -> String {
    let folder = folder.display();
    let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {folder}/{kind};\n"))
        .concat();
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nevents {{ worker_connections 256; }}\nhttp {{\n\
         {temporary}  access_log off;\n  upstream p {{ server {behind}; keepalive 1; }}\n  server {{\n    listen {address};\n\
         underscores_in_headers on;\n    ignore_invalid_headers off;\n    location / {{\n      proxy_pass http://p;\n\
         proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n      proxy_set_header Host $http_host;\n\
         proxy_request_buffering off;\n      proxy_buffering off;\n    }}\n  }}\n}}\n"
    )
}

fn haproxy(address: SocketAddr, behind: SocketAddr) -> String {
    format!(
        "defaults\n  mode http\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n  http-reuse always\n\
         frontend f\n  bind {address}\n  default_backend b\nbackend b\n  server s {behind}\n"
    )
}

/// A request that hides in the body of another.
struct Form {
    name: String,
    bytes: Vec<u8>,
}

/// Ways to say, or nearly to say, that a body comes in chunks.
const ENCODINGS: [&str; 18] = [
    "",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: Chunked\r\n",
    "Transfer-Encoding:chunked \r\n",
    "Transfer-Encoding:\tchunked\r\n",
    "Transfer-Encoding: \x0bchunked\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: identity, chunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: \"chunked\"\r\n",
    "Transfer-Encoding: chunked;q=1\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer_Encoding: chunked\r\n",
    "Transfer-Encoding:\r\n chunked\r\n",
    "X: y\nTransfer-Encoding: chunked\r\n",
    "X: y\rTransfer-Encoding: chunked\r\n",
    " Transfer-Encoding: chunked\r\n",
];

/// Ways to say where a body ends that two readers may understand differently, each before a whole request.
fn forms(hidden: &str) -> Vec<Form> {
    let inside = format!("0\r\n\r\n{hidden}");
    let length = inside.len();
    let lengths = [
        String::new(),
        format!("Content-Length: {length}\r\n"),
        "Content-Length: 0\r\n".to_owned(),
        "Content-Length: 5\r\n".to_owned(),
        format!("Content-Length: 5\r\nContent-Length: {length}\r\n"),
        format!("Content-Length: 5, {length}\r\n"),
        "Content-Length: +5\r\n".to_owned(),
        "Content-Length: 0x5\r\n".to_owned(),
        "Content-Length : 5\r\n".to_owned(),
        "Content_Length: 5\r\n".to_owned(),
        "X: y\nContent-Length: 5\r\n".to_owned(),
    ];
    let mut forms = Vec::new();
    for length in &lengths {
        for encoding in ENCODINGS {
            forms.push(form("", &format!("{length}{encoding}"), &inside));
        }
    }
    for size in
        ["0x5", "+5", "-1", "5 ", "\t5", "", "5;", "5;a=\"\n\"", "00000000000000000005", "ffffffffffffffff"]
    {
        let chunks = format!("{size}\r\n{{\"a\":\r\n0\r\n\r\n{hidden}");
        forms.push(form("", "Transfer-Encoding: chunked\r\n", &chunks));
    }
    for (name, chunks) in [
        ("LF alone", format!("2\n{{}}\n0\n\n{hidden}")),
        ("a trailer", format!("2\r\n{{}}\r\n0\r\nContent-Length: 5\r\n\r\n{hidden}")),
        ("a chunk too long", format!("2\r\n{{}}x\r\n0\r\n\r\n{hidden}")),
        ("no last chunk", format!("2\r\n{{}}\r\n{hidden}")),
    ] {
        forms.push(form(name, "Transfer-Encoding: chunked\r\n", &chunks));
    }
    for line in [
        "POST /mcp HTTP/1.0",
        "GET /mcp HTTP/1.1",
        "HEAD /mcp HTTP/1.1",
        "POST /mcp",
        "POST /mcp HTTP/1.1 x",
        "POST http://localhost/mcp HTTP/1.1",
        "POST /mcp?a HTTP/1.1\r\nExpect: 100-continue",
        "POST /mcp HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c",
    ] {
        for framing in [format!("Content-Length: {length}\r\n"), "Transfer-Encoding: chunked\r\n".to_owned()]
        {
            let mut form = form(line, &framing, &inside);
            form.bytes =
                String::from_utf8_lossy(&form.bytes).replacen("POST /mcp HTTP/1.1", line, 1).into_bytes();
            forms.push(form);
        }
    }
    forms
}

fn form(name: &str, framing: &str, body: &str) -> Form {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer eve\r\nContent-Type: application/json\r\n";
    Form { name: format!("{name} {framing:?}"), bytes: format!("{head}{framing}\r\n{body}").into_bytes() }
}

/// Everything that comes back, up to the end or a silence.
async fn answered(front: SocketAddr, bytes: &[u8]) -> io::Result<String> {
    let mut stream = TcpStream::connect(front).await?;
    let _may_close_early = stream.write_all(bytes).await;
    let mut read = Vec::new();
    while let Ok(Ok(count)) = tokio::time::timeout(SILENCE, stream.read_buf(&mut read)).await {
        if count == 0 {
            break;
        }
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}

pub(super) async fn run(options: &Options, report: &Report) -> io::Result<()> {
    for name in ["nginx", "haproxy"] {
        if name.contains(&options.only) {
            println!("{name}");
            control(name, report).await?;
            one_front(name, options, report).await?;
        }
    }
    Ok(())
}

async fn one_front(name: &str, options: &Options, report: &Report) -> io::Result<()> {
    let secrets = Secrets::new(options.seed);
    let gateway = Gateway::start(Settings::new(Kind::ModernJson, options.seed)).await?;
    let proxy = Proxy::start(&options.proxy, gateway.address, &[]).await?;
    let front = front(name, proxy.mcp).await?;
    let (mine, eve) = (gateway.mark(&secrets.token), gateway.mark("eve"));
    let mut rng = Rng::new(options.seed, 0xf0);
    let (mut asked, mut passed, mut smuggled, mut mixed_up) = (0, 0, 0, 0);
    let count = forms("").len();
    for number in 0..count {
        let hidden = Hidden::new(&mut rng, &eve);
        let Some(form) = forms(&hidden.request).into_iter().nth(number) else { continue };
        let answers = answered(front.address, &form.bytes).await?;
        let statuses = answers.matches("HTTP/1.1 ").count();
        asked += 1;
        passed += usize::from(answers.contains("jsonrpc"));
        // The next client, on what may be the same connection behind the front.
        let nonce = format!("{NONCE}{}", rng.hex());
        let mut client = Client::new(front.address, &secrets.token, Era::Modern);
        match client.ask(&Ask::read(&format!("own_{mine}__read"), &nonce)).await {
            Ok(answer) if answer.is_ok() && answer.body.contains(&nonce) => {}
            other => {
                mixed_up += 1;
                report.fail("the next client has another answer", format!("{}: {other:.300?}", form.name));
            }
        }
        // Where the front saw a second request too, it is no secret one.
        let executed = gateway.ledger().executions(&hidden.nonce);
        if executed > 1 || (executed == 1 && statuses < 2) {
            smuggled += 1;
            report.fail("a request was smuggled", format!("{}: {answers:.300}", form.name));
        }
    }
    report.must("requests smuggled", smuggled == 0, format!("{smuggled} in {asked} forms"));
    report.must("clients with another's answer", mixed_up == 0, mixed_up);
    report.must("the front passes some forms on", passed >= 10, passed);
    // Two requests in order are two for everybody, so the hidden one is one that works.
    let hidden = Hidden::new(&mut rng, &eve);
    let both = [form("", "Content-Length: 2\r\n", "{}").bytes, hidden.request.clone().into_bytes()].concat();
    let answers = answered(front.address, &both).await?;
    let executed = gateway.ledger().executions(&hidden.nonce);
    report.must(
        "an open second request is answered",
        executed == 1 && answers.matches("HTTP/1.1 ").count() == 2,
        executed,
    );
    nothing_private(&proxy, &secrets, report).await
}

/// A write that one reader sees and the other does not.
struct Hidden {
    nonce: String,
    request: String,
}

impl Hidden {
    fn new(rng: &mut Rng, mark: &str) -> Self {
        let nonce = format!("{NONCE}{}", rng.hex());
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let mut client = Client::new(address, "eve", Era::Modern);
        let request = client.request(&Ask::write(&format!("own_{mark}__write"), &nonce, ""));
        Self { nonce, request: String::from_utf8_lossy(&request).into_owned() }
    }
}

/// A server that knows lengths and no chunks executes what is hidden, and must be caught at it, or nothing is proved.
async fn control(name: &str, report: &Report) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let front = front(name, listener.local_addr()?).await?;
    let executed = Arc::new(AtomicUsize::new(0));
    let executes = Arc::clone(&executed);
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(naive(stream, Arc::clone(&executes)));
        }
    });
    let hidden = String::from_utf8_lossy(&post(front.address, "eve", "X-Hidden: yes\r\n", "{}")).into_owned();
    let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let answers = answered(front.address, &form("", "Transfer-Encoding: chunked\r\n", &chunk).bytes).await?;
    accepting.abort();
    let (executed, statuses) = (executed.load(Ordering::Relaxed), answers.matches("HTTP/1.1 ").count());
    report.must(
        "a server that knows no chunks is caught",
        executed == 1 && statuses < 2,
        format!("{executed} executed, {statuses} answered"),
    );
    Ok(())
}

/// Answers whatever it takes for a request, and counts those with a header of what is hidden.
async fn naive(mut stream: TcpStream, executed: Arc<AtomicUsize>) -> io::Result<()> {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).to_ascii_lowercase();
        let Some(head) = text.find("\r\n\r\n") else {
            if stream.read_buf(&mut read).await? == 0 {
                return Ok(());
            }
            continue;
        };
        // The bodies of this check are short enough to be passed over by the next look for a head.
        executed.fetch_add(text[..head].matches("x-hidden").count(), Ordering::Relaxed);
        read.drain(..head + 4);
        stream.write_all(&crate::http::response(200, "", "")).await?;
    }
}
