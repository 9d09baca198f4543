//! Validates the names of objects according to their kind.

use std::net::IpAddr;

use kubernetes_types::json::text;
use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::table;

/// Validates `metadata.name`. Returns no errors if the name is absent.
///
/// Rule: VLO-25.
pub(crate) fn errors(object: &Value, resource: &Resource) -> Vec<String> {
    let name = metadata::text(object, "name");
    if name.is_empty() || is_by_type(resource) { Vec::new() } else { of_kind(name, object, resource) }
}

/// Validates `metadata.generateName`. Returns no errors if the field is absent.
///
/// Rule: VLO-25.
pub(crate) fn prefix_errors(object: &Value, resource: &Resource) -> Vec<String> {
    let prefix = metadata::text(object, "generateName");
    if prefix.is_empty() || is_by_type(resource) {
        return Vec::new();
    }
    // A trailing dash is valid because a suffix follows.
    let begun = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |base| format!("{base}a"));
    of_kind(&begun, object, resource)
}

fn is_by_type(resource: &Resource) -> bool {
    table::of(resource).has_name_by_type
}

fn of_kind(name: &str, object: &Value, resource: &Resource) -> Vec<String> {
    (table::of(resource).validate_name)(name, object)
}

/// Validates the name of a `ClusterTrustBundle` with this signer. The `signer` may be empty.
///
/// Source: kubernetes pkg/apis/core/validation/names.go, `ValidateClusterTrustBundleName`.
pub(crate) fn trust_bundle(name: &str, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return names::dns1123_subdomain(name);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::dns1123_subdomain(rest),
        None => {
            vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")]
        }
    }
}

/// Validates the name of an `APIService`.
///
/// Source: kube-aggregator pkg/apis/apiregistration/validation/validation.go, `ValidateAPIService`.
pub(crate) fn api_service(name: &str, object: &Value) -> Vec<String> {
    let errors = path_segment_errors(name);
    let required = format!("{}.{}", text(object, &["spec", "version"]), text(object, &["spec", "group"]));
    if errors.is_empty() && name != required {
        return vec![format!("must be `spec.version+\".\"+spec.group`: {}", quote(&required))];
    }
    errors
}

/// Validates a name that must be an IP address in canonical form.
///
/// Source: apimachinery pkg/util/validation/ip.go, `IsValidIP`.
pub(crate) fn ip_address(name: &str) -> Vec<String> {
    match name.parse::<IpAddr>().map(|address| address.to_canonical()) {
        Err(_) => vec!["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)".to_owned()],
        Ok(address) if address.to_string() != name => {
            vec![format!("must be in canonical form ({})", quote(&address.to_string()))]
        }
        Ok(_) => Vec::new(),
    }
}

/// Returns the reasons why a name cannot be a path segment.
///
/// Source: apimachinery pkg/api/validate/content/path.go, `IsPathSegmentName`.
pub(crate) fn path_segment_errors(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ["/", "%"]
            .iter()
            .filter(|part| name.contains(**part))
            .map(|part| format!("may not contain '{part}'"))
            .collect(),
    }
}
