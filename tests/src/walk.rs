//! Compares the answers of every discovered resource to every method, on a kube-apiserver and in process.
//!
//! Each resource and subresource is requested with a missing object, with an object without a spec, and with a valid
//! object if there is an example. This finds requests that admit accepts without performing them, and requests that
//! only admit rejects.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::case::Plugins;
use crate::difference::{differences, side_by_side};
use crate::published::{self, PublishedError};
use crate::server::Server;
use crate::transport::{Answer, Message};

const EXAMPLES: &str = include_str!("differential/objects.yaml");
const FURTHER_EXAMPLES: &str = include_str!("walk.yaml");
const NAMESPACE: &str = "walk";
/// The name of the valid objects that are created.
const NAME: &str = "walked";
/// The name of the valid `IPAddress` object. It must be an IP address.
const ADDRESS: &str = "10.0.0.9";

/// A valid object of a resource.
#[derive(Clone, Debug, Deserialize)]
struct Example {
    /// The resource: `GROUP/VERSION/RESOURCE`, or `RESOURCE` for the core group.
    resource: String,
    object: Value,
}

/// The results of the walk.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The number of requests that were sent to both servers.
    pub requests: usize,
    /// The number of resources and subresources.
    pub resources: usize,
    /// The features that admit does not support, with the number of requests that need each.
    pub unsupported: BTreeMap<String, usize>,
    /// The differences between the servers.
    pub differences: Vec<String>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "{difference}")?;
        }
        for (what, count) in &self.unsupported {
            writeln!(f, "{count} x {what}")?;
        }
        write!(
            f,
            "{} requests about {} resources and subresources, {} differ, {} are not imitated",
            self.requests,
            self.resources,
            self.differences.len(),
            self.unsupported.values().sum::<usize>(),
        )
    }
}

/// Compares the resources in the discovery documents of a kube-apiserver from `KUBEBUILDER_ASSETS`.
///
/// # Errors
/// Returns an error if a server does not start, or does not answer.
pub async fn compare() -> Result<Comparison, PublishedError> {
    let real = Server::apiserver().await?;
    let own = Server::in_process(Arc::clone(&real.authority), &Plugins::default()).await?;
    let examples = |text| -> Vec<Example> {
        serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("the examples: {error}"))
    };
    let examples = [examples(EXAMPLES), examples(FURTHER_EXAMPLES)].concat();
    let mut walk = Walk { real, own, examples, comparison: Comparison::default() };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    walk.real.make("/api/v1/namespaces", namespace.clone()).await?;
    walk.own.make("/api/v1/namespaces", namespace).await?;
    let groups = walk.real.ask(Message::new(Method::GET, "/apis", None)).await?.body;
    let versions = items(&groups, "groups").flat_map(|group| items(group, "versions"));
    let mut paths = vec!["/api/v1".to_owned()];
    paths.extend(versions.filter_map(|version| Some(format!("/apis/{}", version["groupVersion"].as_str()?))));
    for path in paths {
        walk.version(&path).await?;
    }
    Ok(walk.comparison)
}

fn items<'a>(value: &'a Value, member: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[member].as_array().into_iter().flatten()
}

/// A request body. It may be different for each server, to contain fields of the server's object.
#[derive(Clone, Debug)]
enum Sent {
    Nothing,
    Json(Value),
    MergePatch(Value),
    /// The last answer of the server to which the request is sent, with an additional label.
    Again,
}

struct Walk {
    real: Server,
    own: Server,
    examples: Vec<Example>,
    comparison: Comparison,
}

