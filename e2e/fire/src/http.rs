//! Just enough HTTP/1.1 to be hostile with: whole messages off a socket, and raw bytes onto it.
//!
//! Written by hand, since a proper library would refuse to send what is tested here. It keeps the raw bytes of each
//! message beside its body.

use std::io;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// A message larger than this is not read.
const MESSAGE_BYTES_MAX: usize = 96 << 20;

/// A request or a response, whole.
#[derive(Clone, Debug)]
pub struct Message {
    /// As it came over the wire, chunks and all.
    pub raw: Vec<u8>,
    /// Length of the head in `raw`, with its empty line.
    pub head_bytes: usize,
    /// The body, chunks joined.
    pub body: Vec<u8>,
}

impl Message {
    fn head(&self) -> &str {
        std::str::from_utf8(&self.raw[..self.head_bytes]).unwrap_or_default()
    }

    /// The request line or the status line.
    pub fn first_line(&self) -> &str {
        self.head().lines().next().unwrap_or_default()
    }

    /// The first value of that header.
    pub fn header(&self, name: &str) -> Option<&str> {
        header_of(self.head(), name)
    }

    /// The status of a response; 0 where there is none.
    pub fn status(&self) -> u16 {
        self.first_line().split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The token of `Authorization: Bearer …`; empty without one.
    pub fn token(&self) -> &str {
        self.header("authorization").and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_default()
    }
}

fn header_of<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// How far the bytes so far reach.
enum Progress {
    /// More must come: it can't be whole below so many bytes.
    Partial(usize),
    /// It ends with the connection; the body starts here.
    UntilClose(usize),
    /// It is whole: length of the head, the body, length of all.
    Whole(usize, Vec<u8>, usize),
}

fn progress(bytes: &[u8]) -> io::Result<Progress> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Ok(Progress::Partial(0));
    };
    let head_bytes = end + 4;
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "no readable HTTP");
    let head = std::str::from_utf8(&bytes[..head_bytes]).map_err(|_| broken())?;
    if header_of(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        return dechunk(bytes, head_bytes);
    }
    let is_response = head.starts_with("HTTP/");
    match header_of(head, "content-length") {
        Some(length) => {
            let whole = head_bytes + length.parse::<usize>().map_err(|_| broken())?;
            let body = bytes.get(head_bytes..whole).map(<[u8]>::to_vec);
            Ok(body.map_or(Progress::Partial(whole), |body| Progress::Whole(head_bytes, body, whole)))
        }
        None if is_response && !has_no_body(head) => Ok(Progress::UntilClose(head_bytes)),
        None => Ok(Progress::Whole(head_bytes, Vec::new(), head_bytes)),
    }
}

/// Whether the bytes are one message that ends by its length or its chunks.
pub fn is_whole(bytes: &[u8]) -> bool {
    matches!(progress(bytes), Ok(Progress::Whole(..)))
}

fn has_no_body(head: &str) -> bool {
    ["HTTP/1.1 1", "HTTP/1.1 204", "HTTP/1.1 304"].iter().any(|start| head.starts_with(start))
}

fn dechunk(bytes: &[u8], head_bytes: usize) -> io::Result<Progress> {
    let broken = || io::Error::new(io::ErrorKind::InvalidData, "no readable chunks");
    let (mut at, mut body) = (head_bytes, Vec::new());
    loop {
        let Some(line) = bytes[at..].windows(2).position(|window| window == b"\r\n") else {
            return Ok(Progress::Partial(0));
        };
        let size = std::str::from_utf8(&bytes[at..at + line]).map_err(|_| broken())?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = usize::from_str_radix(size, 16).map_err(|_| broken())?;
        let data = at + line + 2;
        if bytes.len() < data + size + 2 {
            return Ok(Progress::Partial(data + size + 2));
        }
        if size == 0 {
            return Ok(Progress::Whole(head_bytes, body, data + 2));
        }
        body.extend_from_slice(&bytes[data..data + size]);
        at = data + size + 2;
    }
}

