//! The client that the conformance suite starts when it plays both a protected upstream and its authorization server.
//!
//! What the suite looks at is an OAuth client's doing, and the proxy has none: it stands between the two. So the
//! official TypeScript SDK's client logs in through it. Where the suite expects a client to refuse, this one must.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::checks::{Checked, ensure};
use crate::driver::Driver;
use crate::process::Reaper;
use crate::proxy::Proxy;

/// Scenarios that no client may get through.
const REFUSED: [&str; 6] = [
    "auth/scope-retry-limit",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];
/// The document that the suite wants a client to be known by.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
const ME: &str = "me";

/// # Errors
/// When the login goes another way than the scenario means it to.
pub fn run(
    reaper: &Arc<Reaper>,
    home: &Path,
    binary: &Path,
    upstream_url: &str,
    scenario: &str,
    is_modern: bool,
) -> Checked {
    let proxy = Proxy::start(reaper, binary, upstream_url)?;
    let mut driver = Driver::start(reaper, home, "login.cjs")?;
    let url = format!("http://{}/mcp", proxy.listen);
    let outcome = logs_in(&mut driver, &url, scenario, is_modern);
    let told = || format!("{}\nthe driver printed:\n{}", driver.transcript(), driver.complaints());
    if REFUSED.contains(&scenario) {
        return ensure(outcome.is_err(), || format!("the client got through\n{}", told()));
    }
    outcome.map_err(|error| format!("{error}\n{}", told()))
}

fn logs_in(driver: &mut Driver, url: &str, scenario: &str, is_modern: bool) -> Checked {
    let mode = if is_modern { "auto" } else { "legacy" };
    let connected = driver.connect_by_login(ME, url, mode, &known(scenario)?);
    connected.map_err(|error| format!("cannot connect: {error}"))?;
    // A second call meets whatever the first one changed.
    for _ in 0..2 {
        let call = json!({"name": "test-tool", "arguments": {}});
        let result = driver.call(ME, "call_write_tool", &call);
        let result = result.map_err(|error| format!("the call failed: {error}"))?;
        ensure(result["content"][0]["text"] == "test", || format!("no result: {result}"))?;
    }
    Ok(())
}

/// What the client is known by before it starts.
fn known(scenario: &str) -> Checked<Value> {
    match scenario {
        "auth/basic-cimd" => Ok(json!({"clientMetadataUrl": CLIENT_METADATA})),
        "auth/pre-registration" => {
            let context = std::env::var("MCP_CONFORMANCE_CONTEXT").map_err(|error| error.to_string())?;
            let context: Value = serde_json::from_str(&context).map_err(|error| error.to_string())?;
            Ok(json!({"clientId": context["client_id"], "clientSecret": context["client_secret"]}))
        }
        // The suite moves to another authorization server after one request. The proxy asks more than once for one request
        // of the client's, so that the change comes before the first connection stands.
        "auth/authorization-server-migration" => Ok(json!({"logins": 2})),
        _ => Ok(json!({})),
    }
}
