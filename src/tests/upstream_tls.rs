//! TLS towards the upstream: which certificates are accepted, and that nothing is sent to whom they are not.

use crate::support::{FakeMcp, Style, TestApp, reader};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion, version};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;

/// An authority of our own.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Self { certificate, issuer: Issuer::new(params, key) }
    }

    /// A file with the authority's certificate, as `--upstream-ca` takes it.
    fn file(&self, name: &str) -> PathBuf {
        pem_file(&format!("authority-{name}"), "CERTIFICATE", &self.certificate)
    }

    /// Files with the certificate of a client and its key.
    fn client_files(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["proxy.example".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().der().clone();
        (
            pem_file(&format!("client-{name}"), "CERTIFICATE", &certificate),
            pem_file(&format!("key-{name}"), "PRIVATE KEY", &key.serialize_der()),
        )
    }
}

fn pem_file(name: &str, kind: &str, der: &[u8]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}-{}.pem", std::process::id()));
    let text = STANDARD.encode(der);
    std::fs::write(&path, format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")).unwrap();
    path
}

/// How a server presents itself.
struct Identity {
    name: &'static str,
    not_before: i32,
    not_after: i32,
    versions: &'static [&'static SupportedProtocolVersion],
}

const SOUND: Identity = Identity {
    name: "localhost",
    not_before: 2020,
    not_after: 2100,
    versions: &[&version::TLS13, &version::TLS12],
};

const NEW: &[&SupportedProtocolVersion] = &[&version::TLS13];
const OLD: &[&SupportedProtocolVersion] = &[&version::TLS12];

impl Identity {
    fn config(&self, authority: &Authority) -> Arc<ServerConfig> {
        self.config_for(authority, None)
    }

    /// Where an authority of clients is given, they have to show a certificate of it.
    fn config_for(&self, authority: &Authority, clients: Option<&Authority>) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![self.name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(self.not_before, 1, 1);
        params.not_after = date_time_ymd(self.not_after, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &authority.issuer).unwrap().der().clone();
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let config = config.with_protocol_versions(self.versions).unwrap();
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                roots.add(clients.certificate.clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                config.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        Arc::new(config.with_single_cert(vec![certificate], key).unwrap())
    }
}

/// Ends TLS in front of a server that speaks none.
fn terminate(config: Arc<ServerConfig>, behind: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let tls = ServerConnection::new(config).unwrap();
                let mut outside = StreamOwned::new(tls, stream);
                let mut inside = TcpStream::connect(behind).unwrap();
                while let Ok(request) = read_message(&mut outside) {
                    inside.write_all(&request).unwrap();
                    let answer = read_message(&mut inside).unwrap();
                    if outside.write_all(&answer).is_err() {
                        break;
                    }
                }
            });
        }
    });
    address
}

/// One HTTP message with its body, by its length.
fn read_message(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut message = Vec::new();
    let mut byte = [0];
    while !message.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        message.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&message).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    message.extend(body);
    Ok(message)
}

/// What a caller is told, with this URL and authority.
async fn told(url: &str, ca: Option<&str>, connect_timeout: &str) -> String {
    let flags = ca.map_or(Vec::new(), |ca| vec!["--upstream-ca", ca]);
    asked(&TestApp::at(url, &[&flags[..], &["--connect-timeout", connect_timeout]].concat())).await
}

#[tokio::test]
async fn t_h5_only_a_server_with_a_sound_certificate_of_the_named_authority_is_spoken_to() {
    let (ours, another) = (Authority::new(), Authority::new());
    let path = ours.file("ours");
    let ca = Some(path.to_str().unwrap());
    let only = |versions| Identity { versions, ..SOUND };
    let cells = [
        ("sound", SOUND, &ours, ca, "https://localhost", true),
        ("TLS 1.3 alone", only(NEW), &ours, ca, "https://localhost", true),
        ("TLS 1.2 alone", only(OLD), &ours, ca, "https://localhost", true),
        ("another authority", SOUND, &another, ca, "https://localhost", false),
        ("the public authorities", SOUND, &ours, None, "https://localhost", false),
        (
            "another name",
            Identity { name: "gateway.example", ..SOUND },
            &ours,
            ca,
            "https://localhost",
            false,
        ),
        ("an address that it does not name", SOUND, &ours, ca, "https://127.0.0.1", false),
        (
            "a certificate that is over",
            Identity { not_after: 2021, ..SOUND },
            &ours,
            ca,
            "https://localhost",
            false,
        ),
        ("one of the future", Identity { not_before: 2099, ..SOUND }, &ours, ca, "https://localhost", false),
    ];
    for (name, identity, authority, ca, url, accepted) in cells {
        let server = FakeMcp::start(Style::Modern, &[reader("ask", "Asks")]).await;
        let address = terminate(identity.config(authority), server.address());
        let told = told(&format!("{url}:{}/mcp", address.port()), ca, "20s").await;
        if accepted {
            assert!(told.contains("alice called"), "{name}: {told}");
        } else {
            assert!(told.contains("TLS failed"), "{name}: {told}");
            assert!(server.log().is_empty(), "{name}: something was sent");
        }
    }
}

