//! Exports the spans of requests and webhook calls to a collector.

mod configuration;
#[cfg(feature = "otlp")]
mod export;

use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness::trace_context::SpanContexts;
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use self::configuration::TracingConfiguration;
use super::log::{Log, is_traced};
use crate::Failure;

/// The environment variables for the address of a collector. They apply if no configuration file is specified.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// The option `--tracing-config-file`, as in kube-apiserver.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TraceFlags {
    /// Export spans of requests and webhook calls as configured in this kube-apiserver tracing configuration file; has
    /// no effect in a build without --features otlp
    #[arg(long = "tracing-config-file", id = "tracing_config_file", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// The exporter of spans, if spans are exported.
#[derive(Debug)]
pub(crate) struct Traces {
    #[cfg(feature = "otlp")]
    exporter: Option<export::Exporter>,
}

#[cfg_attr(
    not(feature = "otlp"),
    expect(
        clippy::unused_self,
        clippy::unused_async,
        clippy::unnecessary_wraps,
        reason = "without the feature nothing is exported"
    )
)]
impl Traces {
    /// Starts to export spans if the file or an environment variable requests it.
    ///
    /// # Errors
    /// Returns an error if the file is invalid or if the exporter cannot be started.
    pub(crate) fn start(file: Option<&Path>, log: Log) -> Result<Self, Failure> {
        let configuration = file.map(TracingConfiguration::read).transpose()?;
        let variable = ENDPOINTS.into_iter().find(|name| env::var_os(name).is_some_and(|it| !it.is_empty()));
        Self::new(configuration.as_ref(), variable, log)
    }

    #[cfg(feature = "otlp")]
    fn new(
        configuration: Option<&TracingConfiguration>,
        variable: Option<&str>,
        log: Log,
    ) -> Result<Self, Failure> {
        let is_wanted = configuration.is_some() || variable.is_some();
        let exporter = is_wanted.then(|| export::Exporter::start(configuration, log)).transpose()?;
        Ok(Self { exporter })
    }

    #[cfg(not(feature = "otlp"))]
    fn new(
        configuration: Option<&TracingConfiguration>,
        variable: Option<&str>,
        log: Log,
    ) -> Result<Self, Failure> {
        let file = configuration.map(|_| "--tracing-config-file");
        for name in file.into_iter().chain(variable) {
            log.info(&format!("{name} has no effect: admit was built without --features otlp"));
        }
        Ok(Self {})
    }

    /// Returns the span contexts for webhook calls, or `None` if spans are not exported.
    pub(crate) fn contexts(&self) -> Option<Arc<dyn SpanContexts>> {
        #[cfg(feature = "otlp")]
        return self.exporter.as_ref().map(|_| export::Exporter::contexts());
        #[cfg(not(feature = "otlp"))]
        None
    }

    /// Returns the layer that exports spans, or `None` if spans are not exported.
    pub(super) fn layer<S>(&self) -> Option<impl Layer<S> + use<S>>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        #[cfg(feature = "otlp")]
        let layer = self.exporter.as_ref().map(export::Exporter::layer::<S>);
        #[cfg(not(feature = "otlp"))]
        let layer = None::<tracing_subscriber::layer::Identity>;
        layer.map(|layer| layer.with_filter(filter_fn(is_traced)))
    }

    /// Sends the remaining spans and stops the exporter.
    pub(crate) async fn stop(self) {
        #[cfg(feature = "otlp")]
        if let Some(exporter) = self.exporter {
            // Stopping waits for the collector.
            let _ = tokio::task::spawn_blocking(move || exporter.stop()).await;
        }
    }
}
