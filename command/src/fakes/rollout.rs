//! Waiting for the pod, and what to say of it when it does not come up.

use harness::json::{at, text};
use http::Method;
use serde_json::Value;

use super::api::{Api, Kind};
use super::manifests::CONTENT;
use super::names::{FakesNamespace, NAME};
use super::progress::{Look, Progress, Waited};
use crate::Failure;

/// Why a container waits, when waiting does not help.
const HOPELESS: [&str; 8] = [
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

/// How many events and lines of a log are shown.
const SHOWN: usize = 10;

/// The pods that came up with `applied`, a Deployment as the API server answered it.
pub(crate) struct Rollout<'a> {
    api: &'a Api,
    namespace: &'a FakesNamespace,
    applied: Value,
}

impl<'a> Rollout<'a> {
    pub(crate) fn new(api: &'a Api, namespace: &'a FakesNamespace, applied: Value) -> Self {
        Self { api, namespace, applied }
    }

    /// Waits until the new pod is ready and no older one is left.
    ///
    /// # Errors
    /// It does not come up: the failure says what the cluster tells of it.
    pub(crate) async fn wait(&self, progress: &Progress) -> Result<(), Failure> {
        self.restart_hopeless_pods().await?;
        let path = Kind::DEPLOYMENT.path(self.namespace.as_str(), NAME);
        let waited = progress.look_until(async || {
            let deployment = self.api.get(&path).await?.unwrap_or_default();
            let pods = self.pods().await?;
            if let Some(reason) = pods.iter().find_map(hopeless) {
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

    /// A pod that failed before waits longer and longer until it is tried again; a new one is tried at once.
    async fn restart_hopeless_pods(&self) -> Result<(), Failure> {
        for pod in self.pods().await?.iter().filter(|pod| hopeless(pod).is_some()) {
            self.api.delete(&Kind::POD.path(self.namespace.as_str(), name(pod))).await?;
        }
        Ok(())
    }

    /// The pods of what was applied, but for those that are going.
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

    /// What the cluster tells of a pod that does not come up: lines to stand below an error.
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
                "is the image `{image}` where the cluster finds it? For kind: kind load docker-image {image}; --image \
                 names another one"
            ));
        }
        Ok(lines.join("\n  "))
    }

    /// The end of a pod's log, as far as there is one.
    async fn log(&self, pod: &str) -> Result<Vec<String>, Failure> {
        let path = Kind::POD.path(self.namespace.as_str(), pod);
        let log =
            self.api.send(Method::GET, &format!("{path}/log?tailLines={SHOWN}"), &[], Vec::new()).await?;
        let text = log.body.as_str().filter(|_| log.code.is_success()).unwrap_or_default();
        Ok(text.lines().map(|line| format!("  log: {line}")).collect())
    }

    /// The newest events that warn of something.
    async fn warnings(&self) -> Result<Vec<String>, Failure> {
        let mut events = self.api.list(Kind::EVENT, self.namespace.as_str(), "").await?;
        events.retain(|event| {
            event["type"] == "Warning" && text(event, &["involvedObject", "name"]).starts_with(NAME)
        });
        events.sort_by(|one, other| word(&one["lastTimestamp"]).cmp(word(&other["lastTimestamp"])));
        let newest = events.iter().skip(events.len().saturating_sub(SHOWN));
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
        Some(pod) if is_ready(pod) => "the earlier pod to go".to_owned(),
        Some(pod) => format!("the pod, which is {}", state(pod)),
    })
}

fn is_ready(pod: &Value) -> bool {
    let conditions = items(at(pod, &["status", "conditions"]));
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Why waiting for this pod does not help; none if it may.
fn hopeless(pod: &Value) -> Option<String> {
    let waiting = at(items(at(pod, &["status", "containerStatuses"])).first()?, &["state", "waiting"]);
    let reason = waiting["reason"].as_str().filter(|reason| HOPELESS.contains(reason))?;
    Some(format!("the pod does not start: {reason}"))
}

/// What a pod is doing, for people.
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
    fn one_new_pod_and_no_other_is_what_is_waited_for() {
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
        assert_eq!(missing(&status(2, 2), &[ready]).as_deref(), Some("the earlier pod to go"));
        assert_eq!(missing(&status(1, 1), &[]).as_deref(), Some("a pod"));
        let text = "the pod, which is Pending, waiting: ContainerCreating";
        assert_eq!(missing(&json!({}), &[creating]).as_deref(), Some(text));
    }

    #[test]
    fn a_pod_that_cannot_start_is_not_waited_for() {
        let waiting = |reason: &str| {
            let state = json!({"waiting": {"reason": reason, "message": "no such image"}});
            pod(&json!({"phase": "Pending", "containerStatuses": [{"state": state}]}))
        };
        assert_eq!(hopeless(&waiting("ContainerCreating")), None);
        let reason = hopeless(&waiting("ErrImagePull"));
        assert_eq!(reason.as_deref(), Some("the pod does not start: ErrImagePull"));
        assert_eq!(state(&waiting("ErrImagePull")), "Pending, waiting: ErrImagePull: no such image");
        let condition =
            json!({"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"});
        let unscheduled = pod(&json!({"phase": "Pending", "conditions": [condition]}));
        assert_eq!(state(&unscheduled), "Pending: 0/1 nodes are available");
    }
}
