//! Validates string formats and numbers.

use kubernetes_types::names;
use kubernetes_types::status::FieldError;
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::fields;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path};

fn too_long(limit: usize) -> String {
    format!("must be no more than {limit} characters")
}

/// Returns `must be between LOW and HIGH, inclusive`.
///
/// Source: apimachinery pkg/util/validation/validation.go, `InclusiveRangeError`.
pub(crate) fn between(low: i64, high: i64) -> String {
    format!("must be between {low} and {high}, inclusive")
}

/// Validates a key of a `ConfigMap` or a Secret.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsConfigMapKey`.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if key.len() > 253 {
        wrong.push(too_long(253));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if key.is_empty() || !key.bytes().all(fits) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    match key {
        "." | ".." => wrong.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => wrong.push("must not start with '..'".to_owned()),
        _ => {}
    }
    wrong
}

/// Validates the name of an environment variable.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsRelaxedEnvVarName`.
pub(crate) fn environment_name(name: &str) -> Vec<String> {
    let fits = |byte: u8| (b' '..=b'~').contains(&byte) && byte != b'=';
    if name.is_empty() {
        vec!["environment variable name must be non-empty".to_owned()]
    } else if name.bytes().all(fits) {
        Vec::new()
    } else {
        vec![
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        ]
    }
}

/// Validates the name of a port.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsValidPortName`.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 15 {
        wrong.push(too_long(15));
    }
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || !name.bytes().all(fits) {
        wrong.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        wrong.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        wrong.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        wrong.push("must not begin or end with a hyphen".to_owned());
    }
    wrong
}

/// Validates the name of an HTTP header.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsHTTPHeaderName`.
pub(crate) fn header_name(name: &str) -> Vec<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if !name.is_empty() && name.bytes().all(fits) {
        return Vec::new();
    }
    vec![
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for \
         validation is '[-A-Za-z0-9]+')"
            .to_owned(),
    ]
}

/// Returns the digits of a percentage; `None` if the string is not a percentage.
pub(crate) fn percentage(text: &str) -> Option<&str> {
    let number = text.strip_suffix('%')?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

/// Validates a percentage.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsValidPercent`.
pub(crate) fn percent(text: &str) -> Vec<String> {
    if percentage(text).is_some() {
        return Vec::new();
    }
    vec![
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used \
         for validation is '[0-9]+%')"
            .to_owned(),
    ]
}

/// Validates a port number.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsValidPortNum`.
pub(crate) fn port(errors: &mut Errors, path: &Path<'_>, number: i64) {
    if !(1..=65535).contains(&number) {
        errors.invalid(path, number, between(1, 65535));
    }
}

/// Validates a port number or a port name.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidatePortNumOrName`.
pub(crate) fn port_or_name(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    match value.as_str() {
        Some(name) => errors.all_invalid(path, name, port_name(name)),
        None => port(errors, path, value.as_i64().unwrap_or(0)),
    }
}

/// Validates a qualified name, such as the type of a condition.
pub(crate) fn qualified_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    errors.all_invalid(path, name, names::label_key(name));
}

pub(crate) fn dns_label(errors: &mut Errors, path: &Path<'_>, name: &str) {
    errors.all_invalid(path, name, names::dns1123_label(name));
}

/// Rewords a length error as generated validation does: with bytes instead of characters.
///
/// Source: apimachinery pkg/api/validate/content/errors.go, `MaxLenError`.
pub(crate) fn in_bytes(why: &str) -> String {
    if why.starts_with("must be no more than") { why.replace("characters", "bytes") } else { why.to_owned() }
}

/// Validates the name of an object as upstream's generated validation does.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `LongName`.
/// Rule: VLO-25.
pub(crate) fn name_by_type(errors: &mut Errors, object: &Value) {
    let name = metadata::text(object, "name");
    if name.is_empty() {
        return;
    }
    let path = Path::new("metadata");
    for why in names::dns1123_subdomain(name) {
        errors.invalid_by_type(&path.child("name"), &kubernetes_types::quoting::quote(name), in_bytes(&why));
    }
}

