//! Every flag, its environment variable and its key in a settings file, their checks, and the docs page made from them.
//!
//! Parsing never stops at the first bad value: a value that can't be read is kept as a problem, and
//! [`ServeArgs::check`] tells all of them at once. Nothing else reads the environment.

mod command_line;
mod fetch_model;
mod file;
mod healthcheck;
mod nearest;
mod origin;
mod page;
mod problems;
mod tls;
mod values;

pub use fetch_model::{FetchModelArgs, FetchModelConfig};
pub use healthcheck::{HealthcheckArgs, HealthcheckConfig};
pub use page::configuration_page;
pub use tls::TlsFiles;
use values::value;
pub use values::{ByteSize, Seconds, Setting, Switch};

use crate::catalog::WriteTools;
use crate::eval::EvalArgs;
use crate::telemetry::{LogFormat, TracingOptions};
use clap::{Args, Parser, Subcommand};
use origin::Settings;
use problems::Problems;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroUsize};
use std::path::PathBuf;
use std::str::FromStr;
use tls::TlsArgs;
use url::Url;

/// Environment variables that start so are ours.
pub const ENV_PREFIX: &str = "TOOLSEARCH_";

/// An MCP server that lets a model use thousands of tools through five: it stands in front of an MCP gateway,
/// forwards each caller's own Authorization header, and shows a model search, describe, read, batch-read and write.
#[derive(Debug, Parser)]
#[command(name = "toolsearch-proxy", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the proxy in front of an upstream MCP server
    Serve(Box<ServeArgs>),
    /// Try it without a gateway: a made-up upstream with hundreds of tools, and the proxy in front of it
    Demo(DemoArgs),
    /// Measure how well questions find their tools in a catalogue of yours
    Eval(Box<EvalArgs>),
    /// Download a larger model for search in more languages, checked against pinned digests
    FetchModel(Box<FetchModelArgs>),
    /// Look at the settings of serve
    Config {
        /// What to do with them.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// Ask a running proxy whether it takes requests: for containers without curl. Exit code 0 or 1
    Healthcheck(HealthcheckArgs),
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the settings as serve would, and print them with where each came from, in the form of a settings file
    Check(Box<ServeArgs>),
}

/// Which model gives texts their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmbedderChoice {
    /// The model that is part of the binary: English and many other languages.
    Builtin,
    /// Words only.
    None,
}

impl FromStr for EmbedderChoice {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "builtin" => Ok(Self::Builtin),
            "none" => Ok(Self::None),
            _ => Err("choose builtin or none"),
        }
    }
}

/// Settings of `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Stop after the first search instead of serving until Ctrl-C
    #[arg(long)]
    pub exit: bool,
    /// Address that the proxy listens on; a free port is taken where this one is not free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", value_parser = value::<SocketAddr>)]
    pub listen: SocketAddr,
    /// What to search for first
    #[arg(long, value_name = "TEXT", default_value = "who is on call this week")]
    pub query: String,
}

