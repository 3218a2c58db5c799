//! The words that a model reads: our five definitions and our guidance.
//!
//! Each of them costs tokens in every conversation, so a test counts them.

use std::fmt::Write as _;

/// One of the five tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolKind {
    /// `search_tools`
    Search,
    /// `describe_tool`
    Describe,
    /// `call_read_tool`
    Read,
    /// `call_read_tools`
    ReadBatch,
    /// `call_write_tool`
    Write,
}

impl ToolKind {
    /// All five, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Search, Self::Describe, Self::Read, Self::ReadBatch, Self::Write];

    /// The name that a model calls.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Search => "search_tools",
            Self::Describe => "describe_tool",
            Self::Read => "call_read_tool",
            Self::ReadBatch => "call_read_tools",
            Self::Write => "call_write_tool",
        }
    }
}

/// Our own part of `instructions`. Like the definitions it names only what is offered.
pub(super) fn guidance(batch_calls_max: usize) -> String {
    let batch = if batch_calls_max > 0 { " call_read_tools for several such calls," } else { "" };
    format!(
        "This server gives access to many tools that are not listed. Whenever a task may need a tool, call \
         search_tools with what it should do. Then call the tool found by its exact name: call_read_tool if it is \
         readOnly,{batch} otherwise call_write_tool. Use describe_tool if its inputSchema was not given whole. Search \
         again in other words before you conclude that no tool exists."
    )
}

const CALL_PROPERTIES: &str = r#""name":{"type":"string","description":"exact name from search_tools"},"arguments":{"type":"object","description":"as its inputSchema says"}"#;

/// The definitions of all tools that are offered, as a raw JSON array. `batch_calls_max` 0 leaves the batch tool out.
pub(super) fn all(batch_calls_max: usize) -> String {
    let mut out = String::from("[");
    let mut add = |kind: ToolKind, description: &str, schema: &str, annotations: &str| {
        let comma = if out.len() > 1 { "," } else { "" };
        write!(
            out,
            r#"{comma}{{"name":"{}","description":"{description}","inputSchema":{{"type":"object",{schema}}},"annotations":{{{annotations}}}}}"#,
            kind.name()
        )
        .expect("a string takes any text");
    };
    let reads = r#""readOnlyHint":true"#;
    add(
        ToolKind::Search,
        "Finds tools by what they do. The best hits come with their inputSchema, so you can call them at once; \
         trimmed names arguments that describe_tool shows whole.",
        r#""properties":{"query":{"type":"string","description":"what the tool should do, or its name"},"queries":{"type":"array","items":{"type":"string"},"maxItems":5,"description":"instead of query: several searches at once"},"limit":{"type":"integer","minimum":1,"maximum":25,"default":8,"description":"hits per query"}}"#,
        &format!(r#""title":"Search tools",{reads},"openWorldHint":false"#),
    );
    add(
        ToolKind::Describe,
        "Gives the full definitions of tools: description and inputSchema.",
        r#""properties":{"names":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":10}},"required":["names"]"#,
        &format!(r#""title":"Describe tools",{reads},"openWorldHint":false"#),
    );
    add(
        ToolKind::Read,
        "Calls a tool that search_tools marks readOnly, and returns its result.",
        &format!(r#""properties":{{{CALL_PROPERTIES}}},"required":["name"]"#),
        &format!(r#""title":"Call a read-only tool",{reads}"#),
    );
    if batch_calls_max > 0 {
        add(
            ToolKind::ReadBatch,
            "Makes several independent calls of readOnly tools in parallel. One that fails leaves the others alone.",
            &format!(
                r#""properties":{{"calls":{{"type":"array","minItems":1,"maxItems":{batch_calls_max},"items":{{"type":"object","properties":{{{CALL_PROPERTIES}}},"required":["name"]}}}}}},"required":["calls"]"#
            ),
            &format!(r#""title":"Call read-only tools",{reads}"#),
        );
    }
    add(
        ToolKind::Write,
        "Calls any tool, also one that may create, change or delete something, and returns its result. One call at \
         a time.",
        &format!(r#""properties":{{{CALL_PROPERTIES}}},"required":["name"]"#),
        r#""title":"Call a tool that may change something","readOnlyHint":false,"destructiveHint":true"#,
    );
    out.push(']');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> usize {
        tiktoken_rs::o200k_base().unwrap().encode_with_special_tokens(text).len()
    }

    #[test]
    fn words_are_dear() {
        let definitions = all(10);
        assert!(tokens(&definitions) <= 800, "{} tokens", tokens(&definitions));
        assert!(tokens(&guidance(10)) <= 150, "{} tokens", tokens(&guidance(10)));
    }

    #[test]
    fn m33_definitions_are_valid_tools_and_say_what_they_may_change() {
        let definitions: Vec<serde_json::Value> = serde_json::from_str(&all(10)).unwrap();
        let names: Vec<&str> = definitions.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ToolKind::ALL.map(ToolKind::name));
        for tool in &definitions {
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert!(tool["description"].as_str().unwrap().len() > 20);
            assert!(jsonschema::draft202012::meta::is_valid(&tool["inputSchema"]));
            assert_eq!(tool["annotations"]["readOnlyHint"], tool["name"] != "call_write_tool");
        }
        assert_eq!(definitions[4]["annotations"]["destructiveHint"], true);
    }

    #[test]
    fn a_batch_limit_of_zero_leaves_the_batch_tool_out() {
        let definitions: Vec<serde_json::Value> = serde_json::from_str(&all(0)).unwrap();
        assert_eq!(definitions.len(), 4);
        assert!(guidance(1).contains("call_read_tools") && !guidance(0).contains("call_read_tools"));
        assert!(!all(0).contains("call_read_tools"));
    }
}
