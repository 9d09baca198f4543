//! Applies the admission policies of a cluster to a request.

mod explanation;
mod matching;
mod mutating;
mod params;
#[cfg(test)]
mod tests;
mod without_webhooks;

use std::sync::Arc;

use kubernetes_cel::value::Origin;
use kubernetes_types::status::{Status, StatusCause, Unsupported};
use serde_json::{Map, Value};
use tokio::time::Instant;

use self::matching::Match;
pub(crate) use self::mutating::select;
use self::params::ParamsError;
pub use self::without_webhooks::{matching_everything, mutate_by, mutate_in_order, validate_by};
use crate::admission_run::{AdmissionRun, Objects};
use crate::attributes::Attributes;
use crate::cluster_state::ConversionError;
use crate::conditions::Subject;
use crate::config::{FailurePolicy, Phase};
use crate::event::Round;
use crate::failure::{self, out_of_time};
use crate::matching::exemption::is_virtual;
use crate::policy::{
    self, AnnotationOutcome, BindingRecord, Definition, Input, MAX_VALIDATION_FAILURES, ParamInput,
    PoliciesChecked, PolicyMismatch, PolicyRecord, PolicyRun, SkippedPolicy, ValidatingBinding,
    ValidatingHook, ValidatingPolicy, ValidationAction, Violation,
};

/// The result of applying the policies of a phase.
pub(crate) struct Checked {
    pub(crate) record: PoliciesChecked,
    pub(crate) refusal: Option<Refusal>,
}

/// The reason why the policies of a phase reject a request.
pub(crate) enum Refusal {
    Status(Box<Status>),
    Unsupported(Unsupported),
}

/// The reason why a policy cannot be evaluated.
enum Failure {
    /// The policy or binding cannot be applied; the failure policy applies. Contains the error message.
    Configuration(String),
    /// The request is rejected regardless of the failure policy.
    Refusal(Refusal),
    /// A conversion webhook must be called first, or there is not enough memory for the conversion.
    ByWebhook(ConversionError),
}

/// The first denial of a request; later denials are ignored.
struct Denial {
    message: String,
    reason: String,
}

/// Applies all validating policies to a request.
///
/// Policies and their bindings are applied in alphabetical order; kube-apiserver's order is random.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`.
/// Rule: POL-01, POL-03, POL-33, POL-34.
///
/// # Errors
/// Returns [`ConversionError`] if a conversion webhook must be called first, or if there is not enough memory for a
/// conversion.
pub(crate) fn validate(
    hooks: &[ValidatingHook],
    run: &mut AdmissionRun<'_>,
    deadline: Option<Instant>,
) -> Result<Checked, ConversionError> {
    let mut checking = Checking { deadline, ..Checking::default() };
    let mut refusal = None;
    if is_exempt(run.attributes()) {
        for hook in hooks {
            checking.skipped.extend(skipped(&hook.policy.definition.name, PolicyMismatch::exempt(), run));
        }
    } else {
        for hook in hooks {
            match checking.check(hook, run) {
                Ok(()) => {}
                Err(Failure::ByWebhook(error)) => return Err(error),
                Err(Failure::Refusal(found)) => {
                    refusal = Some(found);
                    break;
                }
                Err(Failure::Configuration(message)) => checking.fail(&hook.policy, None, &message),
            }
        }
    }
    let Checking { policies, skipped, warnings, violations, denial, deadline: _ } = checking;
    let denied = denial.map(|denial| Refusal::Status(status(run.attributes(), denial)));
    let record = PoliciesChecked::new(Phase::Validating, Round::First);
    Ok(Checked {
        record: PoliciesChecked { policies, skipped, warnings, violations, ..record },
        refusal: refusal.or(denied),
    })
}