/// Settings of `serve`, as given.
#[derive(Args, Debug)]
pub struct ServeArgs {
    #[command(flatten)]
    file: FileArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    #[command(flatten)]
    tools: ToolArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    logs: LogArgs,
    /// Where each of them came from.
    #[arg(skip)]
    settings: Settings,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Settings file")]
struct FileArgs {
    /// TOML file with settings, each key a flag without its dashes: catalog-ttl = "5m". Flags and variables win over it
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_CONFIG")]
    config: Option<PathBuf>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Network")]
struct NetworkArgs {
    /// MCP endpoint of the server with the many tools, for instance https://gateway.example/mcp/all. Callers'
    /// Authorization headers are sent there and nowhere else, so it must be the same protected resource
    #[arg(long, value_name = "URL", env = "TOOLSEARCH_UPSTREAM")]
    upstream: Option<Setting<Url>>,
    /// Allow an http:// upstream that is not on this machine: tokens then cross the network unencrypted
    #[arg(
        long,
        value_name = "BOOLEAN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        env = "TOOLSEARCH_ALLOW_PLAINTEXT_UPSTREAM"
    )]
    allow_plaintext_upstream: Setting<Switch>,
    #[command(flatten)]
    tls: TlsArgs,
    /// Address for MCP clients, at /mcp/search, /mcp and /. Loopback by default: put a gateway in front
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080", env = "TOOLSEARCH_LISTEN")]
    listen: Setting<SocketAddr>,
    /// Address for /livez, /readyz and /metrics
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9090", env = "TOOLSEARCH_ADMIN_LISTEN")]
    admin_listen: Setting<SocketAddr>,
    /// URL of the MCP endpoint as clients dial it, for instance https://gateway.example/mcp/search: a login through the
    /// proxy is then for that URL. Without it, what the request says when listening on loopback, and the upstream's
    /// challenge unchanged otherwise
    #[arg(long, value_name = "URL", env = "TOOLSEARCH_PUBLIC_URL")]
    public_url: Option<Setting<Url>>,
    /// Host headers to accept, separated by commas; * accepts any. Without it, loopback names when listening on
    /// loopback, and any otherwise
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', env = "TOOLSEARCH_ALLOWED_HOSTS")]
    allowed_hosts: Vec<String>,
    /// Origin headers to accept, separated by commas, for web pages that connect: they are sent the CORS headers with
    /// which a browser lets them read answers. Without it, loopback origins are accepted when listening on loopback, and
    /// none otherwise, and no CORS header is ever sent
    #[arg(long, value_name = "ORIGIN,…", value_delimiter = ',', env = "TOOLSEARCH_ALLOWED_ORIGINS")]
    allowed_origins: Vec<String>,
    /// Longest time for one tool call, from sending it to its whole answer
    #[arg(long, value_name = "TIME", default_value = "2m", env = "TOOLSEARCH_UPSTREAM_TIMEOUT")]
    upstream_timeout: Setting<Seconds>,
    /// Longest time for a listing of tools with all its pages
    #[arg(long, value_name = "TIME", default_value = "1m", env = "TOOLSEARCH_LIST_TIMEOUT")]
    list_timeout: Setting<Seconds>,
    /// Longest time for connecting to the upstream
    #[arg(long, value_name = "TIME", default_value = "3s", env = "TOOLSEARCH_CONNECT_TIMEOUT")]
    connect_timeout: Setting<Seconds>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Catalogue")]
struct CatalogArgs {
    /// How long a caller's listing is fresh; the upstream's ttlMs can only shorten it
    #[arg(long, value_name = "TIME", default_value = "10m", env = "TOOLSEARCH_CATALOG_TTL")]
    catalog_ttl: Setting<Seconds>,
    /// How much longer it is served while it is listed again in the background
    #[arg(long, value_name = "TIME", default_value = "1m", env = "TOOLSEARCH_CATALOG_MAX_STALE")]
    catalog_max_stale: Setting<Seconds>,
    /// How long the listing of a caller who asks nothing is remembered. It is not served once it is old, but what was a
    /// write in it stays one
    #[arg(long, value_name = "TIME", default_value = "1h", env = "TOOLSEARCH_CATALOG_IDLE")]
    catalog_idle: Setting<Seconds>,
    /// Memory for tools and their indexes, listings that are being read, and what the process takes beside those; the
    /// least recently used listings go first
    #[arg(long, value_name = "BYTES", default_value = "256MiB", env = "TOOLSEARCH_CATALOG_CACHE_BYTES")]
    catalog_cache_bytes: Setting<ByteSize>,
    /// Memory for the input schemas of tools that are called, made ready to check arguments, by estimate; the least
    /// recently used go first
    #[arg(long, value_name = "BYTES", default_value = "32MiB", env = "TOOLSEARCH_SCHEMA_CACHE_BYTES")]
    schema_cache_bytes: Setting<ByteSize>,
    /// Most callers whose listing is remembered
    #[arg(long, value_name = "COUNT", default_value = "100000", env = "TOOLSEARCH_MAX_CALLERS")]
    max_callers: Setting<NonZeroUsize>,
    /// Most listings under way at once; more wait, for up to --list-timeout
    #[arg(long, value_name = "COUNT", default_value = "64", env = "TOOLSEARCH_MAX_LISTINGS")]
    max_listings: Setting<NonZeroUsize>,
    /// Most tools in one listing
    #[arg(long, value_name = "COUNT", default_value = "20000", env = "TOOLSEARCH_MAX_TOOLS")]
    max_tools: Setting<NonZeroUsize>,
    /// Most pages in one listing
    #[arg(long, value_name = "COUNT", default_value = "200", env = "TOOLSEARCH_MAX_PAGES")]
    max_pages: Setting<NonZeroUsize>,
    /// Largest listing, all its pages together
    #[arg(long, value_name = "BYTES", default_value = "64MiB", env = "TOOLSEARCH_MAX_LISTING_BYTES")]
    max_listing_bytes: Setting<ByteSize>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Tools")]
struct ToolArgs {
    /// Tools that count as writes whatever the upstream marks, as globs separated by commas: git__push*,*delete*
    #[arg(long, value_name = "GLOB,…", value_delimiter = ',', env = "TOOLSEARCH_WRITE_TOOLS")]
    write_tools: Vec<String>,
    /// Let a tool that was a write become a read-only one when the upstream marks it so in a later listing. Without it,
    /// it stays a write for the callers who knew it as one
    #[arg(
        long,
        value_name = "BOOLEAN",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        env = "TOOLSEARCH_TRUST_HINT_CHANGES"
    )]
    trust_hint_changes: Setting<Switch>,
    /// How search understands a query: builtin adds the meaning of words, in many languages, to the words themselves;
    /// none compares words only
    #[arg(long, value_name = "NAME", default_value = "builtin", env = "TOOLSEARCH_EMBEDDER")]
    embedder: Setting<EmbedderChoice>,
    /// Folder of a model to use instead of the built-in one, as fetch-model makes it. Its files must have the digests
    /// that are pinned, and only their owner may be able to write there
    #[arg(long, value_name = "DIR", env = "TOOLSEARCH_MODEL_DIR")]
    model_dir: Option<PathBuf>,
    /// Manifest with the digests of the model in --model-dir, where it is not the one that fetch-model brings by itself
    #[arg(long, value_name = "FILE", env = "TOOLSEARCH_MODEL_MANIFEST")]
    model_manifest: Option<PathBuf>,
    /// Use any model2vec folder as --model-dir, without digests to compare its files with
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value = "false",
        default_missing_value = "true",
        env = "TOOLSEARCH_MODEL_UNPINNED"
    )]
    model_unpinned: Setting<Switch>,
    /// How many of a search's best hits come with their input schema
    #[arg(long, value_name = "COUNT", default_value = "3", env = "TOOLSEARCH_SEARCH_SCHEMAS")]
    search_schemas: Setting<usize>,
    /// Largest input schema in a search answer; a larger one is made compact
    #[arg(long, value_name = "BYTES", default_value = "4KiB", env = "TOOLSEARCH_SEARCH_SCHEMA_BYTES")]
    search_schema_bytes: Setting<ByteSize>,
    /// Most calls in one call_read_tools; 0 leaves that tool out
    #[arg(long, value_name = "COUNT", default_value = "10", env = "TOOLSEARCH_MAX_BATCH_CALLS")]
    max_batch_calls: Setting<usize>,
    /// Most characters of the upstream's instructions that are passed on
    #[arg(long, value_name = "COUNT", default_value = "10000", env = "TOOLSEARCH_MAX_INSTRUCTIONS")]
    max_instructions: Setting<usize>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Largest request body of a client
    #[arg(long, value_name = "BYTES", default_value = "1MiB", env = "TOOLSEARCH_MAX_REQUEST_BYTES")]
    max_request_bytes: Setting<ByteSize>,
    /// Largest result of one tool call
    #[arg(long, value_name = "BYTES", default_value = "16MiB", env = "TOOLSEARCH_MAX_RESPONSE_BYTES")]
    max_response_bytes: Setting<ByteSize>,
    /// Most open connections of clients; a new one then takes the place of one that has no request
    #[arg(long, value_name = "COUNT", default_value = "2048", env = "TOOLSEARCH_MAX_CONNECTIONS")]
    max_connections: Setting<NonZeroUsize>,
    /// Most open connections of one address; one more is closed at once. 0 sets no limit: behind a gateway all come from
    /// one address
    #[arg(long, value_name = "COUNT", default_value = "0", env = "TOOLSEARCH_MAX_CONNECTIONS_PER_ADDRESS")]
    max_connections_per_address: Setting<usize>,
    /// Most requests in flight; more get 503 at once
    #[arg(long, value_name = "COUNT", default_value = "512", env = "TOOLSEARCH_MAX_IN_FLIGHT")]
    max_in_flight: Setting<NonZeroU16>,
    /// Most requests in flight of one caller; more get 503 at once
    #[arg(long, value_name = "COUNT", default_value = "64", env = "TOOLSEARCH_MAX_IN_FLIGHT_PER_CALLER")]
    max_in_flight_per_caller: Setting<NonZeroUsize>,
    /// Longest time for a request's headers to arrive, from their first byte
    #[arg(long, value_name = "TIME", default_value = "10s", env = "TOOLSEARCH_HEADER_TIMEOUT")]
    header_timeout: Setting<Seconds>,
    /// Longest time for a connection without requests: more than a gateway in front keeps its idle ones, so that it is
    /// the gateway that closes them
    #[arg(long, value_name = "TIME", default_value = "2m", env = "TOOLSEARCH_IDLE_TIMEOUT")]
    idle_timeout: Setting<Seconds>,
    /// Longest time for a request's body to arrive
    #[arg(long, value_name = "TIME", default_value = "15s", env = "TOOLSEARCH_BODY_TIMEOUT")]
    body_timeout: Setting<Seconds>,
    /// Longest time that a client takes no bytes of its answer
    #[arg(long, value_name = "TIME", default_value = "30s", env = "TOOLSEARCH_WRITE_TIMEOUT")]
    write_timeout: Setting<Seconds>,
    /// How long new requests are still taken after SIGTERM, while /readyz says that this process stops, so that a balancer
    /// can turn to others. Ctrl-C does not wait
    #[arg(long, value_name = "TIME", default_value = "5s", env = "TOOLSEARCH_DRAIN_DELAY")]
    drain_delay: Setting<Seconds>,
    /// How long requests in flight may go on after that
    #[arg(long, value_name = "TIME", default_value = "10s", env = "TOOLSEARCH_DRAIN_TIMEOUT")]
    drain_timeout: Setting<Seconds>,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Logs and traces")]
