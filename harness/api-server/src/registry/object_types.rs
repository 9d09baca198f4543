//! Checks objects in request bodies against their Go types or schemas.

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::json::text as text_at;
use kubernetes_types::schema;
use kubernetes_types::status::Status;
use serde_json::{Value, json};

use super::body::start;
use crate::apimachinery::metadata;
use crate::kinds::discovery::Resource;
use crate::kinds::discovery::custom::CustomResourceInfo;
use crate::kinds::strategy;

/// Returns whether objects of `kind` in requests for a resource have the schema of a custom resource.
///
/// The Scale of a custom resource has a Go type.
pub(crate) fn is_custom(resource: &Resource, kind: &GroupVersionKind) -> bool {
    matches!(Types::for_resource(resource, kind), Types::Custom(_))
}

/// The name of kube-apiserver's type registry, the scheme, in error messages.
pub(super) const SCHEME: &str = "scheme \"pkg/runtime/scheme.go:111\"";

/// The source of the known fields of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Types<'a> {
    /// The fields of a built-in type.
    Server,
    /// The fields of a Scale of a custom resource.
    CustomScale,
    /// The schema of a custom resource.
    Custom(&'a CustomResourceInfo),
}

impl<'a> Types<'a> {
    /// Returns the source of the known fields for objects of `kind` in requests for a resource.
    pub(crate) fn for_resource(resource: &'a Resource, kind: &GroupVersionKind) -> Self {
        match &resource.custom {
            Some(custom) if *kind == resource.kind => Self::Custom(custom),
            Some(_) => Self::CustomScale,
            None => Self::Server,
        }
    }
}

/// Returns the Go package of the internal type of a kind.
pub(crate) fn internal_package(kind: &GroupVersionKind) -> &str {
    match kind.group.as_str() {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split_once('.').map_or(group, |(package, _)| package),
    }
}

/// The kinds of `v1` that do not belong to a group.
///
/// Source: apimachinery `pkg/apis/meta/v1/register.go`, `AddToGroupVersion`.
const UNVERSIONED: [&str; 5] = ["Status", "APIVersions", "APIGroupList", "APIGroup", "APIResourceList"];

/// Returns whether kube-apiserver's scheme contains a kind, even if it is a list or does not have a resource.
fn is_registered_kind(kind: &GroupVersionKind) -> bool {
    let is_list_of_known = || {
        let item = kind.kind.strip_suffix("List")?;
        Some(schema::is_known(&GroupVersionKind { kind: item.to_owned(), ..kind.clone() }))
    };
    let is_unversioned = kind.api_version() == "v1" && UNVERSIONED.contains(&kind.kind.as_str());
    schema::is_known(kind)
        || kind.group == "admission.k8s.io"
        || is_unversioned
        || is_list_of_known().unwrap_or_default()
}

/// Checks and normalizes an object. Returns the object and the paths of its unknown fields.
///
/// Sets `apiVersion` and `kind` if an object of a built-in type omits them.
///
/// # Errors
/// Returns 400 if the object is of a different kind or a field has the wrong type, or 501 for a schema that admit does
/// not support.
pub(crate) fn typed(
    mut object: Value,
    kind: &GroupVersionKind,
    types: Types<'_>,
) -> Result<(Value, Vec<String>), Box<Status>> {
    let bad = |message: String| Box::new(Status::bad_request(message));
    let found = GroupVersionKind::from_object(&object);
    if let Types::Custom(custom) = types {
        check_custom(&object, &found, kind)?;
        return free_form(object, &found, (found == *kind).then_some(custom));
    }
    let claimed = GroupVersionKind {
        group: if found.version.is_empty() { kind.group.clone() } else { found.group },
        version: if found.version.is_empty() { kind.version.clone() } else { found.version },
        kind: if found.kind.is_empty() { kind.kind.clone() } else { found.kind },
    };
    if claimed != *kind && !strategy::accepts_beta_eviction(&claimed, kind) {
        let is_custom_scale = matches!(types, Types::CustomScale);
        let is_registered = is_old_scale(&claimed) || (!is_custom_scale && is_registered_kind(&claimed));
        let why = if !is_registered {
            format!(
                "no kind \"{}\" is registered for version \"{}\" in {SCHEME}",
                claimed.kind,
                claimed.api_version()
            )
        } else if claimed.kind == kind.kind && !is_custom_scale {
            return Err(other_version(&claimed, kind));
        } else {
            let package = if is_custom_scale { &kind.version } else { internal_package(kind) };
            format!(
                "converting ({}.{}) to ({package}.{}): unknown conversion",
                claimed.version, claimed.kind, kind.kind
            )
        };
        return Err(bad(format!(
            "{} in version \"{}\" cannot be handled as a {}: {why}",
            claimed.kind, claimed.version, kind.kind
        )));
    }
    if let Some(members) = object.as_object() {
        schema::type_error(members, kind, "").map_err(|why| {
            let (claimed, version) = (&kind.kind, &kind.version);
            bad(format!("{claimed} in version \"{version}\" cannot be handled as a {claimed}: {why}"))
        })?;
    }
    if let Some(members) = object.as_object_mut() {
        members.insert("apiVersion".to_owned(), kind.api_version().into());
        members.insert("kind".to_owned(), kind.kind.clone().into());
    }
    // Other empty lists are equivalent to absent ones. Empty managedFields have the same meaning as one empty entry.
    let resets = metadata::managed_fields(&object).as_array().is_some_and(Vec::is_empty);
    let unknown = schema::normalize(&mut object, kind);
    if resets {
        metadata::set(&mut object, "managedFields", json!([{}]));
    }
    Ok((object, unknown))
}

