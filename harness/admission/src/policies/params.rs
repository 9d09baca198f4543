//! Finds the params of a binding.

use std::sync::Arc;

use kubernetes_types::selector::Labels;
use serde_json::Value;

use crate::admission_run::AdmissionRun;
use crate::cluster_state::{ClusterState, ConversionError};
use crate::policy::{Binding, ParamKind};

/// The reason why the params of a binding cannot be determined.
pub(super) enum ParamsError {
    /// The binding cannot be applied. Contains kube-apiserver's error message.
    Configuration(String),
    /// A param cannot be converted, or a conversion webhook must be called first.
    Conversion(ConversionError),
}

/// Returns whether a param kind is namespaced.
///
/// # Errors
/// Returns kube-apiserver's error message if the server does not serve the kind and has not served it before.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_source.go`, `ensureParamsForPolicyLocked`.
/// Rule: POL-57.
pub(super) fn is_namespaced(kind: &ParamKind, state: &dyn ClusterState) -> Result<bool, String> {
    if let Some(namespaced) = kind.namespaced.get() {
        return Ok(*namespaced);
    }
    match state.is_namespaced(&kind.kind) {
        Some(namespaced) => Ok(*kind.namespaced.get_or_init(|| namespaced)),
        None => Err(format!("failed to find resource referenced by paramKind: '{}'", kind.kind)),
    }
}

/// Returns whether kube-apiserver has an informer for Go structs of a param kind.
///
/// Params of other kinds are unstructured.
///
/// Source: client-go `informers/generic.go`, `ForResource`.
pub(super) fn is_typed(kind: &ParamKind, state: &dyn ClusterState) -> bool {
    !matches!(kind.kind.group.as_str(), "apiextensions.k8s.io" | "apiregistration.k8s.io")
        && state.is_built_in(&kind.kind)
}

/// Returns the params of a binding: one `None` if the binding does not use params; empty if no params are selected.
///
/// Params that a selector selects are sorted by name. `informed` returns a typed param as policies see it.
///
/// Source: apiserver `pkg/admission/plugin/policy/generic/policy_dispatcher.go`, `CollectParams`.
/// Rule: POL-50, POL-51, POL-52, POL-53, POL-54, POL-55, POL-56.
///
/// # Errors
/// Returns [`ParamsError`] if the binding cannot be applied or a param cannot be read.
pub(super) fn collect(
    kind: Option<&ParamKind>,
    binding: &Binding,
    informed: fn(&Arc<Value>) -> Arc<Value>,
    run: &AdmissionRun<'_>,
) -> Result<Vec<Option<Arc<Value>>>, ParamsError> {
    let (Some(kind), Some(reference)) = (kind, &binding.param_ref) else { return Ok(vec![None]) };
    let wrong = |what: &str| ParamsError::Configuration(what.to_owned());
    let namespaced = is_namespaced(kind, run.state()).map_err(ParamsError::Configuration)?;
    let own = run.attributes().namespace.as_str();
    let namespace = match (namespaced, reference.namespace.as_str()) {
        (true, "") if own.is_empty() => {
            return Err(wrong(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
            ));
        }
        (true, "") => own,
        (true, namespace) => namespace,
        (false, "") => "",
        (false, _) => {
            return Err(wrong("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"));
        }
    };
    if let Some(error) = reference.selector.as_ref().and_then(|selector| selector.error()) {
        return Err(wrong(error));
    }
    let found = run.state().stored(&kind.kind, namespace, &reference.name);
    let is_selected = |object: &Arc<Value>| {
        let labels = Labels::from_object(object).unwrap_or_default();
        reference.selector.as_ref().is_none_or(|selector| selector.matches(labels))
    };
    let is_typed = is_typed(kind, run.state());
    let read = |object: &Arc<Value>| {
        let param = run.read_stored(object, &kind.kind).map_err(ParamsError::Conversion)?;
        Ok(Some(if is_typed { informed(&param) } else { param }))
    };
    let params =
        found.iter().filter(|object| is_selected(object)).map(read).collect::<Result<Vec<_>, _>>()?;
    if params.is_empty() && reference.denies_if_not_found {
        return Err(wrong("no params found for policy binding with `Deny` parameterNotFoundAction"));
    }
    Ok(params)
}
