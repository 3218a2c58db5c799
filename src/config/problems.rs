//! [`Problems`]: all that is wrong with the settings, so that it can be told at once.

use super::nearest::nearest;
use super::origin::Settings;
use super::values::Value;
use super::{Cli, ConfigError, ENV_PREFIX, EmbedderChoice, ModelFolder, Seconds, Setting, ToolArgs};
use crate::outbound::{is_open_to_others, leads_to};
use crate::telemetry::TracingOptions;
use clap::CommandFactory;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use url::Url;

/// The problems found so far.
pub(super) struct Problems {
    found: Vec<String>,
    /// What is wrong with the settings file. It is told first: what is missing may stand in there.
    in_file: Vec<String>,
    /// Whether nothing of the settings file is known.
    is_file_unread: bool,
    /// Where the flags' values came from, where that is not the command line.
    places: BTreeMap<String, String>,
}

impl Problems {
    /// Those that are known before any value is looked at: variables that nobody reads, a settings file that can't be
    /// used, flags that are given twice.
    pub(super) fn of(env: impl IntoIterator<Item = String>, settings: &Settings) -> Self {
        let mut problems = Self {
            found: unknown_variables(env),
            in_file: settings.problems.clone(),
            is_file_unread: settings.is_file_unread,
            places: settings.places(),
        };
        for flag in &settings.repeated {
            problems.found.push(format!("{flag}: is given twice: give it once"));
        }
        problems
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty() && self.in_file.is_empty()
    }

    pub(super) fn add(&mut self, flag: &str, problem: impl Display) {
        let place = self.places.get(flag).map_or(String::new(), |place| format!(" ({place})"));
        self.found.push(format!("{flag}: {problem}{place}"));
    }

    /// The value, or a placeholder behind a problem, so that the remaining settings are still checked.
    pub(super) fn take<T: Value>(&mut self, flag: &str, setting: Setting<T>) -> T {
        self.take_as(flag, setting, T::FORM)
    }

    /// The same for a setting whose values have a form of their own.
    pub(super) fn take_as<T: Value>(&mut self, flag: &str, setting: Setting<T>, form: &str) -> T {
        setting.0.unwrap_or_else(|shown| {
            self.add(flag, format!("{shown} can't be read: {form}"));
            T::placeholder()
        })
    }

    /// Where probes are answered, which is not where MCP is.
    pub(super) fn admin_listen(&mut self, setting: Setting<SocketAddr>) -> SocketAddr {
        self.take_as("--admin-listen", setting, "write an IP address and a port, such as 127.0.0.1:9090")
    }

    pub(super) fn positive(&mut self, flag: &str, setting: Setting<Seconds>) -> Seconds {
        if setting.0.as_ref().is_ok_and(|time| time.0.is_zero()) {
            self.add(flag, "must be more than zero");
        }
        self.take(flag, setting)
    }

    pub(super) fn read(&mut self, flag: &str, path: &Path) -> Option<Vec<u8>> {
        let read = std::fs::read(path);
        read.map_err(|error| self.add(flag, format!("{}: {error}", path.display()))).ok()
    }

    pub(super) fn manifest(&mut self, path: &Path) -> Option<String> {
        const FLAG: &str = "--model-manifest";
        let text = String::from_utf8(self.read(FLAG, path)?);
        text.map_err(|_| self.add(FLAG, format!("{}: it is no text", path.display()))).ok()
    }

    pub(super) fn model(&mut self, tools: &ToolArgs) -> Option<ModelFolder> {
        let is_unpinned = self.take("--model-unpinned", tools.model_unpinned.clone()).0;
        let manifest = tools.model_manifest.as_ref().and_then(|path| self.manifest(path));
        let Some(path) = &tools.model_dir else {
            for (flag, is_given) in
                [("--model-unpinned", is_unpinned), ("--model-manifest", tools.model_manifest.is_some())]
            {
                if is_given {
                    self.add(flag, "needs --model-dir");
                }
            }
            return None;
        };
        if matches!(tools.embedder.0, Ok(EmbedderChoice::None)) {
            self.add("--model-dir", "is not used with --embedder none: leave one of the two out");
        }
        if is_unpinned && tools.model_manifest.is_some() {
            self.add("--model-unpinned", "is not used with --model-manifest: leave one of the two out");
        }
        Some(ModelFolder { path: path.clone(), manifest, is_unpinned })
    }

