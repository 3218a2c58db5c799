//! [`Tracing`]: sends spans to an OpenTelemetry collector, as OTLP over HTTP with protobuf.
//!
//! Spans wait in a bounded queue and go out in batches from a thread of their own. A collector that is slow or gone costs
//! spans, never a request.

use super::spans;
use crate::outbound;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::registry::LookupSpan;
use url::Url;

/// For one batch, its answer included.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// What is still waiting at the end may take so long.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Where traces go, and how many.
#[derive(Clone, Debug)]
pub struct TracingOptions {
    /// The collector, without `/v1/traces`.
    pub endpoint: Url,
    /// Of requests that come without a trace; those with one follow its mark.
    pub sample_percent: usize,
}

/// Traces can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum TracingSetupError {
    /// The exporter refused its settings, which the variables of OpenTelemetry are part of.
    #[error("--otlp-endpoint: traces can't be sent: {0}")]
    Exporter(#[from] ExporterBuildError),
    /// The HTTP client refused its settings.
    #[error("--otlp-endpoint: the HTTP client for traces can't be built")]
    Client(#[source] reqwest::Error),
}

/// Sends spans while it lives.
pub struct Tracing {
    provider: SdkTracerProvider,
}

impl Tracing {
    /// Sends to the collector of the options from now on. Must be called inside of a runtime.
    ///
    /// # Errors
    /// When the exporter or its client can't be built. That nobody listens there is no error.
    pub fn new(options: &TracingOptions) -> Result<Self, TracingSetupError> {
        let mut url = options.endpoint.clone();
        url.set_path(&format!("{}/v1/traces", url.path().trim_end_matches('/')));
        let client = Client {
            http: client().map_err(TracingSetupError::Client)?,
            runtime: Handle::current(),
            is_failing: AtomicBool::new(false).into(),
        };
        let exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(url)
            .with_timeout(EXPORT_TIMEOUT)
            .build()?;
        let resource = Resource::builder()
            .with_service_name("toolsearch-proxy")
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build();
        let ratio = options.sample_percent.min(100) as f64 / 100.0;
        let provider = SdkTracerProvider::builder()
            .with_resource(resource)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(ratio))))
            .with_batch_exporter(exporter)
            .build();
        Ok(Self { provider })
    }

    /// Turns our spans into OpenTelemetry's. Neither log lines nor places in the code become part of them.
    pub(super) fn layer<S>(&self) -> impl tracing_subscriber::Layer<S> + use<S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer: SdkTracer = self.provider.tracer("toolsearch-proxy");
        let filter = tracing_subscriber::filter::filter_fn(|metadata| {
            metadata.is_span() && metadata.target() == spans::TARGET
        });
        let layer = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_target(false)
            .with_level(false)
            .with_tracked_inactivity(false);
        tracing_subscriber::Layer::with_filter(layer, filter)
    }

    /// Sends what is still waiting, for a moment at most.
    pub async fn finish(self) {
        let finish = move || self.provider.shutdown_with_timeout(FINISH_TIMEOUT);
        if !matches!(tokio::task::spawn_blocking(finish).await, Ok(Ok(()))) {
            tracing::warn!("the last traces could not be sent to --otlp-endpoint");
        }
    }
}

/// A client of its own: this hop has nothing to do with callers and their credentials.
fn client() -> Result<reqwest::Client, reqwest::Error> {
    outbound::client(&outbound::Tls::default(), &[], Duration::from_secs(3))
        .expect("the built-in roots need no reading")
        .timeout(EXPORT_TIMEOUT)
        .build()
}

/// Our HTTP client for the exporter, which calls it from a thread without a runtime.
#[derive(Clone, Debug)]
struct Client {
    http: reqwest::Client,
    runtime: Handle,
    /// A collector that is gone is told once, not with each batch.
    is_failing: Arc<AtomicBool>,
}

impl Client {
    async fn post(self, request: Request<bytes::Bytes>) -> Result<Response<bytes::Bytes>, reqwest::Error> {
        let (parts, body) = request.into_parts();
        let url = parts.uri.to_string();
        let mut answer = self.http.post(url).headers(parts.headers).body(body).send().await?;
        let mut response = Response::new(bytes::Bytes::new());
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        // What a collector says of a batch is a few bytes; more is not waited for.
        if let Some(first) = answer.chunk().await? {
            *response.body_mut() = first;
        }
        Ok(response)
    }

    fn note(&self, failure: Option<&str>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(why) if !was_failing => tracing::warn!("traces can't be sent to --otlp-endpoint: {why}"),
            None if was_failing => tracing::info!("traces are sent to --otlp-endpoint again"),
            _ => {}
        }
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<bytes::Bytes>) -> Result<Response<bytes::Bytes>, HttpError> {
        let answer = self.runtime.spawn(self.clone().post(request)).await?;
        match &answer {
            Ok(response) if response.status().is_success() => self.note(None),
            Ok(response) => self.note(Some(&format!("it answered HTTP {}", response.status().as_u16()))),
            Err(_) => self.note(Some("it can't be reached")),
        }
        Ok(answer?)
    }
}
