//! Evaluates the mutations of a policy: an object is the input, and a change of the object is the output.
//!
//! Source: apiserver `pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go`.

use std::sync::OnceLock;

use kubernetes_cel::function::Error;
use kubernetes_cel::value::{Foreign, JsonLimit, Object, Value, to_json};
use kubernetes_types::status::{Status, Unsupported};
use serde_json::{Map, Value as Json};

use super::activation::{Activation, ParamInput, Scope};
use super::compilation::{Composition, Expression};
use super::evaluation::{Input, RUNTIME_CEL_COST_BUDGET, Sequence, Stop};
use super::record::{EvaluatedExpression, ExpressionPart};
use crate::conditions::{Bindings, CompileError, OUT_OF_BUDGET};

/// One entry of `spec.mutations`.
#[derive(Clone, Debug)]
pub struct Mutation {
    /// `patchType`: how the value of the expression changes the object.
    pub patch_type: PatchType,
    /// The expression of `applyConfiguration` or `jsonPatch`.
    pub expression: Expression,
}

/// How the value of an expression changes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the API has these two")]
pub enum PatchType {
    /// The value is a configuration that is merged into the object as server-side apply merges it.
    ApplyConfiguration,
    /// The value is a list of operations of a JSON patch.
    JsonPatch,
}

/// The reason why a mutation fails.
pub(crate) enum MutationError {
    /// The failure policy decides. Contains kube-apiserver's error message.
    Failure(String),
    /// The request is rejected regardless of the failure policy.
    Server(Box<Status>),
    /// admit does not support the expression or its value.
    Unsupported(Unsupported),
}

impl From<String> for MutationError {
    fn from(message: String) -> Self {
        Self::Failure(message)
    }
}

/// A change of an object, which is the value of an expression.
#[derive(Debug, PartialEq)]
pub(crate) enum Change {
    /// A configuration to merge.
    Configuration {
        configuration: Map<String, Json>,
        /// The type of a value in the configuration that an unstructured object cannot contain.
        foreign: Option<Foreign>,
    },
    /// The operations of a JSON patch.
    Operations(Vec<Map<String, Json>>),
}

/// Evaluates the expression of a mutation and converts its value to JSON.
///
/// Each mutation evaluates the variables again, and has its own cost budget. Adds the evaluated expressions to
/// `evaluated`.
///
/// Rule: MAP-10, MAP-20, MAP-32, MAP-50.
///
/// # Errors
/// Returns [`MutationError`] if the evaluation fails, or if its value does not have a JSON representation.
pub(crate) fn evaluate(
    composition: &Composition,
    (index, mutation): (usize, &Mutation),
    input: &Input<'_>,
    param: ParamInput<'_>,
    evaluated: &mut Vec<EvaluatedExpression>,
) -> Result<Change, MutationError> {
    if let Err(CompileError::Invalid(error) | CompileError::Internal(error)) = &mutation.expression.program {
        return Err(MutationError::Failure(error.clone()));
    }
    let request = OnceLock::new();
    let bindings = Bindings::new(&input.subject, &request).with_resource(input.resource);
    let scope = Scope { params: param, namespace: input.namespace, authorizer: true };
    let activation = Activation::new(bindings, scope, &composition.variables);
    let mut sequence = Sequence::new(activation, RUNTIME_CEL_COST_BUDGET);
    let part = ExpressionPart::Mutation(index);
    let result = sequence.evaluate(&mutation.expression, Some(part));
    evaluated.append(&mut sequence.evaluated);
    match result {
        Ok(evaluand) => change(&evaluand.value?, mutation.patch_type),
        Err(Stop::OutOfBudget) => Err(MutationError::Failure(OUT_OF_BUDGET.to_owned())),
        Err(Stop::Unsupported(unsupported)) => Err(MutationError::Unsupported(unsupported)),
    }
}

/// The maximum number of JSON values in a mutation.
const MAX_VALUES: usize = 250_000;
/// The maximum number of bytes in the strings and field names of a mutation.
const MAX_TEXT: usize = 8 << 20;
/// The maximum size of a mutation. Each value takes a few hundred bytes of memory.
const MAX_SIZE: JsonLimit = JsonLimit { values: MAX_VALUES, bytes: MAX_TEXT };

/// Converts the value of a mutation's expression, whose type the compiler has checked.
fn change(value: &Value<'_>, of: PatchType) -> Result<Change, MutationError> {
    if !MAX_SIZE.allows(value) {
        let JsonLimit { values, bytes } = MAX_SIZE;
        let what = format!("mutations with more than {values} values or {} MiB in strings", bytes >> 20);
        return Err(MutationError::Unsupported(Unsupported { what }));
    }
    match (of, value) {
        (PatchType::ApplyConfiguration, Value::Object(object)) => {
            check_type_names(object)?;
            let converted = object.to_unstructured();
            Ok(Change::Configuration { configuration: converted.members, foreign: converted.foreign })
        }
        (PatchType::JsonPatch, Value::List(list)) => {
            let operations = list.iter().map(|element| {
                let Value::Object(object) = &element else { return Err(unexpected(&element)) };
                operation(object)
            });
            Ok(Change::Operations(operations.collect::<Result<_, _>>()?))
        }
        _ => Err(unexpected(value)),
    }
}

fn check_type_names(object: &Object<'_>) -> Result<(), MutationError> {
    object.check_type_names().map_err(|error| MutationError::Failure(format!("type mismatch: {error}")))
}

fn unexpected(value: &Value<'_>) -> MutationError {
    let what = format!("mutations whose value is of type {}", value.type_name());
    MutationError::Unsupported(Unsupported { what })
}

/// Converts an operation of a JSON patch.
///
/// Source: apiserver `pkg/admission/plugin/policy/mutating/patch/json_patch.go`, `evaluatePatchExpression`.
/// Rule: MAP-21.
fn operation(operation: &Object<'_>) -> Result<Map<String, Json>, MutationError> {
    let text = |name: &str| operation.field(name).and_then(Value::as_str).unwrap_or_default();
    let mut members = Map::new();
    members.insert("op".to_owned(), text("op").into());
    members.insert("path".to_owned(), text("path").into());
    if !text("from").is_empty() {
        members.insert("from".to_owned(), text("from").into());
    }
    if let Some(value) = operation.field("value") {
        if let Value::Object(object) = value {
            check_type_names(object)?;
        }
        let json = to_json(value).map_err(|error| {
            if let Error::Unsupported(what) = error {
                return MutationError::Unsupported(Unsupported { what });
            }
            MutationError::Failure(format!(
                "JSONPath valueExpression evaluated to a type that could not marshal to JSON: {error}"
            ))
        })?;
        members.insert("value".to_owned(), json);
    }
    Ok(members)
}
