//! Generates the cases of the fault catalog: each fault under `failurePolicy: Fail` and under `Ignore`.

mod causes;
mod page;
mod verdict;

use std::fs;
use std::io;
use std::path::Path;

use fake_webhooks::{Class, Family, Fault, Reference, WebhookType, catalog};
use serde_json::{Map, Value, json};

use crate::cases;
use crate::yaml;

// The interface of this module is:
pub use page::{Page, PageError};
pub use verdict::{Measured, PolicyOutcome};

/// The concept of the generated cases: their directory in `cases`.
pub const CONCEPT: &str = "faults";

/// The failure policies, each with a short name, in the order in which a case sends requests for them.
const POLICIES: [(&str, &str); 2] = [("fail", "Fail"), ("ignore", "Ignore")];

/// The faults whose cases prove statements of `tests/behaviors.md`, with these statements.
const PROVES: [(&str, &str); 10] = [
    ("H02", "HTTP-31"),
    ("H03", "ERR-16"),
    ("H13-301", "HTTP-11"),
    ("H13-302", "HTTP-11"),
    ("H13-303", "HTTP-11"),
    ("H14-307", "HTTP-11"),
    ("H14-308", "HTTP-11"),
    ("H14-loop", "HTTP-11"),
    ("H20-padding", "HTTP-25"),
    ("X09", "CNV-16"),
];

const HEAD: &str =
    "# Written by `cargo run -p tests -- faults` from the catalog of faults: change it there.\n";

/// Returns the name of the fault's case.
pub fn case_name(fault: &Fault) -> String {
    format!("{CONCEPT}/{}-{}", fault.id.to_lowercase(), fault.name)
}

/// Returns the content of the case file for the fault.
pub fn case_text(fault: &Fault) -> String {
    let mut case = if fault.family == Family::Conversion {
        conversion(fault)
    } else if fault.class == Class::Refused {
        registration(fault)
    } else {
        calls(fault)
    };
    let proves: Vec<&str> =
        PROVES.iter().filter(|(id, _)| *id == fault.id).map(|(_, proved)| *proved).collect();
    if !proves.is_empty() {
        case["proves"] = json!(proves);
    }
    format!("{HEAD}{}", yaml::write(&case))
}

/// Writes the case of every fault, and removes cases without a fault. Returns the names of changed cases.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write_cases() -> io::Result<Vec<String>> {
    let mut changed = Vec::new();
    for case in cases::find(&cases::folder(), &format!("{CONCEPT}/*"))? {
        if !catalog().iter().any(|fault| case_name(fault) == case.name) {
            fs::remove_dir_all(&case.folder)?;
            changed.push(case.name);
        }
    }
    for fault in catalog() {
        let (name, text) = (case_name(fault), case_text(fault));
        let path = cases::folder().join(&name).join("case.yaml");
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&path, text)?;
        changed.push(name);
    }
    Ok(changed)
}

/// Returns a case with a webhook for each failure policy. The namespace of a request selects the webhook.
fn calls(fault: &Fault) -> Value {
    let mut cluster = Vec::new();
    let mut webhooks = Vec::new();
    let mut requests = Vec::new();
    for (name, policy) in POLICIES {
        let namespace = format!("<id>-{name}");
        cluster.push(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"policy": name}},
        }));
        webhooks.push(webhook(fault, name, policy));
        webhooks.extend(fault.with.iter().map(|entry| {
            let mut beside = json!({"namespaceSelector": {"matchLabels": {"policy": name}}});
            merge(&mut beside, entry);
            beside["name"] = json!(format!("{name}-{}", entry["name"].as_str().unwrap_or_default()));
            beside
        }));
        let has_object = matches!(fault.request.get("verb").and_then(Value::as_str), None | Some("create"));
        for number in 1..=fault.requests {
            let object = if fault.requests == 1 { "x".to_owned() } else { format!("x{number}") };
            if !has_object {
                cluster.push(json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": object, "namespace": namespace},
                }));
            }
            let mut request = json!({"verb": "create", "name": object, "namespace": namespace});
            merge(&mut request, &fault.request);
            requests.push(request);
            requests.extend(fault.then.iter().map(|next| {
                let mut request = json!({"name": object, "namespace": namespace});
                merge(&mut request, next);
                request
            }));
        }
    }
    if fault.reference == Reference::Service {
        cluster.push(json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        }));
    }
    cluster.extend(fault.cluster.iter().cloned());
    json!({"version": 1, "cluster": cluster, "webhooks": webhooks, "requests": requests})
}

