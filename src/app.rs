//! [`App`]: the only place where the parts are put together.

use crate::budget::Budget;
use crate::caller::Salt;
use crate::catalog::{CatalogCache, CatalogCacheOptions, CatalogStore, CatalogStoreOptions};
use crate::config::{EmbedderChoice, FetchModelConfig, ModelFolder, ServeConfig, TlsFiles};
use crate::dispatch::Dispatcher;
use crate::embedder::{
    ClientOptions, FetchError, FetchOptions, Manifest, Pins, StaticModel, fetch_model, open_model_folder,
};
use crate::host;
use crate::mcp::Instance;
use crate::outbound::{Tls, leads_to};
use crate::search::{Embed, Ranker, RankerOptions};
use crate::server::{self, Admission, EndpointOptions, OriginPolicy, PublicUrl, ServeOptions, Server};
use crate::telemetry::Metrics;
use crate::tools::{ToolOptions, Toolbox};
use crate::upstream::{HttpUpstream, HttpUpstreamOptions, MeteredUpstream, Upstream, UpstreamSetupError};
use std::future::Future;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

/// How often idle catalogues are looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(5);

/// The proxy, ready to be served.
pub struct App {
    server: Arc<Server>,
    certificates: Option<Arc<Certificates>>,
    serve_options: ServeOptions,
    drain_delay: Duration,
}

/// Why the process is to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Somebody sends other requests elsewhere, and needs a moment for it.
    Terminated,
    /// A person waits.
    Interrupted,
}

