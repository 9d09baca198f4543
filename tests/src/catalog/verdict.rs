//! Reads the effect of a fault from its recording.

use fake_webhooks::{Class, Family, Fault};
use serde_json::Value;

use super::{CONCEPT, case_name};
use crate::cases;
use crate::recording::{Recording, RecordingError};

/// The outcome of the requests under one policy: the first rejected request or, if there is none, the last request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOutcome {
    /// The HTTP status code.
    pub status: u64,
    /// The message of the server; empty if the request was admitted.
    pub message: String,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The number of webhook calls for all requests under this policy.
    pub calls: usize,
}

/// The recorded behavior of a real kube-apiserver for a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The version of the server, such as `v1.37.1`.
    pub apiserver: String,
    /// The outcome under `failurePolicy: Fail`.
    pub fail: PolicyOutcome,
    /// The outcome under `failurePolicy: Ignore`.
    pub ignore: PolicyOutcome,
    /// The results of the requests under `failurePolicy: Fail`, in order.
    ///
    /// Each result is the status code, and the labels, annotations, and finalizers of the object.
    pub steps: Vec<(u64, Value)>,
    /// Whether the fault is in the configuration, so that the request creates the configuration.
    is_registration: bool,
}

impl PolicyOutcome {
    /// Returns whether the request was admitted.
    pub fn is_admitted(&self) -> bool {
        is_success(self.status)
    }

    fn from_requests(requests: &[Value]) -> Self {
        let empty = Value::Null;
        let refused =
            requests.iter().find(|it| !is_success(it["answer"]["status"].as_u64().unwrap_or_default()));
        let answer = refused.or(requests.last()).map_or(&empty, |request| &request["answer"]);
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        // A Status does not have a kind if the server timed out.
        let message = answer["body"]["message"].as_str().unwrap_or_default().to_owned();
        Self {
            status: answer["status"].as_u64().unwrap_or_default(),
            message,
            warnings: texts(&answer["warnings"]),
            calls: requests.iter().map(|request| request["calls"].as_array().map_or(0, Vec::len)).sum(),
        }
    }
}

/// Returns the status code of an answer, and the parts of its object that webhooks change.
fn step(request: &Value) -> (u64, Value) {
    let mut metadata = request.pointer("/answer/body/metadata").cloned().unwrap_or_default();
    if let Some(members) = metadata.as_object_mut() {
        members.retain(|name, _| ["labels", "annotations", "finalizers"].contains(&name.as_str()));
    }
    (request["answer"]["status"].as_u64().unwrap_or_default(), metadata)
}

fn is_success(status: u64) -> bool {
    (200..300).contains(&status)
}

impl Measured {
    /// Reads the recording of the fault's case.
    ///
    /// # Errors
    /// Returns an error if the recording is missing.
    pub fn read(fault: &Fault) -> Result<Self, RecordingError> {
        let recording = Recording::read(&cases::folder().join(case_name(fault)).join("apiserver.yaml"))?;
        Ok(Self::from_recording(&recording, fault.family))
    }

    fn from_recording(recording: &Recording, family: Family) -> Self {
        let nothing = Vec::new();
        let requests = recording.alternatives.first().and_then(|first| first["requests"].as_array());
        let requests = requests.unwrap_or(&nothing);
        let (fail, ignore) = if family == Family::Conversion {
            // There is only one policy.
            (requests.as_slice(), requests.as_slice())
        } else {
            requests.split_at(requests.len() / 2)
        };
        let title = requests.first().and_then(|request| request["request"].as_str()).unwrap_or_default();
        Self {
            apiserver: recording.apiserver.clone(),
            fail: PolicyOutcome::from_requests(fail),
            ignore: PolicyOutcome::from_requests(ignore),
            steps: fail.iter().map(step).collect(),
            is_registration: title.contains("webhookconfigurations"),
        }
    }

    /// Returns the observed class of the fault; `None` if `Ignore` is stricter than `Fail`.
    pub fn class(&self) -> Option<Class> {
        match (self.fail.is_admitted(), self.ignore.is_admitted()) {
            (true, true) => Some(Class::Accepted),
            (false, true) => Some(Class::Policy),
            (false, false) if self.is_registration => Some(Class::Refused),
            (false, false) => Some(Class::Immune),
            (true, false) => None,
        }
    }

    /// Describes how the catalog contradicts the recording; `None` if they agree.
    pub fn contradiction(&self, fault: &Fault) -> Option<String> {
        let measured = self.class();
        (measured != Some(fault.class)).then(|| {
            format!(
                "{CONCEPT}: {} is {} in the catalog, and the recording says {}: Fail {} ({}), Ignore {} ({})",
                fault.id,
                fault.class,
                measured.map_or_else(|| "neither".to_owned(), |class| class.to_string()),
                self.fail.status,
                self.fail.message,
                self.ignore.status,
                self.ignore.message,
            )
        })
    }
}
