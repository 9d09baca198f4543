//! Defines the interface between in-tree admission plugins and the dispatcher.

use std::collections::BTreeMap;
use std::pin::Pin;

use kubernetes_types::status::Status;
use tokio::time::Instant;

use crate::admission_run::AdmissionRun;
use crate::attributes::Attributes;
use crate::event::{Event, Part, Phase, Record, Round, Timing};

/// An in-tree admission plugin, such as `LimitRanger`.
pub trait Plugin: Send + Sync {
    /// Returns the name in `--enable-admission-plugins`.
    fn name(&self) -> &'static str;

    /// Changes `attributes.object`, or rejects the request. Called in each round of the mutating phase.
    ///
    /// # Errors
    /// Returns the response for the client if the plugin rejects the request.
    fn admit(&self, _attributes: &mut Attributes) -> Result<(), Box<Status>> {
        Ok(())
    }

    /// Rejects the final object, or adds `remarks` about it. Called in the validating phase.
    ///
    /// # Errors
    /// Returns the response for the client if the plugin rejects the request.
    fn validate(&self, _attributes: &Attributes, _remarks: &mut Remarks) -> Result<(), Box<Status>> {
        Ok(())
    }

    /// Charges the request to other objects, such as quotas. Called after [`Self::validate`].
    ///
    /// Returns `None` if the plugin does not write other objects for this request.
    fn charge<'a>(&'a self, _attributes: &'a Attributes) -> Option<Charge<'a>> {
        None
    }
}

/// The writes of [`Plugin::charge`]. An error is the response for the client.
pub type Charge<'a> = Pin<Box<dyn Future<Output = Result<(), Box<Status>>> + Send + 'a>>;

/// The warnings and audit annotations of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a plugin says these two")]
pub struct Remarks {
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The annotations for the audit event, by their full keys.
    pub audit_annotations: BTreeMap<String, String>,
}

/// Runs the mutating side of all plugins.
///
/// Changes by plugins are recorded in both rounds. Only changes in the second round can make webhooks due for
/// reinvocation.
///
/// # Errors
/// Returns the response for the client if a plugin rejects the request.
///
/// Source: apiserver pkg/admission/{chain,reinvocation}.go.
/// Rule: CHN-09, RIV-07, RIV-12.
pub fn admit(plugins: &[&dyn Plugin], run: &mut AdmissionRun<'_>, round: Round) -> Result<(), Box<Status>> {
    if plugins.is_empty() {
        return Ok(());
    }
    let (attributes, record) = run.parts_mut();
    let mut before = attributes.object.clone();
    for plugin in plugins {
        let started = Instant::now();
        let outcome = plugin.admit(attributes);
        if before != attributes.object {
            before.clone_from(&attributes.object);
            record.events.push(Event::PluginChanged { plugin: plugin.name(), round });
        }
        finish(*plugin, Phase::Mutating, started, outcome, record)?;
    }
    Ok(())
}

/// Runs the validating side of all plugins on the final object.
///
/// # Errors
/// Returns the response for the client if a plugin rejects the request.
///
/// Source: apiserver pkg/admission/chain.go.
/// Rule: CHN-09.
pub async fn validate(plugins: &[&dyn Plugin], run: &mut AdmissionRun<'_>) -> Result<(), Box<Status>> {
    for plugin in plugins {
        let started = Instant::now();
        let mut remarks = Remarks::default();
        let mut outcome = plugin.validate(run.attributes(), &mut remarks);
        if outcome.is_ok()
            && let Some(charge) = plugin.charge(run.attributes())
        {
            outcome = charge.await;
        }
        if remarks != Remarks::default() {
            let Remarks { warnings, audit_annotations } = remarks;
            run.record.events.push(Event::PluginRemarked {
                plugin: plugin.name(),
                warnings,
                audit_annotations,
            });
        }
        finish(*plugin, Phase::Validating, started, outcome, &mut run.record)?;
    }
    Ok(())
}

fn finish(
    plugin: &dyn Plugin,
    phase: Phase,
    started: Instant,
    outcome: Result<(), Box<Status>>,
    record: &mut Record,
) -> Result<(), Box<Status>> {
    let took = started.elapsed();
    let part = Part::Plugin(plugin.name());
    record.timings.push(Timing { part, phase, took, refused: outcome.is_err() });
    if let Err(status) = &outcome {
        let status = status.clone();
        record.events.push(Event::PluginRefused { plugin: plugin.name(), phase, status });
    }
    outcome
}
