//! Implements `DeviceTaintRule` objects.

use kubernetes_types::json::{at, text};
use serde_json::Value;

use crate::apimachinery::metadata;
use crate::kinds::common::cells::{Context, age_of, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::with;
use crate::kinds::common::fields::{Errors, Path, get, set};
use crate::kinds::common::{age, conditions, formats};
use crate::kinds::kind::{Kind, StatusKeeps};
use crate::kinds::resource::defaults::taint;
use crate::kinds::resource::devices;
use crate::kinds::resource::devices::{few, generated, most, names};

/// The behavior of `DeviceTaintRule` objects.
pub(crate) const KIND: Kind = Kind {
    group: "resource.k8s.io",
    resource: "devicetaintrules",
    kind: "DeviceTaintRule",
    set_defaults: Some(set_defaults),
    requires_resource_version: true,
    status_keeps: StatusKeeps::Metadata,
    has_status_table: false,
    prepare_update: set_time_added,
    validate,
    validate_subresources: &[("status", validate_status)],
    cells: Some(cells),
    ..Kind::COUNTED
};

/// Sets the time of a taint with a new effect, which counts as newly added.
fn set_time_added(object: &mut Value, old: &Value) {
    let changed = |field: &str| {
        let pointer = format!("/spec/taint/{field}");
        object.pointer(&pointer) != old.pointer(&pointer)
    };
    if changed("effect")
        && !changed("timeAdded")
        && let Some(taint) = object.pointer_mut("/spec/taint").and_then(Value::as_object_mut)
    {
        taint.insert("timeAdded".to_owned(), metadata::now().into());
    }
}

/// Sets the defaults of a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/v1/defaults.go, `SetDefaults_DeviceTaint`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| with(spec, "taint", taint));
}

/// Validates a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceTaintRule` and
/// `ValidateDeviceTaintRuleUpdate`.
/// Rule: VLO-45.
pub(crate) fn validate(errors: &mut Errors, object: &Value, _: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if let Some(selector) = set(spec, "deviceSelector") {
        let path = path.child("deviceSelector");
        let member = |field| set(selector, field).and_then(Value::as_str);
        if let Some(driver) = member("driver") {
            formats::driver_name(errors, &path.child("driver"), driver);
        }
        if let Some(pool) = member("pool") {
            names::pool(errors, &path.child("pool"), pool);
        }
        if let Some(device) = member("device") {
            formats::dns_label(errors, &path.child("device"), device);
        }
    }
    let path = path.child("taint");
    devices::taint(errors, &path, get(spec, "taint"));
    generated::taint(errors, &path, get(spec, "taint"));
}

/// Validates the status of a `DeviceTaintRule`.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `ValidateDeviceTaintRuleStatusUpdate`.
/// Rule: VLO-45.
pub(crate) fn validate_status(errors: &mut Errors, object: &Value, _: Change<'_>) {
    conditions::of_status(errors, object);
    let path = Path::new("status");
    few(errors, &path.child("conditions"), get(object, "status"), "conditions", most::CONDITIONS);
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let taint = at(object, &["spec", "taint"]);
    let added = at(taint, &["timeAdded"]);
    row![
        name(object),
        text(taint, &["key"]),
        text(taint, &["value"]),
        text(taint, &["effect"]),
        if added.is_null() { String::new() } else { age::since(context.now, added) },
        age_of(object, context),
    ]
}