fn webhook(fault: &Fault, name: &str, policy: &str) -> Value {
    let mut webhook = json!({
        "name": name, "type": fault.kind.unwrap_or(WebhookType::Validating), "failurePolicy": policy,
        "namespaceSelector": {"matchLabels": {"policy": name}},
    });
    if fault.reference == Reference::Service {
        webhook["names"] = json!(["hook.<ns>.svc"]);
        webhook["clientConfig"] =
            json!({"url": null, "service": {"name": "hook", "namespace": "<ns>", "port": 0}});
    }
    if let Some(resource) = fault.request.get("resource").and_then(Value::as_str) {
        let (group_version, resource) = resource.rsplit_once('/').unwrap_or(("v1", resource));
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        webhook["rules"] = json!([{
            "operations": ["*"], "apiGroups": [group], "apiVersions": [version],
            "resources": [resource, format!("{resource}/*")],
        }]);
    }
    merge(&mut webhook, &fault.fake);
    webhook
}

/// Returns a definition whose converter has the fault, and a request that needs conversions to and from storage.
fn conversion(fault: &Fault) -> Value {
    const GROUP: &str = "<id>.example.com";
    let spec =
        json!({"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    let version = |name: &str, is_stored: bool| json!({"name": name, "served": true, "storage": is_stored, "schema": schema});
    let webhook = json!({"conversionReviewVersions": ["v1"], "clientConfig": {"converter": "converter"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "conversion": {"strategy": "Webhook", "webhook": webhook},
            "versions": [version("v1", true), version("v2", false)],
        },
    });
    let mut converter = json!({"name": "converter"});
    merge(&mut converter, &fault.fake);
    let body = json!({
        "apiVersion": format!("{GROUP}/v2"), "kind": "Widget", "metadata": {"labels": {"team": "blue"}},
        "spec": {"size": 3, "color": "red"},
    });
    let resource = format!("{GROUP}/v2/widgets");
    let mut request = json!({"verb": "create", "resource": resource, "name": "x", "body": body});
    merge(&mut request, &fault.request);
    json!({"version": 1, "converters": [converter], "cluster": [definition], "requests": [request]})
}

/// Returns a case in which the server rejects a configuration with the fault.
fn registration(fault: &Fault) -> Value {
    let (kind, resource) = crate::server::configuration_kind(kind(fault));
    let requests = POLICIES.map(|(name, policy)| {
        let mut webhook = json!({
            "name": format!("{name}.<id>.example.com"), "failurePolicy": policy, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1/"},
        });
        merge(&mut webhook, &fault.fake);
        json!({
            "verb": "create", "resource": format!("admissionregistration.k8s.io/v1/{resource}"),
            "name": format!("{name}-<id>"), "dryRun": true,
            "body": {
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "webhooks": [webhook],
            },
        })
    });
    json!({"version": 1, "requests": requests})
}

fn kind(fault: &Fault) -> crate::case::Kind {
    match fault.kind {
        Some(WebhookType::Mutating) => crate::case::Kind::Mutating,
        Some(WebhookType::Validating) | None => crate::case::Kind::Validating,
    }
}

fn merge(target: &mut Value, members: &Map<String, Value>) {
    for (key, value) in members {
        target[key] = value.clone();
    }
}
