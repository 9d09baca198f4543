//! Implements `IPAddress` objects.

use std::net::IpAddr;

use kubernetes_types::json;
use kubernetes_types::json::at;
use kubernetes_types::quoting::quote;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, set, text};
use crate::kinds::common::formats;
use crate::kinds::kind::Kind;

/// The behavior of `IPAddress` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ipaddresses",
    kind: "IPAddress",
    validate_name: |name, _| name_errors(name),
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a name that must be an IP address in canonical form.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidIP`.
pub(crate) fn name_errors(name: &str) -> Vec<String> {
    match name.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form ({})", quote(&address.to_string()))]
        }
        Ok(_) => Vec::new(),
    }
}

/// Validates an `IPAddress`.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateIPAddress` and `ValidateIPAddressUpdate`;
/// `pkg/apis/networking/v1/zz_generated.validations.go`.
/// Rule: VLO-44.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let path = Path::new("spec");
    let path = path.child("parentRef");
    let is_changed = change.is_some_and(|change| !change.is_same(&["spec", "parentRef"]));
    match set(get(object, "spec"), "parentRef") {
        None => errors.required_by_type(&path),
        Some(parent) => {
            let group = text(parent, "group");
            if !group.is_empty() {
                formats::dns_subdomain(errors, &path.child("group"), group);
            }
            for field in ["resource", "name"] {
                let (path, name) = (path.child(field), text(parent, field));
                if !name.is_empty() {
                    formats::path_segment(errors, &path, name);
                } else if is_changed {
                    errors.required(&path, "");
                } else {
                    errors.required_by_type(&path);
                }
            }
            formats::path_segment(errors, &path.child("namespace"), text(parent, "namespace"));
        }
    }
    if is_changed {
        errors.invalid_by_type(&path, "null", IMMUTABLE);
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let parent = at(object, &["spec", "parentRef"]);
    let part = |field| json::text(parent, &[field]);
    let text = if parent.is_null() {
        "<none>".to_owned()
    } else {
        let dot = if part("group").is_empty() { "" } else { "." };
        let resource = format!("{}{dot}{}", part("resource"), part("group")).to_lowercase();
        let slash = if part("namespace").is_empty() { "" } else { "/" };
        format!("{resource}{slash}{}/{}", part("namespace"), part("name"))
    };
    row![name(object), text, age_of(object, context)]
}
