//! Server-sent events, decoded as they arrive.
//!
//! The `data` of events is what MCP speaks in. Their ids and the time to wait before asking again are kept for whoever
//! resumes a stream. An event with another name than `message` is left out, as clients leave it. Lines end with CR, LF or
//! CRLF, a stream may be split at any byte, and a byte order mark may stand in front.
//!
//! Source: the HTML standard, "Server-sent events", section 9.2.6.

use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use std::time::Duration;

/// An id longer than this is of no use: it has to fit in a header.
const ID_BYTES_MAX: usize = 1024;

/// Where a stream got to, and when it may be asked to go on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SsePosition {
    /// The id of the last event that was whole; `None` when there was none, or it was reset.
    pub last_event_id: Option<Bytes>,
    /// How long the server wants to be left alone first.
    pub retry: Option<Duration>,
}

/// An event is larger than allowed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an event of the stream is larger than {0} bytes")]
pub struct SseFault(pub usize);

/// Turns chunks of bytes into the data of events.
#[derive(Debug)]
pub struct SseDecoder {
    line: BytesMut,
    data: BytesMut,
    has_data: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    after_cr: bool,
    at_start: bool,
    event_bytes_max: usize,
    position: SsePosition,
    /// Whether the event that is being read has another name than `message`: it is then none of MCP's.
    is_other: bool,
    /// The id of the event that is being read, or of the last one.
    id: Option<Bytes>,
}

impl SseDecoder {
    /// A decoder whose events may hold at most `event_bytes_max` bytes.
    pub fn new(event_bytes_max: usize) -> Self {
        Self::resumed(event_bytes_max, SsePosition::default())
    }

    /// The same for a stream that goes on where another one ended.
    pub fn resumed(event_bytes_max: usize, position: SsePosition) -> Self {
        Self {
            line: BytesMut::new(),
            data: BytesMut::new(),
            has_data: false,
            is_other: false,
            after_cr: false,
            at_start: true,
            event_bytes_max,
            id: position.last_event_id.clone(),
            position,
        }
    }

    /// How far the stream has been read.
    pub fn position(&self) -> &SsePosition {
        &self.position
    }

    /// Takes a chunk and adds the data of each event that it completes to `events`.
    ///
    /// # Errors
    /// When an event or a line grows past the limit; the decoder must not be used any further.
    pub fn push(&mut self, chunk: &[u8], events: &mut Vec<Bytes>) -> Result<(), SseFault> {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            self.grow(&rest[..end])?;
            let mut next = end + 1;
            if rest[end] == b'\r' {
                match rest.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            rest = &rest[next..];
            self.end_line(events);
        }
        self.grow(rest)
    }

