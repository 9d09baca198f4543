//! Defines steps that grant permissions to users.

use std::time::Duration;

use cucumber::given;
use harness::json::set;
use http::Method;
use serde_json::{Value, json};

use super::api;
use super::failure::{Outcome, StepFailure};
use super::parameter::Verbs;
use super::resource::{self, Resource, Scope};
use super::world::World;

const GROUP: &str = "rbac.authorization.k8s.io";
/// The maximum time to wait until the authorizer uses a new role.
const ROLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Creates a Role and a `RoleBinding`, or their cluster-scoped counterparts for a cluster-scoped resource.
#[given(expr = "the user {string} can {verbs} {word}")]
async fn can(world: &mut World, user: String, verbs: Verbs, resource: String) -> Outcome {
    let Verbs(verbs) = verbs;
    let resource = resource::named(world.client()?, &resource).await?;
    let group = resource.api_version.split_once('/').map_or("", |(group, _)| group);
    let prefix = match resource.scope {
        Scope::Namespaced => "",
        Scope::Cluster => "Cluster",
    };
    let name = format!("{}-{}", world.namespace().await?, uuid::Uuid::new_v4().simple());
    let role = format!("{prefix}Role");
    let rules = json!([{"verbs": verbs, "apiGroups": [group], "resources": [resource.plural]}]);
    let object = |kind: &str, rest: Value| {
        let mut object = rest;
        set(&mut object, &["apiVersion"], format!("{GROUP}/v1"));
        set(&mut object, &["kind"], kind);
        set(&mut object, &["metadata", "name"], &*name);
        object
    };
    world.store(object(&role, json!({"rules": rules}))).await?;
    let binding = json!({
        "roleRef": {"apiGroup": GROUP, "kind": role, "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": user}],
    });
    world.store(object(&format!("{role}Binding"), binding)).await?;
    wait(world, &user, verbs.first().map_or("", String::as_str), group, &resource).await
}

/// Waits until the authorizer uses the role. It does so shortly after the server has stored the role.
async fn wait(world: &mut World, user: &str, verb: &str, group: &str, resource: &Resource) -> Outcome {
    let mut attributes = json!({"verb": verb, "group": group, "resource": resource.plural});
    if resource.scope == Scope::Namespaced {
        set(&mut attributes, &["namespace"], world.namespace().await?);
    }
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let started = tokio::time::Instant::now();
    loop {
        let answer = api::send(world.client()?, Method::POST, path, Some(&review)).await?.successful()?;
        if answer.body.pointer("/status/allowed") == Some(&Value::Bool(true)) {
            return Ok(());
        }
        if started.elapsed() > ROLE_TIMEOUT {
            let seconds = ROLE_TIMEOUT.as_secs();
            return Err(StepFailure::new(format!(
                "{user} cannot {verb} {} {seconds} s after the role was created",
                resource.plural
            )));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
