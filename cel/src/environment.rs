//! Environments: what expressions can mention, and the compilation of expressions.

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

/// What expressions can mention. Cloning and extending an environment is cheap.
#[derive(Clone)]
pub struct Environment {
    declarations: Arc<Declarations>,
}

/// Why an expression is not compiled. Its `Display` is the text of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// Syntax, types, or constants.
    #[error("compilation failed: {0}")]
    Invalid(IssueReport),
    /// A constant part of it has no value.
    #[error("program instantiation failed: {0}")]
    Instantiation(String),
    /// This crate does not know what kube-apiserver does.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Environment {
    /// Only the basic types, the types of protocol buffers and the macros `has`, `all`, `exists`, `exists_one`, `map` and
    /// `filter`: no functions, not even operators.
    pub fn empty() -> Self {
        Self { declarations: Arc::new(Declarations::new()) }
    }

    /// The standard library of the language.
    pub fn standard() -> Self {
        Self::empty().with_functions(crate::library::standard::functions())
    }

    fn change(mut self, change: impl FnOnce(&mut Declarations)) -> Self {
        change(Arc::make_mut(&mut self.declarations));
        self
    }

    /// The same with names searched within a container first, such as `a.b`.
    #[must_use]
    pub fn with_container(self, container: &str) -> Self {
        self.change(|declarations| declarations.container = container.into())
    }

    /// The same with a variable; its name may be qualified, as in `authorizer.requestResource`.
    #[must_use]
    pub fn with_variable(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_variable(name, of))
    }

    /// The same with an object type.
    #[must_use]
    pub fn with_object(self, object: impl Into<Arc<ObjectType>>) -> Self {
        self.change(|declarations| declarations.add_object(object.into()))
    }

    /// The same with a name of a type that is also a value, such as `net.IP`.
    #[must_use]
    pub fn with_type(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_type(name, of))
    }

    /// The same with a name of a type that is no value: a program that mentions it cannot be made.
    #[must_use]
    pub fn with_type_name(self, name: &str, of: Type) -> Self {
        self.change(|declarations| declarations.add_type_name(name, of))
    }

    /// The same with what comes with object types: the names of Kubernetes' scalar types, of which two are otherwise names
    /// of functions only.
    ///
    /// Source: apiserver pkg/cel/types.go, `findScalar`.
    #[must_use]
    pub(crate) fn with_names_of_scalar_types(self) -> Self {
        self.with_type_name("duration", Type::Duration).with_type_name("timestamp", Type::Timestamp)
    }

    /// The same with functions; overloads are added to those of functions of the same name.
    #[must_use]
    pub fn with_functions(self, functions: impl IntoIterator<Item = Function>) -> Self {
        self.change(|declarations| {
            for function in functions {
                declarations.add_function(&function);
            }
        })
    }

    /// The same with macros.
    #[must_use]
    pub fn with_macros(self, macros: MacroSet) -> Self {
        self.change(|declarations| {
            if !declarations.macros.contains(&macros) {
                declarations.macros.push(macros);
            }
        })
    }

    /// The same with a validator. Validators run in the order in which they are added.
    #[must_use]
    pub fn with_validator(self, validator: Validator) -> Self {
        self.change(|declarations| {
            if !declarations.validators.contains(&validator) {
                declarations.validators.push(validator);
            }
        })
    }

    /// The same where `<`, `<=`, `>` and `>=` compare numbers of different types.
    #[must_use]
    pub fn with_comparisons_across_types(self) -> Self {
        self.change(|declarations| declarations.compare_across_types = true)
    }

    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// All that is wrong with the expression, in the words of kube-apiserver.
    pub fn compile(&self, text: &str) -> Result<Program, CompileError> {
        let checked = self.check(text)?;
        Program::new(checked).map_err(|error| match error {
            Error::Unsupported(what) => CompileError::Unsupported(what),
            Error::Language(_) | Error::Panic(_) => CompileError::Instantiation(error.to_string()),
        })
    }

    /// What an expression costs at least and at most, given the sizes of variables.
    ///
    /// # Errors
    ///
    /// All that is wrong with the expression, in the words of kube-apiserver.
    pub fn estimate(&self, text: &str, sizes: &dyn Sizes) -> Result<Range, CompileError> {
        let checked = self.check(text)?;
        stack::with_room(checked.ast.depth, || estimate::estimate(&checked, sizes))
            .ok_or_else(|| CompileError::Unsupported("no thread can be started".to_owned()))
    }

    /// The static type of an expression, of which no program is made.
    ///
    /// # Errors
    ///
    /// All that is wrong with the expression, in the words of kube-apiserver.
    pub fn type_of(&self, text: &str) -> Result<Type, CompileError> {
        let checked = self.check(text)?;
        Ok(checked.type_of(checked.ast.root).clone())
    }

    /// The tree of an expression with its types.
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
