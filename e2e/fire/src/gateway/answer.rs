//! The right answers, each with its caller's mark in every text.

use super::fault::{Fault, Script, json_answer, sse_answer};
use super::{Asked, Shared, lock};
use crate::http::response;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Shared {
    pub(super) async fn answer(&self, asked: &Asked<'_>, session: Option<&str>) -> Script {
        let kind = self.settings.kind;
        let fault = (self.settings.plan)(asked);
        if kind == super::Kind::LegacySessions
            && asked.method != "initialize"
            && asked.method != "server/discover"
        {
            match session.and_then(|session| lock(&self.sessions).get(session).cloned()) {
                None => return Script::whole(self.error(asked, 404, -32001, "no such session")),
                Some(owner) if owner != asked.token => {
                    self.ledger.crossed_sessions.fetch_add(1, Ordering::Relaxed);
                }
                Some(_) => {}
            }
        }
        let mark = self.marks.of(asked.token);
        let (result, headers) = match (asked.method, kind.is_modern()) {
            ("server/discover", true) => (self.discovered(&mark), String::new()),
            ("initialize", false) => (self.initialized(&mark), self.new_session(asked)),
            ("tools/list", _) => {
                let _now = self.ledger.listing_now();
                self.ledger.note_listing(asked.token);
                // Others of the same moment are to be seen too.
                tokio::task::yield_now().await;
                (self.page(asked, &mark), String::new())
            }
            ("tools/call", _) => (self.call(asked, &mark, fault).await, String::new()),
            _ => return Script::whole(self.error(asked, 400, -32601, "no such method")),
        };
        let right = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, asked.id);
        if let Some(fault) = fault {
            return fault.script(asked, kind, &right, &self.settings);
        }
        if kind.streams() && headers.is_empty() {
            let note =
                r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"x"}}"#;
            return Script::whole(sse_answer(&format!(
                ": hello\n\ndata: {note}\n\nevent: message\ndata: {right}\n\n"
            )));
        }
        if headers.is_empty() {
            return Script::whole(json_answer(&right));
        }
        Script::whole(response(200, &format!("Content-Type: application/json\r\n{headers}"), &right))
    }

    fn error(&self, asked: &Asked<'_>, status: u16, code: i64, message: &str) -> Vec<u8> {
        let mark = self.marks.of(asked.token);
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":{code},"message":"{message} {mark}"}}}}"#,
            asked.id
        );
        response(status, "Content-Type: application/json\r\n", &body)
    }

    fn discovered(&self, mark: &str) -> String {
        let canary = &self.settings.canary;
        format!(
            r#"{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}}}},"instructions":"For {mark} only. {canary}","ttlMs":600000,"cacheScope":"public"}}"#
        )
    }

    fn initialized(&self, mark: &str) -> String {
        let canary = &self.settings.canary;
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"fire","version":"0"}},"instructions":"For {mark} only. {canary}"}}"#
        )
    }

    fn new_session(&self, asked: &Asked<'_>) -> String {
        if self.settings.kind != super::Kind::LegacySessions {
            // Its answers have headers of their own, so that this one comes as plain JSON.
            return "X-Stateless: yes\r\n".to_owned();
        }
        let number = self.next_session.fetch_add(1, Ordering::Relaxed);
        let session = format!("session-{number}-{}", self.marks.of(&number.to_string()));
        lock(&self.sessions).insert(session.clone(), asked.token.to_owned());
        format!("Mcp-Session-Id: {session}\r\n")
    }

    fn page(&self, asked: &Asked<'_>, mark: &str) -> String {
        let settings = &self.settings;
        let start: usize =
            asked.params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let tools = match &settings.listing {
            Some(listing) => listing(asked.token, mark),
            None => (0..settings.tools).map(|number| tool(number, mark, &settings.canary)).collect(),
        };
        let end = (start + settings.page.max(1)).min(tools.len());
        let next = if end < tools.len() { format!(r#","nextCursor":"{end}""#) } else { String::new() };
        let page = tools.get(start..end).unwrap_or_default().join(",");
        let more =
            if settings.kind.is_modern() { r#""resultType":"complete","cacheScope":"public","# } else { "" };
        // A listing for such a token is out of date at once, without a second run with other clocks.
        let ttl = if asked.token.ends_with("-stale") { r#","ttlMs":1"# } else { "" };
        format!(r#"{{{more}"tools":[{page}]{next}{ttl}}}"#)
    }

    async fn call(&self, asked: &Asked<'_>, mark: &str, fault: Option<Fault>) -> String {
        let nonce = asked.nonce();
        if !fault.is_some_and(Fault::refuses) {
            self.ledger.note_executed(nonce);
        }
        let micros = self.call_micros.load(Ordering::Relaxed);
        if micros > 0 {
            tokio::time::sleep(Duration::from_micros(micros)).await;
        }
        let kind = if self.settings.kind.is_modern() { r#""resultType":"complete","# } else { "" };
        let canary = &self.settings.canary;
        format!(
            r#"{{{kind}"content":[{{"type":"text","text":"done {mark} {nonce} {canary}"}}],"structuredContent":{{"mark":"{mark}","nonce":"{nonce}"}}}}"#
        )
    }
}

/// The usual tools: even ones read, odd ones write. The first carries the mark in its very name.
pub fn tool(number: usize, mark: &str, canary: &str) -> String {
    let name = tool_name(number, mark);
    let is_read = number.is_multiple_of(2);
    let verb = if is_read { "Reads" } else { "Writes" };
    format!(
        r#"{{"name":"{name}","title":"{mark} notes","description":"{verb} notes of {mark} in folder {number}. {canary}","inputSchema":{{"type":"object","properties":{{"nonce":{{"type":"string","description":"A word for {mark}"}},"text":{{"type":"string"}}}},"required":["nonce"]}},"annotations":{{"readOnlyHint":{is_read},"destructiveHint":false}}}}"#
    )
}

/// The name of a usual tool.
pub fn tool_name(number: usize, mark: &str) -> String {
    match number {
        0 => format!("own_{mark}__read"),
        1 => format!("own_{mark}__write"),
        _ if number.is_multiple_of(2) => format!("notes_{number}__read"),
        _ => format!("notes_{number}__write"),
    }
}
