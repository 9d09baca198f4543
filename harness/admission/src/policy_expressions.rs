//! Compiles the expressions of admission policies, each with the variables and types that it may use.
//!
//! Source: apiserver pkg/admission/plugin/cel/compile.go and composition.go.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use kubernetes_cel::Program;
use kubernetes_cel::environment::Environment as Declarations;
use kubernetes_cel::kubernetes::{
    self, Expressions, RELEASE, Variables, with_admission_variables, with_composed_variable,
    with_composed_variables, with_patch_types,
};
use kubernetes_cel::types::Type;
use kubernetes_cel::value::{JSON_PATCH, OBJECT};

use crate::conditions::{CompileError, Environment, compile_in};

/// The use of an expression in a policy. It determines the type and the variables of the expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "policies have these expressions")]
pub enum Purpose {
    /// `matchConditions` and `validations`: a bool.
    Condition,
    /// `messageExpression`: a string, without `authorizer`.
    Message,
    /// `valueExpression` of an audit annotation: a string or null.
    Annotation,
    /// `variables`: any type.
    Variable,
    /// `applyConfiguration`: an `Object`.
    ApplyConfiguration,
    /// `jsonPatch`: a list of `JSONPatch`.
    JsonPatch,
}

impl Purpose {
    fn has_authorizer(self) -> bool {
        self != Self::Message
    }

    fn has_patch_types(self) -> bool {
        matches!(self, Self::ApplyConfiguration | Self::JsonPatch)
    }

    /// Checks the static type of an expression.
    ///
    /// Source: `ReturnTypes` in apiserver `pkg/admission/plugin/policy/validating/{interface,message}.go` and
    /// `pkg/admission/plugin/policy/mutating/patch/{smd,json_patch}.go`.
    fn check_type(self, of: &Type) -> Result<(), CompileError> {
        let is_text =
            || matches!(of, Type::String) || matches!(of, Type::Wrapper(inner) if **inner == Type::String);
        let (fits, expected) = match self {
            Self::Condition => (of.is_bool(), "bool"),
            Self::Message => (is_text(), "string"),
            Self::Annotation => (is_text() || *of == Type::Null, "one of [string null_type]"),
            Self::Variable => (true, ""),
            Self::ApplyConfiguration => (*of == Type::object(OBJECT), OBJECT),
            Self::JsonPatch => (*of == Type::list(Type::object(JSON_PATCH)), "list(JSONPatch)"),
        };
        if fits {
            return Ok(());
        }
        Err(CompileError::Invalid(format!("must evaluate to {expected} but got {}", of.runtime_text())))
    }
}

/// The variables and types that an expression may use.
#[derive(Clone, Copy)]
struct Available {
    environment: Environment,
    params: bool,
    authorizer: bool,
    patch_types: bool,
}

impl Available {
    fn index(self) -> usize {
        let is_stored = self.environment == Environment::Stored;
        [is_stored, self.params, self.authorizer, self.patch_types]
            .into_iter()
            .fold(0, |index, flag| index * 2 + usize::from(flag))
    }

    /// Returns the declarations without `variables`.
    ///
    /// Source: apiserver pkg/admission/plugin/cel/compile.go, `createEnvForOpts`.
    fn declarations(self) -> Declarations {
        static DECLARED: [OnceLock<Declarations>; 16] = [const { OnceLock::new() }; 16];
        let create = || {
            let expressions = match self.environment {
                Environment::New => Expressions::New,
                Environment::Stored => Expressions::Stored,
            };
            let variables = Variables { params: self.params, authorizer: self.authorizer };
            let declared = with_admission_variables(kubernetes::environment(RELEASE, expressions), variables);
            if self.patch_types { with_patch_types(declared) } else { declared }
        };
        DECLARED.get(self.index()).map_or_else(create, |declared| declared.get_or_init(create).clone())
    }
}

/// The maximum depth of an expression together with the variables that it uses.
///
/// It bounds the number of threads for variables that use other variables, and the nesting of values: each variable can
/// be a list that contains the previous variable, and functions that walk through values are recursive.
const MAX_DEPTH: u32 = 1_000;

/// Compiles the expressions of one policy. An expression may use the variables that were compiled before it.
#[derive(Debug, Default)]
pub struct PolicyExpressions {
    params: bool,
    /// The names and types of the compiled variables; `None` if the expressions cannot use `variables`.
    variables: Option<Vec<(Arc<str>, Type)>>,
    /// The depth of each variable's expression together with the variables that it uses.
    depths: HashMap<Arc<str>, u32>,
    /// The declarations created so far, by [`Available::index`].
    declared: [Option<Declarations>; 16],
}

impl PolicyExpressions {
    /// Creates a compiler for expressions that can use `variables` and, if `params` is true, `params`.
    pub fn new(params: bool) -> Self {
        Self { params, variables: Some(Vec::new()), ..Self::default() }
    }