/// One side of a connection.
#[derive(Debug)]
pub struct Wire {
    /// The socket, for those who want bytes.
    pub stream: TcpStream,
    buffer: Vec<u8>,
    /// Bytes below which the message can't be whole, so that large ones are not parsed over and over.
    wanted: usize,
}

impl Wire {
    /// Takes a connected socket.
    pub fn new(stream: TcpStream) -> Self {
        let _best_effort = stream.set_nodelay(true);
        Self { stream, buffer: Vec::new(), wanted: 0 }
    }

    /// Bytes that came and were not asked for yet.
    pub fn has_more(&self) -> bool {
        !self.buffer.is_empty()
    }

    /// The next message; `None` when the other side closed between two.
    ///
    /// # Errors
    /// When the connection breaks inside a message, or what comes is no HTTP.
    pub async fn read(&mut self) -> io::Result<Option<Message>> {
        loop {
            if self.buffer.len() >= self.wanted.max(1) {
                match progress(&self.buffer)? {
                    Progress::Whole(head_bytes, body, length) => {
                        let rest = self.buffer.split_off(length);
                        let raw = std::mem::replace(&mut self.buffer, rest);
                        self.wanted = 0;
                        return Ok(Some(Message { raw, head_bytes, body }));
                    }
                    Progress::UntilClose(head_bytes) => return self.rest(head_bytes).await.map(Some),
                    Progress::Partial(wanted) => self.wanted = wanted,
                }
            }
            if self.fill().await? == 0 {
                let inside = !self.buffer.is_empty();
                return if inside { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(None) };
            }
        }
    }

    async fn rest(&mut self, head_bytes: usize) -> io::Result<Message> {
        while self.fill().await? > 0 {}
        let raw = std::mem::take(&mut self.buffer);
        let body = raw[head_bytes..].to_vec();
        self.wanted = 0;
        Ok(Message { raw, head_bytes, body })
    }

    async fn fill(&mut self) -> io::Result<usize> {
        if self.buffer.len() > MESSAGE_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the message has no end"));
        }
        self.stream.read_buf(&mut self.buffer).await
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the other side is gone.
    pub async fn write(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.writable().await?;
            match self.stream.try_write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the connection with a reset instead of an orderly close.
    pub fn reset(self) {
        let _best_effort = self.stream.set_zero_linger();
    }
}

/// A response with these header lines, each ended by CR and LF, and its length.
pub fn response(status: u16, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn read_all(pieces: &'static [&'static [u8]]) -> Vec<Message> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let writer = tokio::spawn(async move {
            let wire = Wire::new(listener.accept().await.unwrap().0);
            for piece in pieces {
                wire.write(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
        let mut wire = Wire::new(TcpStream::connect(address).await.unwrap());
        let mut messages = Vec::new();
        while let Some(message) = wire.read().await.unwrap() {
            messages.push(message);
        }
        writer.await.unwrap();
        messages
    }

    #[tokio::test]
    async fn messages_are_told_apart_by_length_by_chunks_and_by_the_end() {
        let messages = read_all(&[
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 200 OK\r\nTransfer-Enc",
            b"oding: chunked\r\n\r\n2\r\nde\r\n1;x=y\r\nf\r\n0\r\n\r\nHTTP/1.1 204 X\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the",
            b" end",
        ])
        .await;
        let bodies: Vec<&str> = messages.iter().map(Message::text).collect();
        assert_eq!(bodies, ["abc", "def", "", "to the end"]);
        assert_eq!(messages[2].status(), 204);
    }

    #[tokio::test]
    async fn requests_carry_their_token() {
        let messages =
            read_all(&[b"POST /mcp HTTP/1.1\r\nauthorization: Bearer t\r\ncontent-length: 2\r\n\r\n{}"])
                .await;
        assert_eq!((messages[0].token(), messages[0].text()), ("t", "{}"));
        assert_eq!(messages[0].first_line(), "POST /mcp HTTP/1.1");
    }
}