/// Returns whether a request is exempt from policies that were created through the API.
///
/// Source: apiserver pkg/admission/plugin/policy/generic/plugin.go, `Dispatch`; kubernetes
/// pkg/kubeapiserver/admission/exclusion/resources.go.
/// Rule: POL-04, POL-05.
fn is_exempt(attributes: &Attributes) -> bool {
    let resource = (attributes.resource.group.as_str(), attributes.resource.resource.as_str());
    let configures_policies = resource.0 == "admissionregistration.k8s.io"
        && matches!(
            resource.1,
            "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
                | "mutatingadmissionpolicies"
                | "mutatingadmissionpolicybindings"
        );
    configures_policies || is_virtual(attributes)
}

/// Returns the record of a policy that does not match the request, if the admission run explains policies.
fn skipped(policy: &Arc<str>, mismatch: PolicyMismatch, run: &AdmissionRun<'_>) -> Option<SkippedPolicy> {
    run.explains_policies().then(|| SkippedPolicy { policy: Arc::clone(policy), mismatch })
}

/// Records the reason why a policy cannot be applied, or, if `of_binding`, why its last binding cannot be applied.
fn record_failure(
    policies: &mut Vec<PolicyRecord>,
    definition: &Definition,
    of_binding: bool,
    message: &str,
) {
    let error = Some(message.to_owned());
    if !of_binding {
        policies.push(PolicyRecord { error, ..PolicyRecord::new(definition) });
    } else if let Some(binding) = policies.last_mut().and_then(|policy| policy.bindings.last_mut()) {
        binding.error = error;
    }
}

/// The results collected while policies are applied.
#[derive(Default)]
struct Checking {
    policies: Vec<PolicyRecord>,
    skipped: Vec<SkippedPolicy>,
    warnings: Vec<String>,
    violations: Vec<Violation>,
    denial: Option<Denial>,
    /// The request's deadline.
    deadline: Option<Instant>,
}

