//! Defines the names and labels of the objects of deployed fakes.

use std::str::FromStr;

use harness::json::at;
use serde_json::{Value, json};

/// The name of the Deployment, the Service, the Secret, and the ConfigMap, and their field manager.
pub(crate) const NAME: &str = "admit-fakes";
/// The label of probe objects; the value identifies the webhook and the run.
pub(crate) const PROBE_LABEL: &str = "fakes.local/probe";

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const INSTANCE: &str = "app.kubernetes.io/instance";
const MANAGER: &str = "admit";

/// The namespace of deployed fakes. It contains at most one deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FakesNamespace(String);

impl FakesNamespace {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the host name of the Service. The certificates contain this name.
    pub(crate) fn host(&self) -> String {
        format!("{NAME}.{}.svc", self.0)
    }

    /// Returns the labels of every object in this deployment.
    pub(crate) fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": NAME, INSTANCE: self.0, MANAGED_BY: MANAGER})
    }

    /// Returns the selector for the objects of this deployment.
    pub(crate) fn label_selector(&self) -> String {
        format!("{MANAGED_BY}={MANAGER},{INSTANCE}={}", self.0)
    }

    /// Returns whether `object` belongs to this deployment.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        let labels = at(object, &["metadata", "labels"]);
        labels[MANAGED_BY] == MANAGER && labels[INSTANCE] == self.0.as_str()
    }

    /// Returns the namespace for the fakes of the run with the ID `run`.
    pub(crate) fn for_run(run: &str) -> Self {
        Self(format!("admit-run-{run}"))
    }

    pub(crate) fn probe_configuration(&self) -> String {
        format!("{NAME}-probe.{}", self.0)
    }
}

/// Parses the name of a namespace and checks that it is a DNS label.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123Label`.
impl FromStr for FakesNamespace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = [bytes.first(), bytes.last()];
        if bytes.len() <= 63
            && bytes.iter().all(|byte| plain(*byte) || *byte == b'-')
            && ends.into_iter().all(|end| end.is_some_and(|byte| plain(*byte)))
        {
            return Ok(Self(text.to_owned()));
        }
        Err("must be 1 to 63 lower-case letters, digits, and `-`, and start and end with a letter or digit"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_belongs_to_the_deployment_in_its_namespace() {
        let [mine, other] = ["mine", "other"].map(|name| name.parse::<FakesNamespace>().unwrap());
        let object = json!({"metadata": {"labels": mine.labels()}});
        assert!(mine.owns(&object));
        assert!(!other.owns(&object));
        assert!(!mine.owns(&json!({"metadata": {"name": "mine"}})));
        assert_eq!(mine.host(), "admit-fakes.mine.svc");
    }

    #[test]
    fn invalid_namespace_names_are_rejected() {
        for text in ["", "A", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(text.parse::<FakesNamespace>().is_err(), "{text}");
        }
    }
}
