//! [`Dispatcher`]: one JSON-RPC request and its caller in, one [`Reply`] out.
//!
//! The eras meet here: a method exists in one, the other or both, and a result takes the shape that the request's
//! version wants. Deliberately not here: HTTP, and how a tool works.

use crate::caller::Caller;
use crate::catalog::CatalogCache;
use crate::mcp::{
    Era, InputRequests, Payload, ProtocolVersion, ResultType, RpcError, TraceContext, code, from_object,
    keys, null_type, present,
};
use crate::telemetry::Outcome;
use crate::tools::{ToolFailure, ToolKind, ToolReply, ToolRequest, Toolbox, outer_object};
use crate::upstream::{Challenge, Listening, UpstreamError};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a handshake waits for the upstream's instructions before it is answered without them.
const INSTRUCTIONS_TIMEOUT: Duration = Duration::from_secs(10);
/// How long clients may keep what never changes while this process runs: the five tools.
const STATIC_TTL_MS: u64 = 3_600_000;
/// Instructions depend on the upstream's listing, which is kept for minutes.
const DISCOVER_TTL_MS: u64 = 600_000;

/// One request, its era decided and its envelope checked.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The version that it speaks.
    pub version: ProtocolVersion,
    /// The method's name.
    pub method: &'a str,
    /// The raw params.
    pub params: Option<&'a RawValue>,
    /// What the client can do; a raw JSON object.
    pub client_capabilities: &'a RawValue,
    /// The caller's trace context.
    pub trace: TraceContext<'a>,
    /// Raw; where present, the client wants to hear of progress.
    pub progress_token: Option<&'a RawValue>,
    /// Raw; where present, the client wants log messages of this level and above.
    pub log_level: Option<&'a RawValue>,
    /// Takes what the upstream tells while a call runs; `None` when the client takes no stream.
    pub notices: Option<&'a mpsc::Sender<Bytes>>,
}

impl<'a> Request<'a> {
    /// What the client wants to hear while its call runs, where it wants anything and can be told.
    fn listening(&self) -> Option<Listening<'a>> {
        let (progress_token, log_level) = (self.progress_token, self.log_level);
        let notices = self.notices.filter(|_| progress_token.is_some() || log_level.is_some())?;
        Some(Listening { progress_token, log_level, notices })
    }
}

/// The answer to one request.
#[derive(Debug)]
pub struct Reply {
    /// What goes back.
    pub body: ReplyBody,
    /// Which of the five tools ran, if one did.
    pub tool: Option<ToolKind>,
    /// One word for logs and metrics.
    pub outcome: Outcome,
}

/// What goes back.
#[derive(Debug)]
pub enum ReplyBody {
    /// A result object, raw.
    Result(Payload),
    /// An error for the MCP client.
    Error(RpcError),
    /// The caller has to log in.
    Unauthorized(Challenge),
}

/// Routes methods and shapes results.
pub struct Dispatcher {
    toolbox: Toolbox,
    catalogs: Arc<CatalogCache>,
    instructions_chars_max: usize,
}

impl Dispatcher {
    /// A dispatcher over the tools; the upstream's instructions are cut at so many characters.
    pub fn new(toolbox: Toolbox, catalogs: Arc<CatalogCache>, instructions_chars_max: usize) -> Self {
        Self { toolbox, catalogs, instructions_chars_max }
    }

    /// Whether a method exists for requests of this version.
    pub fn knows(version: ProtocolVersion, method: &str) -> bool {
        match version.era() {
            Era::Modern => matches!(method, "server/discover" | "tools/list" | "tools/call"),
            Era::Legacy => matches!(method, "initialize" | "ping" | "tools/list" | "tools/call"),
        }
    }

    /// Answers one request.
    pub async fn handle(&self, caller: &Caller, request: &Request<'_>) -> Reply {
        if !Self::knows(request.version, request.method) {
            return Reply::error(RpcError::new(
                code::METHOD_NOT_FOUND,
                "this server has no such method in this protocol version: it serves tools/list and tools/call",
            ));
        }
        match request.method {
            "tools/call" => self.call_tool(caller, request).await,
            "tools/list" => self.list_tools(request),
            "server/discover" => self.discover(caller).await,
            "initialize" => self.initialize(caller, request).await,
            _ => Reply::result(Payload::from("{}")),
        }
    }