    pub(super) fn upstream(&mut self, setting: Option<Setting<Url>>, allow_plaintext: bool) -> Url {
        const FLAG: &str = "--upstream";
        let Some(setting) = setting else {
            if self.is_file_unread {
                return Url::placeholder();
            }
            self.add(FLAG, "is required: the URL of the MCP server with the many tools");
            return Url::placeholder();
        };
        let url = self.take(FLAG, setting);
        if !matches!(url.scheme(), "http" | "https") {
            self.add(FLAG, "must start with https:// or http://");
        } else if !url.username().is_empty() || url.password().is_some() {
            self.add(FLAG, "must hold no user name or password: callers bring their own credentials");
        } else if url.fragment().is_some() {
            self.add(FLAG, "must have no # part");
        } else if is_open_to_others(&url) && !allow_plaintext {
            self.add(
                FLAG,
                "is http:// and not on this machine, so tokens would cross the network unencrypted; use https://, or \
                 add --allow-plaintext-upstream where the network is trusted",
            );
        }
        url
    }

    /// The proxy can't be its own upstream. A longer way round is noticed when a request comes back.
    pub(super) fn not_itself(&mut self, upstream: &Url, listen: SocketAddr) {
        if leads_to(upstream, listen) {
            self.add(
                "--upstream",
                "is this proxy's own --listen address: give the URL of the server behind it",
            );
        }
    }

    /// The URL that clients dial. It becomes the `resource` of a document, which holds no credentials and no fragment.
    pub(super) fn public_url(&mut self, setting: Setting<Url>) -> Url {
        const FLAG: &str = "--public-url";
        let form = "write a whole URL, such as https://gateway.example/mcp/search";
        let url = self.take_as(FLAG, setting, form);
        if !matches!(url.scheme(), "http" | "https") {
            self.add(FLAG, "must start with https:// or http://");
        } else if !url.username().is_empty() || url.password().is_some() {
            self.add(FLAG, "must hold no user name or password: leave out what stands before the @");
        } else if url.query().is_some() || url.fragment().is_some() {
            self.add(FLAG, "must have no ? or # part: leave it out");
        }
        url
    }

    /// Where traces go.
    pub(super) fn tracing(
        &mut self,
        endpoint: Option<Setting<Url>>,
        percent: Setting<usize>,
    ) -> Option<TracingOptions> {
        const FLAG: &str = "--otlp-endpoint";
        let sample_percent = self.take("--otlp-sample-percent", percent);
        if sample_percent > 100 {
            self.add("--otlp-sample-percent", "must be at most 100");
        }
        let form = "write a whole URL, such as http://127.0.0.1:4318";
        let endpoint = self.take_as(FLAG, endpoint?, form);
        if !matches!(endpoint.scheme(), "http" | "https") {
            self.add(FLAG, "must start with https:// or http://");
        } else if !endpoint.username().is_empty() || endpoint.password().is_some() {
            self.add(
                FLAG,
                "must hold no user name or password: put a header into OTEL_EXPORTER_OTLP_HEADERS",
            );
        } else if endpoint.query().is_some() || endpoint.fragment().is_some() {
            self.add(FLAG, "must have no ? or # part: leave it out");
        } else if endpoint.path().ends_with("/v1/traces") {
            self.add(FLAG, "must not name /v1/traces, which is added: leave that out");
        }
        Some(TracingOptions { endpoint, sample_percent })
    }

