//! Validates Jobs.

use kubernetes_types::equality::same;
use kubernetes_types::json::keep;
use kubernetes_types::names;
use kubernetes_types::quoting::encode;
use serde_json::{Map, Value, json};

use crate::kinds::batch::job::policies;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::{Errors, IMMUTABLE, Path, flag, get, int, list, set, text, word};
use crate::kinds::common::internal::Form;
use crate::kinds::common::selectors;
use crate::kinds::core::pod;

/// Validates a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `ValidateJobCreate` and `ValidateJobUpdate`.
/// Rule: VLO-16.
pub(crate) fn validate(errors: &mut Errors, object: &Value, change: Option<Change<'_>>) {
    let (path, spec) = (Path::new("spec"), get(object, "spec"));
    if change.is_none() {
        generated_selector(errors, object);
    }
    job_spec(errors, &path, spec);
    let selector = get(spec, "selector");
    if selector.is_null() {
        errors.required(&path.child("selector"), "");
    }
    selectors::label_selector(errors, &path.child("selector"), selector);
    let template = get(spec, "template");
    if selectors::picks(selector, template) == Some(false) {
        let labels = get(get(template, "metadata"), "labels");
        let path = path.child("template");
        let path = path.child("metadata");
        let why = "`selector` does not match template `labels`";
        errors.invalid(&path.child("labels"), encode(labels), why);
    }
    if let Some(change) = change {
        unchanged(errors, &path, object, change);
    }
    name_allows_completions(errors, object, spec);
}

/// Validates the generated selector and labels of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateGeneratedSelector`.
fn generated_selector(errors: &mut Errors, object: &Value) {
    let spec = get(object, "spec");
    if flag(spec, "manualSelector") || set(spec, "selector").is_none() {
        return;
    }
    let metadata = get(object, "metadata");
    let path = Path::new("spec");
    let (of_template, of_selector) = (path.child("template"), path.child("selector"));
    let path = of_template.child("metadata");
    let path = path.child("labels");
    let labels = get(get(get(spec, "template"), "metadata"), "labels");
    for (label, field) in [
        ("controller-uid", "uid"),
        ("job-name", "name"),
        ("batch.kubernetes.io/controller-uid", "uid"),
        ("batch.kubernetes.io/job-name", "name"),
    ] {
        let expected = text(metadata, field);
        match word(labels, label) {
            None => errors.required(&path.key(label), &format!("must be '{expected}'")),
            Some(found) if found != expected => {
                errors.invalid(&path.key(label), encode(labels), format!("must be '{expected}'"));
            }
            Some(_) => {}
        }
    }
    let (uid, name) = (text(metadata, "uid"), text(metadata, "name"));
    let given = serde_json::json!({"metadata": {"labels": {
        "controller-uid": uid, "job-name": name,
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
    }}});
    let selector = get(spec, "selector");
    if selectors::picks(selector, &given) == Some(false) {
        errors.invalid(&of_selector, selectors::shown(selector), "`selector` not auto-generated");
    }
}

