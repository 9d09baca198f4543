//! Waits for the pod, and explains why it does not become ready.

use harness::json::{at, text};
use http::Method;
use serde_json::Value;

use super::api::{Api, Kind};
use super::manifests::CONTENT;
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress, Waited};
use crate::Failure;

/// The waiting reasons of containers that cannot start until the user changes something.
const FATAL_REASONS: [&str; 8] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// The maximum number of events and log lines to show.
const MAX_LINES: usize = 10;

/// Waits for the pod of an applied Deployment.
pub(crate) struct Rollout<'a> {
    api: &'a Api,
    namespace: &'a FakesNamespace,
    applied: Value,
}

impl<'a> Rollout<'a> {
    pub(crate) fn new(api: &'a Api, namespace: &'a FakesNamespace, applied: Value) -> Self {
        Self { api, namespace, applied }
    }

    /// Waits until the new pod is ready and all older pods are deleted.
    ///
    /// # Errors
    /// Returns an error if the pod does not become ready. The error includes its state.
    pub(crate) async fn wait(&self, progress: &Progress) -> Result<(), Failure> {
        self.restart_failed_pods().await?;
        let path = Kind::DEPLOYMENT.path(self.namespace.as_str(), NAME);
        let waited = progress.look_until(async || {
            let deployment = self.api.get(&path).await?.unwrap_or_default();
            let pods = self.pods().await?;
            if let Some(reason) = pods.iter().find_map(fatal_reason) {
                return Err(Waited::InVain(reason));
            }
            Ok(look(&deployment, &pods))
        });
        match waited.await {
            Ok(()) => Ok(()),
            Err(Waited::Failed(failure)) => Err(failure),
            Err(Waited::InVain(missing)) => {
                Err(Failure::environment(format!("{missing}{}", self.diagnosis().await?)))
            }
        }
    }

    /// Deletes pods that cannot recover, because a replacement starts without a back-off.
    async fn restart_failed_pods(&self) -> Result<(), Failure> {
        for pod in self.pods().await?.iter().filter(|pod| fatal_reason(pod).is_some()) {
            self.api.delete(&Kind::POD.path(self.namespace.as_str(), name(pod))).await?;
        }
        Ok(())
    }

    /// Returns the pods of the applied Deployment, except pods that are being deleted.
    async fn pods(&self) -> Result<Vec<Value>, Failure> {
        let wanted = |template: &Value| {
            (
                template.pointer("/metadata/annotations").map(|annotations| annotations[CONTENT].clone()),
                template.pointer("/spec/containers/0/image").cloned(),
            )
        };
        let template = wanted(at(&self.applied, &["spec", "template"]));
        let mut pods =
            self.api.list(Kind::POD, self.namespace.as_str(), &self.namespace.label_selector()).await?;
        pods.retain(|pod| wanted(pod) == template && at(pod, &["metadata", "deletionTimestamp"]).is_null());
        Ok(pods)
    }

    /// Returns a description of the state of the cluster, as lines to append to an error message.
    async fn diagnosis(&self) -> Result<String, Failure> {
        let mut lines = vec![String::new()];
        let deployment = self.api.get(&Kind::DEPLOYMENT.path(self.namespace.as_str(), NAME)).await?;
        for condition in
            deployment.iter().flat_map(|deployment| items(at(deployment, &["status", "conditions"])))
        {
            if condition["type"] == "ReplicaFailure" && condition["status"] == "True" {
                lines.push(format!("Deployment {NAME}: {}", word(&condition["message"])));
            }
        }
        for pod in self.pods().await? {
            lines.push(format!("Pod {}: {}", name(&pod), state(&pod)));
            lines.extend(self.log(name(&pod)).await?);
        }
        lines.extend(self.warnings().await?);
        let image =
            self.applied.pointer("/spec/template/spec/containers/0/image").map(word).unwrap_or_default();
        if lines.iter().any(|line| line.contains("Image")) {
            lines.push(format!(
                "check that the cluster can pull the image `{image}` (for kind: kind load docker-image {image}), or use \
                 --image"
            ));
        }
        Ok(lines.join("\n  "))
    }

    /// Returns the last lines of a pod's log.
    async fn log(&self, pod: &str) -> Result<Vec<String>, Failure> {
        let path = Kind::POD.path(self.namespace.as_str(), pod);
        let log =
            self.api.send(Method::GET, &format!("{path}/log?tailLines={MAX_LINES}"), &[], Vec::new()).await?;
        let text = log.body.as_str().filter(|_| log.code.is_success()).unwrap_or_default();
        Ok(text.lines().map(|line| format!("  log: {line}")).collect())
    }

