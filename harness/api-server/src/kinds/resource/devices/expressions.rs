//! Validates device selector expressions.

use std::sync::LazyLock;

use kubernetes_cel::environment::{CompileError, Environment};
use kubernetes_cel::kubernetes;
use kubernetes_cel::kubernetes::{DeviceSizes, Expressions, Version};
use kubernetes_cel::types::Type;
use kubernetes_types::status::{FieldError, Unsupported};

use crate::kinds::common::fields::{Errors, Path};

/// The CEL environment of new expressions.
static ENVIRONMENT: LazyLock<Environment> =
    LazyLock::new(|| kubernetes::with_device(kubernetes::environment(Version::new(1, 37), Expressions::New)));

/// Validates a CEL expression.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateCELExpression`; dynamic-resource-allocation
/// cel/compile.go, `CompileCELExpression`.
/// Rule: VLO-45.
///
/// # Errors
/// Returns an error if the expression uses a construct that admit's CEL implementation does not support.
pub(crate) fn check(errors: &mut Errors, path: &Path<'_>, expression: &str) -> Result<(), Unsupported> {
    const CEL_SELECTOR_EXPRESSION_MAX_LENGTH: usize = 10 * 1024;
    const CEL_SELECTOR_EXPRESSION_MAX_COST: u64 = 1_000_000;
    if expression.len() > CEL_SELECTOR_EXPRESSION_MAX_LENGTH {
        errors.too_long(path, CEL_SELECTOR_EXPRESSION_MAX_LENGTH);
        return Ok(());
    }
    let wrong = match most_cost(expression) {
        Ok(Ok(cost)) if cost > CEL_SELECTOR_EXPRESSION_MAX_COST => {
            errors.forbidden(path, "too complex, exceeds cost limit");
            return Ok(());
        }
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(of)) => {
            let of = of.runtime_text();
            errors.invalid_text(
                path,
                expression,
                format!("must evaluate to bool or the unknown type, not {of}"),
            );
            return Ok(());
        }
        Err(wrong) => wrong,
    };
    match wrong {
        CompileError::Unsupported(what) => {
            return Err(Unsupported { what: format!("this expression of a device selector: {what}") });
        }
        CompileError::Instantiation(_) => errors.push(FieldError::internal(path.to_string(), wrong)),
        CompileError::Invalid(_) | _ => errors.invalid_text(path, expression, wrong),
    }
    Ok(())
}

/// Returns the maximum cost of an expression, or its type if the type is not `bool`.
fn most_cost(expression: &str) -> Result<Result<u64, Type>, CompileError> {
    let of = ENVIRONMENT.type_of(expression)?;
    if !(of.is_bool() || of == Type::Any) {
        return Ok(Err(of));
    }
    ENVIRONMENT.compile(expression)?;
    Ok(Ok(ENVIRONMENT.estimate(expression, &DeviceSizes::default())?.max))
}
