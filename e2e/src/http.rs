//! One HTTP/1.1 request on one connection: enough for probes and for a look at the bytes, with nothing in between that
//! could smooth them over.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

/// # Errors
/// When there is no whole answer in time.
pub fn get(address: SocketAddr, path: &str) -> Result<Response, String> {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n"))
}

/// # Errors
/// When there is no whole answer in time.
pub fn post(
    address: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Response, String> {
    let length = body.len();
    let mut request = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {length}\r\n\r\n{body}"));
    exchange(address, &request)
}

fn exchange(address: SocketAddr, request: &str) -> Result<Response, String> {
    let told = |error: std::io::Error| format!("{address}: {error}");
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).map_err(told)?;
    stream.set_read_timeout(Some(TIMEOUT)).map_err(told)?;
    stream.write_all(request.as_bytes()).map_err(told)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).map_err(told)?;
    parse(&answer)
        .ok_or_else(|| format!("{address} did not answer in HTTP: {}", String::from_utf8_lossy(&answer)))
}

fn parse(answer: &[u8]) -> Option<Response> {
    let end_of_head = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&answer[..end_of_head]).ok()?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut response = Response { status, headers, body: String::new() };
    let rest = &answer[end_of_head + 4..];
    let chunked =
        response.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    let body = if chunked { dechunked(rest)? } else { rest.to_vec() };
    response.body = String::from_utf8(body).ok()?;
    Some(response)
}

fn dechunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end_of_size = rest.windows(2).position(|window| window == b"\r\n")?;
        let size_line = std::str::from_utf8(&rest[..end_of_size]).ok()?;
        let size = usize::from_str_radix(size_line.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        let chunk = &rest[end_of_size + 2..];
        body.extend_from_slice(chunk.get(..size)?);
        rest = chunk.get(size + 2..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_body_is_read_with_status_and_headers() {
        let response =
            parse(b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer x=\"a: b\"\r\n\r\n{}").unwrap();
        assert_eq!(response.status, 401);
        assert_eq!(response.header("www-authenticate"), Some("Bearer x=\"a: b\""));
        assert_eq!(response.body, "{}");
    }

    #[test]
    fn chunks_are_joined() {
        let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(parse(answer).unwrap().body, "abc0123456789");
    }

    #[test]
    fn answer_cut_short_is_no_response() {
        assert!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc").is_none());
        assert!(parse(b"HTTP/1.1 200 OK\r\n").is_none());
    }
}