struct LogArgs {
    /// How log lines on standard error look: text for people, or json
    #[arg(long, value_name = "FORMAT", default_value = "text", env = "TOOLSEARCH_LOG_FORMAT")]
    log_format: Setting<LogFormat>,
    /// Least severe level that is logged; info is one line a request. No level logs tokens, queries, arguments or
    /// results
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "TOOLSEARCH_LOG_LEVEL")]
    log_level: Setting<tracing::Level>,
    /// OpenTelemetry collector that traces go to, at its /v1/traces as OTLP over HTTP, for instance
    /// http://127.0.0.1:4318. Without it nothing is traced. Headers for it are taken from OTEL_EXPORTER_OTLP_HEADERS
    #[arg(long, value_name = "URL", env = "TOOLSEARCH_OTLP_ENDPOINT")]
    otlp_endpoint: Option<Setting<Url>>,
    /// How many of a hundred requests are traced; those that come with a trace follow its mark instead
    #[arg(long, value_name = "COUNT", default_value = "100", env = "TOOLSEARCH_OTLP_SAMPLE_PERCENT")]
    otlp_sample_percent: Setting<usize>,
}

/// Settings of `serve`, each a value that can be used.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub upstream: Url,
    pub upstream_tls: TlsFiles,
    pub listen: SocketAddr,
    pub admin_listen: SocketAddr,
    pub public_url: Option<Url>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub upstream_timeout: Seconds,
    pub list_timeout: Seconds,
    pub connect_timeout: Seconds,
    pub catalog_ttl: Seconds,
    pub catalog_max_stale: Seconds,
    pub catalog_idle: Seconds,
    pub catalog_cache_bytes: ByteSize,
    pub schema_cache_bytes: ByteSize,
    pub max_callers: NonZeroUsize,
    pub max_listings: NonZeroUsize,
    pub max_tools: NonZeroUsize,
    pub max_pages: NonZeroUsize,
    pub max_listing_bytes: ByteSize,
    pub write_tools: WriteTools,
    pub trust_hint_changes: bool,
    pub embedder: EmbedderChoice,
    pub model: Option<ModelFolder>,
    pub search_schemas: usize,
    pub search_schema_bytes: ByteSize,
    pub max_batch_calls: usize,
    pub max_instructions: usize,
    pub max_request_bytes: ByteSize,
    pub max_response_bytes: ByteSize,
    pub max_connections: NonZeroUsize,
    pub max_connections_per_address: Option<NonZeroUsize>,
    pub max_in_flight: u32,
    pub max_in_flight_per_caller: NonZeroUsize,
    pub header_timeout: Seconds,
    pub idle_timeout: Seconds,
    pub body_timeout: Seconds,
    pub write_timeout: Seconds,
    pub drain_delay: Seconds,
    pub drain_timeout: Seconds,
    pub log_format: LogFormat,
    pub log_level: tracing::Level,
    pub tracing: Option<TracingOptions>,
}

