//! Implements `CSIDriver` objects.

use std::collections::HashSet;

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_types::equality::same;
use kubernetes_types::json;
use kubernetes_types::json::at;
use kubernetes_types::schema::Type;
use serde_json::{Value, json};

use crate::kinds::common::cells::{Context, age_of, items, joined, name, row};
use crate::kinds::common::change::Change;
use crate::kinds::common::defaults::{fill, fill_pointer, is_empty, with};
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, get, int, list, set, text, texts, word};
use crate::kinds::common::warnings::Warnings;
use crate::kinds::kind::{Changes, Kind};

/// The behavior of `CSIDriver` objects.
pub(crate) const KIND: Kind = Kind {
    group: "storage.k8s.io",
    resource: "csidrivers",
    kind: "CSIDriver",
    set_defaults: Some(set_defaults),
    returns_deleted_object: true,
    requires_resource_version: true,
    next_generation: Changes::Of(&[&["spec"]]),
    validate,
    warn,
    cells: Some(cells),
    ..Kind::PLAIN
};

fn warn(warnings: &mut Warnings, object: &Value, old: Option<&Value>) {
    let kind = GroupVersionKind::new("storage.k8s.io", "v1", "CSIDriver");
    let of = Type::for_kind(&kind).member("spec").member("tokenRequests");
    warn_about_spec(warnings, get(object, "spec"), old.map(|old| get(old, "spec")), of);
}

/// Sets the defaults of a `CSIDriver`.
///
/// Source: kubernetes pkg/apis/storage/v1/defaults.go, `SetDefaults_CSIDriver`.
pub(crate) fn set_defaults(object: &mut Value) {
    with(object, "spec", |spec| {
        fill(spec, "attachRequired", true);
        for field in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
            "preventPodSchedulingIfMissing",
        ] {
            fill(spec, field, false);
        }
        fill_pointer(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
        if is_empty(spec, "volumeLifecycleModes") {
            json::set(spec, &["volumeLifecycleModes"], json!(["Persistent"]));
        }
    });
}

/// Validates a `CSIDriver`.
///
/// Source: kubernetes pkg/apis/storage/validation/validation.go, `ValidateCSIDriver` and `ValidateCSIDriverUpdate`.
/// Rule: VLO-38.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    /// The minimum token lifetime in seconds: ten minutes.
    const MIN_EXPIRATION_SECONDS: i64 = 600;
    const MAX_EXPIRATION_SECONDS: i64 = 1 << 32;
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    errors.one_of(&path.child("fsGroupPolicy"), word(spec, "fsGroupPolicy"), &policies);
    let requests = path.child("tokenRequests");
    let mut audiences = HashSet::new();
    for (index, request) in list(spec, "tokenRequests").iter().enumerate() {
        let path = requests.index(index);
        let audience = text(request, "audience");
        if !audiences.insert(audience) {
            errors.duplicate(&path.child("audience"), audience);
            continue;
        }
        let path = path.child("expirationSeconds");
        match int(request, "expirationSeconds") {
            Some(seconds) if seconds < MIN_EXPIRATION_SECONDS => {
                errors.invalid(&path, seconds, "may not specify a duration less than 10 minutes");
            }
            Some(seconds) if seconds > MAX_EXPIRATION_SECONDS => {
                errors.invalid(&path, seconds, "may not specify a duration larger than 2^32 seconds");
            }
            _ => {}
        }
    }
    let modes = path.child("volumeLifecycleModes");
    for mode in texts(spec, "volumeLifecycleModes") {
        errors.one_of(&modes, Some(mode), &["Persistent", "Ephemeral"]);
    }
    let period = int(spec, "nodeAllocatableUpdatePeriodSeconds");
    if let Some(seconds) = period.filter(|seconds| *seconds < 10) {
        let path = path.child("nodeAllocatableUpdatePeriodSeconds");
        errors.invalid(&path, seconds, "must be greater than or equal to 10 seconds");
    }
    if let Some(in_secrets) = set(spec, "serviceAccountTokenInSecrets")
        && list(spec, "tokenRequests").is_empty()
    {
        let why = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
        errors.invalid(&path.child("serviceAccountTokenInSecrets"), in_secrets, why);
    }
    let Some(change) = change else { return };
    for (field, shown) in
        [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")]
    {
        if !change.is_same(&["spec", field]) {
            let value = kubernetes_types::quoting::encode(get(spec, field));
            errors.invalid(&path.child(shown), value, IMMUTABLE);
        }
    }
}

/// Warns about a `CSIDriver` with token requests that does not set `serviceAccountTokenInSecrets`.
///
/// Source: kubernetes pkg/registry/storage/csidriver/strategy.go.
pub(crate) fn warn_about_spec(warnings: &mut Warnings, spec: &Value, old: Option<&Value>, of: Type) {
    let requests = list(spec, "tokenRequests");
    let before = |old| get(old, "tokenRequests");
    let was_same = old.is_some_and(|old| same(get(spec, "tokenRequests"), before(old), of));
    if !requests.is_empty() && !was_same && set(spec, "serviceAccountTokenInSecrets").is_none() {
        warnings.push(
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
             possible logging of tokens in volume attributes"
                .to_owned(),
        );
    }
}

pub(crate) fn cells(object: &Value, context: &Context<'_>) -> Vec<Value> {
    let truth = |field, default| at(object, &["spec", field]).as_bool().unwrap_or(default);
    let tokens = at(object, &["spec", "tokenRequests"]).as_array();
    let modes = joined(items(object, &["spec", "volumeLifecycleModes"]), &[]);
    row![
        name(object),
        truth("attachRequired", true),
        truth("podInfoOnMount", false),
        truth("storageCapacity", false),
        tokens.map_or_else(|| "<unset>".to_owned(), |tokens| joined(tokens, &["audience"])),
        truth("requiresRepublish", false),
        if modes.is_empty() { "<none>".to_owned() } else { modes },
        age_of(object, context),
    ]
}