    /// Creates a compiler for expressions that cannot use `variables`.
    pub fn without_variables(params: bool) -> Self {
        Self { params, ..Self::default() }
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// Returns [`CompileError`] if the expression is invalid, does not have the type that its purpose requires, or uses
    /// a feature that admit does not support.
    pub fn compile(
        &mut self,
        text: &str,
        purpose: Purpose,
        environment: Environment,
    ) -> Result<Program, CompileError> {
        let available = Available {
            environment,
            params: self.params,
            authorizer: purpose.has_authorizer(),
            patch_types: purpose.has_patch_types(),
        };
        let Some(place) = self.declared.get_mut(available.index()) else {
            return Err(CompileError::Unsupported("this expression".to_owned()));
        };
        let declared = place.get_or_insert_with(|| {
            let declared = available.declarations();
            match &self.variables {
                None => declared,
                Some(variables) => {
                    with_composed_variables(declared, variables.iter().map(|(name, of)| (&**name, of)))
                }
            }
        });
        let program = compile_in(declared, text, |of| purpose.check_type(of))?;
        if self.depth(text, &program) > MAX_DEPTH {
            let what = format!("variables that use each other more than {MAX_DEPTH} levels deep");
            return Err(CompileError::Unsupported(what));
        }
        Ok(program)
    }

    /// Returns the depth of a program together with the variables whose names its expression contains.
    fn depth(&self, text: &str, program: &Program) -> u32 {
        let words = text.split(|character: char| character != '_' && !character.is_ascii_alphanumeric());
        let deepest = words.filter_map(|word| self.depths.get(word)).max();
        program.depth().saturating_add(deepest.copied().unwrap_or_default())
    }

    /// Compiles a variable and declares it for all expressions that are compiled later.
    ///
    /// A variable that does not compile has the type `dyn`.
    ///
    /// # Errors
    /// Returns [`CompileError`] in the same cases as [`Self::compile`].
    ///
    /// Source: apiserver pkg/admission/plugin/cel/composition.go, `CompileAndStoreVariable`.
    pub fn compile_variable(
        &mut self,
        name: &str,
        text: &str,
        environment: Environment,
    ) -> Result<Program, CompileError> {
        let program = self.compile(text, Purpose::Variable, environment);
        let of = program.as_ref().map_or(Type::Dyn, |program| program.result_type().clone());
        let depth = program.as_ref().map_or(0, |program| self.depth(text, program));
        for place in &mut self.declared {
            *place = place.take().map(|declared| with_composed_variable(declared, name, &of));
        }
        if let Some(variables) = &mut self.variables {
            let name: Arc<str> = name.into();
            variables.push((Arc::clone(&name), of));
            self.depths.insert(name, depth);
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expressions: &mut PolicyExpressions, text: &str, purpose: Purpose, expected: Result<(), &str>) {
        let found =
            expressions.compile(text, purpose, Environment::New).map(drop).map_err(|error| error.to_string());
        match (found, expected) {
            (Err(found), Err(part)) => assert!(found.contains(part), "{text}: {found}"),
            (found, expected) => assert_eq!(found, expected.map_err(str::to_owned), "{text}"),
        }
    }

    #[test]
    fn the_purpose_determines_the_type_and_the_variables() {
        let expressions = &mut PolicyExpressions::new(false);
        check(expressions, "object.a == 1", Purpose::Condition, Ok(()));
        check(expressions, "'a'", Purpose::Condition, Err("must evaluate to bool but got string"));
        check(expressions, "'a'", Purpose::Message, Ok(()));
        check(expressions, "dyn('a')", Purpose::Message, Err("must evaluate to string but got dyn"));
        check(
            expressions,
            "authorizer.path('/a').check('get').reason()",
            Purpose::Message,
            Err("undeclared reference"),
        );
        check(expressions, "authorizer.path('/a').check('get').reason()", Purpose::Annotation, Ok(()));
        check(expressions, "null", Purpose::Annotation, Ok(()));
        check(
            expressions,
            "1",
            Purpose::Annotation,
            Err("must evaluate to one of [string null_type] but got int"),
        );
        check(expressions, "Object{}", Purpose::ApplyConfiguration, Ok(()));
        check(expressions, "Object{}", Purpose::Condition, Err("undeclared reference to 'Object'"));
        check(
            expressions,
            "Object.spec{}",
            Purpose::ApplyConfiguration,
            Err("must evaluate to Object but got Object.spec"),
        );
        check(expressions, "[JSONPatch{op: 'add'}]", Purpose::JsonPatch, Ok(()));
        check(expressions, "[]", Purpose::JsonPatch, Err("must evaluate to list(JSONPatch) but got list("));
        check(expressions, "params == null", Purpose::Condition, Err("undeclared reference to 'params'"));
        check(&mut PolicyExpressions::new(true), "params == null", Purpose::Condition, Ok(()));
    }

    #[test]
    fn depth_of_variables_is_limited() {
        let expressions = &mut PolicyExpressions::new(false);
        assert!(expressions.compile_variable("v0", "1", Environment::New).is_ok());
        let deepest = (1..1_000).find(|index| {
            let text = format!("[variables . v{}]", index - 1);
            expressions.compile_variable(&format!("v{index}"), &text, Environment::New).is_err()
        });
        assert!(deepest.is_some_and(|index| index > 300), "{deepest:?}");
        check(expressions, "variables.v299 == []", Purpose::Condition, Ok(()));
        check(expressions, "variables.v0 == 1", Purpose::Condition, Ok(()));
        for index in 0..1_000 {
            assert!(expressions.compile_variable(&format!("w{index}"), "1", Environment::New).is_ok());
        }
    }

    #[test]
    fn variables_are_declared_in_order() {
        let expressions = &mut PolicyExpressions::new(false);
        check(expressions, "variables.a == 1", Purpose::Condition, Err("undefined field 'a'"));
        assert!(expressions.compile_variable("a", "1", Environment::New).is_ok());
        check(expressions, "variables.a == 1", Purpose::Condition, Ok(()));
        check(expressions, "variables.a == 'x'", Purpose::Condition, Err("found no matching overload"));
        assert!(expressions.compile_variable("b", "nonsense", Environment::Stored).is_err());
        check(expressions, "variables.b == 'x'", Purpose::Condition, Ok(()));
        check(expressions, "string(variables.a)", Purpose::Message, Ok(()));
        let without = &mut PolicyExpressions::without_variables(false);
        check(without, "variables.a == 1", Purpose::Condition, Err("undeclared reference to 'variables'"));
    }
}
