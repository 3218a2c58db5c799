//! The wire: JSON-RPC messages, protocol versions, headers, SSE frames and tool shapes.
//!
//! Both hops use it: `server` as an MCP server, `upstream` as an MCP client. Only what is read here is typed;
//! everything else stays raw JSON, so that bytes in are bytes out.
//!
//! Deliberately not here: sockets, HTTP routing, and any decision about tools.
//!
//! Source: the Model Context Protocol, revisions 2024-11-05 to 2026-07-28, <https://modelcontextprotocol.io>.

mod challenge;
mod headers;
mod instance;
mod json;
mod jsonrpc;
mod meta;
mod object;
mod param_headers;
mod payload;
mod result;
mod sse;
mod top_level;
mod version;

pub use challenge::{resource_metadata, with_resource_metadata};
pub use headers::{HeaderValueError, decode_header_text, encode_header_text, names};
pub use instance::Instance;
pub use json::{JsonFault, JsonLimits, check as check_json, json_in_string, minified};
pub use jsonrpc::{Answer, AnswerError, Message, RpcError, code, error_envelope, parse_answer, present};
pub use meta::{LOG_LEVELS, RequestMeta, TraceContext, keys};
pub use object::{Object, from_object};
pub use param_headers::{ParamHeader, ParamHeaderFault, ParamValueFault, param_header_values, param_headers};
pub use payload::Payload;
pub use result::{InputRequests, ResultType, null_type};
pub use sse::{SseDecoder, SseFault, SsePosition};
pub use version::{Era, ProtocolVersion};
