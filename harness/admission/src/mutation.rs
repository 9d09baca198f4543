//! Applies the patch of a mutating webhook to the object.

use kubernetes_types::equality::semantically_equal;
use kubernetes_types::quoting::quote;
use kubernetes_types::schema;
use kubernetes_types::status::{Status, Unsupported};
use serde_json::Value;

use crate::admission_run::AdmissionRun;
pub(crate) use crate::attributes::GroupVersionKind;
use crate::cluster_state::ClusterState;
use crate::custom_scale;
use crate::event::CallFailure;
use crate::failure;
use crate::patch::{self, ApplyError, Operations, Patch};
use crate::review::decode;
use crate::review::response::Response;

/// The result of applying a patch.
#[derive(Debug)]
pub(crate) struct Patched {
    /// The applied operations, never empty.
    pub(crate) operations: Operations,
    /// Whether the object changed, except for defaults.
    pub(crate) changed: bool,
}

/// The reason why a patch was not applied.
#[derive(Debug)]
pub(crate) enum PatchError {
    /// The webhook failed: its failure policy applies.
    Failure(CallFailure),
    /// The request is rejected regardless of the failure policy.
    Server(Box<Status>),
    /// admit does not support the patch; kube-apiserver would apply it or hang.
    Unsupported(Unsupported),
}

/// Applies the patch of `response` to the object in the version of `kind` and sets the defaults.
///
/// Returns `None` if there is no patch.
///
/// The first patch encodes the object as JSON, which drops fractions of a second. This counts as a change.
///
/// Source: apiserver pkg/admission/plugin/webhook/mutating/dispatcher.go, `callAttrMutatingHook`.
/// Rule: MUT-05, MUT-06, MUT-07, MUT-08, MUT-09, MUT-10, MUT-13, MUT-14, MUT-22.
pub(crate) fn apply(
    webhook: &str,
    response: &Response,
    kind: &GroupVersionKind,
    run: &mut AdmissionRun<'_>,
) -> Result<Option<Patched>, PatchError> {
    if response.patch.is_empty() {
        return Ok(None);
    }
    patch::check_size(&response.patch).map_err(PatchError::Unsupported)?;
    let patch = Patch::decode(&response.patch).map_err(|error| {
        let reason = format!("received undecodable patch in webhook response: {error}");
        PatchError::Failure(CallFailure { reason, code: 503 })
    })?;
    if patch.is_empty() {
        return Ok(None);
    }
    let Some(object) = run.objects(kind).object else {
        return Err(PatchError::Server(failure::nothing_to_patch(webhook)));
    };
    if response.patch_type != "JSONPatch" {
        let code = response.status.as_ref().map_or(400, failure::denial_code);
        let reason = format!("unsupported patch type {}", quote(&response.patch_type));
        let code = u16::try_from(code).unwrap_or(u16::MAX);
        return Err(PatchError::Failure(CallFailure { reason, code }));
    }
    let state = run.state();
    let patched = patch.apply(object).map_err(|error| match error {
        ApplyError::Unsupported(unsupported) => PatchError::Unsupported(unsupported),
        error @ (ApplyError::DoesNotApply(_) | ApplyError::TestFailed(_) | ApplyError::Panic(_)) => {
            internal_error(&error.to_string())
        }
    })?;
    let is_scale = custom_scale::is_custom_scale(run.attributes());
    let built_in = state.is_built_in(kind) && !is_scale;
    let mut patched = decoded(patched, kind, built_in, state)?;
    // Compare before times are truncated to seconds.
    let differs = if is_scale {
        // The object no longer has a Go type, which counts as a change.
        !run.is_patched() || *object != patched
    } else {
        !semantically_equal(object, &patched, kind)
    };
    let changed = (run.round_times() && built_in) || differs;
    let has_labels = has_labels(&patched);
    if !is_scale {
        // Fields that the type does not have are dropped without a warning.
        state.set_defaults(&mut patched);
    }
    run.patch(kind, patched, has_labels);
    Ok(Some(Patched { operations: patch.operations_of(&response.patch), changed }))
}

