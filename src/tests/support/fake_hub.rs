//! A hub of models on a local socket, a small model for it, and folders to fetch it into.

use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

pub(crate) const FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

/// The files of a small model: few pieces, more rows than it needs, 32 bits a number.
pub(crate) fn files() -> &'static [(&'static str, Vec<u8>)] {
    static MODEL: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
        let pieces = ["<unk>", "▁send", "▁mail", "▁read", "▁the", "▁cal", "endar", "a", "e", "l", "▁"];
        let vocabulary: Vec<String> =
            pieces.iter().zip(1..).map(|(piece, i)| format!("[\"{piece}\",-{i}.5]")).collect();
        let tokenizer = format!(
            r#"{{"normalizer":{{"type":"Lowercase"}},"pre_tokenizer":{{"type":"Metaspace","replacement":"▁",
            "prepend_scheme":"always","split":true}},"model":{{"type":"Unigram","unk_id":0,"vocab":[{}]}}}}"#,
            vocabulary.join(",")
        );
        let (rows, dimensions) = (4000_usize, 16_usize);
        let header = format!(
            r#"{{"embeddings":{{"dtype":"F32","shape":[{rows},{dimensions}],"data_offsets":[0,{}]}}}}"#,
            rows * dimensions * 4
        );
        let mut table = (header.len() as u64).to_le_bytes().to_vec();
        table.extend(header.as_bytes());
        let mut state = 1_u32;
        for _ in 0..rows * dimensions {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            table.extend((state as i32 as f32 / 2e9).to_le_bytes());
        }
        vec![
            (FILES[0], br#"{"model_type":"model2vec","hidden_dim":16,"normalize":true}"#.to_vec()),
            (FILES[1], tokenizer.into_bytes()),
            (FILES[2], table),
        ]
    });
    &MODEL
}

/// The manifest of that model.
pub(crate) fn manifest() -> String {
    let mut text = "[model]\nrepository = \"a/b\"\nrevision = \"main\"\nbase_url = \"https://hub.invalid\"\n\
                    licence = \"MIT\"\nconfirmed = true\n"
        .to_owned();
    for (name, bytes) in files() {
        let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("[[file]]\nname = \"{name}\"\nbytes = {}\nsha256 = \"{digest}\"\n", bytes.len());
    }
    text
}

/// What was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The first byte of its `Range`.
    pub(crate) from: Option<usize>,
}

/// What is sent.
pub(crate) struct Reply {
    version: &'static str,
    status: String,
    headers: String,
    body: Vec<u8>,
    /// After so many bytes of the body the connection ends.
    cut: Option<usize>,
    hangs: bool,
    has_length: bool,
}

impl Reply {
    pub(crate) fn with_head(status: &str, headers: &str, body: &[u8]) -> Self {
        let (status, headers, body) = (status.to_owned(), headers.to_owned(), body.to_vec());
        Self { version: "HTTP/1.1", status, headers, body, cut: None, hangs: false, has_length: true }
    }

    pub(crate) fn status(status: &str) -> Self {
        Self::with_head(status, "", b"")
    }

    pub(crate) fn redirect(location: &str) -> Self {
        Self::with_head("302 Found", &format!("Location: {location}\r\n"), b"")
    }

    /// The file that the path ends with, or its part.
    pub(crate) fn hub(request: &Request) -> Self {
        match FILES.iter().find(|name| request.path.ends_with(&format!("/a/b/resolve/main/{name}"))) {
            Some(name) => Self::file(request, name),
            None => Self::status("404 Not Found"),
        }
    }

    pub(crate) fn file(request: &Request, name: &str) -> Self {
        let bytes = &files().iter().find(|(file, _)| *file == name).unwrap().1;
        match request.from {
            None => Self::with_head("200 OK", "", bytes),
            Some(from) if from >= bytes.len() => Self::status("416 Range Not Satisfiable"),
            Some(from) => {
                let range = format!("Content-Range: bytes {from}-{}/{}\r\n", bytes.len() - 1, bytes.len());
                Self::with_head("206 Partial Content", &range, &bytes[from..])
            }
        }
    }

    /// Without a length: the end of the connection is the end of the file.
    pub(crate) fn http_1_0(request: &Request) -> Self {
        Self { version: "HTTP/1.0", has_length: false, ..Self::hub(request) }
    }

    pub(crate) fn header(mut self, line: &str) -> Self {
        self.headers += &format!("{line}\r\n");
        self
    }

    pub(crate) fn change(mut self, change: impl FnOnce(&mut Vec<u8>)) -> Self {
        change(&mut self.body);
        self
    }

    pub(crate) fn cut(self, len: usize) -> Self {
        Self { cut: Some(len), ..self }
    }

