//! Implements `Ingress` objects.

use std::net::IpAddr;

use kubernetes_types::{json, names};
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, items, name, present_or, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::ensure;
use crate::kinds::common::fields::{Errors, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::warnings::{Warnings, has_annotation};
use crate::kinds::common::{addresses, formats};
use crate::kinds::core::endpoints::MAX_LISTED;
use crate::kinds::core::service;
use crate::kinds::core::service::columns::load_balancer;
use crate::kinds::kind::Kind;

/// The behavior of `Ingress` objects.
pub(crate) const KIND: Kind = Kind {
    group: "networking.k8s.io",
    resource: "ingresses",
    kind: "Ingress",
    set_defaults: Some(set_defaults),
    validate,
    validate_subresources: &[("status", validate_status)],
    warn: |warnings, object, old| {
        if old.is_none() {
            deprecated_class(warnings, object);
        }
    },
    warn_status: service::warnings::balancer,
    cells: Some(cells),
    ..Kind::COUNTED
};

pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    ensure(object, "spec");
    if let Some(status) = ensure(object, "status") {
        ensure(status, "loadBalancer");
    }
}

/// Validates an Ingress.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateIngressCreate` and
/// `ValidateIngressUpdate`.
/// Rule: VLO-29.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let before = change.map(|change| get(change.old, "spec"));
    let rules = list(spec, "rules");
    let backend = set(spec, "defaultBackend");
    if rules.is_empty() && backend.is_none() {
        errors.invalid(&path, "null", "either `defaultBackend` or `rules` must be specified");
    }
    if let Some(backend) = backend {
        ingress_backend(errors, &path.child("defaultBackend"), backend);
    }
    let lenient = before.is_some_and(|before| {
        list(before, "rules").iter().any(|rule| {
            let mut errors = Errors::default();
            http(&mut errors, &Path::new("http"), rule);
            text(rule, "host").contains('*') && errors.len() > 0
        })
    });
    let rules_path = path.child("rules");
    for (index, rule) in rules.iter().enumerate() {
        let path = rules_path.index(index);
        let host = text(rule, "host");
        host_of_rule(errors, &path.child("host"), host);
        if !host.contains('*') || !lenient {
            http(errors, &path.child("http"), rule);
        }
    }
    tls(errors, &path.child("tls"), spec, before);
    if let Some(class) = word(spec, "ingressClassName") {
        formats::dns_subdomain(errors, &path.child("ingressClassName"), class);
    }
    let annotation = word(get(get(object, "metadata"), "annotations"), CLASS);
    if let (None, Some(annotation), Some(class)) = (change, annotation, word(spec, "ingressClassName"))
        && annotation != class
    {
        let path = Path::new("annotations");
        let why = "must match `ingressClassName` when both are specified";
        errors.invalid_text(&path.child(CLASS), annotation, why);
    }
}

fn host_of_rule(errors: &mut Errors, path: &Path<'_>, host: &str) {
    if host.is_empty() {
        return;
    }
    if host.parse::<IpAddr>().is_ok() {
        errors.invalid_text(path, host, "must be a DNS name, not an IP address");
    }
    host_name(errors, path, host);
}

/// Validates a host name that may begin with a wildcard.
fn host_name(errors: &mut Errors, path: &Path<'_>, host: &str) {
    if host.contains('*') {
        errors.all_invalid(path, host, formats::wildcard(host));
    } else {
        formats::dns_subdomain(errors, path, host);
    }
}

fn http(errors: &mut Errors, path: &Path<'_>, rule: &Value) {
    let Some(http) = set(rule, "http") else { return };
    let path = path.child("paths");
    if list(http, "paths").is_empty() {
        errors.required(&path, "");
    }
    for (index, found) in list(http, "paths").iter().enumerate() {
        http_path(errors, &path.index(index), found);
    }
}