impl Walk {
    /// Compares the discovery document at a path, such as `/apis/apps/v1`, and all resources in it.
    async fn version(&mut self, path: &str) -> Result<(), PublishedError> {
        self.one(&Method::GET, path, Sent::Nothing).await?;
        let served = self.real.ask(Message::new(Method::GET, path, None)).await?.body;
        let resources: Vec<&Value> = items(&served, "resources").collect();
        let name = |resource: &Value| resource["name"].as_str().unwrap_or_default().to_owned();
        for resource in resources.iter().filter(|resource| !name(resource).contains('/')) {
            self.comparison.resources += 1;
            let plural = name(resource);
            let place = if resource["namespaced"] == true { "/namespaces/walk" } else { "" };
            let collection = format!("{path}{place}/{plural}");
            let typed = |resource: &Value| {
                let group = resource["group"].as_str();
                let of_path = path.trim_start_matches("/apis/").trim_start_matches("/api/");
                let version = match (group, resource["version"].as_str()) {
                    (Some(group), Some(version)) if !group.is_empty() => format!("{group}/{version}"),
                    (_, Some(version)) => version.to_owned(),
                    (_, None) => of_path.to_owned(),
                };
                json!({"apiVersion": version, "kind": resource["kind"]})
            };
            self.resource(&collection, &typed(resource)).await?;
            let identity = format!("{}/{plural}", path.trim_start_matches("/apis/"));
            let identity = identity.trim_start_matches("/api/v1/").to_owned();
            let example = self.examples.iter().find(|example| example.resource == identity);
            let example = example.map(|example| example.object.clone());
            let object = format!("{collection}/{}", if plural == "ipaddresses" { ADDRESS } else { NAME });
            if let Some(example) = &example {
                self.example(&collection, &object, example).await?;
            }
            let prefix = format!("{plural}/");
            for below in resources.iter().filter(|resource| name(resource).starts_with(&prefix)) {
                self.comparison.resources += 1;
                let subresource = name(below).trim_start_matches(&prefix).to_owned();
                self.subresource(&format!("{collection}/nobody/{subresource}"), "nobody", &typed(below))
                    .await?;
                if example.is_some() {
                    self.subresource(&format!("{object}/{subresource}"), NAME, &typed(below)).await?;
                }
            }
            if example.is_some() {
                self.one(&Method::DELETE, &object, Sent::Nothing).await?;
            }
        }
        Ok(())
    }

    /// Compares requests for a resource without objects.
    async fn resource(&mut self, collection: &str, typed: &Value) -> Result<(), PublishedError> {
        let nobody = format!("{collection}/nobody");
        let of = |metadata: Value| {
            let mut object = typed.clone();
            object["metadata"] = metadata;
            object
        };
        let named = of(json!({"name": "nobody"}));
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        self.one(&Method::GET, &format!("{collection}?labelSelector=walk"), Sent::Nothing).await?;
        self.one(&Method::GET, &nobody, Sent::Nothing).await?;
        self.one(&Method::PUT, &nobody, Sent::Json(named.clone())).await?;
        self.one(&Method::PATCH, &nobody, Sent::MergePatch(labels)).await?;
        self.one(&Method::DELETE, &nobody, Sent::Nothing).await?;
        self.one(&Method::POST, &nobody, Sent::Json(named.clone())).await?;
        self.one(&Method::PUT, collection, Sent::Json(named.clone())).await?;
        self.one(&Method::DELETE, &format!("{collection}?labelSelector=walk"), Sent::Nothing).await?;
        for metadata in [json!({"name": "nobody"}), json!({}), json!({"name": "_X"})] {
            self.one(&Method::POST, &format!("{collection}?dryRun=All"), Sent::Json(of(metadata))).await?;
        }
        Ok(())
    }

    /// Compares requests that create, read, and update a valid object. The object is not deleted.
    async fn example(
        &mut self,
        collection: &str,
        object: &str,
        example: &Value,
    ) -> Result<(), PublishedError> {
        let text = example.to_string().replace("<ns>", NAMESPACE);
        let mut example: Value = serde_json::from_str(&text).unwrap_or_default();
        example["metadata"]["name"] = if example["kind"] == "IPAddress" { ADDRESS } else { NAME }.into();
        self.one(&Method::POST, collection, Sent::Json(example)).await?;
        self.one(&Method::GET, object, Sent::Nothing).await?;
        self.one(&Method::PUT, object, Sent::Again).await?;
        let labels = json!({"metadata": {"labels": {"a": "b"}}});
        self.one(&Method::PATCH, object, Sent::MergePatch(labels)).await
    }