    fn list_tools(&self, request: &Request<'_>) -> Reply {
        #[derive(Deserialize)]
        struct ListParams<'a> {
            #[serde(borrow, default)]
            cursor: Option<&'a RawValue>,
        }
        let params = request.params.map_or("{}", RawValue::get);
        if from_object::<ListParams<'_>>(params.as_bytes()).is_ok_and(|params| params.cursor.is_some()) {
            return Reply::error(RpcError::invalid_params(
                "this list has one page, so no cursor was ever given",
            ));
        }
        let tools = self.toolbox.definitions();
        Reply::result(Payload::from(match request.version.era() {
            Era::Legacy => format!(r#"{{"tools":{tools}}}"#),
            Era::Modern => format!(
                r#"{{"resultType":"complete","tools":{tools},"ttlMs":{STATIC_TTL_MS},"cacheScope":"public",{}}}"#,
                server_info_meta()
            ),
        }))
    }

    async fn discover(&self, caller: &Caller) -> Reply {
        let instructions = match self.instructions(caller).await {
            Ok(instructions) => instructions,
            Err(challenge) => return Reply::unauthorized(challenge),
        };
        let versions: Vec<String> =
            ProtocolVersion::ALL.into_iter().map(|version| format!("\"{version}\"")).collect();
        Reply::result(Payload::from(format!(
            r#"{{"resultType":"complete","supportedVersions":[{}],"capabilities":{{"tools":{{}}}},"instructions":{instructions},"ttlMs":{DISCOVER_TTL_MS},"cacheScope":"private",{}}}"#,
            versions.join(","),
            server_info_meta()
        )))
    }

    async fn initialize(&self, caller: &Caller, request: &Request<'_>) -> Reply {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InitializeParams<'a> {
            #[serde(borrow)]
            protocol_version: Cow<'a, str>,
        }
        let params = request.params.map_or("{}", RawValue::get);
        let Ok(params) = from_object::<InitializeParams<'_>>(params.as_bytes()) else {
            return Reply::error(RpcError::invalid_params(
                "initialize needs params.protocolVersion, a string",
            ));
        };
        let version = ProtocolVersion::parse(&params.protocol_version)
            .filter(|version| version.era() == Era::Legacy)
            .unwrap_or(ProtocolVersion::LATEST_LEGACY);
        let instructions = match self.instructions(caller).await {
            Ok(instructions) => instructions,
            Err(challenge) => return Reply::unauthorized(challenge),
        };
        Reply::result(Payload::from(format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{},"instructions":{instructions}}}"#,
            server_info()
        )))
    }

    /// Our guidance, then the upstream's instructions, as a JSON string. Without an upstream there is only ours.
    ///
    /// # Errors
    /// The challenge, when the caller has to log in first.
    async fn instructions(&self, caller: &Caller) -> Result<String, Challenge> {
        let listed = tokio::time::timeout(INSTRUCTIONS_TIMEOUT, self.catalogs.get(caller)).await;
        let text = match listed {
            Ok(Err(UpstreamError::Unauthorized(challenge))) => return Err(challenge),
            Ok(Ok(catalog)) => {
                let upstream = catalog.instructions();
                joined_instructions(self.toolbox.guidance(), upstream, self.instructions_chars_max)
            }
            Ok(Err(_)) | Err(_) => self.toolbox.guidance().to_owned(),
        };
        Ok(serde_json::to_string(&text).expect("text serialises"))
    }

    async fn call_tool(&self, caller: &Caller, request: &Request<'_>) -> Reply {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CallParams<'a> {
            #[serde(borrow)]
            name: Cow<'a, str>,
            #[serde(borrow, default)]
            arguments: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            input_responses: Option<&'a RawValue>,
            #[serde(borrow, default, deserialize_with = "present")]
            request_state: Option<&'a RawValue>,
        }
        let params = request.params.map_or("{}", RawValue::get);
        let Ok(params) = from_object::<CallParams<'_>>(params.as_bytes()) else {
            return Reply::error(RpcError::invalid_params(
                "tools/call needs params.name, a string, and params.arguments, an object",
            ));
        };
        let Ok(arguments) = params.arguments.map(outer_object).transpose() else {
            return Reply::error(RpcError::invalid_params(
                "params.arguments is a string that holds no JSON object, or one with the same key twice: send an object",
            ));
        };
        if arguments.as_deref().is_some_and(|arguments| !arguments.get().starts_with('{')) {
            return Reply::error(RpcError::invalid_params("params.arguments must be an object"));
        }
        let Some(tool) = self.toolbox.find(&params.name) else {
            let names: Vec<&str> = self.toolbox.names().collect();
            return Reply::error(RpcError::invalid_params(format!(
                "unknown tool: this server has {}; call the tools that search_tools finds through them",
                names.join(", ")
            )));
        };
        let is_later_round = params.input_responses.is_some() || params.request_state.is_some();
        if is_later_round && !matches!(tool, ToolKind::Read | ToolKind::Write) {
            return Reply::error(RpcError::invalid_params(format!(
                "{} never asks for input: send it without requestState and inputResponses, which belong to the call of \
                 call_read_tool or call_write_tool that asked",
                tool.name()
            )));
        }
        let call = ToolRequest {
            tool,
            arguments: arguments.as_deref(),
            client_capabilities: request.client_capabilities,
            trace: request.trace,
            listening: request.listening(),
            input_responses: params.input_responses,
            request_state: params.request_state,
        };
        let done = self.toolbox.call(caller, call).await;
        let body = match done.reply {
            Ok(ToolReply::Own { quoted, is_error }) => {
                ReplyBody::Result(own_result(&quoted, is_error, request.version.era()))
            }
            Ok(ToolReply::Upstream(result)) => {
                let result_type = ResultType::of(&result);
                match undeclared(&result, result_type, request) {
                    Some(error) => ReplyBody::Error(error),
                    None => ReplyBody::Result(call_result(result, result_type, request.version.era())),
                }
            }
            Err(ToolFailure::Unauthorized(challenge)) => ReplyBody::Unauthorized(challenge),
            Err(ToolFailure::Rpc(error)) if request.version.era() == Era::Modern => ReplyBody::Error(error),
            Err(ToolFailure::Rpc(_)) => ReplyBody::Result(own_result(NEEDS_MODERN, true, Era::Legacy)),
        };
        Reply { body, tool: Some(tool), outcome: done.outcome }
    }
}