/// Decodes a custom resource whose body specifies the kind `found`.
///
/// Without `custom`, only numbers and metadata are normalized. This function also accepts an object of a different
/// kind. Validation rejects it later.
///
/// # Errors
/// Returns 400 for a field of the wrong type, or 501 for a schema that admit does not support.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `unstructuredSchemaCoercer`.
/// Rule: SCH-01, SCH-19.
pub(crate) fn free_form(
    mut object: Value,
    found: &GroupVersionKind,
    custom: Option<&CustomResourceInfo>,
) -> Result<(Value, Vec<String>), Box<Status>> {
    schema::normalize_numbers(&mut object);
    metadata::check_types(&object, found)?;
    let mut unknown = schema::normalize_metadata(&mut object);
    if let Some(custom) = custom {
        let compiled = custom.schema().map_err(|unsupported| Status::unsupported(&unsupported))?;
        unknown.extend(compiled.decode(&mut object, false).map_err(|error| {
            let (kind, version) = (&found.kind, &found.version);
            let why = format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {error}");
            Status::bad_request(why)
        })?);
    }
    Ok((object, unknown))
}

/// Checks that a custom resource has a kind and the expected version. Validation checks the kind later.
///
/// Source: apimachinery pkg/runtime/serializer/json/meta.go; apiserver pkg/endpoints/handlers/create.go.
fn check_custom(
    object: &Value,
    found: &GroupVersionKind,
    kind: &GroupVersionKind,
) -> Result<(), Box<Status>> {
    let unrecognized = |why: &str, text: &str| {
        Box::new(Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            kind.kind,
            start(text.as_bytes())
        )))
    };
    let text = || serde_json::to_string(object).unwrap_or_default();
    if let Some(why) = no_version(object) {
        return Err(unrecognized(&why, &text()));
    }
    if found.kind.is_empty() {
        let text = text();
        return Err(unrecognized(&format!("Object 'Kind' is missing in '{text}'"), &text));
    }
    if found.api_version() != kind.api_version() {
        return Err(other_version(found, kind));
    }
    Ok(())
}

fn other_version(found: &GroupVersionKind, kind: &GroupVersionKind) -> Box<Status> {
    let (found, kind) = (found.api_version(), kind.api_version());
    Box::new(Status::bad_request(format!(
        "the API version in the data ({found}) does not match the expected API version ({kind})"
    )))
}

/// Returns whether a kind is a Scale of a version that only old clients send.
///
/// Source: client-go scale/util.go, `NewScaleConverter`.
fn is_old_scale(kind: &GroupVersionKind) -> bool {
    let version = (kind.group.as_str(), kind.version.as_str());
    kind.kind == "Scale" && matches!(version, ("apps", "v1beta1" | "v1beta2") | ("extensions", "v1beta1"))
}

/// Returns the reason why the `apiVersion` of an object is invalid; `None` if it is valid.
///
/// Source: apimachinery `pkg/runtime/schema/group_version.go`, `ParseGroupVersion`.
pub(crate) fn no_version(object: &Value) -> Option<String> {
    let version = text_at(object, &["apiVersion"]);
    (version.split('/').count() > 2).then(|| format!("unexpected GroupVersion string: {version}"))
}
