//! `docs/metrics.md`, made from the definitions of the metrics.

use super::definitions::{DEFINITIONS, Definition, Kind};
use std::fmt::Write as _;

/// The page as Markdown. A test compares it with the file.
pub fn metrics_page() -> String {
    let mut page = String::from(
        "# Metrics\n\n<!-- Made from the definitions in src/telemetry: run `mise run docs:metrics` after a change. -->\n\n\
         `GET /metrics` on `--admin-listen` gives them in the Prometheus text format. Label values are closed sets of\n\
         ours: no name of a tool of the upstream, no caller and nothing that anybody sends is ever one, so the number of\n\
         series is bounded whatever comes. Counters start at 0 with the process.\n\n\
         On Linux the usual metrics of a process are there too: `process_cpu_seconds_total`,\n\
         `process_resident_memory_bytes`, `process_virtual_memory_bytes`, `process_open_fds`, `process_max_fds`,\n\
         `process_threads`, `process_start_time_seconds`.\n\n\
         [grafana/toolsearch-proxy.json](grafana/toolsearch-proxy.json) is a dashboard over them,\n\
         [alerts.yaml](alerts.yaml) has rules for alerts; [deploy.md](deploy.md#probes-metrics-and-the-log) says what to watch.\n",
    );
    for definition in DEFINITIONS {
        add(&mut page, definition);
    }
    page
}

fn add(page: &mut String, definition: &Definition) {
    let kind = match definition.kind {
        Kind::Counter => "Counter",
        Kind::Gauge => "Gauge",
        Kind::Histogram => "Histogram",
    };
    let Definition { name, help, labels, .. } = definition;
    write!(page, "\n## `{name}`\n\n{kind}. {help}\n").expect("a string takes any text");
    for (label, values) in *labels {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        let values = if values.is_empty() { "what runs".to_owned() } else { values.join(", ") };
        write!(page, "\n- `{label}`: {values}").expect("a string takes any text");
    }
    if !labels.is_empty() {
        page.push('\n');
    }
}
