//! Applies the results of mutations: an object is the input, and the changed object is the output.
//!
//! Source: apiserver `pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go`.

use kubernetes_cel::value::Foreign;
use kubernetes_types::schema::{self, Type, strictness};
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Map, Value as Json};

use crate::attributes::GroupVersionKind;
use crate::cluster_state::{ClusterState, MergeError};
use crate::custom_scale;
use crate::mutation::{self, PatchError};
use crate::patch::{ApplyError, Patch};
use crate::policy::{
    self, Change, Composition, EvaluatedExpression, Input, Mutation, MutationError, ParamInput,
};

impl From<PatchError> for MutationError {
    fn from(error: PatchError) -> Self {
        match error {
            PatchError::Failure(failure) => Self::Failure(failure.reason),
            PatchError::Server(status) => Self::Server(status),
            PatchError::Unsupported(unsupported) => Self::Unsupported(unsupported),
        }
    }
}

/// An object that a mutation has changed.
pub(super) struct Mutated {
    /// The object with its defaults set.
    pub(super) object: Json,
    /// Whether the object had labels before its defaults were set.
    pub(super) had_labels: bool,
    /// The error of an operation `test` of a JSON patch, which was not applied.
    pub(super) failed_test: Option<String>,
}

/// Evaluates a mutation and returns the changed object with its defaults set.
///
/// Adds the evaluated expressions to `evaluated`. An object that a failed `test` operation leaves unchanged is returned
/// as it is.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchOne`.
/// Rule: MAP-13, MAP-40.
///
/// # Errors
/// Returns [`MutationError`] if the evaluation fails, or if its value cannot be applied to the object.
pub(super) fn mutate(
    composition: &Composition,
    mutation: (usize, &Mutation),
    input: &Input<'_>,
    param: ParamInput<'_>,
    state: &dyn ClusterState,
    evaluated: &mut Vec<EvaluatedExpression>,
) -> Result<Mutated, MutationError> {
    let change = policy::evaluate(composition, mutation, input, param, evaluated)?;
    let (subject, kind) = (&input.subject, input.subject.kind);
    let object = subject.object.unwrap_or(&Json::Null);
    let built_in = state.is_built_in(kind);
    let mut failed_test = None;
    let mut changed = match change {
        Change::Configuration { configuration, foreign } => {
            merged(object, configuration, foreign, kind, state)?
        }
        Change::Operations(_) if custom_scale::is_custom_scale(subject.attributes) => {
            let what = "JSON patches of the Scale of a custom resource".to_owned();
            return Err(MutationError::Unsupported(Unsupported { what }));
        }
        Change::Operations(operations) => match patched(object, operations, kind, built_in, state)? {
            Ok(patched) => patched,
            Err(error) => {
                failed_test = Some(error);
                object.clone()
            }
        },
    };
    if built_in {
        check_version(&changed, &subject.attributes.kind)?;
    }
    let had_labels = mutation::has_labels(&changed);
    state.set_defaults(&mut changed);
    Ok(Mutated { object: changed, had_labels, failed_test })
}

/// Merges a configuration into an object.
///
/// Rule: MAP-11, MAP-12.
fn merged(
    object: &Json,
    configuration: Map<String, Json>,
    foreign: Option<Foreign>,
    kind: &GroupVersionKind,
    state: &dyn ClusterState,
) -> Result<Json, MutationError> {
    let mut configuration = configuration;
    configuration.insert("apiVersion".to_owned(), kind.api_version().into());
    configuration.insert("kind".to_owned(), kind.kind.as_str().into());
    let result = state.merge_configuration(object, &Json::Object(configuration), kind);
    let result = result.map_err(|error| match error {
        MergeError::Refused(text) => MutationError::Failure(format!("error applying patch: {text}")),
        MergeError::Unsupported(unsupported) => MutationError::Unsupported(unsupported),
    });
    if let Some(foreign) = foreign {
        return match result {
            // This error does not depend on the type of the value.
            Err(MutationError::Failure(text)) if text.ends_with(NON_MAP_ELEMENT) => {
                Err(MutationError::Failure(text))
            }
            _ => {
                let what = format!("apply configurations with {foreign}");
                Err(MutationError::Unsupported(Unsupported { what }))
            }
        };
    }
    let mut merged = result?;
    if let (true, Some(members)) = (state.is_built_in(kind), merged.as_object_mut()) {
        schema::from_unstructured(members, kind).map_err(|error| match error {
            Some(error) => {
                MutationError::Failure(format!("unable to convert unstructured object to {kind}: {error}"))
            }
            None => MutationError::Unsupported(Unsupported { what: "the value of a field".to_owned() }),
        })?;
    }
    Ok(merged)
}

/// The error for a list in a list, or a map in a list, that the expression creates.
const NON_MAP_ELEMENT: &str = "associative list with keys may not have non-map elements";

/// Applies operations to an object; returns the error of a `test` operation that fails.
///
/// Rule: MAP-22, MAP-23.
fn patched(
    object: &Json,
    operations: Vec<Map<String, Json>>,
    kind: &GroupVersionKind,
    built_in: bool,
    state: &dyn ClusterState,
) -> Result<Result<Json, String>, MutationError> {
    let patch = Patch::from_policy(operations).map_err(MutationError::Unsupported)?;
    let patched = match patch.apply(object) {
        Ok(patched) => patched,
        Err(ApplyError::TestFailed(error)) => return Ok(Err(error)),
        Err(ApplyError::Unsupported(unsupported)) => return Err(MutationError::Unsupported(unsupported)),
        Err(ApplyError::Panic(text)) => {
            return Err(MutationError::Server(Box::new(Status::internal_error(text))));
        }
        Err(ApplyError::DoesNotApply(error)) => {
            return Err(MutationError::Failure(format!("JSON Patch: {error}")));
        }
    };
    let decoded = mutation::decoded(patched, kind, built_in, state)?;
    if built_in {
        let text = Type::for_kind(kind).patched_in_order(&decoded, &patch.changed_members());
        check_fields(&decoded, &text)?;
    }
    Ok(Ok(decoded))
}

/// Rejects fields that the type of an object does not have; `text` is the JSON that kube-apiserver decodes.
fn check_fields(object: &Json, text: &str) -> Result<(), MutationError> {
    let kind = GroupVersionKind::from_object(object);
    let of = Type::for_kind(&kind);
    let unknown = schema::normalize(&mut object.clone(), &kind);
    let errors =
        strictness::errors(text, &unknown, of).and_then(|errors| strictness::refuse(errors.into_iter()));
    errors.map_err(|error| MutationError::Server(Box::new(Status::internal_error(&error))))
}

/// Rejects an object of a built-in type if its version differs from the version of the request.
///
/// Source: apiserver pkg/admission/plugin/policy/mutating/dispatcher.go, `dispatchOne`, which converts the object to
/// the version of the request and not to the version of the policy.
/// Rule: MAP-05.
fn check_version(object: &Json, requested: &GroupVersionKind) -> Result<(), MutationError> {
    let found = GroupVersionKind::from_object(object);
    if (&found.group, &found.version) == (&requested.group, &requested.version) {
        return Ok(());
    }
    if found.group != requested.group {
        let what = format!("mutations of {found} in a request for {requested}");
        return Err(MutationError::Unsupported(Unsupported { what }));
    }
    let (from, to) = (&found.version, &requested.version);
    let kind = &found.kind;
    Err(MutationError::Failure(format!("converting ({from}.{kind}) to ({to}.{kind}): unknown conversion")))
}