/// The proxy can't start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The upstream's client can't be built.
    #[error("--upstream-client-cert: {0}")]
    Identity(#[source] UpstreamSetupError),
    /// The same, for another reason.
    #[error("--upstream-ca: {0}")]
    Upstream(#[source] UpstreamSetupError),
    /// The model of `--model-dir` can't be used.
    #[error("--model-dir: {0}")]
    Model(#[from] FetchError),
    /// An address can't be bound.
    #[error("{flag}: can't listen on {address}: {source}")]
    Bind {
        /// The flag that names the address.
        flag: &'static str,
        /// The address.
        address: SocketAddr,
        /// What the operating system says.
        source: std::io::Error,
    },
}

impl App {
    /// The proxy in front of the upstream of the settings.
    ///
    /// # Errors
    /// When the upstream's client can't be built, or the model of the settings can't be used.
    pub fn new(config: &ServeConfig) -> Result<Self, StartError> {
        let instance = Instance::random();
        let budget = Budget::new(config.catalog_cache_bytes.0);
        let files = config.upstream_tls.clone();
        let tls = files.read().map_err(|_| StartError::Upstream(UpstreamSetupError::Certificates))?;
        let upstream = HttpUpstream::new(upstream_options(config, &instance, &budget, tls.clone()));
        let upstream = Arc::new(upstream.map_err(|error| match error {
            UpstreamSetupError::Identity => StartError::Identity(error),
            error => StartError::Upstream(error),
        })?);
        let mut app =
            Self::with_embedder(config, Arc::clone(&upstream) as _, &budget, instance, embedder(config)?);
        if !files.is_empty() {
            app.certificates = Some(Arc::new(Certificates { files, upstream, used: Mutex::new(tls) }));
        }
        budget.watch(host::resident_bytes, host::give_memory_back);
        Ok(app)
    }

    /// The proxy in front of any upstream. A model that can't be used is left out.
    pub fn with_upstream(config: &ServeConfig, upstream: Arc<dyn Upstream>) -> Self {
        let embedder = embedder(config).unwrap_or_else(|error| {
            tracing::error!(%error, "the model can't be used: search compares words only");
            None
        });
        let budget = Budget::new(config.catalog_cache_bytes.0);
        Self::with_embedder(config, upstream, &budget, Instance::random(), embedder)
    }

    fn with_embedder(
        config: &ServeConfig,
        upstream: Arc<dyn Upstream>,
        budget: &Arc<Budget>,
        instance: Instance,
        embedder: Option<Arc<dyn Embed>>,
    ) -> Self {
        let metrics = Arc::new(Metrics::new());
        let (name, is_wanted) = embedder_name(config);
        metrics.set_build(name, is_wanted && embedder.is_none());
        let upstream: Arc<dyn Upstream> = Arc::new(MeteredUpstream::new(upstream, Arc::clone(&metrics)));
        let ranker = Arc::new(Ranker::new(RankerOptions::default(), embedder));
        let store = Arc::new(CatalogStore::new(CatalogStoreOptions {
            ranker: Arc::clone(&ranker),
            write_tools: config.write_tools.clone(),
            trust_hint_changes: config.trust_hint_changes,
            budget: Arc::clone(budget),
        }));
        let cache_options = CatalogCacheOptions {
            ttl: config.catalog_ttl.0,
            stale_max: config.catalog_max_stale.0,
            idle_max: config.catalog_idle.0,
            listings_max: config.max_listings,
            wait_max: config.list_timeout.0,
            callers_max: config.max_callers,
        };
        let catalogs = CatalogCache::new(cache_options, Arc::clone(&upstream), Arc::clone(&store));
        let tool_options = ToolOptions {
            search_schemas: config.search_schemas,
            search_schema_bytes: config.search_schema_bytes.0,
            batch_calls_max: config.max_batch_calls,
            schema_cache_bytes: config.schema_cache_bytes.0,
        };
        let toolbox = Toolbox::new(
            tool_options,
            Arc::clone(&catalogs),
            Arc::clone(&upstream),
            ranker,
            Arc::clone(&metrics),
        );
        let server = Server {
            options: endpoint_options(config),
            upstream: Arc::clone(&upstream),
            dispatcher: Dispatcher::new(toolbox, Arc::clone(&catalogs), config.max_instructions),
            catalogs,
            store,
            admission: Admission::new(config.max_in_flight, config.max_in_flight_per_caller.get()),
            metrics,
            instance,
            salt: Salt::random(),
            is_draining: AtomicBool::new(false),
        };
        let serve_options = ServeOptions {
            connections_max: config.max_connections.get(),
            connections_per_address_max: config
                .max_connections_per_address
                .map_or(usize::MAX, NonZeroUsize::get),
            header_timeout: config.header_timeout.0,
            idle_timeout: config.idle_timeout.0,
            write_timeout: config.write_timeout.0,
            drain_timeout: config.drain_timeout.0,
        };
        let drain_delay = config.drain_delay.0;
        Self { server: Arc::new(server), certificates: None, serve_options, drain_delay }
    }

    /// The routes, for tests that need no socket.
    pub fn router(&self) -> axum::Router {
        server::router(Arc::clone(&self.server))
    }

    /// The catalogues, for tests that look at what is kept.
    pub fn catalogs(&self) -> &Arc<CatalogCache> {
        &self.server.catalogs
    }

    /// The files of certificates, for tests that change them; `None` without any.
    pub fn certificates(&self) -> Option<&Arc<Certificates>> {
        self.certificates.as_ref()
    }

    /// Serves both ports until `shutdown` completes and the requests in flight are done, the operator's port to the end.
    /// Once terminated, requests are taken for a while more, and each connection ends with its answer.
    ///
    /// Returns whether all requests finished in time.
    pub async fn serve(self, listeners: Listeners, shutdown: impl Future<Output = Stop>) -> bool {
        let (stop_admin, mut admin_stopped) = watch::channel(());
        let admin_router = server::admin_router(Arc::clone(&self.server));
        let admin =
            tokio::spawn(server::serve(listeners.admin, admin_router, ServeOptions::small(), async move {
                let _closed = admin_stopped.changed().await;
            }));
        let housekeeping =
            tokio::spawn(keep_house(Arc::clone(&self.server.catalogs), self.certificates.clone()));
        let draining = Arc::clone(&self.server);
        let drain_until = Arc::new(OnceLock::new());
        let (deadline, drain_timeout) = (Arc::clone(&drain_until), self.serve_options.drain_timeout);
        let delay = self.drain_delay;
        let shutdown = async move {
            let why = shutdown.await;
            draining.is_draining.store(true, Ordering::Relaxed);
            if why == Stop::Terminated && !delay.is_zero() {
                tracing::info!("stopping: requests are taken for --drain-delay more");
                tokio::time::sleep(delay).await;
            }
            deadline.get_or_init(|| Instant::now() + drain_timeout);
            tracing::info!("stopping: requests in flight may finish");
        };
        let router = server::router(Arc::clone(&self.server));
        let finished = server::serve(listeners.mcp, router, self.serve_options, shutdown).await;
        // Calls of clients that are gone have no connection to wait for; the deadline is the same.
        let deadline = *drain_until.get_or_init(Instant::now);
        let finished =
            finished && tokio::time::timeout_at(deadline, self.server.admission.empty()).await.is_ok();
        housekeeping.abort();
        drop(stop_admin);
        let _admin_is_done = admin.await;
        finished
    }
}

/// Frees what nobody asks for, also where nobody asks anything, and looks for renewed certificates.
async fn keep_house(catalogs: Arc<CatalogCache>, certificates: Option<Arc<Certificates>>) {
    let mut ticks = tokio::time::interval(HOUSEKEEPING);
    loop {
        ticks.tick().await;
        catalogs.forget_idle();
        if let Some(certificates) = certificates.clone() {
            // Whoever keeps the files may be slow.
            let _panicked = tokio::task::spawn_blocking(move || certificates.look_again()).await;
        }
    }
}

/// The files of TLS towards the upstream, and what of them is in use.
pub struct Certificates {
    files: TlsFiles,
    upstream: Arc<HttpUpstream>,
    used: Mutex<Tls>,
}

impl Certificates {
    /// Uses what is in the files by now. What can't be used changes nothing: it may be half written.
    pub fn look_again(&self) {
        let Ok(tls) = self.files.read() else {
            tracing::warn!("the certificates for the upstream can't be read again: the old ones stay in use");
            return;
        };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if *used == tls {
            return;
        }
        match self.upstream.use_tls(tls.clone()) {
            Ok(()) => {
                *used = tls;
                tracing::info!("the certificates for the upstream have changed and are in use");
            }
            Err(_) => {
                tracing::warn!(
                    "the changed certificates for the upstream can't be used: the old ones stay in use"
                );
            }
        }
    }
}

/// The two bound ports.
pub struct Listeners {
    mcp: TcpListener,
    admin: TcpListener,
}

impl Listeners {
    /// Binds both addresses.
    ///
    /// # Errors
    /// Names the flag and the address that can't be bound.
    pub async fn bind(listen: SocketAddr, admin_listen: SocketAddr) -> Result<Self, StartError> {
        let bind = async |flag, address| {
            TcpListener::bind(address).await.map_err(|source| StartError::Bind { flag, address, source })
        };
        Ok(Self { mcp: bind("--listen", listen).await?, admin: bind("--admin-listen", admin_listen).await? })
    }

    /// The address for MCP clients, its port chosen by now.
    pub fn mcp_address(&self) -> Option<SocketAddr> {
        self.mcp.local_addr().ok()
    }

    /// The operator's address, its port chosen by now.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.local_addr().ok()
    }
}

/// Says when clients dial a path that is not served here.
pub fn tell_unserved_path(public_url: Option<&Url>, listen: SocketAddr) {
    let Some(url) = public_url else { return };
    let path = url.path();
    match unserved(url, listen) {
        None => {}
        Some(Unserved::LedByRoute) => tracing::info!(
            path,
            "the path of --public-url is not served here: a route in front must lead it to /mcp/search"
        ),
        Some(Unserved::NotFound) => tracing::warn!(
            path,
            "clients that dial --public-url get 404: its path is none of /mcp/search, /mcp and /"
        ),
    }
}

/// What becomes of a path that is not served here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unserved {
    /// A route in front may lead it to one that is.
    LedByRoute,
    /// The URL is the very address that is listened on, so nothing is in between.
    NotFound,
}