impl Checking {
    fn check(&mut self, hook: &ValidatingHook, run: &mut AdmissionRun<'_>) -> Result<(), Failure> {
        let policy = &hook.policy;
        let definition = &policy.definition;
        let matching = matching::matches(&definition.match_constraints, run);
        let found = match matching.map_err(Failure::Configuration)? {
            Ok(found) => found,
            Err(mismatch) => {
                self.skipped.extend(skipped(&definition.name, mismatch, run));
                return Ok(());
            }
        };
        if let Some(kind) = &definition.param_kind {
            params::is_namespaced(kind, run.state()).map_err(Failure::Configuration)?;
        }
        self.policies.push(PolicyRecord::new(definition));
        for binding in &hook.bindings {
            let mut record = BindingRecord::new(&binding.binding, binding.validation_actions.clone());
            let done = check_binding(policy, binding, &found, run, &mut record, self.deadline);
            self.judge(policy, binding, &record);
            if let Some(policy) = self.policies.last_mut() {
                policy.bindings.push(record);
            }
            match done {
                Ok(()) => {}
                Err(Failure::Configuration(message)) => self.fail(policy, Some(binding), &message),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Applies the actions of a binding to the decisions for all of its params.
    ///
    /// Rule: POL-33, POL-41.
    fn judge(&mut self, policy: &ValidatingPolicy, binding: &ValidatingBinding, record: &BindingRecord) {
        let (policy, name) = (&policy.definition.name, &binding.binding.name);
        for run in &record.runs {
            let violations = run.decisions.iter().enumerate().filter(|(_, decision)| decision.is_violation());
            for (index, decision) in violations {
                for action in &binding.validation_actions {
                    let message = decision.message.clone();
                    match action {
                        ValidationAction::Deny => {
                            self.deny(policy, Some(name), &message, &decision.reason);
                        }
                        ValidationAction::Warn => self.warnings.push(format!(
                            "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{name}': {message}"
                        )),
                        ValidationAction::Audit if self.violations.len() < MAX_VALIDATION_FAILURES => {
                            self.violations.push(Violation {
                                message,
                                policy: binding.binding.policy_name.clone(),
                                binding: name.to_string(),
                                expression_index: index,
                                validation_actions: binding.validation_actions.clone(),
                            });
                        }
                        ValidationAction::Audit => {}
                    }
                }
            }
            for annotation in &run.annotations {
                if let AnnotationOutcome::Failed(error) = &annotation.outcome {
                    self.deny(policy, Some(name), error, "");
                }
            }
        }
    }

    /// Records the reason why a policy or a binding cannot be applied.
    ///
    /// Under the failure policy `Fail`, denies the request, regardless of the actions of the binding.
    ///
    /// Rule: POL-34.
    fn fail(&mut self, policy: &ValidatingPolicy, binding: Option<&ValidatingBinding>, message: &str) {
        let definition = &policy.definition;
        record_failure(&mut self.policies, definition, binding.is_some(), message);
        if definition.failure_policy == FailurePolicy::Fail {
            let what = if binding.is_some() { "binding" } else { "policy" };
            let message = format!("failed to configure {what}: {message}");
            self.deny(&definition.name, binding.map(|binding| &*binding.binding.name), &message, "");
        }
    }

    fn deny(&mut self, policy: &str, binding: Option<&str>, message: &str, reason: &str) {
        let with = binding.map(|name| format!(" with binding '{name}'")).unwrap_or_default();
        self.denial.get_or_insert_with(|| Denial {
            message: format!("ValidatingAdmissionPolicy '{policy}'{with} denied request: {message}"),
            reason: if reason.is_empty() { "Invalid".to_owned() } else { reason.to_owned() },
        });
    }
}

/// Evaluates a policy for each param of a binding, if the binding matches the request.
///
/// Rule: POL-14.
fn check_binding(
    policy: &ValidatingPolicy,
    binding: &ValidatingBinding,
    found: &Match,
    run: &mut AdmissionRun<'_>,
    record: &mut BindingRecord,
    deadline: Option<Instant>,
) -> Result<(), Failure> {
    if let Some(resources) = &binding.binding.match_resources
        && let Err(mismatch) = matching::matches(resources, run).map_err(Failure::Configuration)?
    {
        record.mismatch = Some(mismatch);
        return Ok(());
    }
    let kind = policy.definition.param_kind.as_ref();
    let params = params::collect(kind, &binding.binding, without_managed_fields, run);
    let params = params.map_err(|error| match error {
        ParamsError::Configuration(message) => Failure::Configuration(message),
        ParamsError::Conversion(error) => unconvertible(error, ""),
    })?;
    record.lacks_params = params.is_empty();
    if !params.is_empty() {
        run.convert(&found.kind)
            .map_err(|error| unconvertible(error, "failed to convert object version: "))?;
    }
    let namespace = namespace(run).map_err(|status| Failure::Refusal(Refusal::Status(status)))?;
    let namespace = namespace.filter(|_| policy.reads_namespace);
    let visible = namespace.as_deref().map(visible_namespace);
    let namespace = namespace.filter(|_| !policy.audit_annotations.is_empty());
    let namespace = namespace.as_ref().map(as_struct);
    let Objects { object, old_object } = run.objects(&found.kind);
    let input = Input {
        subject: Subject {
            attributes: run.attributes(),
            kind: &found.kind,
            object,
            old_object,
            built_in: run.state().is_built_in(&found.kind),
            authorizer: run.authorizer(),
        },
        resource: &found.resource,
        namespace: namespace.as_deref(),
        visible_namespace: visible.as_ref(),
    };
    for param in &params {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(Failure::Refusal(Refusal::Status(out_of_time())));
        }
        let name = param.as_deref().map(param_name);
        let param = ParamInput { object: param.as_deref(), origin: Origin::Unstructured };
        let evaluated = policy::validate(policy, &input, param).map_err(|Unsupported { what }| {
            let what = format!("the ValidatingAdmissionPolicy \"{}\": {what}", policy.definition.name);
            Failure::Refusal(Refusal::Unsupported(Unsupported { what }))
        });
        record.runs.push(PolicyRun { param: name, ..evaluated? });
    }
    Ok(())
}

fn unconvertible(error: ConversionError, prefix: &str) -> Failure {
    match error {
        ConversionError::Refused(text) => Failure::Configuration(format!("{prefix}{text}")),
        ConversionError::Unsupported(unsupported) => Failure::Refusal(Refusal::Unsupported(unsupported)),
        other @ (ConversionError::ByWebhook(_) | ConversionError::TooManyRequests) => {
            Failure::ByWebhook(other)
        }
    }
}

fn param_name(param: &Value) -> String {
    let text = |field: &str| {
        param
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

/// Returns the stored namespace of a request; `None` for cluster-scoped objects and for Namespaces.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`.
/// Rule: POL-22.
fn namespace(run: &AdmissionRun<'_>) -> Result<Option<Arc<Value>>, Box<Status>> {
    let Attributes { kind, namespace, .. } = run.attributes();
    let is_namespace =
        (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) == ("", "v1", "Namespace");
    if namespace.is_empty() || is_namespace {
        return Ok(None);
    }
    let found = run.state().namespace(namespace);
    found.map(Some).ok_or_else(|| Box::new(Status::not_found("", "namespaces", namespace)))
}

/// Returns an object without its managed fields. kube-apiserver's informers for Go structs drop these fields.
fn without_managed_fields(object: &Arc<Value>) -> Arc<Value> {
    without(object, &[])
}

/// Returns an object as expressions see a Go struct from an informer: without `apiVersion`, `kind`, and managed fields.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchInvocations`, and
/// pkg/admission/plugin/policy/validating/validator.go, `Validate`.
fn as_struct(object: &Arc<Value>) -> Arc<Value> {
    without(object, &["apiVersion", "kind"])
}

/// Returns an object without its managed fields and the given fields.
fn without(object: &Arc<Value>, fields: &[&str]) -> Arc<Value> {
    const MANAGED_FIELDS: &str = "managedFields";
    let Some(members) = object.as_object() else { return Arc::clone(object) };
    let metadata = members.get("metadata").and_then(Value::as_object);
    let is_managed = metadata.is_some_and(|metadata| metadata.contains_key(MANAGED_FIELDS));
    if !is_managed && !fields.iter().any(|field| members.contains_key(*field)) {
        return Arc::clone(object);
    }
    let others = members.iter().filter(|(name, _)| *name != "metadata" && !fields.contains(&name.as_str()));
    let mut copy: Map<String, Value> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
    if let Some(metadata) = metadata {
        let kept = metadata.iter().filter(|(name, _)| *name != MANAGED_FIELDS);
        let kept = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        copy.insert("metadata".to_owned(), Value::Object(kept));
    }
    Arc::new(Value::Object(copy))
}

/// Returns a namespace with only the fields that expressions may use.
///
/// Source: apiserver pkg/admission/plugin/cel/condition.go, `CreateNamespaceObject`.
fn visible_namespace(namespace: &Value) -> Value {
    let fields = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let metadata = namespace.get("metadata").and_then(Value::as_object).into_iter().flatten();
    let metadata: Map<String, Value> = metadata
        .filter(|(name, _)| fields.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut visible = Map::from_iter([("metadata".to_owned(), Value::Object(metadata))]);
    for field in ["spec", "status"] {
        if let Some(value) = namespace.get(field) {
            visible.insert(field.to_owned(), value.clone());
        }
    }
    Value::Object(visible)
}

/// Returns the response for a denied request.
///
/// Source: apiserver pkg/admission/plugin/policy/validating/dispatcher.go, `Dispatch`, and `policy_decision.go`,
/// `reasonToCode`; pkg/admission/errors.go, `NewForbidden`.
/// Rule: POL-30.
fn status(attributes: &Attributes, denial: Denial) -> Box<Status> {
    let Denial { message, reason } = denial;
    let mut status = failure::forbidden(attributes, &message);
    status.code = match reason.as_str() {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    };
    status.reason = reason;
    if let Some(details) = &mut status.details {
        details.causes.push(StatusCause { message, ..StatusCause::default() });
    }
    status
}