/// Validates the spec of a Job.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateJobSpec`.
pub(crate) fn job_spec(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    let fields = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    errors.none_negative(path, spec, &fields);
    if set(spec, "maxFailedIndexes").is_some() && set(spec, "backoffLimitPerIndex").is_none() {
        errors.required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    policies::manager(errors, path, spec);
    completion_mode(errors, path, spec);
    policies::failure(errors, path, spec);
    policies::success(errors, path, spec);
    let policy = word(spec, "podReplacementPolicy");
    let supported = if set(spec, "podFailurePolicy").is_some() {
        &["Failed"][..]
    } else {
        &["Failed", "TerminatingOrFailed"]
    };
    errors.one_of(&path.child("podReplacementPolicy"), policy, supported);
    let template = get(spec, "template");
    let of_template = path.child("template");
    pod::validation::template(errors, &of_template, template, None);
    let of_spec = of_template.child("spec");
    let restart_path = of_spec.child("restartPolicy");
    match text(get(template, "spec"), "restartPolicy") {
        "" | "Always" => errors.required(&restart_path, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if set(spec, "podFailurePolicy").is_some() => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid_text(&restart_path, "OnFailure", why);
        }
        "OnFailure" | "Never" => {}
        other => errors.unsupported(&restart_path, other, &["OnFailure", "Never"]),
    }
}

fn completion_mode(errors: &mut Errors, path: &Path<'_>, spec: &Value) {
    const MAX_PARALLELISM_FOR_INDEXED_JOB: i64 = 100_000;
    const MAX_FAILED_INDEXES_FOR_INDEXED_JOB: i64 = 100_000;
    /// The number of completions of a Job above which lower limits apply.
    const COMPLETIONS_SOFT_LIMIT: i64 = 100_000;
    const LIMIT_FOR_HIGH_COMPLETIONS: i64 = 10_000;
    let of = |field: &str| int(spec, field);
    let (completions, parallelism) = (of("completions"), of("parallelism"));
    let (failed, backoff) = (of("maxFailedIndexes"), of("backoffLimitPerIndex"));
    let failed_path = path.child("maxFailedIndexes");
    let parallelism_path = path.child("parallelism");
    let mode = word(spec, "completionMode");
    errors.one_of(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]);
    if mode == Some("Indexed") {
        if completions.is_none() {
            errors.required(&path.child("completions"), "when completion mode is Indexed");
        }
        if let Some(parallelism) =
            parallelism.filter(|parallelism| *parallelism > MAX_PARALLELISM_FOR_INDEXED_JOB)
        {
            let why = format!(
                "must be less than or equal to {MAX_PARALLELISM_FOR_INDEXED_JOB} when completion mode is Indexed"
            );
            errors.invalid(&parallelism_path, parallelism, why);
        }
        if let (Some(completions), Some(failed)) = (completions, failed)
            && failed > completions
        {
            errors.invalid(&failed_path, failed, "must be less than or equal to completions");
        }
        if let Some(failed) = failed.filter(|failed| *failed > MAX_FAILED_INDEXES_FOR_INDEXED_JOB) {
            errors.invalid(
                &failed_path,
                failed,
                format!("must be less than or equal to {MAX_FAILED_INDEXES_FOR_INDEXED_JOB}"),
            );
        }
        if completions.is_some_and(|completions| completions > COMPLETIONS_SOFT_LIMIT) && backoff.is_some() {
            if failed.is_none() {
                let why = format!("must be specified when completions is above {COMPLETIONS_SOFT_LIMIT}");
                errors.required(&failed_path, &why);
            }
            let why = format!(
                "must be less than or equal to {LIMIT_FOR_HIGH_COMPLETIONS} when completions are above {COMPLETIONS_SOFT_LIMIT} and used with backoff limit \
                 per index"
            );
            for (path, found) in [(&parallelism_path, parallelism), (&failed_path, failed)] {
                if let Some(found) = found.filter(|found| *found > LIMIT_FOR_HIGH_COMPLETIONS) {
                    errors.invalid(path, found, &why);
                }
            }
        }
    }
    if matches!(mode, None | Some("NonIndexed")) {
        for (field, found) in [("backoffLimitPerIndex", backoff), ("maxFailedIndexes", failed)] {
            if let Some(found) = found {
                errors.invalid(&path.child(field), found, "requires indexed completion mode");
            }
        }
    }
}

/// Validates the name of an indexed Job. The names of its Pods consist of this name and an index.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validateNameAllowsCompletions`.
fn name_allows_completions(errors: &mut Errors, object: &Value, spec: &Value) {
    let completions = int(spec, "completions").unwrap_or(0);
    if text(spec, "completionMode") != "Indexed" || completions <= 0 {
        return;
    }
    let name = text(get(object, "metadata"), "name");
    let longest = format!("{name}-{}", completions - 1);
    if !names::dns1123_label(&longest).is_empty() {
        let why = format!("will not able to create pod with invalid DNS label: {longest}");
        errors.invalid_text(&Path::new("metadata").child("name"), name, why);
    }
}

