//! The authorization server of the protected fixture, as the harness steers it and reads what it gave out.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::checks::{Checked, ensure};
use crate::http;

/// Where protected resource metadata is, with the path of the resource behind it.
pub const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

pub struct Authority {
    address: SocketAddr,
}

/// What happened since the last look, in order.
pub struct Ledger(Vec<Value>);

impl Authority {
    /// Found as a client finds it: through the metadata of the protected server.
    ///
    /// # Errors
    /// When the metadata does not lead to one.
    pub fn of(upstream: SocketAddr) -> Checked<Self> {
        let metadata = http::get(upstream, &format!("{WELL_KNOWN}/mcp"))?.body;
        let parsed: Value = serde_json::from_str(&metadata).unwrap_or_default();
        let issuer = parsed["authorization_servers"][0].as_str().and_then(|url| url.strip_prefix("http://"));
        let address = issuer.and_then(|authority| authority.parse().ok());
        address
            .map(|address| Self { address })
            .ok_or_else(|| format!("the upstream names no authorization server: {metadata}"))
    }

    /// # Errors
    /// When it is not reached or does not understand.
    pub fn steer(&self, order: &Value) -> Checked<Ledger> {
        let headers = [("Content-Type", "application/json")];
        let response = http::post(self.address, "/harness", &headers, &order.to_string())?;
        let answer: Value = serde_json::from_str(&response.body).unwrap_or_default();
        let ledger = answer["ledger"].as_array().cloned();
        ledger.map(Ledger).ok_or_else(|| format!("the authorization server said {}", response.body))
    }
}

impl Ledger {
    /// The steps of logging in were exactly these, all for this resource, and the upstream then admitted the tool.
    ///
    /// # Errors
    /// When it went otherwise; with all that happened.
    pub fn shows(&self, steps: &[&str], resource: &str, tool: &str) -> Checked {
        let told = || Value::from(self.0.clone());
        let is_step = |entry: &&Value| entry["event"] != "admitted";
        let found: Vec<&str> =
            self.0.iter().filter(is_step).map(|entry| entry["event"].as_str().unwrap_or_default()).collect();
        ensure(found == steps, || format!("expected the steps {steps:?}, found {found:?}: {}", told()))?;
        let foreign =
            self.0.iter().find(|entry| entry["event"] != "register" && entry["resource"] != resource);
        ensure(foreign.is_none(), || format!("not all is for {resource}: {}", told()))?;
        let last = self.0.last().unwrap_or(&Value::Null);
        ensure(last["event"] == "admitted" && last["tool"] == tool, || {
            format!("{tool} was not admitted at last: {}", told())
        })
    }

    /// # Errors
    /// When anything happened at all.
    pub fn shows_nothing(&self) -> Checked {
        ensure(self.0.is_empty(), || format!("expected nothing: {}", Value::from(self.0.clone())))
    }

    /// The scope of the last token that was given out.
    pub fn scope(&self) -> &str {
        self.0.last().and_then(|entry| entry["scope"].as_str()).unwrap_or_default()
    }
}

/// A token that is good without a login.
pub fn given(token: &str, resource: &str, scope: &str) -> Value {
    json!({"give": {token: {"resource": resource, "scope": scope}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(resource: &str) -> Ledger {
        Ledger(vec![
            json!({"event": "register"}),
            json!({"event": "authorize", "resource": resource, "scope": "a"}),
            json!({"event": "admitted", "resource": resource, "scope": "a", "tool": "find"}),
        ])
    }

    #[test]
    fn ledger_is_held_against_steps_resource_and_tool() {
        let steps = ["register", "authorize"];
        assert_eq!(ledger("http://me").shows(&steps, "http://me", "find"), Ok(()));
        assert_eq!(ledger("http://me").scope(), "a");
        for (steps, resource, tool) in [
            (&steps[1..], "http://me", "find"),
            (&steps[..], "http://other", "find"),
            (&steps[..], "http://me", "add"),
        ] {
            assert!(ledger("http://me").shows(steps, resource, tool).is_err());
        }
    }
}