    /// Returns the newest warning events about the objects of the deployment.
    async fn warnings(&self) -> Result<Vec<String>, Failure> {
        let mut events = self.api.list(Kind::EVENT, self.namespace.as_str(), "").await?;
        events.retain(|event| {
            event["type"] == "Warning" && text(event, &["involvedObject", "name"]).starts_with(NAME)
        });
        events.sort_by(|one, other| word(&one["lastTimestamp"]).cmp(word(&other["lastTimestamp"])));
        let newest = events.iter().skip(events.len().saturating_sub(MAX_LINES));
        Ok(newest
            .map(|event| {
                let object = text(event, &["involvedObject", "name"]);
                format!("Event of {object}: {}: {}", word(&event["reason"]), word(&event["message"]))
            })
            .collect())
    }
}

fn look(deployment: &Value, pods: &[Value]) -> Look<()> {
    let (status, generation) = (&deployment["status"], at(deployment, &["metadata", "generation"]).as_u64());
    let count = |field: &str| status[field].as_u64().unwrap_or_default();
    let observed = status["observedGeneration"].as_u64() >= generation;
    if observed && count("updatedReplicas") == 1 && count("availableReplicas") == 1 && count("replicas") == 1
    {
        return Look::Done(());
    }
    Look::Missing(match pods.first() {
        None => "a pod".to_owned(),
        Some(pod) if is_ready(pod) => "the deletion of the earlier pod".to_owned(),
        Some(pod) => format!("the pod, which is {}", state(pod)),
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = items(at(pod, &["status", "conditions"]));
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns the reason why a pod cannot recover; `None` if it can recover.
fn fatal_reason(pod: &Value) -> Option<String> {
    let waiting = at(items(at(pod, &["status", "containerStatuses"])).first()?, &["state", "waiting"]);
    let reason = waiting["reason"].as_str().filter(|reason| FATAL_REASONS.contains(reason))?;
    Some(format!("the pod does not start: {reason}"))
}

/// Returns a description of the pod's state.
fn state(pod: &Value) -> String {
    let phase = match text(pod, &["status", "phase"]) {
        "" => "new",
        phase => phase,
    };
    let container =
        items(at(pod, &["status", "containerStatuses"])).first().map(|container| &container["state"]);
    for field in ["waiting", "terminated"] {
        let state = container.map_or(&Value::Null, |container| &container[field]);
        match (word(&state["reason"]), word(&state["message"])) {
            ("", _) => {}
            (reason, "") => return format!("{phase}, {field}: {reason}"),
            (reason, message) => return format!("{phase}, {field}: {reason}: {message}"),
        }
    }
    let conditions = items(at(pod, &["status", "conditions"])).iter();
    let unscheduled = conditions
        .filter(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .map(|condition| word(&condition["message"]))
        .find(|message| !message.is_empty());
    match unscheduled {
        Some(message) => format!("{phase}: {message}"),
        None if is_ready(pod) => format!("{phase} and ready"),
        None => phase.to_owned(),
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn name(object: &Value) -> &str {
    text(object, &["metadata", "name"])
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Value {
        json!({"metadata": {"name": "admit-fakes-1"}, "status": status})
    }

    fn missing(deployment: &Value, pods: &[Value]) -> Option<String> {
        match look(deployment, pods) {
            Look::Done(()) => None,
            Look::Missing(missing) => Some(missing),
        }
    }

    #[test]
    fn rollout_is_complete_with_one_new_pod() {
        let status = |observed: u64, replicas: u64| {
            json!({
                "metadata": {"generation": 2},
                "status": {
                    "observedGeneration": observed, "replicas": replicas, "updatedReplicas": 1, "availableReplicas": 1,
                },
            })
        };
        let ready = pod(&json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}));
        let creating = pod(&json!({
            "phase": "Pending", "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
        }));
        assert_eq!(missing(&status(2, 1), &[]), None);
        assert_eq!(missing(&status(2, 2), &[ready]).as_deref(), Some("the deletion of the earlier pod"));
        assert_eq!(missing(&status(1, 1), &[]).as_deref(), Some("a pod"));
        let text = "the pod, which is Pending, waiting: ContainerCreating";
        assert_eq!(missing(&json!({}), &[creating]).as_deref(), Some(text));
    }

    #[test]
    fn pod_that_cannot_start_fails_immediately() {
        let waiting = |reason: &str| {
            let state = json!({"waiting": {"reason": reason, "message": "no such image"}});
            pod(&json!({"phase": "Pending", "containerStatuses": [{"state": state}]}))
        };
        assert_eq!(fatal_reason(&waiting("ContainerCreating")), None);
        let reason = fatal_reason(&waiting("ErrImagePull"));
        assert_eq!(reason.as_deref(), Some("the pod does not start: ErrImagePull"));
        assert_eq!(state(&waiting("ErrImagePull")), "Pending, waiting: ErrImagePull: no such image");
        let condition =
            json!({"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"});
        let unscheduled = pod(&json!({"phase": "Pending", "conditions": [condition]}));
        assert_eq!(state(&unscheduled), "Pending: 0/1 nodes are available");
    }
}