/// Validates immutable fields in an update of a Job.
///
/// The scheduling fields and the resources in the template of a suspended Job may change.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `ValidateJobSpecUpdate`;
/// pkg/registry/batch/job/strategy.go, `validationOptionsForJob`.
/// Rule: VLO-16.
fn unchanged(errors: &mut Errors, path: &Path<'_>, object: &Value, change: Change<'_>) {
    let new = get(object, "spec");
    if !change.is_same(&["spec", "completions"]) {
        // The completions of an indexed Job may change together with its parallelism.
        let (completions, path) = (int(new, "completions"), path.child("completions"));
        if text(new, "completionMode") != "Indexed" {
            errors.invalid(&path, encode(get(new, "completions")), IMMUTABLE);
        } else if let Some(completions) = completions
            && Some(completions) != int(new, "parallelism")
        {
            errors.invalid(&path, completions, "can only be modified in tandem with spec.parallelism");
        }
    }
    if !change.is_same(&["spec", "selector"]) {
        errors.invalid(&path.child("selector"), selectors::shown(get(new, "selector")), IMMUTABLE);
    }
    template_update(errors, path, change);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        if change.is_same(&["spec", field]) {
            continue;
        }
        let value = get(new, field);
        let shown = match field {
            "podFailurePolicy" => errors.shown(Form::Pointer, "batch.PodFailurePolicy", value),
            "successPolicy" => errors.shown(Form::Pointer, "batch.SuccessPolicy", value),
            _ => encode(value),
        };
        errors.invalid(&path.child(field), shown, IMMUTABLE);
    }
}

/// Validates a change to the pod template. A change is allowed only in a suspended Job without active Pods.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validatePodTemplateUpdate`.
fn template_update(errors: &mut Errors, path: &Path<'_>, change: Change<'_>) {
    let of = change.of.member("spec").member("template");
    let (new, old) = (get(get(change.new, "spec"), "template"), get(get(change.old, "spec"), "template"));
    let path = path.child("template");
    if !has_mutable_template(change.old) {
        if !same(new, old, of) {
            errors.invalid_structure(&path, "core.PodTemplateSpec", new, IMMUTABLE);
        }
        return;
    }
    let (new, old) = (get(new, "spec"), get(old, "spec"));
    let expected = with_mutable_fields(new, old);
    if !same(new, &expected, of.member("spec")) {
        errors.invalid_structure(&path.child("spec"), "core.PodSpec", new, IMMUTABLE);
    }
}

/// Returns whether the pod template of a Job can be changed.
///
/// Source: kubernetes pkg/registry/batch/job/strategy.go, `shouldAllowMutablePodTemplate`.
fn has_mutable_template(job: &Value) -> bool {
    let status = get(job, "status");
    let is_suspended_now = list(status, "conditions")
        .iter()
        .any(|condition| text(condition, "type") == "Suspended" && text(condition, "status") == "True");
    let never_started = set(status, "startTime").is_none();
    flag(get(job, "spec"), "suspend")
        && (never_started || is_suspended_now)
        && int(status, "active").unwrap_or(0) == 0
}

/// Returns the old spec of a template with the new values of the mutable fields.
///
/// Source: kubernetes pkg/apis/batch/validation/validation.go, `validatePodTemplateUpdate` and
/// `validatePodResourceUpdatesOnly`.
fn with_mutable_fields(new: &Value, old: &Value) -> Value {
    let mut expected = old.clone();
    for field in ["nodeSelector", "tolerations", "schedulingGates"] {
        keep(&mut expected, new, field);
    }
    let mut affinity = set(old, "affinity").cloned().unwrap_or_else(|| json!({}));
    keep(&mut affinity, get(new, "affinity"), "nodeAffinity");
    let is_empty = affinity.as_object().is_some_and(Map::is_empty);
    if let Some(members) = expected.as_object_mut() {
        if is_empty && set(new, "affinity").is_none() {
            members.remove("affinity");
        } else if set(new, "affinity").is_some() || !is_empty {
            members.insert("affinity".to_owned(), affinity);
        }
    }
    for field in ["containers", "initContainers"] {
        let after = list(new, field);
        let Some(containers) = expected.get_mut(field).and_then(Value::as_array_mut) else { continue };
        if containers.len() != after.len() {
            continue;
        }
        for (container, after) in containers.iter_mut().zip(after) {
            if text(container, "name") == text(after, "name") {
                keep(container, after, "resources");
            }
        }
    }
    expected
}
