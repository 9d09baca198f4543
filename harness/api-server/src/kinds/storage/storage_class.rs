//! Implements `StorageClass` objects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kubernetes_types::json;
use kubernetes_types::status::MAX_ERRORS;
use serde_json::Value;

use crate::kinds::common::cells::{Context, age_of, created, is_true, name, present_or, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{ensure, fill_pointer};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, list, map, text, texts, word};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::core::pod;
use crate::kinds::kind::Kind;

/// The behavior of `StorageClass` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "storageclasses",
    kind: "StorageClass",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    validate,
    warn,
    cells: Some(cells),
    default_in_list: Some(default_class),
    ..Kind::PLAIN
};

/// Sets the defaults of a `StorageClass`.
///
/// Source: kubernetes pkg/apis/storage/v1/defaults.go, `SetDefaults_StorageClass`.
pub(crate) fn set_defaults(object: &mut Value) {
    ensure(object, "metadata");
    fill_pointer(object, "reclaimPolicy", "Delete");
    fill_pointer(object, "volumeBindingMode", "Immediate");
}

/// Validates a `StorageClass`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateStorageClass` and
/// `ValidateStorageClassUpdate`; `pkg/apis/storage/v1/zz_generated.validations.go`.
/// Rule: VLO-20.
pub(crate) fn validate(errors: &mut Errors, class: &Value, change: Option<Change<'_>>) {
    let provisioner = text(class, "provisioner");
    if !provisioner.is_empty() {
        let wrong = kubernetes_types::names::label_key(&provisioner.to_lowercase());
        errors.all_invalid(&Path::new("provisioner"), &provisioner.to_lowercase(), wrong);
    }
    parameters(errors, &Path::new("parameters"), class);
    let policy = word(class, "reclaimPolicy").filter(|policy| !policy.is_empty());
    errors.one_of(&Path::new("reclaimPolicy"), policy, &["Delete", "Retain"]);
    let mode = Path::new("volumeBindingMode");
    match word(class, "volumeBindingMode") {
        None => errors.required(&mode, ""),
        mode_found => errors.one_of(&mode, mode_found, &["Immediate", "WaitForFirstConsumer"]),
    }
    topologies(errors, class);
    if provisioner.is_empty() {
        errors.required(&Path::new("provisioner"), "");
    }
    if let Some(change) = change {
        // Errors of generated validation do not contain values.
        for field in ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"] {
            if !change.is_same(&[field]) {
                errors.invalid(&Path::new(field), "null", IMMUTABLE);
            }
        }
    }
}

/// Validates the parameters of a storage class.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `validateParameters`.
pub(crate) fn parameters(errors: &mut Errors, path: &Path<'_>, class: &Value) {
    const MAX_PROVISIONER_PARAMETER_LEN: usize = 512;
    const MAX_PROVISIONER_PARAMETER_SIZE: usize = 256 * 1024;
    let parameters = map(class, "parameters");
    let size: usize = parameters
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if parameters.is_some_and(|parameters| parameters.len() > MAX_PROVISIONER_PARAMETER_LEN) {
        errors.too_long(path, MAX_PROVISIONER_PARAMETER_LEN);
    } else {
        if parameters.is_some_and(|parameters| parameters.contains_key("")) {
            errors.invalid_text(path, "", "field can not be empty.");
        }
        if size > MAX_PROVISIONER_PARAMETER_SIZE {
            errors.too_long(path, MAX_PROVISIONER_PARAMETER_SIZE);
        }
    }
}

/// Validates the allowed topologies of a storage class.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `validateAllowedTopologies`;
/// `pkg/apis/core/validation`, `ValidateTopologySelectorTerm`.
/// Rule: VLO-20.
fn topologies(errors: &mut Errors, class: &Value) {
    let (path, terms) = (Path::new("allowedTopologies"), list(class, "allowedTopologies"));
    // Like upstream, starts with one empty term for each term.
    let mut before: Vec<BTreeMap<&str, BTreeSet<&str>>> = vec![BTreeMap::new(); terms.len()];
    for (index, term) in terms.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("matchLabelExpressions");
        let mut wanted = BTreeMap::new();
        for (index, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = path.index(index);
            let values_path = path.child("values");
            if list(expression, "values").is_empty() {
                errors.required(&values_path, "");
            }
            let mut values = BTreeSet::new();
            for (index, value) in texts(expression, "values").enumerate() {
                if !values.insert(value) {
                    errors.duplicate(&values_path.index(index), value);
                }
            }
            let key = text(expression, "key");
            errors.all_invalid(&path.child("key"), key, kubernetes_types::names::label_key(key));
            if wanted.insert(key, values).is_some() {
                errors.duplicate(&path.child("key"), key);
            }
        }
        for _ in before.iter().filter(|other| **other == wanted) {
            errors.duplicate(&path, "");
        }
        if errors.len() > MAX_ERRORS {
            return;
        }
        before.push(wanted);
    }
}

/// Warns about deprecated node labels in a `StorageClass`.
///
/// Source: kubernetes pkg/api/storage/util.go.
pub(crate) fn warn(warnings: &mut Warnings, object: &Value, _: Option<&Value>) {
    let path = Path::new("allowedTopologies");
    for (index, topology) in list(object, "allowedTopologies").iter().enumerate() {
        let item = path.index(index);
        let path = item.child("matchLabelExpressions");
        for (index, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
            if let Some(message) = pod::warnings::deprecated_label(text(expression, "key")) {
                let item = path.index(index);
                warnings.push(format!("{}: {message}", item.child("key")));
            }
        }
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let is_default = !context.default_class.is_empty() && context.default_class == name(object);
    let default = if is_default { " (default)" } else { "" };
    row![
        format!("{}{default}", name(object)),
        json::text(object, &["provisioner"]),
        present_or(object, &["reclaimPolicy"], "Delete"),
        present_or(object, &["volumeBindingMode"], "Immediate"),
        is_true(object, &["allowVolumeExpansion"]),
        age_of(object, context),
    ]
}

/// Returns the name of the default storage class: the newest class that is marked as the default.
///
/// Source: `getEffectiveDefaultStorageClass`.
/// Rule: TBL-08.
pub(crate) fn default_class(classes: &[Arc<Value>]) -> String {
    let says_so = |class: &&Arc<Value>| {
        ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"]
            .iter()
            .any(|annotation| json::text(class, &["metadata", "annotations", annotation]) == "true")
    };
    let by_age = |one: &&Arc<Value>, other: &&Arc<Value>| {
        created(one).cmp(created(other)).then_with(|| name(other).cmp(name(one)))
    };
    let youngest = classes.iter().filter(says_so).max_by(by_age);
    youngest.map_or_else(String::new, |class| name(class).to_owned())
}