/// Returns whether an object has labels. Must be called before the defaults are set.
pub(crate) fn has_labels(object: &Value) -> bool {
    object.pointer("/metadata/labels").and_then(Value::as_object).is_some_and(|labels| !labels.is_empty())
}

/// Decodes the patched document into an object as the server stores it. The document is in the version of `kind`.
///
/// Source: apimachinery pkg/runtime/serializer/json/json.go, `Decode`; pkg/runtime/error.go.
/// Rule: MUT-09, MUT-11, MUT-12, MUT-16.
pub(crate) fn decoded(
    mut patched: Value,
    kind: &GroupVersionKind,
    built_in: bool,
    state: &dyn ClusterState,
) -> Result<Value, PatchError> {
    let found = decode::type_meta(&patched).map_err(|error| internal_error(&error.into_text()))?;
    if !built_in && found.kind.is_empty() {
        return Err(internal_error(&format!("Object 'Kind' is missing in '{patched}'")));
    }
    let Value::Object(object) = &mut patched else {
        return Err(internal_error("the patched document is not an object"));
    };
    if !built_in {
        schema::normalize_numbers(&mut patched);
        return Ok(patched);
    }
    let mut meant = found.clone();
    if meant.kind.is_empty() {
        meant.kind.clone_from(&kind.kind);
    }
    if meant.version.is_empty() && meant.group.is_empty() {
        meant.group.clone_from(&kind.group);
        meant.version.clone_from(&kind.version);
    }
    if meant != *kind && !state.is_built_in(&meant) {
        return Err(internal_error(&format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
            quote(&meant.kind),
            quote(&meant.api_version()),
        )));
    }
    schema::type_error(object, &meant, "").map_err(|text| internal_error(&text))?;
    object.insert("apiVersion".to_owned(), meant.api_version().into());
    object.insert("kind".to_owned(), meant.kind.into());
    Ok(patched)
}

