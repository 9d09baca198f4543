//! Implements `ControllerRevision` objects.

use kubernetes_types::json::text;
use kubernetes_types::quoting::encode;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, is_true, items, name, number, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int};
use crate::kinds::kind::Kind;

/// The behavior of `ControllerRevision` objects.
pub(crate) const KIND: Kind = Kind {
    group: "apps",
    resource: "controllerrevisions",
    kind: "ControllerRevision",
    validate,
    cells: Some(cells),
    ..Kind::PLAIN
};

/// Validates a `ControllerRevision`.
///
/// Source: kubernetes pkg/apis/apps/validation/validation.go, `ValidateControllerRevisionCreate` and
/// `ValidateControllerRevisionUpdate`.
/// Rule: VLO-42.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    errors.not_negative(&Path::new("revision"), int(object, "revision"));
    let (path, data) = (Path::new("data"), get(object, "data"));
    match change {
        None if data.is_null() => errors.required(&path, "data is mandatory"),
        None if !data.is_object() => errors.required(&path, "data must be a valid JSON object"),
        Some(change) if !change.is_same(&["data"]) => errors.invalid(&path, encode(data), IMMUTABLE),
        None | Some(_) => {}
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let owners = items(object, &["metadata", "ownerReferences"]);
    let controller = owners.iter().find(|owner| is_true(owner, &["controller"]));
    let controller = controller.map_or_else(
        || "<none>".to_owned(),
        |owner| {
            let group = text(owner, &["apiVersion"]).rsplit_once('/').map_or("", |(group, _)| group);
            let dot = if group.is_empty() { "" } else { "." };
            let kind = format!("{}{dot}{group}", text(owner, &["kind"])).to_lowercase();
            format!("{kind}/{}", text(owner, &["name"]))
        },
    );
    row![name(object), controller, number(object, &["revision"]), age_of(object, context)]
}
