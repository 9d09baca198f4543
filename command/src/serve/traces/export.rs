//! Exports spans over OTLP.

use std::env;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::trace_context::{SpanContexts, TraceContext};
use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{TraceContextExt as _, TracerProvider as _};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::WithExportConfig as _;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::resource::EnvResourceDetector;
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider, SpanData, SpanExporter};
use tracing::{Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::configuration::TracingConfiguration;
use crate::Failure;
use crate::serve::Log;

/// The name of the service and of its tracer.
const SERVICE: &str = "apiserver";

/// Collects spans and sends them in batches.
#[derive(Debug)]
pub(super) struct Exporter {
    provider: SdkTracerProvider,
}

impl Exporter {
    /// Starts an exporter to the endpoint in the configuration or in the environment.
    ///
    /// Without a configuration, the environment also selects the sampler.
    ///
    /// Must be called in a tokio runtime, because the connection runs on it.
    ///
    /// # Errors
    /// Returns an error if the endpoint is invalid or not supported by admit.
    ///
    /// Source: component-base tracing/utils.go, `NewProvider`; apiserver pkg/server/options/tracing.go, `ApplyTo`.
    pub(super) fn start(configuration: Option<&TracingConfiguration>, log: Log) -> Result<Self, Failure> {
        let mut exporter = opentelemetry_otlp::SpanExporter::builder().with_tonic();
        if let Some(endpoint) = configuration.and_then(|configuration| configuration.endpoint.as_deref()) {
            exporter = exporter.with_endpoint(url(endpoint)?);
        } else if let Some(name) = environment_is_not_imitated() {
            return Err(Failure::unsupported(format!(
                "{name}: admit exports spans only over gRPC without TLS"
            )));
        }
        let exporter = exporter
            .build()
            .map_err(|error| Failure::environment(format!("cannot export spans: {error}")))?;
        let resource = Resource::builder_empty()
            .with_detector(Box::new(EnvResourceDetector::new()))
            .with_attribute(KeyValue::new("service.name", SERVICE))
            .with_attribute(KeyValue::new(
                "service.instance.id",
                harness::metrics::identity(&crate::hostname()),
            ))
            .build();
        let mut provider = SdkTracerProvider::builder()
            .with_batch_exporter(Reporting { exporter, log, is_failing: AtomicBool::new(false) })
            .with_resource(resource);
        if let Some(configuration) = configuration {
            let sampler = match configuration.sampling_rate_per_million {
                ..=0 => Sampler::AlwaysOff,
                rate => Sampler::TraceIdRatioBased(f64::from(rate) / 1e6),
            };
            provider = provider.with_sampler(Sampler::ParentBased(Box::new(sampler)));
        }
        Ok(Self { provider: provider.build() })
    }

    /// Returns a layer that converts `tracing` spans to OpenTelemetry. It does not add fields such as the level.
    pub(super) fn layer<S>(&self) -> OpenTelemetryLayer<S, SdkTracer>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.provider.tracer(SERVICE))
            .with_level(false)
            .with_location(false)
            .with_target(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
    }

    pub(super) fn contexts() -> Arc<dyn SpanContexts> {
        Arc::new(Contexts::default())
    }

    /// Sends the remaining spans and stops the exporter.
    pub(super) fn stop(&self) {
        // The exporter logs errors.
        let _ = self.provider.shutdown();
    }
}

/// Converts an endpoint in gRPC's syntax, such as `host:port` or `dns:///host:port`, to a URL.
fn url(endpoint: &str) -> Result<String, Failure> {
    match endpoint.strip_prefix("dns:///").unwrap_or(endpoint) {
        "" => Ok("http://localhost:4317".to_owned()),
        address if !address.contains('/') => Ok(format!("http://{address}")),
        _ => {
            let what = format!("--tracing-config-file: endpoint {endpoint}: admit supports only host:port");
            Err(Failure::unsupported(what))
        }
    }
}

/// Returns the environment variable, if any, that requests a protocol that admit does not support.
fn environment_is_not_imitated() -> Option<&'static str> {
    let is = |name: &str, asks: fn(&str) -> bool| env::var(name).is_ok_and(|value| asks(&value));
    let has_tls = |value: &str| value.starts_with("https:");
    let is_no_grpc = |value: &str| !value.is_empty() && value != "grpc";
    [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", has_tls as fn(&str) -> bool),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", has_tls),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", is_no_grpc),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", is_no_grpc),
    ]
    .into_iter()
    .find_map(|(name, asks)| is(name, asks).then_some(name))
}

/// An exporter that logs when exporting starts to fail and when it recovers.
struct Reporting<T> {
    exporter: T,
    log: Log,
    is_failing: AtomicBool,
}

impl<T> fmt::Debug for Reporting<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reporting").field("is_failing", &self.is_failing).finish_non_exhaustive()
    }
}

impl<T: SpanExporter> SpanExporter for Reporting<T> {
    async fn export(&self, mut batch: Vec<SpanData>) -> OTelSdkResult {
        for event in batch.iter_mut().flat_map(|span| span.events.events.iter_mut()) {
            // The layer removes these attributes only from spans.
            event.attributes.retain(|attribute| !["level", "target"].contains(&attribute.key.as_str()));
        }
        let exported = self.exporter.export(batch).await;
        let failed_before = self.is_failing.swap(exported.is_err(), Ordering::Relaxed);
        match &exported {
            Err(error) if !failed_before => self.log.error(&format!("cannot export spans: {error}")),
            Ok(()) if failed_before => self.log.info("spans are exported again"),
            Ok(()) | Err(_) => {}
        }
        exported
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

/// Converts spans of `tracing` to OpenTelemetry span contexts and back.
#[derive(Debug, Default)]
struct Contexts {
    propagator: TraceContextPropagator,
}

impl SpanContexts for Contexts {
    fn begin(&self, request: &Span, headers: &HeaderMap, is_trusted: bool) {
        let trace = TraceContext::from_request(headers);
        let parent = self.propagator.extract_with_context(&Context::new(), &Headers(&trace.headers()));
        if !parent.span().span_context().is_valid() {
            return;
        }
        if is_trusted {
            // Fails only for a span that has already started.
            let _ = request.set_parent(parent);
        } else {
            request.add_link(parent.span().span_context().clone());
        }
    }

    fn headers(&self, span: &Span) -> HeaderMap {
        let mut headers = HeaderMap::new();
        self.propagator.inject_context(&span.context(), &mut HeadersOut(&mut headers));
        headers
    }
}

/// An adapter that lets the propagator read headers.
struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.to_str().ok()
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

/// An adapter that lets the propagator write headers.
struct HeadersOut<'a>(&'a mut HeaderMap);

impl Injector for HeadersOut<'_> {
    fn set(&mut self, key: &str, value: String) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(key), HeaderValue::try_from(value))
            && !value.is_empty()
        {
            self.0.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExitCode;

    #[test]
    fn an_endpoint_is_a_host_and_a_port() {
        assert_eq!(url("localhost:4317").unwrap(), "http://localhost:4317");
        assert_eq!(url("dns:///collector:1").unwrap(), "http://collector:1");
        assert_eq!(url("").unwrap(), "http://localhost:4317");
        for other in ["unix:///run/otlp", "dns://8.8.8.8/collector:1"] {
            assert_eq!(url(other).unwrap_err().code, ExitCode::Unsupported, "{other}");
        }
    }
}