fn unserved(public_url: &Url, listen: SocketAddr) -> Option<Unserved> {
    let is_direct = public_url.scheme() == "http" && leads_to(public_url, listen);
    let unserved = if is_direct { Unserved::NotFound } else { Unserved::LedByRoute };
    (!server::is_endpoint(public_url.path())).then_some(unserved)
}

/// The model of the settings. Without one, search compares words only, and says so in the log.
///
/// # Errors
/// Only for a folder that the operator chose: nothing stands in for it.
fn embedder(config: &ServeConfig) -> Result<Option<Arc<dyn Embed>>, FetchError> {
    if let Some(ModelFolder { path, manifest, is_unpinned }) = &config.model {
        let pins =
            if *is_unpinned { Pins::None } else { Pins::Of(Box::new(manifest_of(manifest.as_deref())?)) };
        return Ok(Some(open_model_folder(path, &pins)?));
    }
    Ok(match config.embedder {
        EmbedderChoice::None => None,
        EmbedderChoice::Builtin => match StaticModel::builtin() {
            Ok(model) => Some(model),
            Err(error) => {
                tracing::error!(%error, "the built-in model can't be used: search compares words only");
                None
            }
        },
    })
}

/// What the metrics call the model of the settings, and whether there should be one.
fn embedder_name(config: &ServeConfig) -> (&'static str, bool) {
    match (&config.model, config.embedder) {
        (Some(_), _) => ("folder", true),
        (None, EmbedderChoice::Builtin) => ("builtin", true),
        (None, EmbedderChoice::None) => ("none", false),
    }
}