pub(crate) fn dns_subdomain(errors: &mut Errors, path: &Path<'_>, name: &str) {
    errors.all_invalid(path, name, names::dns1123_subdomain(name));
}

/// Validates a DNS-1123 subdomain whose labels may begin with an underscore.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDNS1123SubdomainWithUnderscore`.
pub(crate) fn dns_subdomain_with_underscores(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push(too_long(253));
    }
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        label.first().is_some_and(is_end)
            && label.last().is_some_and(is_end)
            && label.iter().all(|byte| is_end(byte) || b"-_".contains(byte))
    };
    if !name.split('.').all(is_label) {
        wrong.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must \
             start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
             '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// Validates a DNS-1123 subdomain that begins with a wildcard.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsWildcardDNS1123Subdomain`.
pub(crate) fn wildcard(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if name.len() > 253 {
        wrong.push(too_long(253));
    }
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_label = |label: &str| {
        let label = label.as_bytes();
        label.first().is_some_and(is_end)
            && label.last().is_some_and(is_end)
            && label.iter().all(|byte| is_end(byte) || *byte == b'-')
    };
    if !name.strip_prefix("*.").is_some_and(|rest| rest.split('.').all(is_label)) {
        wrong.push(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', \
             regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    wrong
}

/// Validates a path that is prefixed with a domain.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsDomainPrefixedPath`.
pub(crate) fn domain_prefixed_path(errors: &mut Errors, path: &Path<'_>, text: &str) {
    if text.is_empty() {
        errors.required(path, "");
        return;
    }
    match text.split_once('/') {
        Some((host, rest)) if !host.is_empty() && !rest.is_empty() => {
            dns_subdomain(errors, path, host);
            let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
            if !rest.bytes().all(fits) {
                let why = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                errors.invalid_text(path, rest, why);
            }
        }
        _ => {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.invalid_text(path, text, why);
        }
    }
}

/// Validates a fully qualified domain name.
///
/// Source: apimachinery pkg/util/validation/validation.go, `IsFullyQualifiedDomainName`.
pub(crate) fn full_domain_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let wrong = names::dns1123_subdomain(name);
    if !wrong.is_empty() {
        errors.invalid_text(path, name, wrong.join(","));
    } else if !name.contains('.') {
        errors.invalid_text(path, name, "should be a domain with at least two segments separated by dots");
    } else {
        let wrong = |label| (label, names::dns1123_label(label));
        if let Some((label, wrong)) = name.split('.').map(wrong).find(|(_, wrong)| !wrong.is_empty()) {
            errors.invalid_text(path, label, wrong.join(","));
        }
    }
}

/// Validates a name that must be a path segment of the API.
pub(crate) fn path_segment(errors: &mut Errors, path: &Path<'_>, name: &str) {
    errors.all_invalid(path, name, path_segment_errors(name));
}

/// Validates a quantity that must not be negative.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateNonnegativeQuantity`.
pub(crate) fn quantity_not_negative(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    let value = kubernetes_types::quantity::from_value(value);
    if let Some(value) = value.filter(|value| *value < kubernetes_types::quantity::Quantity::ZERO) {
        errors.invalid_text(path, &value.to_string(), fields::NEGATIVE);
    }
}

/// Validates the labels of an object or a selector.
///
/// Source: apimachinery pkg/apis/meta/v1/validation/validation.go, `ValidateLabels`.
pub(crate) fn labels(errors: &mut Errors, path: &Path<'_>, labels: &Value) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        errors.all_invalid(path, key, names::label_key(key));
        let value = value.as_str().unwrap_or_default();
        errors.all_invalid(path, value, names::label_value(value));
    }
}

/// Validates annotations.
///
/// Source: apimachinery pkg/api/validation/objectmeta.go, `ValidateAnnotations`.
pub(crate) fn annotations(errors: &mut Errors, path: &Path<'_>, annotations: &Value) {
    const TOTAL_ANNOTATION_SIZE_LIMIT_B: usize = 256 * 1024;
    let mut size = 0;
    for (key, value) in annotations.as_object().into_iter().flatten() {
        errors.all_invalid(path, key, names::label_key(&key.to_lowercase()));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > TOTAL_ANNOTATION_SIZE_LIMIT_B {
        errors.too_long(path, TOTAL_ANNOTATION_SIZE_LIMIT_B);
    }
}

/// Validates a relative path that stays below its base.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validateLocalDescendingPath`.
pub(crate) fn descending_path(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if target.starts_with('/') {
        errors.invalid_text(path, target, "must be a relative path");
    }
    no_backsteps(errors, path, target);
}

/// Validates a path that must not contain `..`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `validatePathNoBacksteps`.
pub(crate) fn no_backsteps(errors: &mut Errors, path: &Path<'_>, target: &str) {
    if has_backsteps(target) {
        errors.invalid_text(path, target, "must not contain '..'");
    }
}

pub(crate) fn has_backsteps(target: &str) -> bool {
    target.split('/').any(|part| part == "..")
}

/// Validates a relative path that stays below its base and does not start with `..`.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateLocalNonReservedPath`.
pub(crate) fn unreserved_path(errors: &mut Errors, path: &Path<'_>, target: &str) {
    descending_path(errors, path, target);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.invalid_text(path, target, "must not start with '..'");
    }
}

/// Validates a non-negative number or percentage.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidatePositiveIntOrPercent`.
pub(crate) fn number_or_percent(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    match value.as_str() {
        Some(text) => errors.all_invalid(path, text, percent(text)),
        None => errors.not_negative(path, value.as_i64()),
    }
}

/// Validates a percentage that must not exceed 100%.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `IsNotMoreThan100Percent`.
pub(crate) fn at_most_all(errors: &mut Errors, path: &Path<'_>, value: &Value) {
    let number = value.as_str().and_then(percentage);
    if let Some(text) = value.as_str()
        && number.is_some_and(|number| number.parse::<u64>().is_ok_and(|number| number > 100))
    {
        errors.invalid_text(path, text, "must not be greater than 100%");
    }
}

/// Returns the value of an integer or a percentage; zero for any other value.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `getIntOrPercentValue`.
pub(crate) fn amount(value: &Value) -> i64 {
    match value.as_str() {
        Some(text) => percentage(text).unwrap_or(text).parse().unwrap_or(0),
        None => value.as_i64().unwrap_or(0),
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

/// Reports a changed immutable field as an error of generated validation. The error does not contain the value.
pub(crate) fn stays_by_type(errors: &mut Errors, path: &Path<'_>) {
    errors.generated(FieldError::invalid(path.to_string(), "null", IMMUTABLE));
}

/// Validates the name of a CSI driver.
///
/// Source: kubernetes pkg/apis/core/validation/validation.go, `ValidateCSIDriverName`.
pub(crate) fn driver_name(errors: &mut Errors, path: &Path<'_>, name: &str) {
    const DRIVER_NAME_MAX_LENGTH: usize = 63;
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    if name.len() > DRIVER_NAME_MAX_LENGTH {
        errors.too_long(path, DRIVER_NAME_MAX_LENGTH);
    }
    errors.all_invalid(path, name, kubernetes_types::names::dns1123_subdomain(&name.to_lowercase()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_names_have_a_letter_and_single_hyphens() {
        assert_eq!(port_name("http-1"), [""; 0]);
        assert_eq!(port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(port_name("a--b"), ["must not contain consecutive hyphens"]);
        assert_eq!(port_name("abcdefghijklmnop"), ["must be no more than 15 characters"]);
    }

    #[test]
    fn data_keys_are_file_names() {
        assert_eq!(config_key("a.b_C-1"), [""; 0]);
        assert_eq!(config_key(".."), ["must not be '..'"]);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert_eq!(config_key("a b").len(), 1);
    }
}
