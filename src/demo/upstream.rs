//! The made-up upstream: a modern MCP server with several hundred tools that do nothing.

use super::{ALICE, BOB};
use crate::mcp::{Message, ProtocolVersion, RpcError, code, error_envelope};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

/// Tools of a page of the listing.
const PAGE: usize = 100;
/// The services that only Alice sees: those for developers.
const DEVELOPER_SERVICES: [&str; 15] = [
    "oakforge",
    "burrow",
    "pipelinr",
    "tasklane",
    "kanbix",
    "gaugely",
    "logmoth",
    "pagerook",
    "nimbus",
    "podharbor",
    "zonepost",
    "bucketry",
    "sqlquay",
    "flagmast",
    "sealbox",
];

const CATALOGUE: &str = include_str!("../../model/eval/catalogue.json");

/// A tool of the catalogue: its name and its definition as it stands in the file.
struct DemoTool {
    name: String,
    definition: &'static RawValue,
}

static TOOLS: LazyLock<Vec<DemoTool>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct File {
        #[serde(borrow)]
        tools: Vec<&'static RawValue>,
    }
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let file: File = serde_json::from_str(CATALOGUE).expect("a test reads the catalogue");
    let named = |definition: &'static RawValue| {
        let named: Named = serde_json::from_str(definition.get()).expect("a test reads the catalogue");
        DemoTool { name: named.name, definition }
    };
    file.tools.into_iter().map(named).collect()
});

/// The tools that a token gives; `None` for a token that nobody has.
fn tools_of(token: &str) -> Option<Vec<&'static DemoTool>> {
    let is_for_developers = |tool: &&DemoTool| {
        tool.name.split("__").next().is_some_and(|service| DEVELOPER_SERVICES.contains(&service))
    };
    match token {
        ALICE => Some(TOOLS.iter().collect()),
        BOB => Some(TOOLS.iter().filter(|tool| !is_for_developers(tool)).collect()),
        _ => None,
    }
}

/// How many tools the two callers see.
pub(super) fn tool_counts() -> (usize, usize) {
    let count = |token| tools_of(token).map_or(0, |tools| tools.len());
    (count(ALICE), count(BOB))
}

/// The upstream's routes.
pub(super) fn router() -> Router {
    Router::new().route("/mcp", post(endpoint))
}

async fn endpoint(headers: HeaderMap, body: Bytes) -> Response {
    let authorization = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(tools) = authorization.strip_prefix("Bearer ").and_then(tools_of) else {
        let challenge = [(WWW_AUTHENTICATE, r#"Bearer error="invalid_token""#)];
        return (StatusCode::UNAUTHORIZED, challenge).into_response();
    };
    let message: Option<Message<'_>> = serde_json::from_slice(&body).ok();
    let Some((message, id)) = message.as_ref().and_then(|message| Some((message, message.valid_id()?)))
    else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let params = message.params.map_or("{}", RawValue::get);
    let result = match message.method_name().as_deref() {
        Some("server/discover") => Ok(discover()),
        Some("tools/list") => list(&tools, params),
        Some("tools/call") => call(&tools, params),
        _ => Err(RpcError::new(code::METHOD_NOT_FOUND, "no such method")),
    };
    let (status, body) = match result {
        Ok(result) => (StatusCode::OK, format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, id.get())),
        Err(error) if error.code == code::METHOD_NOT_FOUND => {
            (StatusCode::NOT_FOUND, error_envelope(Some(id), &error))
        }
        Err(error) => (StatusCode::OK, error_envelope(Some(id), &error)),
    };
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

fn discover() -> String {
    format!(
        r#"{{"resultType":"complete","supportedVersions":["{}"],"capabilities":{{"tools":{{}}}},"instructions":"The tools of this demonstration do nothing: a call only repeats what was asked.","ttlMs":600000,"cacheScope":"private"}}"#,
        ProtocolVersion::MODERN
    )
}

fn list(tools: &[&'static DemoTool], params: &str) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, default)]
        cursor: Option<Cow<'a, str>>,
    }
    let wrong = || RpcError::invalid_params("the cursor is none of ours");
    let params: Params<'_> = serde_json::from_str(params).map_err(|_| wrong())?;
    let start: usize = params.cursor.map_or(Ok(0), |cursor| cursor.parse().map_err(|_| wrong()))?;
    let rest = tools.get(start..).ok_or_else(wrong)?;
    let mut result =
        String::from(r#"{"resultType":"complete","ttlMs":600000,"cacheScope":"private","tools":["#);
    for (i, tool) in rest.iter().take(PAGE).enumerate() {
        let comma = if i > 0 { "," } else { "" };
        write!(result, "{comma}{}", tool.definition.get()).expect("a string takes any text");
    }
    result.push(']');
    if rest.len() > PAGE {
        write!(result, r#","nextCursor":"{}""#, start + PAGE).expect("a string takes any text");
    }
    result.push('}');
    Ok(result)
}

fn call(tools: &[&'static DemoTool], params: &str) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    let params: Params<'_> =
        serde_json::from_str(params).map_err(|_| RpcError::invalid_params("name is missing"))?;
    if !tools.iter().any(|tool| tool.name == params.name) {
        return Err(RpcError::invalid_params("unknown tool"));
    }
    let arguments = params.arguments.map_or("{}", RawValue::get);
    let text = format!("This is a demonstration: {} did nothing with {arguments}", params.name);
    let text = serde_json::to_string(&text).expect("text serialises");
    Ok(format!(r#"{{"resultType":"complete","content":[{{"type":"text","text":{text}}}]}}"#))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_two_callers_see_different_tools_of_many_services() {
        let (alice, bob) = tool_counts();
        assert!(alice >= 300 && bob >= 100 && bob < alice, "{alice} {bob}");
        let services: HashSet<&str> = TOOLS.iter().filter_map(|tool| tool.name.split("__").next()).collect();
        assert!(services.len() >= 20 && DEVELOPER_SERVICES.iter().all(|service| services.contains(service)));
    }

    #[test]
    fn pages_hold_every_tool_once() {
        let tools = tools_of(ALICE).unwrap();
        let (mut params, mut seen) = ("{}".to_owned(), 0);
        loop {
            let page: serde_json::Value = serde_json::from_str(&list(&tools, &params).unwrap()).unwrap();
            seen += page["tools"].as_array().unwrap().len();
            match page.get("nextCursor") {
                Some(cursor) => params = format!(r#"{{"cursor":{cursor}}}"#),
                None => break,
            }
        }
        assert_eq!(seen, tools.len());
        assert!(list(&tools, r#"{"cursor":"x"}"#).is_err() && list(&tools, r#"{"cursor":"99999"}"#).is_err());
    }
}
