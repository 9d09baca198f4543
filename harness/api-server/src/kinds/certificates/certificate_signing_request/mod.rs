//! Implements `CertificateSigningRequest` objects.

pub(crate) mod conditions;
pub(crate) mod validation;

use jiff::SignedDuration;
use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::json::{at, keep, text};
use serde_json::{Value, json};

use crate::kinds::certificates::certificate_signing_request;
use crate::kinds::common::cells::{Context, age_of, condition, items, name, row, text_or};
use crate::kinds::common::{age, formats};
use crate::kinds::kind::Kind;

/// The behavior of `CertificateSigningRequest` objects.
pub(crate) const KIND: Kind = Kind {
    group: "certificates.k8s.io",
    resource: "certificatesigningrequests",
    kind: "CertificateSigningRequest",
    validate_name: |name, _| formats::path_segment_errors(name),
    set_requester,
    prepare_update: |object, old| keep(object, old, "spec"),
    prepare_status: conditions::complete_conditions,
    prepare_subresources: &[("approval", conditions::keep_all_but_conditions)],
    reset_fields: &[
        ("status", &[&["spec"], &["status", "conditions"]]),
        ("", &[&["spec"], &["status"]]),
        ("approval", &[&["spec"], &["status", "certificate"]]),
    ],
    validate: |errors, object, change| {
        if change.is_none() {
            certificate_signing_request::validation::validate(errors, object);
        }
    },
    validate_after: conditions::errors,
    cells: Some(cells),
    selectable_fields: Some(&["metadata.name", "spec.signerName"]),
    ..Kind::PLAIN
};

/// Sets the requester of a `CertificateSigningRequest` to `user`, even if the object contains a different requester.
///
/// Source: kubernetes pkg/registry/certificates/certificates/strategy.go, `PrepareForCreate`.
/// Rule: KND-03.
pub(crate) fn set_requester(object: &mut Value, user: &UserInfo) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let requester = json!({
        "username": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra,
    });
    for (field, value) in requester.as_object().into_iter().flatten() {
        let is_empty = value.as_str() == Some("")
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty {
            spec.remove(field);
        } else {
            spec.insert(field.clone(), value.clone());
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let has = |kind| condition(items(object, &["status", "conditions"]), kind).is_some();
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !text(object, &["status", "certificate"]).is_empty() {
        status.push_str(",Issued");
    }
    let duration = at(object, &["spec", "expirationSeconds"]).as_i64();
    let duration = duration.map(|seconds| age::human(SignedDuration::from_secs(seconds)));
    row![
        name(object),
        age_of(object, context),
        text_or(object, &["spec", "signerName"], "<none>"),
        text(object, &["spec", "username"]),
        duration.unwrap_or_else(|| "<none>".to_owned()),
        status,
    ]
}
