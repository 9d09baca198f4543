//! L01: the API server accepts the configuration.

use kubernetes_admission::config;
use kubernetes_api_server::ClusterFixture;
use kubernetes_types::go_base64;
use kubernetes_types::json::set;
use serde_json::Value;

use super::l07_ca_bundle::{is_injected, is_placeholder};
use crate::check::{
    Audience, CORRECT_AS_THE_MESSAGE_SAYS, Check, Defect, Probe, Repeatability, Severity, Violation,
};
use crate::manifests::{About, Manifests};
use crate::wrong_type;

pub(super) const CHECK: Check = Check {
    id: "L01",
    title: "configuration validity: the API server accepts the configuration",
    severity: Severity::Error,
    why: "A configuration that the API server rejects is never stored, so the webhook is not called, or an \
          older configuration stays in effect. The message is the API server's own.",
    help: CORRECT_AS_THE_MESSAGE_SAYS,
    source: "kubernetes pkg/apis/admissionregistration/validation/validation.go; apiserver \
             pkg/endpoints/handlers/create.go",
    audience: Audience::All,
    repeatability: Repeatability::Same,
    probe: Probe::Manifests(About::Configurations, run),
};

/// The maximum number of values that cannot be decoded to report in a configuration.
const MAX_UNDECODABLE: usize = 64;

fn run(manifests: &Manifests<'_>) -> Vec<Defect> {
    let mut defects = Vec::new();
    for (position, configuration) in manifests.configurations() {
        // L03 reports v1beta1 field by field.
        if config::is_v1beta1(configuration) {
            continue;
        }
        let mut refused = |kind: &str, what: &str, field: &str| {
            let message = format!("the API server rejects the configuration: {what}");
            let violation = Violation::new(kind, message).at(field);
            let violation = with_placeholder(violation, configuration);
            defects.push(Defect { position, violation });
        };
        let mut complete = configuration.clone();
        let mut undecodable = 0;
        let is_decoded = loop {
            let Err(status) = manifests.cluster_fixture.unknown_fields(&complete) else { break true };
            let what = &status.message;
            let bundle = what.contains("illegal base64 data").then(|| invalid_ca_bundle(&complete)).flatten();
            let is_bundle = bundle.is_some();
            let field =
                bundle.unwrap_or_else(|| field_of_wrong_type(&complete, what, &manifests.cluster_fixture));
            refused("cannot be decoded", what, &field);
            undecodable += 1;
            // The other fields are valid or invalid whatever the string is.
            let has_string = is_bundle || what.ends_with(" of type string");
            let value = complete.pointer_mut(&pointer(&field)).filter(|_| has_string);
            match value {
                Some(value) if undecodable < MAX_UNDECODABLE && is_bundle => *value = Value::from(""),
                Some(value @ (Value::Bool(_) | Value::Number(_))) if undecodable < MAX_UNDECODABLE => {
                    *value = Value::from(value.to_string());
                }
                _ => break false,
            }
        };
        if !is_decoded {
            continue;
        }
        config::set_defaults(&mut complete);
        for error in config::validate(&complete) {
            // V55 reports match conditions, unless the whole entry has a substitute.
            let is_condition = error.field.contains(".matchConditions");
            let is_read =
                manifests.has_subjects(position) && !manifests.is_substitute(position, &error.field);
            if !(is_condition && is_read) {
                refused("invalid", &error.to_string(), &error.field);
            }
        }
    }
    defects
}

/// Returns the JSON pointer of the value that the API server's message is about, or of the closest value around it.
pub(super) fn undecodable_field(
    configuration: &Value,
    message: &str,
    cluster_fixture: &ClusterFixture,
) -> String {
    let is_bundle = message.contains("illegal base64 data");
    let bundle = is_bundle.then(|| invalid_ca_bundle(configuration)).flatten();
    let field = bundle.unwrap_or_else(|| field_of_wrong_type(configuration, message, cluster_fixture));
    let mut pointer = pointer(&field);
    while configuration.pointer(&pointer).is_none() {
        let parent = pointer.rfind('/').unwrap_or_default();
        pointer.truncate(parent);
    }
    pointer
}

/// Adds the advice on a `caBundle` that is not base64: it is usually a placeholder.
fn with_placeholder(violation: Violation, configuration: &Value) -> Violation {
    if !violation.field.ends_with(".clientConfig.caBundle") {
        return violation;
    }
    let written =
        configuration.pointer(&pointer(&violation.field)).and_then(Value::as_str).unwrap_or_default();
    let help = match (is_injected(configuration), is_placeholder(written)) {
        (true, _) => {
            "Remove caBundle: kube-apiserver rejects the configuration before a controller can inject it. Because of \
             the annotation, the controller (such as cert-manager) adds the field to the stored configuration."
        }
        (false, true) => {
            "Replace the placeholder with the base64-encoded PEM certificate of the authority before you apply the \
             configuration. If cert-manager injects the certificate, remove caBundle and add the annotation \
             cert-manager.io/inject-ca-from: NAMESPACE/CERTIFICATE."
        }
        (false, false) => "Set caBundle to the base64-encoded PEM certificate of the authority, on one line.",
    };
    violation.with_help(help).with_why(
        "kube-apiserver decodes caBundle from base64 and does not replace placeholders, so it rejects the whole \
         configuration: the webhook is not called, or an older configuration stays in effect.",
    )
}

/// Returns the JSON pointer of a field such as `webhooks[0].clientConfig.caBundle`.
fn pointer(field: &str) -> String {
    format!("/{}", field.replace(['.', '['], "/").replace(']', ""))
}

/// Returns the path of the first `caBundle` that is not base64.
///
/// The API server's message does not name the field.
fn invalid_ca_bundle(configuration: &Value) -> Option<String> {
    let webhooks = configuration.get("webhooks")?.as_array()?;
    webhooks.iter().enumerate().find_map(|(index, webhook)| {
        let value = webhook.pointer("/clientConfig/caBundle")?.as_str()?;
        go_base64::decode(value).is_err().then(|| format!("webhooks[{index}].clientConfig.caBundle"))
    })
}

/// Returns the path of the field that cannot be decoded.
///
/// The API server's message does not contain list positions, so each webhook is decoded separately to find its index.
fn field_of_wrong_type(configuration: &Value, message: &str, cluster_fixture: &ClusterFixture) -> String {
    let has_no_webhooks = Vec::new();
    let webhooks = configuration.get("webhooks").and_then(Value::as_array).unwrap_or(&has_no_webhooks);
    let is_wrong = |webhook: &Value| {
        let mut alone = configuration.clone();
        set(&mut alone, &["webhooks"], vec![webhook.clone()]);
        cluster_fixture.unknown_fields(&alone).is_err()
    };
    let path = message.split_once("Go struct field ").and_then(|(_, rest)| rest.split_once(" of type "));
    let path = path.and_then(|(path, _)| path.split_once('.')).map_or("", |(_, path)| path);
    let wrong = webhooks.iter().enumerate().find(|(_, webhook)| is_wrong(webhook));
    match wrong.filter(|_| ["", "webhooks"].contains(&path.split('.').next().unwrap_or_default())) {
        Some((index, webhook)) => {
            let at = format!("webhooks[{index}]");
            wrong_type::field(webhook, &at, message).unwrap_or(at)
        }
        None => wrong_type::field(configuration, "", message).unwrap_or_else(|| path.to_owned()),
    }
}