fn manifest_of(text: Option<&str>) -> Result<Manifest, FetchError> {
    Ok(text.map_or_else(Manifest::built_in, Manifest::parse)?)
}

/// Brings a model's files as the settings say.
///
/// # Errors
/// What went wrong, with the exit code that says of which kind it is.
pub async fn fetch(config: FetchModelConfig) -> Result<(), FetchError> {
    let client = ClientOptions {
        proxy: config.proxy,
        ca_pem: config.ca,
        connect_timeout: config.connect_timeout.0,
        stall_timeout: config.stall_timeout.0,
    };
    fetch_model(FetchOptions {
        folder: config.model_dir,
        manifest: manifest_of(config.manifest.as_deref())?,
        base_url: config.base_url,
        client,
        retries: config.retries,
        confirm_pins: config.confirm_pins,
    })
    .await
}

fn upstream_options(
    config: &ServeConfig,
    instance: &Instance,
    budget: &Arc<Budget>,
    tls: Tls,
) -> HttpUpstreamOptions {
    HttpUpstreamOptions {
        url: config.upstream.clone(),
        call_timeout: config.upstream_timeout.0,
        list_timeout: config.list_timeout.0,
        connect_timeout: config.connect_timeout.0,
        response_bytes_max: config.max_response_bytes.0,
        listing_bytes_max: config.max_listing_bytes.0,
        pages_max: config.max_pages.get(),
        tools_max: config.max_tools.get(),
        budget: Arc::clone(budget),
        callers_max: config.max_callers,
        instance: instance.clone(),
        tls,
    }
}

fn endpoint_options(config: &ServeConfig) -> EndpointOptions {
    let is_loopback = config.listen.ip().is_loopback();
    let public_url = match &config.public_url {
        Some(url) => PublicUrl::Fixed(url.clone()),
        None if is_loopback => PublicUrl::OfRequest,
        None => PublicUrl::Unknown,
    };
    EndpointOptions {
        body_bytes_max: config.max_request_bytes.0,
        body_timeout: config.body_timeout.0,
        origins: OriginPolicy {
            is_loopback,
            hosts: config.allowed_hosts.clone(),
            public_host: config.public_url.as_ref().and_then(|url| url.host_str()).map(str::to_owned),
            origins: config.allowed_origins.clone(),
        },
        public_url,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_not_served_is_wrong_only_where_no_route_can_be_in_front() {
        for (url, expected) in [
            ("https://gateway.example/mcp/search", None),
            ("https://gateway.example", None),
            ("http://localhost:8080/mcp", None),
            ("https://gateway.example/tools", Some(Unserved::LedByRoute)),
            ("https://gateway.example/mcp/search/", Some(Unserved::LedByRoute)),
            ("http://localhost:3000/tools", Some(Unserved::LedByRoute)),
            ("https://localhost:8080/tools", Some(Unserved::LedByRoute)),
            ("http://localhost:8080/tools", Some(Unserved::NotFound)),
            ("http://127.0.0.1:8080/mcp/search/", Some(Unserved::NotFound)),
        ] {
            let url = Url::parse(url).unwrap();
            assert_eq!(unserved(&url, SocketAddr::from(([127, 0, 0, 1], 8080))), expected, "{url}");
        }
    }
}