async fn asked(app: &TestApp) -> String {
    let answer = app.caller("alice").call_read("ask", "{}").await;
    if answer.is_error() { answer.refusal() } else { answer.tool_text() }
}

#[tokio::test]
async fn t_h5_an_upstream_that_asks_for_a_certificate_gets_the_operators_and_no_other() {
    let (ours, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let server = FakeMcp::start(Style::Modern, &[reader("ask", "Asks")]).await;
    let address = terminate(SOUND.config_for(&ours, Some(&clients)), server.address());
    let url = format!("https://localhost:{}/mcp", address.port());
    let ca = ours.file("asks");
    let ca = ["--upstream-ca", ca.to_str().unwrap()];
    assert!(!asked(&TestApp::at(&url, &ca)).await.contains("alice called"));
    for (authority, name, accepted) in [(&others, "other", false), (&clients, "right", true)] {
        let (chain, key) = authority.client_files(name);
        let identity = [
            "--upstream-client-cert",
            chain.to_str().unwrap(),
            "--upstream-client-key",
            key.to_str().unwrap(),
        ];
        let told = asked(&TestApp::at(&url, &[&ca[..], &identity].concat())).await;
        assert_eq!(told.contains("alice called"), accepted, "{name}: {told}");
        assert_eq!(!server.log().is_empty(), accepted, "{name}");
    }
}

#[tokio::test]
async fn t_h5_changed_certificates_are_used_without_a_restart_and_unusable_ones_are_not() {
    let (old, new) = (Authority::new(), Authority::new());
    let server = FakeMcp::start(Style::Modern, &[reader("ask", "Asks")]).await;
    let address = terminate(SOUND.config(&new), server.address());
    let ca = old.file("changes");
    let app = TestApp::at(
        &format!("https://localhost:{}/mcp", address.port()),
        &["--upstream-ca", ca.to_str().unwrap()],
    );
    app.look_at_certificates();
    assert!(asked(&app).await.contains("TLS failed"));
    new.file("changes");
    app.look_at_certificates();
    assert!(asked(&app).await.contains("alice called"));
    std::fs::write(&ca, "half a file").unwrap();
    app.look_at_certificates();
    assert!(asked(&app).await.contains("alice called"));
    std::fs::remove_file(&ca).unwrap();
    app.look_at_certificates();
    assert!(asked(&app).await.contains("alice called"));
}

#[test]
fn a_certificate_and_a_key_that_do_not_belong_together_end_the_start() {
    let authority = Authority::new();
    let ((chain, _), (_, key)) = (authority.client_files("one"), authority.client_files("another"));
    let flags =
        ["--upstream-client-cert", chain.to_str().unwrap(), "--upstream-client-key", key.to_str().unwrap()];
    let told = TestApp::fails_at("https://localhost:1/", &flags);
    assert!(told.starts_with("--upstream-client-cert: it and --upstream-client-key"), "{told}");
}

/// A server that reads what comes, answers with these bytes, and ends or says no more.
fn raw_server(answer: &'static [u8], ends: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut hello = [0; 4096];
            let read = stream.read(&mut hello).unwrap_or(0);
            assert!(!hello[..read].windows(5).any(|window| window == b"alice"), "a token came unencrypted");
            let _may_be_closed = stream.write_all(answer);
            if !ends {
                let _until_the_other_side_ends = stream.read(&mut hello);
            }
        }
    });
    address
}

/// A ServerHello of TLS 1.1 that takes the first suite of old.
const TLS_1_1: &[u8] = b"\x16\x03\x02\x00\x2a\x02\x00\x00\x26\x03\x02\
    0123456789abcdef0123456789abcdef\x00\x00\x2f\x00";

#[tokio::test]
async fn t_h5_what_is_no_tls_or_an_old_one_or_never_ends_is_told_in_time() {
    let authority = Authority::new();
    let path = authority.file("raw");
    for (name, answer, ends) in [
        ("TLS 1.1", TLS_1_1, false),
        ("plain HTTP", &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], true),
        ("an end in the handshake", &b""[..], true),
        ("half a handshake", &b"\x16\x03\x03\x00\x2a\x02"[..], false),
    ] {
        let address = raw_server(answer, ends);
        let url = format!("https://localhost:{}/mcp", address.port());
        let told = told(&url, Some(path.to_str().unwrap()), "2s").await;
        assert!(told.contains("can't be reached"), "{name}: {told}");
        assert!(name != "TLS 1.1" || told.contains("TLS failed"), "{name}: {told}");
    }
}
