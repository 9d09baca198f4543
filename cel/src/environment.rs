//! Defines environments. An environment declares the names in expressions and compiles expressions.

use std::fmt;
use std::sync::Arc;

use crate::checked::Checked;
use crate::checker::{self, validate};
use crate::declarations::Declarations;
use crate::estimate::{self, Range, Sizes};
use crate::function::{Error, Function};
use crate::parser::{self, Refused, Syntax};
use crate::program::Program;
use crate::source::{IssueReport, Issues, Source};
use crate::stack;
use crate::types::Type;

pub use crate::declarations::{ObjectType, Validator};
pub use crate::parser::MacroSet;

/// The variables, types, functions, and macros of expressions. Cloning and extending an environment is cheap.
#[derive(Clone)]
pub struct Environment {
    declarations: Arc<Declarations>,
}

/// The reason why an expression does not compile; `Display` writes kube-apiserver's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The syntax, a type, or a constant is invalid.
    #[error("compilation failed: {0}")]
    Invalid(IssueReport),
    /// A constant part of the expression cannot be evaluated.
    #[error("program instantiation failed: {0}")]
    Instantiation(String),
    /// This crate does not support the expression.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Environment {
    /// Creates an environment without functions or operators.
    ///
    /// It declares the basic types, the protocol buffer types, and the macros `has`, `all`, `exists`, `exists_one`,
    /// `map`, and `filter`.
    pub fn empty() -> Self {
        Self { declarations: Arc::new(Declarations::new()) }
    }

    /// Creates an environment with the standard library of functions and operators.
    pub fn standard() -> Self {
        Self::empty().with_functions(crate::library::standard::functions())
    }

    fn change(mut self, change: impl FnOnce(&mut Declarations)) -> Self {
        change(Arc::make_mut(&mut self.declarations));
        self
    }

    /// Sets the container in which names are resolved first, such as `a.b`.
    #[must_use]
    pub fn with_container(self, container: &str) -> Self {
        self.change(|declarations| declarations.container = container.into())
    }

    /// Adds a variable; its name may be qualified, as in `authorizer.requestResource`.
    #[must_use]
    pub fn with_variable(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_variable(name, of))
    }

    /// Declares an object type with its fields.
    #[must_use]
    pub fn with_object(self, object: impl Into<Arc<ObjectType>>) -> Self {
        self.change(|declarations| declarations.add_object(object.into()))
    }

    /// Adds a field to a declared object type, or replaces the field.
    #[must_use]
    pub(crate) fn with_field(self, object: &str, field: &str, of: Type) -> Self {
        self.change(|declarations| {
            if let Some(object) = declarations.objects.get_mut(object) {
                Arc::make_mut(object).fields.insert(field.into(), of);
            }
        })
    }

    /// Adds a type name that is also a value, such as `net.IP`.
    #[must_use]
    pub fn with_type(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_type(name, of))
    }

    /// Adds a type name that is not a value; an expression that uses the name as a value does not compile.
    #[must_use]
    pub fn with_type_name(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_type_name(name, of))
    }

    /// Adds `duration` and `timestamp` as type names.
    ///
    /// kube-apiserver declares them in environments with object types; in other environments, they are only function
    /// names.
    ///
    /// Source: apiserver pkg/cel/types.go, `findScalar`.
    #[must_use]
    pub(crate) fn with_names_of_scalar_types(self) -> Self {
        self.with_type_name("duration", Type::Duration).with_type_name("timestamp", Type::Timestamp)
    }

    /// Adds functions; if a function with the same name exists, adds the overloads to it.
    #[must_use]
    pub fn with_functions(self, functions: impl IntoIterator<Item = Function>) -> Self {
        self.change(|declarations| {
            for function in functions {
                declarations.add_function(&function);
            }
        })
    }

    /// Enables a set of macros.
    #[must_use]
    pub fn with_macros(self, macros: MacroSet) -> Self {
        self.change(|declarations| {
            if !declarations.macros.contains(&macros) {
                declarations.macros.push(macros);
            }
        })
    }

    /// Adds a validator; validators run in the order in which they are added.
    #[must_use]
    pub fn with_validator(self, validator: Validator) -> Self {
        self.change(|declarations| {
            if !declarations.validators.contains(&validator) {
                declarations.validators.push(validator);
            }
        })
    }

    /// Allows `<`, `<=`, `>`, and `>=` to compare numbers of different types.
    #[must_use]
    pub fn with_comparisons_across_types(self) -> Self {
        self.change(|declarations| declarations.compare_across_types = true)
    }

    /// Declares the types for mutations: `Object`, `Object.FIELD` for any path of fields, and `JSONPatch`.
    #[must_use]
    pub(crate) fn with_patch_types(self) -> Self {
        self.change(|declarations| declarations.patch_types = true)
    }

    /// Compiles an expression into a program.
    ///
    /// # Errors
    ///
    /// Returns all errors of the expression, with kube-apiserver's messages.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        let checked = self.check(text)?;
        Program::new(checked).map_err(|error| match error {
            Error::Unsupported(what) => CompileError::Unsupported(what),
            Error::Language(_) | Error::Panic(_) => CompileError::Instantiation(error.to_string()),
        })
    }

    /// Estimates the minimum and maximum cost of an expression for the given sizes of variables.
    ///
    /// # Errors
    ///
    /// Returns all errors of the expression, with kube-apiserver's messages.
    pub fn estimate(&self, text: &str, sizes: &dyn Sizes) -> Result<Range, CompileError> {
        let checked = self.check(text)?;
        stack::with_room(checked.ast.depth, || estimate::estimate(&checked, sizes))
            .ok_or_else(|| CompileError::Unsupported("no thread can be started".to_owned()))
    }

    /// Returns the static type of an expression without creating a program.
    ///
    /// # Errors
    ///
    /// Returns all errors of the expression, with kube-apiserver's messages.
    pub fn type_of(&self, text: &str) -> Result<Type, CompileError> {
        let checked = self.check(text)?;
        Ok(checked.type_of(checked.ast.root).clone())
    }

    /// Parses and type-checks an expression.
    pub(crate) fn check(&self, text: &str) -> Result<Checked, CompileError> {
        let source = Source::new(text);
        let mut issues = Issues::default();
        let refused = match self.check_source(&source, &mut issues) {
            Ok(checked) => return Ok(checked),
            Err(refused) => refused,
        };
        Err(match refused {
            Refused::Issues => CompileError::Invalid(issues.into_report(&source)),
            Refused::Unsupported(what) => CompileError::Unsupported(what.to_owned()),
        })
    }

    fn check_source(&self, source: &Source<'_>, issues: &mut Issues) -> Result<Checked, Refused> {
        let declarations = &*self.declarations;
        let ast = parser::parse(source, Syntax { macros: &declarations.macros }, issues)?;
        let checked = stack::with_room(ast.depth, || checker::check(ast, source, declarations, issues))
            .ok_or(Refused::Unsupported("no thread can be started"))??;
        validate::validate(&checked, source, declarations, issues)?;
        Ok(checked)
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.declarations.variables.len())
            .field("functions", &self.declarations.functions.len())
            .finish_non_exhaustive()
    }
}
