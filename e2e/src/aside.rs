//! The cases about what comes beside a result: progress, log messages, and a tool's questions.

use serde_json::{Value, json};

use crate::cases::{ALICE, ALICE_DIRECT, Session, says};
use crate::checks::{Checked, ensure, refusal, same, same_result};
use crate::fixtures::Call;

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

pub fn progress_is_relayed(session: &mut Session) -> Checked {
    let call = &session.fixture.progress;
    let (through, direct) = both(session, "call_read_tool", call, &json!({}))?;
    let steps: Vec<f64> = direct["progress"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|step| step["progress"].as_f64())
        .collect();
    ensure(steps.len() > 1 && steps.is_sorted(), || format!("the upstream itself tells {steps:?}"))?;
    same("progress", &through["progress"], &direct["progress"])
}

/// Some clients always ask for log messages, so a call that does not is held against the upstream too.
pub fn logs_are_relayed(session: &mut Session) -> Checked {
    let Some(call) = session.fixture.logging.as_ref() else { return Ok(()) };
    let (through, direct) = both(session, "call_read_tool", call, &json!({LOG_LEVEL: "info"}))?;
    ensure(!is_empty(&direct["logs"]), || "the upstream itself logs nothing".to_owned())?;
    same("logs", &through["logs"], &direct["logs"])?;
    let (through, direct) = both(session, "call_read_tool", call, &json!({LOG_LEVEL: "error"}))?;
    ensure(is_empty(&direct["logs"]), || format!("the upstream itself logs too much: {direct}"))?;
    same("logs from error on", &through["logs"], &direct["logs"])?;
    let (through, direct) = both(session, "call_read_tool", call, &json!({}))?;
    same("logs unasked for", &through["logs"], &direct["logs"])
}

pub fn question_is_answered(session: &mut Session) -> Checked {
    let Some(call) = session.fixture.asking.as_ref() else { return Ok(()) };
    let (through, direct) = both(session, "call_write_tool", call, &json!({}))?;
    ensure(!is_empty(&direct["questions"]), || "the upstream itself asks nothing".to_owned())?;
    same("questions", &through["questions"], &direct["questions"])
}

pub fn question_is_refused(session: &mut Session) -> Checked {
    let Some(call) = session.fixture.asking.as_ref() else { return Ok(()) };
    let arguments = json!({"name": call.tool, "arguments": call.arguments});
    let refused = refusal(&session.proxied("call_write_tool", &arguments)?)?;
    let told = refused["error"].as_str().unwrap_or_default();
    ensure(told.contains("input"), || format!("the refusal does not say why: {refused}"))
}

/// The call through the proxy and the same one without it, with all that came beside the result.
fn both(session: &mut Session, tool: &str, call: &Call, meta: &Value) -> Checked<(Value, Value)> {
    let failed = |error: Value| format!("{} failed in the SDK: {error}", call.tool);
    let direct = session.driver.call_noted(ALICE_DIRECT, call.tool, &call.arguments, meta).map_err(failed)?;
    ensure(says(&direct["result"], call.says), || {
        format!("the upstream does not say {:?}: {direct}", call.says)
    })?;
    let arguments = json!({"name": call.tool, "arguments": call.arguments});
    let through = session.driver.call_noted(ALICE, tool, &arguments, meta).map_err(failed)?;
    same_result(&through["result"], &direct["result"])?;
    Ok((through, direct))
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}
