//! HTTP/1.1 by hand, for what no client library would send.

use super::PATIENCE;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// One connection.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, read: Vec::new() }
    }

    /// Writes all of it, which fails when the other side closes before.
    pub(crate) async fn write_whole(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).await.expect("the other side reads on");
    }

    /// Writes as much as the other side takes; it may have closed already.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let _may_be_closed = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Says that nothing more will be written, and can still be read from.
    pub(crate) async fn half_close(&mut self) {
        self.stream.shutdown().await.expect("the connection is open");
    }

    /// Breaks the connection off.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().unwrap();
    }

    /// Says that nothing more will be written, where the other side has not closed already.
    pub(crate) async fn end_of_writing(&mut self) {
        let _may_be_closed = self.stream.shutdown().await;
    }

    /// Reads until this text came.
    pub(crate) async fn read_up_to(&mut self, text: &str) {
        self.read_until(|read| find(read, text.as_bytes())).await;
    }

    /// Everything up to the end that the other side makes.
    pub(crate) async fn read_to_end(mut self) -> String {
        let read = async {
            loop {
                match self.stream.read_buf(&mut self.read).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("the connection ends");
        String::from_utf8_lossy(&self.read).into_owned()
    }

    /// The next response: its head and its body, by `Content-Length`.
    pub(crate) async fn response(&mut self) -> (String, String) {
        let head_end = self.read_until(|read| find(read, b"\r\n\r\n").map(|at| at + 4)).await;
        let head = String::from_utf8(self.read.drain(..head_end).collect()).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or(0);
        self.read_until(|read| (read.len() >= length).then_some(length)).await;
        let body = String::from_utf8(self.read.drain(..length).collect()).unwrap();
        (head, body)
    }

    async fn read_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> usize {
        loop {
            if let Some(at) = found(&self.read) {
                return at;
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.read));
            let count = read.await.expect("an answer comes").unwrap();
            let so_far = String::from_utf8_lossy(&self.read);
            assert!(count > 0, "the connection ended early, after {so_far}");
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

/// One request on a connection of its own: the head and the body of the answer.
pub(crate) async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> (String, String) {
    let mut connection = Connection::open(address).await;
    connection.write(request).await;
    connection.response().await
}