    /// Stops sending instead of ending the connection.
    pub(crate) fn then_hang(self) -> Self {
        Self { hangs: true, ..self }
    }
}

#[derive(Default)]
struct State {
    requests: Mutex<Vec<Request>>,
    /// How many bytes of bodies may still be sent before every connection hangs.
    allowance: Mutex<Option<usize>>,
    hangs: AtomicBool,
}

pub(crate) struct FakeHub {
    pub(crate) url: String,
    state: Arc<State>,
}

impl FakeHub {
    pub(crate) fn start(script: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State::default());
        let (shared, script) = (Arc::clone(&state), Arc::new(script));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (state, script) = (Arc::clone(&shared), Arc::clone(&script));
                // A client that is gone ends its thread.
                std::thread::spawn(move || answer(stream, &state, &*script));
            }
        });
        Self { url, state }
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Sends so many bytes of files in all, and then nothing.
    pub(crate) fn hang_after(&self, bytes: Option<usize>) {
        *self.state.allowance.lock().unwrap() = bytes;
    }

    /// Waits until that point, or for something else.
    pub(crate) fn hangs_or(&self, mut other: impl FnMut() -> bool) {
        while !self.state.hangs.load(Ordering::Relaxed) && !other() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn answer(stream: TcpStream, state: &State, script: &dyn Fn(&Request) -> Reply) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let lower = head.to_ascii_lowercase();
    let from = lower.split("range: bytes=").nth(1).and_then(|range| range.split('-').next()?.parse().ok());
    let request = Request { path, from };
    state.requests.lock().unwrap().push(request.clone());
    send(stream, &script(&request), state)
}

fn send(mut stream: TcpStream, reply: &Reply, state: &State) -> std::io::Result<()> {
    let length = match reply.has_length {
        true => format!("Content-Length: {}\r\n", reply.body.len()),
        false => String::new(),
    };
    let Reply { version, status, headers, .. } = reply;
    write!(stream, "{version} {status}\r\n{headers}{length}Connection: close\r\n\r\n")?;
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
    for chunk in body.chunks(4096) {
        let allowed = match &mut *state.allowance.lock().unwrap() {
            None => chunk.len(),
            Some(allowance) => {
                let allowed = chunk.len().min(*allowance);
                *allowance -= allowed;
                allowed
            }
        };
        stream.write_all(&chunk[..allowed])?;
        if allowed < chunk.len() {
            state.hangs.store(true, Ordering::Relaxed);
            return hang(stream);
        }
    }
    if reply.hangs { hang(stream) } else { Ok(()) }
}

/// Until the client closes.
fn hang(mut stream: TcpStream) -> std::io::Result<()> {
    stream.read(&mut [0]).map(|_| ())
}

/// A place for one test's files, gone when it ends.
pub(crate) struct Scratch {
    base: PathBuf,
    /// The model's folder; not there yet.
    pub(crate) path: PathBuf,
}

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("toolsearch-{name}-{}-{count}", std::process::id()));
        fs::create_dir(&base).unwrap();
        let scratch = Self { path: base.join("model"), base };
        scratch.write("manifest.toml", &manifest());
        scratch
    }

    /// With the model in it.
    pub(crate) fn filled(name: &str) -> Self {
        let scratch = Self::new(name);
        fs::create_dir(&scratch.path).unwrap();
        for (name, bytes) in files() {
            fs::write(scratch.path.join(name), bytes).unwrap();
        }
        scratch
    }

    pub(crate) fn dir(&self) -> String {
        self.path.to_str().unwrap().to_owned()
    }

    pub(crate) fn manifest(&self) -> String {
        self.base.join("manifest.toml").to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.base.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _may_be_gone = fs::remove_dir_all(&self.base);
    }
}

/// The files that are half-made.
pub(crate) fn parts(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".part")).collect()
}

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolsearch-proxy"));
    command.env_clear().args(args).stdin(Stdio::null());
    command
}

/// Runs to the end.
pub(crate) fn run(args: &[&str], variables: &[(&str, &str)]) -> Output {
    command(args).envs(variables.iter().copied()).output().unwrap()
}

/// Serves until it listens; what it says when it does not get there, which must be with exit code 2.
pub(crate) fn serve(flags: &[&str]) -> Result<(), String> {
    let usual = [
        "serve",
        "--upstream",
        "http://127.0.0.1:1",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let mut child = command(&[&usual, flags].concat()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
        if line.contains("listening on") {
            child.kill().unwrap();
            child.wait().unwrap();
            return Ok(());
        }
        said += &line;
        said.push('\n');
    }
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    Err(said)
}