/// Validates a path of an Ingress rule.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `validateHTTPIngressPath`.
fn http_path(errors: &mut Errors, path: &Path<'_>, found: &Value) {
    let Some(kind) = word(found, "pathType") else {
        errors.required(&path.child("pathType"), "pathType must be specified");
        return;
    };
    let (target, target_path) = (text(found, "path"), path.child("path"));
    let is_relative = !target.starts_with('/');
    match kind {
        "Exact" | "Prefix" => {
            if is_relative {
                errors.invalid_text(&target_path, target, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| target.contains(**part)) {
                errors.invalid_text(&target_path, target, format!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| target.ends_with(**end)) {
                errors.invalid_text(&target_path, target, format!("cannot end with '{end}'"));
            }
        }
        "ImplementationSpecific" => {
            if !target.is_empty() && is_relative {
                errors.invalid_text(&target_path, target, "must be an absolute path");
            }
        }
        other => {
            let kinds = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.unsupported(&path.child("pathType"), other, &kinds);
        }
    }
    ingress_backend(errors, &path.child("backend"), get(found, "backend"));
}

/// Validates the backend of an Ingress.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `validateIngressBackend`.
fn ingress_backend(errors: &mut Errors, path: &Path<'_>, backend: &Value) {
    match (set(backend, "resource"), set(backend, "service")) {
        (Some(_), Some(_)) => {
            errors.invalid_text(path, "", "cannot set both resource and service backends");
        }
        (Some(resource), None) => reference(errors, &path.child("resource"), resource),
        (None, Some(service)) => {
            let of_service = path.child("service");
            let (name, name_path) = (text(service, "name"), of_service.child("name"));
            if name.is_empty() {
                errors.required(&name_path, "");
            } else {
                formats::dns_label(errors, &name_path, name);
            }
            let (port, of_port) = (get(service, "port"), of_service.child("port"));
            match (text(port, "name"), int(port, "number").unwrap_or(0)) {
                ("", 0) => errors.required(path, "port name or number is required"),
                ("", number) => formats::port(errors, &of_port.child("number"), number),
                (name, 0) => errors.all_invalid(&of_port.child("name"), name, formats::port_name(name)),
                _ => errors.invalid_text(path, "", "cannot set both port name & port number"),
            }
        }
        (None, None) => errors.invalid_text(path, "", "resource or service backend is required"),
    }
}

/// Validates a reference to an object in the namespace of the Ingress.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `validateIngressTypedLocalObjectReference`.
fn reference(errors: &mut Errors, path: &Path<'_>, reference: &Value) {
    if let Some(group) = word(reference, "apiGroup") {
        formats::dns_subdomain(errors, &path.child("apiGroup"), group);
    }
    for field in ["kind", "name"] {
        let (path, found) = (path.child(field), text(reference, field));
        if found.is_empty() {
            errors.required(&path, "");
        } else {
            formats::path_segment(errors, &path, found);
        }
    }
}

fn tls(errors: &mut Errors, path: &Path<'_>, spec: &Value, before: Option<&Value>) {
    let wrong_secret = |tls: &Value| match text(tls, "secretName") {
        "" => Vec::new(),
        name => names::dns1123_subdomain(name),
    };
    let lenient =
        before.is_some_and(|before| list(before, "tls").iter().any(|tls| !wrong_secret(tls).is_empty()));
    for (index, tls) in list(spec, "tls").iter().enumerate() {
        let item = path.index(index);
        let hosts = item.child("hosts");
        for (index, host) in texts(tls, "hosts").enumerate() {
            host_name(errors, &hosts.index(index), host);
        }
        if !lenient {
            errors.all_invalid(&item.child("secretName"), text(tls, "secretName"), wrong_secret(tls));
        }
    }
}

/// Validates the status of an Ingress.
///
/// Source: kubernetes pkg/apis/networking/validation/validation.go, `ValidateIngressLoadBalancerStatus`.
/// Rule: VLO-29.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, change: Change<'_>) {
    let balancers = |object| list(get(get(object, "status"), "loadBalancer"), "ingress");
    let known: Vec<&str> = balancers(change.old).iter().map(|found| text(found, "ip")).collect();
    let path = Path::new("status");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    for (index, found) in balancers(object).iter().enumerate() {
        let path = path.index(index);
        let (address, host) = (text(found, "ip"), text(found, "hostname"));
        if !address.is_empty() && !known.contains(&address) {
            addresses::ip(errors, &path.child("ip"), address);
        }
        if !host.is_empty() {
            let path = path.child("hostname");
            formats::dns_subdomain(errors, &path, host);
            if host.parse::<IpAddr>().is_ok() {
                errors.invalid_text(&path, host, "must be a DNS name, not an IP address");
            }
        }
    }
}

/// Warns about the deprecated annotation with the class of an Ingress.
///
/// Source: kubernetes pkg/registry/networking/ingress/strategy.go, `WarningsOnCreate`.
/// Rule: KND-07.
pub(crate) fn deprecated_class(warnings: &mut Warnings, ingress: &Value) {
    let annotation = "kubernetes.io/ingress.class";
    if has_annotation(ingress, annotation) && set(get(ingress, "spec"), "ingressClassName").is_none() {
        let message = "is deprecated, please use 'spec.ingressClassName' instead";
        warnings.push(format!("annotation \"{annotation}\" {message}"));
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let has_tls = !items(object, &["spec", "tls"]).is_empty();
    row![
        name(object),
        present_or(object, &["spec", "ingressClassName"], "<none>"),
        hosts(items(object, &["spec", "rules"])),
        load_balancer(object),
        if has_tls { "80, 443" } else { "80" },
        age_of(object, context),
    ]
}

/// Formats the hosts of rules; `*` if the rules do not have hosts.
///
/// Source: `formatHosts`.
fn hosts(rules: &[Value]) -> String {
    let (mut hosts, mut has_more) = (Vec::new(), false);
    for rule in rules {
        has_more |= hosts.len() == MAX_LISTED;
        let host = json::text(rule, &["host"]);
        if !has_more && !host.is_empty() {
            hosts.push(host);
        }
    }
    match hosts.join(",") {
        _ if hosts.is_empty() => "*".to_owned(),
        shown if has_more => format!("{shown} + {} more...", rules.len() - MAX_LISTED),
        shown => shown,
    }
}