/// A variable whose name the operator chose; nothing else outside of the flags reads the environment.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A model to be used instead of the built-in one.
#[derive(Clone, Debug)]
pub struct ModelFolder {
    pub path: PathBuf,
    /// The text of the manifest, where it is not the one of the binary.
    pub manifest: Option<String>,
    pub is_unpinned: bool,
}

/// Everything that is wrong with the settings.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

impl ServeArgs {
    /// All settings with where each came from, as a settings file that sets the same.
    pub fn as_file(&self) -> String {
        self.settings.as_file()
    }

    /// Checks all settings, and those of the environment that nobody reads.
    ///
    /// # Errors
    /// All problems at once.
    pub fn check(self, env: impl IntoIterator<Item = String>) -> Result<ServeConfig, ConfigError> {
        let mut problems = Problems::of(env, &self.settings);
        let Self { file: _, network, catalog, tools, limits, logs, settings: _ } = self;
        let allow_plaintext = problems.take("--allow-plaintext-upstream", network.allow_plaintext_upstream).0;
        let upstream = problems.upstream(network.upstream, allow_plaintext);
        let listen = problems.take("--listen", network.listen);
        let admin_listen = problems.admin_listen(network.admin_listen);
        if listen == admin_listen && listen.port() != 0 {
            problems.add("--admin-listen", "must differ from --listen");
        }
        problems.not_itself(&upstream, listen);
        let model = problems.model(&tools);
        let write_tools = WriteTools::new(&problems.items("--write-tools", tools.write_tools));
        let write_tools = write_tools.unwrap_or_else(|error| {
            problems.add("--write-tools", error);
            WriteTools::default()
        });
        let config = ServeConfig {
            upstream,
            upstream_tls: problems.tls(network.tls),
            listen,
            admin_listen,
            public_url: network.public_url.map(|url| problems.public_url(url)),
            allowed_hosts: problems.hosts(network.allowed_hosts),
            allowed_origins: problems.origins(network.allowed_origins),
            upstream_timeout: problems.positive("--upstream-timeout", network.upstream_timeout),
            list_timeout: problems.positive("--list-timeout", network.list_timeout),
            connect_timeout: problems.positive("--connect-timeout", network.connect_timeout),
            catalog_ttl: problems.positive("--catalog-ttl", catalog.catalog_ttl),
            catalog_max_stale: problems.take("--catalog-max-stale", catalog.catalog_max_stale),
            catalog_idle: problems.positive("--catalog-idle", catalog.catalog_idle),
            catalog_cache_bytes: problems.take("--catalog-cache-bytes", catalog.catalog_cache_bytes),
            schema_cache_bytes: problems.take("--schema-cache-bytes", catalog.schema_cache_bytes),
            max_callers: problems.take("--max-callers", catalog.max_callers),
            max_listings: problems.take("--max-listings", catalog.max_listings),
            max_tools: problems.take("--max-tools", catalog.max_tools),
            max_pages: problems.take("--max-pages", catalog.max_pages),
            max_listing_bytes: problems.take("--max-listing-bytes", catalog.max_listing_bytes),
            write_tools,
            trust_hint_changes: problems.take("--trust-hint-changes", tools.trust_hint_changes).0,
            embedder: problems.take("--embedder", tools.embedder),
            model,
            search_schemas: problems.take("--search-schemas", tools.search_schemas),
            search_schema_bytes: problems.take("--search-schema-bytes", tools.search_schema_bytes),
            max_batch_calls: problems.take("--max-batch-calls", tools.max_batch_calls),
            max_instructions: problems.take("--max-instructions", tools.max_instructions),
            max_request_bytes: problems.take("--max-request-bytes", limits.max_request_bytes),
            max_response_bytes: problems.take("--max-response-bytes", limits.max_response_bytes),
            max_connections: problems.connections(limits.max_connections),
            max_connections_per_address: NonZeroUsize::new(
                problems.take("--max-connections-per-address", limits.max_connections_per_address),
            ),
            max_in_flight: problems.take("--max-in-flight", limits.max_in_flight).get().into(),
            max_in_flight_per_caller: problems
                .take("--max-in-flight-per-caller", limits.max_in_flight_per_caller),
            header_timeout: problems.positive("--header-timeout", limits.header_timeout),
            idle_timeout: problems.positive("--idle-timeout", limits.idle_timeout),
            body_timeout: problems.positive("--body-timeout", limits.body_timeout),
            write_timeout: problems.positive("--write-timeout", limits.write_timeout),
            drain_delay: problems.take("--drain-delay", limits.drain_delay),
            drain_timeout: problems.take("--drain-timeout", limits.drain_timeout),
            log_format: problems.take("--log-format", logs.log_format),
            log_level: problems.take("--log-level", logs.log_level),
            tracing: problems.tracing(logs.otlp_endpoint, logs.otlp_sample_percent),
        };
        problems.result(config)
    }
}

#[cfg(test)]
mod tests;