    fn grow(&mut self, part: &[u8]) -> Result<(), SseFault> {
        if self.line.len() + self.data.len() + part.len() > self.event_bytes_max {
            return Err(SseFault(self.event_bytes_max));
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Bytes>) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line = line.split_off(3);
        }
        if line.is_empty() {
            self.position.last_event_id.clone_from(&self.id);
            let (has_data, is_other) =
                (std::mem::take(&mut self.has_data), std::mem::take(&mut self.is_other));
            let data = std::mem::take(&mut self.data);
            if has_data && !is_other {
                events.push(data.freeze());
            }
            return;
        }
        let name_end = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value_at = match line.get(name_end + 1) {
            Some(b' ') => name_end + 2,
            _ => line.len().min(name_end + 1),
        };
        match &line[..name_end] {
            b"data" => {}
            b"event" => {
                self.is_other = !matches!(&line[value_at..], b"" | b"message");
                return;
            }
            b"id" => return self.take_id(&line[value_at..]),
            b"retry" => return self.take_retry(&line[value_at..]),
            _ => return,
        }
        let value = line.split_off(value_at);
        if std::mem::replace(&mut self.has_data, true) {
            self.data.extend_from_slice(b"\n");
            self.data.extend_from_slice(&value);
        } else {
            // Most events have one line of data, which may be large: it is moved, so that it is never held twice.
            self.data = value;
        }
    }

    fn take_id(&mut self, value: &[u8]) {
        // An empty id is how a server takes back what it gave; one with NUL is none.
        if !value.contains(&0) {
            self.id = (1..=ID_BYTES_MAX).contains(&value.len()).then(|| Bytes::copy_from_slice(value));
        }
    }

    fn take_retry(&mut self, value: &[u8]) {
        let digits =
            std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        if let Some(milliseconds) = digits.and_then(|digits| digits.parse().ok()) {
            self.position.retry = Some(Duration::from_millis(milliseconds));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<Bytes> {
        let mut decoder = SseDecoder::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut events).unwrap();
        }
        events
    }

    const STREAM: &[u8] = "\u{feff}: hello\r\nevent: message\r\nid: 7\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\nretry: 5\r\rdata\n\ndata:x\rdata:y\n\n:\n\ndata: unfinished".as_bytes();

    #[test]
    fn comments_names_bare_data_and_several_data_lines_are_understood() {
        assert_eq!(decode([STREAM]), ["{\"a\":\n 1}", "", "x\ny"].map(Bytes::from));
    }

    #[test]
    fn c7_events_of_another_name_are_left_out_and_the_next_one_is_not() {
        let stream = b"event: ping\ndata: now\n\ndata: a\n\nevent:message\ndata: b\n\nevent\ndata: c\n\ndata: d\nevent: endpoint\n\nevent: x\n\ndata: e\n\n";
        assert_eq!(decode([&stream[..]]), ["a", "b", "c", "e"].map(Bytes::from));
    }

    #[test]
    fn the_limit_holds_at_it_and_one_past_it() {
        let mut events = Vec::new();
        assert_eq!(SseDecoder::new(8).push(b"data:abc\n\n", &mut events), Ok(()));
        assert_eq!(SseDecoder::new(7).push(b"data:abc\n\n", &mut events), Err(SseFault(7)));
    }

    proptest! {
        #[test]
        fn c7_a_stream_split_anywhere_gives_the_same_events(cuts in proptest::collection::vec(0..STREAM.len(), 0..12)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let chunks = cuts.windows(2).map(|pair| &STREAM[pair[0]..pair[1]]);
            prop_assert_eq!(decode(chunks), decode([STREAM]));
        }
    }

    fn position(stream: &str) -> SsePosition {
        let mut decoder = SseDecoder::new(5000);
        for byte in stream.as_bytes().chunks(1) {
            decoder.push(byte, &mut Vec::new()).unwrap();
        }
        decoder.position().clone()
    }

    #[test]
    fn c7_where_to_resume_is_the_id_of_the_last_whole_event() {
        let id =
            |stream: &str| position(stream).last_event_id.map(|id| String::from_utf8(id.to_vec()).unwrap());
        assert_eq!(id("id: 1\ndata: x\n\nid: 2\ndata: cut"), Some("1".to_owned()));
        // Without data it is no event for MCP, but tells where the stream got to.
        assert_eq!(id("id:a b\r\ndata: \r\n\r\nide: 9\n\n"), Some("a b".to_owned()));
        assert_eq!(id("id: 1\n\ndata: x\n\n"), Some("1".to_owned()));
        for none in ["data: x\n\n", "id: 1\n\nid\n\n", "id: 1\n\nid:\n\n", "id: 1"] {
            assert_eq!(id(none), None, "{none:?}");
        }
        assert_eq!(id("id: 1\n\nid: 2\0\n\n"), Some("1".to_owned()));
        assert_eq!(id(&format!("id: {}\n\n", "x".repeat(ID_BYTES_MAX))).unwrap().len(), ID_BYTES_MAX);
        assert_eq!(id(&format!("id: {}\n\n", "x".repeat(ID_BYTES_MAX + 1))), None);
    }

    #[test]
    fn c7_a_time_to_wait_is_digits_alone() {
        let retry = |line: &str| position(&format!("{line}\n\n")).retry;
        assert_eq!(retry("retry: 500"), Some(Duration::from_millis(500)));
        assert_eq!(retry("retry:0"), Some(Duration::ZERO));
        for none in
            ["retry", "retry: ", "retry: -1", "retry: +1", "retry: 1.5", "retry: 99999999999999999999"]
        {
            assert_eq!(retry(none), None, "{none}");
        }
    }

    #[test]
    fn c7_a_stream_split_at_every_byte_gives_the_same_events() {
        assert_eq!(decode(STREAM.chunks(1)), decode([STREAM]));
    }
}
