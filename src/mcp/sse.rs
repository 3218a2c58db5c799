//! Server-sent events, decoded as they arrive.
//!
//! Only the `data` of events matters to MCP; ids, names and retry times are passed over. Lines end with CR, LF or
//! CRLF, a stream may be split at any byte, and a byte order mark may stand in front.
//!
//! Source: the HTML standard, "Server-sent events", section 9.2.6.

use bytes::{Bytes, BytesMut};

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
}

impl SseDecoder {
    /// A decoder whose events may hold at most `event_bytes_max` bytes.
    pub fn new(event_bytes_max: usize) -> Self {
        Self {
            line: BytesMut::new(),
            data: BytesMut::new(),
            has_data: false,
            after_cr: false,
            at_start: true,
            event_bytes_max,
        }
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
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
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
            if std::mem::take(&mut self.has_data) {
                events.push(std::mem::take(&mut self.data).freeze());
            }
            return;
        }
        let value_at = match line.iter().position(|byte| *byte == b':') {
            Some(colon) if &line[..colon] == b"data" => {
                colon + 1 + usize::from(line.get(colon + 1) == Some(&b' '))
            }
            None if &line[..] == b"data" => line.len(),
            _ => return,
        };
        let value = line.split_off(value_at);
        if std::mem::replace(&mut self.has_data, true) {
            self.data.extend_from_slice(b"\n");
            self.data.extend_from_slice(&value);
        } else {
            // Most events have one line of data, which may be large: it is moved, so that it is never held twice.
            self.data = value;
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

    #[test]
    fn c7_a_stream_split_at_every_byte_gives_the_same_events() {
        assert_eq!(decode(STREAM.chunks(1)), decode([STREAM]));
    }
}
