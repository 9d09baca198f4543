//! What the objects of deployed fakes are called, and by which labels they are found again.

use std::str::FromStr;

use harness::json::at;
use serde_json::{Value, json};

/// The name of the Deployment, the Service, the Secret and the ConfigMap; the manager of their fields.
pub(crate) const NAME: &str = "admit-fakes";
/// Which call of the API server is a probe; its value says of which webhook and round.
pub(crate) const PROBE_LABEL: &str = "fakes.local/probe";

const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const INSTANCE: &str = "app.kubernetes.io/instance";
const MANAGER: &str = "admit";

/// The namespace in which fakes are deployed. There is one deployment in a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FakesNamespace(String);

impl FakesNamespace {
    /// The name of the namespace.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of the Service in certificates: what an API server asks for.
    pub(crate) fn host(&self) -> String {
        format!("{NAME}.{}.svc", self.0)
    }

    /// The labels that every object of this deployment has.
    pub(crate) fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": NAME, INSTANCE: self.0, MANAGED_BY: MANAGER})
    }

    /// Picks the objects of this deployment, and nobody else's.
    pub(crate) fn label_selector(&self) -> String {
        format!("{MANAGED_BY}={MANAGER},{INSTANCE}={}", self.0)
    }

    /// Whether `object` belongs to this deployment.
    pub(crate) fn owns(&self, object: &Value) -> bool {
        let labels = at(object, &["metadata", "labels"]);
        labels[MANAGED_BY] == MANAGER && labels[INSTANCE] == self.0.as_str()
    }

    /// The namespace of the fakes of one run of scenarios, which `run` tells from others.
    pub(crate) fn of_run(run: &str) -> Self {
        Self(format!("admit-run-{run}"))
    }

    /// The name of the configurations that prove that the webhooks answer.
    pub(crate) fn probe_configuration(&self) -> String {
        format!("{NAME}-probe.{}", self.0)
    }
}

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
        Err("expected 1 to 63 small letters, digits and `-`, with a letter or digit at both ends".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_belongs_to_the_deployment_of_one_namespace() {
        let [mine, other] = ["mine", "other"].map(|name| name.parse::<FakesNamespace>().unwrap());
        let object = json!({"metadata": {"labels": mine.labels()}});
        assert!(mine.owns(&object));
        assert!(!other.owns(&object));
        assert!(!mine.owns(&json!({"metadata": {"name": "mine"}})));
        assert_eq!(mine.host(), "admit-fakes.mine.svc");
    }

    #[test]
    fn what_is_no_namespace_is_refused() {
        for text in ["", "A", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(text.parse::<FakesNamespace>().is_err(), "{text}");
        }
    }
}