/// The error for a result that asks the client for something that it did not declare. A server that asks all the same
/// is at fault, but the client can act on this error and on no such result.
fn undeclared(result: &[u8], result_type: ResultType, request: &Request<'_>) -> Option<RpcError> {
    if request.version.era() == Era::Legacy || result_type != ResultType::InputRequired {
        return None;
    }
    let missing = match InputRequests::of(result, request.client_capabilities) {
        InputRequests::Declared => return None,
        InputRequests::Undeclared(missing) => missing,
        InputRequests::Unknown => {
            let text = "the tool asks for input in a form that MCP does not know";
            return Some(RpcError::new(code::INTERNAL_ERROR, text));
        }
    };
    Some(RpcError {
        code: code::MISSING_CAPABILITY,
        message: Cow::Borrowed("the tool asks for input that this client did not declare it can give"),
        data: Some(serde_json::json!({ "requiredCapabilities": missing })),
    })
}

/// A JSON string.
const NEEDS_MODERN: &str = r#""{\"error\":\"This tool needs interactive input, which your client's protocol version can't give.\"}""#;

/// An upstream's result as one of the era.
fn call_result(result: Bytes, result_type: ResultType, era: Era) -> Payload {
    match (result_type, era) {
        (ResultType::InputRequired, Era::Legacy) => own_result(NEEDS_MODERN, true, era),
        (ResultType::Absent, Era::Modern) => with_result_type(&result),
        _ => Payload::from(result),
    }
}

