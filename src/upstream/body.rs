//! Reads the body of an answer: one JSON message or a stream of events, within limits.
//!
//! A body that somebody reads within a budget has its place there before it is read, and keeps it until the last piece of it
//! is dropped.

use super::error::UpstreamError;
use crate::budget::{Place, Reader};
use crate::mcp::{SseDecoder, SsePosition};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};

/// Most events that one answer may be spread over.
const EVENTS_MAX: usize = 100_000;

/// The messages of one answer, in order.
pub(super) struct Messages {
    response: reqwest::Response,
    bytes_max: usize,
    bytes_read: usize,
    events_read: usize,
    form: Form,
    place: Option<Place>,
}

/// A message with its place in the budget.
struct Placed {
    message: Bytes,
    _place: Place,
}

impl AsRef<[u8]> for Placed {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

enum Form {
    /// Nothing significant was read so far.
    Unknown,
    Json(BytesMut),
    Sse {
        decoder: SseDecoder,
        events: std::vec::IntoIter<Bytes>,
    },
    Done,
}

impl Messages {
    /// # Errors
    /// When the body is compressed, which was not asked for: a small body could be made to grow without end.
    pub(super) fn new(
        response: reqwest::Response,
        bytes_max: usize,
        reader: Option<&Reader>,
    ) -> Result<Self, UpstreamError> {
        refuse_unreadable(&response, bytes_max)?;
        let place = reader.map(Reader::place);
        Ok(Self { response, bytes_max, bytes_read: 0, events_read: 0, form: Form::Unknown, place })
    }

    /// Goes on with another response that holds the rest of the same stream. The limits hold for all of it together.
    pub(super) fn go_on(&mut self, response: reqwest::Response) -> Result<(), UpstreamError> {
        refuse_unreadable(&response, self.bytes_max)?;
        let decoder = SseDecoder::resumed(self.bytes_max, self.position().cloned().unwrap_or_default());
        self.form = Form::Sse { decoder, events: Vec::new().into_iter() };
        self.response = response;
        Ok(())
    }

    /// How far the stream was read; `None` when it is none.
    pub(super) fn position(&self) -> Option<&SsePosition> {
        match &self.form {
            Form::Sse { decoder, .. } => Some(decoder.position()),
            _ => None,
        }
    }

    /// Whether the answer turned out to be a stream of events.
    pub(super) fn is_stream(&self) -> bool {
        matches!(self.form, Form::Sse { .. })
    }

    /// The next message; `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            if let Form::Sse { events, .. } = &mut self.form {
                // Events without data keep a stream alive and say nothing.
                if let Some(event) = events.by_ref().find(|event| !event.is_empty()) {
                    self.events_read += 1;
                    if self.events_read > EVENTS_MAX {
                        return Err(UpstreamError::Invalid("its stream has more than 100,000 events"));
                    }
                    return Ok(Some(self.placed(event)));
                }
            }
            if matches!(self.form, Form::Done) {
                return Ok(None);
            }
            match self.response.chunk().await.map_err(|_| UpstreamError::Cut)? {
                Some(chunk) => {
                    if let Some(place) = &mut self.place {
                        place.grow(chunk.len()).await;
                    }
                    self.take(chunk)?;
                }
                // Where a stream got to is still asked for.
                None if self.is_stream() => return Ok(None),
                None => return Ok(self.end()),
            }
        }
    }

    fn take(&mut self, chunk: Bytes) -> Result<(), UpstreamError> {
        self.bytes_read += chunk.len();
        if self.bytes_read > self.bytes_max {
            return Err(UpstreamError::TooLarge(self.bytes_max));
        }
        if matches!(self.form, Form::Unknown) {
            self.form = self.decide(&chunk);
        }
        match &mut self.form {
            Form::Unknown | Form::Done => {}
            // What comes in one piece is not copied; room for what comes in several is made once.
            Form::Json(body) if body.capacity() == 0 => *body = BytesMut::from(chunk),
            Form::Json(body) => body.extend_from_slice(&chunk),
            Form::Sse { decoder, events, .. } => {
                let mut found = Vec::new();
                decoder.push(&chunk, &mut found).map_err(|fault| UpstreamError::TooLarge(fault.0))?;
                *events = found.into_iter();
            }
        }
        Ok(())
    }

    /// Servers mislabel their bodies, so the first significant byte decides: JSON starts with a bracket, events never
    /// do.
    fn decide(&self, chunk: &[u8]) -> Form {
        let Some(first) = chunk.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Form::Unknown };
        let content_type =
            self.response.headers().get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let says_sse =
            content_type.len() >= 17 && content_type[..17].eq_ignore_ascii_case(b"text/event-stream");
        let looks_sse = [&b"data"[..], b"event", b"id", b"retry", b":"]
            .iter()
            .any(|field| chunk.trim_ascii_start().starts_with(field));
        if !matches!(first, b'{' | b'[') && (says_sse || looks_sse) {
            return Form::Sse { decoder: SseDecoder::new(self.bytes_max), events: Vec::new().into_iter() };
        }
        let announced = self.response.content_length().and_then(|length| usize::try_from(length).ok());
        let length = announced.filter(|&length| length > chunk.len() && length <= self.bytes_max);
        Form::Json(length.map_or_else(BytesMut::new, BytesMut::with_capacity))
    }

    fn end(&mut self) -> Option<Bytes> {
        match std::mem::replace(&mut self.form, Form::Done) {
            Form::Json(body) => Some(self.placed(body.freeze())),
            _ => None,
        }
    }

    /// A message, which takes its place with it.
    fn placed(&mut self, message: Bytes) -> Bytes {
        match &mut self.place {
            Some(place) => {
                let place = place.split(message.len());
                Bytes::from_owner(Placed { message, _place: place })
            }
            None => message,
        }
    }
}

fn refuse_unreadable(response: &reqwest::Response, bytes_max: usize) -> Result<(), UpstreamError> {
    let encoding = response.headers().get(CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(UpstreamError::Invalid("it is compressed, which was not asked for"));
    }
    if response.content_length().is_some_and(|length| length > bytes_max as u64) {
        return Err(UpstreamError::TooLarge(bytes_max));
    }
    Ok(())
}