    /// Host headers: names without a scheme.
    pub(super) fn hosts(&mut self, hosts: Vec<String>) -> Vec<String> {
        const FLAG: &str = "--allowed-hosts";
        let hosts = self.items(FLAG, hosts);
        for host in hosts.iter().filter(|host| host.contains(['/', '@', '?', '#', ' '])) {
            self.add(
                FLAG,
                format!("'{host}' is no host: write it without scheme and path, such as mcp.example.com"),
            );
        }
        hosts
    }

    /// Origin headers: a scheme and a host.
    pub(super) fn origins(&mut self, origins: Vec<String>) -> Vec<String> {
        const FLAG: &str = "--allowed-origins";
        let origins = self.items(FLAG, origins);
        for origin in origins.iter().filter(|origin| origin.as_str() != "*") {
            let rest = origin.split_once("://").map_or("", |(_, rest)| rest);
            if rest.is_empty() || rest.contains(['/', '@', '?', '#', ' ', '*']) {
                self.add(
                    FLAG,
                    format!("'{origin}' is no origin: write scheme and host without a path, such as https://app.example"),
                );
            }
        }
        origins
    }

    /// A list without empty items.
    pub(super) fn items(&mut self, flag: &str, items: Vec<String>) -> Vec<String> {
        if items.iter().any(|item| item.trim().is_empty()) {
            self.add(flag, "holds an empty item: write it without a comma too many");
        }
        items.into_iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    }

    /// As many connections as can be counted.
    pub(super) fn connections(&mut self, setting: Setting<NonZeroUsize>) -> NonZeroUsize {
        let count = self.take("--max-connections", setting);
        let most = tokio::sync::Semaphore::MAX_PERMITS;
        if count.get() > most {
            self.add("--max-connections", format!("must be at most {most}"));
        }
        count
    }

    pub(super) fn result<T>(mut self, config: T) -> Result<T, ConfigError> {
        if self.is_empty() {
            return Ok(config);
        }
        self.in_file.sort();
        self.found.sort();
        Err(ConfigError([self.in_file, self.found].concat()))
    }
}

/// A variable with our prefix that no flag reads is a typing error.
pub(super) fn unknown_variables(env: impl IntoIterator<Item = String>) -> Vec<String> {
    let command = Cli::command();
    let known: BTreeSet<String> = command
        .get_subcommands()
        .flat_map(|subcommand| subcommand.get_arguments())
        .filter_map(|arg| arg.get_env()?.to_str().map(str::to_owned))
        .collect();
    let names: Vec<String> = env.into_iter().filter(|name| name.starts_with(ENV_PREFIX)).collect();
    let services: Vec<&str> = names.iter().filter_map(|name| name.strip_suffix("_SERVICE_HOST")).collect();
    let unknown = names.iter().filter(|name| !known.contains(*name) && !is_service_link(name, &services));
    unknown
        .map(|name| {
            // The prefix that all have would make any two of them alike.
            let rest = |name: &'_ str| name.trim_start_matches(ENV_PREFIX).to_owned();
            let rests: Vec<String> = known.iter().map(|name| rest(name)).collect();
            let hint = nearest(&rest(name), rests.iter().map(String::as_str));
            let hint = hint.map(|nearest| format!("did you mean {ENV_PREFIX}{nearest}?"));
            let hint = hint.unwrap_or_else(|| "see toolsearch-proxy serve --help".to_owned());
            format!("{name}: no setting has this environment variable; {hint}")
        })
        .collect()
}

/// Whether a variable is one of those that Kubernetes gives every pod for a service whose name starts like our prefix.
fn is_service_link(name: &str, services: &[&str]) -> bool {
    services.iter().filter_map(|service| name.strip_prefix(service)).any(|rest| {
        rest == "_PORT"
            || ["_SERVICE_HOST", "_SERVICE_PORT", "_PORT_"].iter().any(|start| rest.starts_with(start))
    })
}