/// A modern result must say that it is complete; a legacy upstream's does not. The rest stays as it is.
fn with_result_type(result: &Bytes) -> Payload {
    if let Some(null) = null_type(result) {
        let mut payload = Payload::from(result.slice(..null.start));
        payload.push(&br#""complete""#[..]);
        payload.push(result.slice(null.end..));
        return payload;
    }
    let mut payload = Payload::from(&br#"{"resultType":"complete""#[..]);
    let rest = result.slice(1..);
    if !rest.trim_ascii_start().starts_with(b"}") {
        payload.push(&b","[..]);
    }
    payload.push(rest);
    payload
}

/// Our own text, which is a JSON string, as a result.
fn own_result(quoted: &str, is_error: bool, era: Era) -> Payload {
    let mut result = String::with_capacity(quoted.len() + 200);
    result.push('{');
    if era == Era::Modern {
        result.push_str(r#""resultType":"complete","#);
    }
    result.extend([r#""content":[{"type":"text","text":"#, quoted, "}]"]);
    if is_error {
        result.push_str(r#","isError":true"#);
    }
    if era == Era::Modern {
        result.push(',');
        result.push_str(&server_info_meta());
    }
    result.push('}');
    Payload::from(result)
}

fn server_info() -> String {
    format!(r#"{{"name":"toolsearch-proxy","version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
}

fn server_info_meta() -> String {
    format!(r#""_meta":{{"{}":{}}}"#, keys::SERVER_INFO, server_info())
}

/// Our guidance and the upstream's text up to `chars_max` characters, labelled so that nobody takes one for the other.
fn joined_instructions(guidance: &str, upstream: Option<&str>, chars_max: usize) -> String {
    let Some(upstream) = upstream.filter(|text| !text.trim().is_empty() && chars_max > 0) else {
        return guidance.to_owned();
    };
    let (kept, note) = match upstream.char_indices().nth(chars_max) {
        Some((cut, _)) => (&upstream[..cut], "\n[cut here: the instructions are longer]"),
        None => (upstream, ""),
    };
    format!("{guidance}\n\nInstructions of the server whose tools these are:\n{kept}{note}")
}

impl Reply {
    fn result(payload: Payload) -> Self {
        Self { body: ReplyBody::Result(payload), tool: None, outcome: Outcome::Ok }
    }

    fn error(error: RpcError) -> Self {
        Self { body: ReplyBody::Error(error), tool: None, outcome: Outcome::InvalidRequest }
    }

    fn unauthorized(challenge: Challenge) -> Self {
        Self { body: ReplyBody::Unauthorized(challenge), tool: None, outcome: Outcome::Unauthorized }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shaped(result: Bytes, era: Era) -> String {
        let result_type = ResultType::of(&result);
        String::from_utf8(call_result(result, result_type, era).into_bytes().to_vec()).unwrap()
    }

    #[test]
    fn m17_a_result_without_a_type_gets_one_and_keeps_every_other_byte() {
        for (result, expected) in [
            ("{}", r#"{"resultType":"complete"}"#),
            ("{ }", r#"{"resultType":"complete" }"#),
            ("{ \"b\":1e400,\n\"a\" : 2}", "{\"resultType\":\"complete\", \"b\":1e400,\n\"a\" : 2}"),
            (r#"{"resultType":"complete","x":1}"#, r#"{"resultType":"complete","x":1}"#),
            (r#"{"resultType":"input_required"}"#, r#"{"resultType":"input_required"}"#),
        ] {
            assert_eq!(shaped(Bytes::from(result), Era::Modern), expected);
        }
    }

    #[test]
    fn l18_l19_a_legacy_caller_gets_the_result_as_it_is_but_no_multi_round_one() {
        let result = Bytes::from_static(br#"{ "content":[] }"#);
        assert_eq!(shaped(result.clone(), Era::Legacy).as_bytes(), &result[..]);
        let asking = Bytes::from_static(br#"{"resultType":"input_required","requestState":"s"}"#);
        let told = shaped(asking, Era::Legacy);
        assert!(told.contains(r#""isError":true"#) && told.contains("interactive input"), "{told}");
    }

    #[test]
    fn instructions_are_cut_with_a_note_at_a_character() {
        assert_eq!(joined_instructions("ours", None, 5), "ours");
        assert_eq!(joined_instructions("ours", Some(" \n"), 5), "ours");
        assert!(joined_instructions("ours", Some("ąčęėį"), 5).ends_with(":\ną\u{10d}ęėį"));
        assert!(
            joined_instructions("ours", Some("ąčęėįš"), 5)
                .ends_with("ąčęėį\n[cut here: the instructions are longer]")
        );
    }
}