fn internal_error(message: &str) -> PatchError {
    PatchError::Server(Box::new(Status::internal_error(message)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::attributes::Attributes;
    use crate::ownership::TimePrecision;
    use crate::testing::{NoCluster, create_config_map};

    /// Returns a request to create a custom resource with the fields of the `ConfigMap` from [`create_config_map`].
    fn create_thing() -> Attributes {
        let mut attributes = create_config_map();
        attributes.kind = GroupVersionKind::new("example.com", "v1", "Thing");
        if let Some(object) = &mut attributes.object {
            object["apiVersion"] = json!("example.com/v1");
            object["kind"] = json!("Thing");
        }
        attributes
    }

    fn response(patch: &Value) -> Response {
        Response {
            allowed: true,
            patch: patch.to_string().into_bytes(),
            patch_type: "JSONPatch".to_owned(),
            status: None,
            warnings: Vec::new(),
            audit_annotations: std::collections::BTreeMap::new(),
        }
    }

    fn apply_to(run: &mut AdmissionRun<'_>, response: &Response) -> Result<Option<bool>, String> {
        let kind = run.attributes().kind.clone();
        match apply("w", response, &kind, run) {
            Ok(patched) => Ok(patched.map(|patched| patched.changed)),
            Err(PatchError::Failure(failure)) => Err(format!("{}: {}", failure.code, failure.reason)),
            Err(PatchError::Server(status)) => Err(format!("{}: {}", status.code, status.message)),
            Err(PatchError::Unsupported(unsupported)) => Err(unsupported.what),
        }
    }

    #[test]
    fn a_changed_value_or_a_lost_fraction_of_a_second_is_a_change() {
        let same = json!([{"op": "test", "path": "/data/k", "value": "v"}]);
        let other = json!([{"op": "replace", "path": "/data/k", "value": "w"}]);
        for (attributes, times, patch, changed) in [
            (create_config_map(), TimePrecision::Seconds, &same, false),
            (create_config_map(), TimePrecision::Nanos, &same, true),
            (create_config_map(), TimePrecision::Seconds, &other, true),
            (create_thing(), TimePrecision::Seconds, &same, false),
            (create_thing(), TimePrecision::Nanos, &same, false),
            (create_thing(), TimePrecision::Seconds, &other, true),
        ] {
            let shown = format!("{} {times:?} {patch}", attributes.kind);
            let mut run = AdmissionRun::new(attributes, times, &NoCluster);
            assert_eq!(apply_to(&mut run, &response(patch)), Ok(Some(changed)), "{shown}");
            assert_eq!(run.attributes().object.as_ref().unwrap()["data"]["defaulted"], "yes", "{shown}");
        }
    }

    #[test]
    fn a_patch_without_operations_is_ignored_even_without_an_object() {
        let mut deletion = create_config_map();
        deletion.object = None;
        let mut run = AdmissionRun::new(deletion, TimePrecision::Seconds, &NoCluster);
        assert_eq!(apply_to(&mut run, &Response { patch: Vec::new(), ..response(&json!([])) }), Ok(None));
        assert_eq!(apply_to(&mut run, &response(&json!([]))), Ok(None));
        let operations = json!([{"op": "test", "path": "", "value": null}]);
        let message = "500: Internal error occurred: admission webhook \"w\" attempted to modify the object, which is \
                       not supported for this operation";
        assert_eq!(apply_to(&mut run, &response(&operations)), Err(message.to_owned()));
    }

    #[test]
    fn empty_labels_do_not_count_as_labels() {
        for (labels, expect) in [(json!({"a": "b"}), true), (json!({}), false), (json!(null), false)] {
            let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &NoCluster);
            assert_eq!(run.had_labels(), None);
            let patch = json!([{"op": "add", "path": "/metadata/labels", "value": labels}]);
            apply_to(&mut run, &response(&patch)).unwrap();
            assert_eq!(run.had_labels(), Some(expect), "{patch}");
        }
    }

    #[test]
    fn an_unknown_patch_type_has_the_code_of_the_status_or_400() {
        for (status, code) in [(None, 400), (Some(403), 403), (Some(200), 400)] {
            let status = status.map(|code| Status { code, ..Status::default() });
            let patch = json!([{"op": "test", "path": "/data/k", "value": "v"}]);
            let other = Response { patch_type: "Merge".to_owned(), status, ..response(&patch) };
            let mut run = AdmissionRun::new(create_config_map(), TimePrecision::Seconds, &NoCluster);
            assert_eq!(apply_to(&mut run, &other), Err(format!("{code}: unsupported patch type \"Merge\"")));
        }
    }

    #[test]
    fn a_built_in_object_may_lose_its_kind_and_become_another_one() {
        #[track_caller]
        fn check(attributes: Attributes, patch: &Value, expect: Result<(&str, &str), &str>) {
            let mut run = AdmissionRun::new(attributes, TimePrecision::Seconds, &NoCluster);
            let result = apply_to(&mut run, &response(patch)).map(|_| {
                let object = run.attributes().object.clone().unwrap();
                let member = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
                (member("apiVersion"), member("kind"))
            });
            let expect = expect
                .map(|(version, kind)| (version.to_owned(), kind.to_owned()))
                .map_err(|message| format!("500: Internal error occurred: {message}"));
            assert_eq!(result, expect, "{patch}");
        }
        let remove = |path: &str| json!({"op": "remove", "path": path});
        let replace = |path: &str, value: &str| json!({"op": "replace", "path": path, "value": value});
        check(create_config_map(), &json!([remove("/kind")]), Ok(("v1", "ConfigMap")));
        check(create_config_map(), &json!([remove("/apiVersion")]), Ok(("v1", "ConfigMap")));
        let secret = json!([remove("/data"), replace("/kind", "Secret")]);
        check(create_config_map(), &secret, Ok(("v1", "Secret")));
        check(
            create_config_map(),
            &json!([replace("/apiVersion", "v2")]),
            Err(
                "no kind \"ConfigMap\" is registered for version \"v2\" in scheme \"pkg/runtime/scheme.go:111\"",
            ),
        );
        check(create_thing(), &json!([replace("/kind", "Other")]), Ok(("example.com/v1", "Other")));
        check(create_thing(), &json!([remove("/apiVersion")]), Ok(("", "Thing")));
        check(
            create_thing(),
            &json!([remove("/kind"), remove("/metadata"), remove("/data")]),
            Err("Object 'Kind' is missing in '{\"apiVersion\":\"example.com/v1\"}'"),
        );
    }
}