    /// Compares requests for a subresource. Its object may exist or not.
    async fn subresource(&mut self, path: &str, name: &str, typed: &Value) -> Result<(), PublishedError> {
        let mut object = typed.clone();
        object["metadata"] = json!({"name": name});
        self.one(&Method::GET, path, Sent::Nothing).await?;
        self.one(&Method::PUT, path, Sent::Json(object.clone())).await?;
        self.one(&Method::PUT, path, Sent::Again).await?;
        for patch in [json!({"metadata": {"annotations": {"a": "b"}}}), json!({"status": {"walk": "a"}})] {
            self.one(&Method::PATCH, path, Sent::MergePatch(patch)).await?;
        }
        self.one(&Method::DELETE, path, Sent::Nothing).await?;
        self.one(&Method::POST, path, Sent::Json(object)).await
    }

    /// Sends one request to both servers and compares the answers.
    async fn one(&mut self, method: &Method, path: &str, sent: Sent) -> Result<(), PublishedError> {
        self.comparison.requests += 1;
        let real = ask(&self.real, method, path, &sent).await?;
        let own = ask(&self.own, method, path, &sent).await?;
        if own.status == 501 {
            let what = own.body["message"].as_str().unwrap_or_default().to_owned();
            *self.comparison.unsupported.entry(what).or_default() += 1;
            return Ok(());
        }
        let has_name =
            !path.contains("dryRun") || !matches!(&sent, Sent::Json(body) if body["metadata"] == json!({}));
        let [expected, found] = [&real, &own].map(|answer| comparable(answer, has_name));
        let differing = differences(&expected, &found);
        if differing.is_empty() {
            return Ok(());
        }
        let body = match sent {
            Sent::Nothing => String::new(),
            Sent::Json(body) | Sent::MergePatch(body) => format!(" {body}"),
            Sent::Again => " with what GET answered".to_owned(),
        };
        let difference = format!("{method} {path}{body}\n{}", side_by_side(&differing));
        self.comparison.differences.push(difference);
        Ok(())
    }
}

async fn ask(server: &Server, method: &Method, path: &str, sent: &Sent) -> Result<Answer, PublishedError> {
    let message = match sent {
        Sent::Nothing => Message::new(method.clone(), path, None),
        Sent::Json(body) => Message::new(method.clone(), path, Some(body.clone())),
        Sent::MergePatch(body) => Message {
            content_type: "application/merge-patch+json",
            ..Message::new(method.clone(), path, Some(body.clone()))
        },
        Sent::Again => {
            let mut object = server.ask(Message::new(Method::GET, path, None)).await?.body;
            if object["metadata"].is_object() {
                object["metadata"]["labels"]["again"] = "true".into();
            }
            Message::new(method.clone(), path, Some(object))
        }
    };
    Ok(server.ask(message).await?)
}

/// Returns an answer without values that depend on the time or are random.
fn comparable(answer: &Answer, has_name: bool) -> Value {
    let mut comparable = published::comparable(answer, has_name);
    for pointer in ["/body/details/uid", "/body/status/token"] {
        if let Some(found) = comparable.pointer_mut(pointer) {
            *found = "made up".into();
        }
    }
    let uid = answer.body.pointer("/metadata/uid").and_then(Value::as_str).filter(|uid| uid.len() == 36);
    if let Some(uid) = uid {
        let text = comparable.to_string().replace(uid, "UID");
        comparable = serde_json::from_str(&text).unwrap_or(comparable);
    }
    comparable
}
