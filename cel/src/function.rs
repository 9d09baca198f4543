//! Functions: what a library declares.

use std::fmt;
use std::sync::Arc;

use crate::regexp::{Regexp, RegexpError};
use crate::types::Type;
use crate::value::{List, Opaque, Text, Value};

/// A function of one or more overloads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Function {
    /// The name, such as `size`, `ip.isCanonical` or `_+_`.
    pub name: &'static str,
    /// Its overloads, in the order in which the checker tries them and errors list them.
    pub overloads: Vec<Arc<Overload>>,
}

/// One signature of a function.
#[derive(Clone)]
#[non_exhaustive]
pub struct Overload {
    /// The identifier, such as `string_to_int`: the cost of a call depends on it.
    pub id: &'static str,
    /// Whether it is called as `target.function(...)`; the target is the first of `parameters`.
    pub member: bool,
    /// The types of the arguments; [`Type::Parameter`] stands for any type, the same wherever its name appears.
    pub parameters: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// What it does. It is only called with arguments whose types match `parameters` at run time, unless it is
    /// unguarded.
    pub implementation: Implementation,
    /// Whether it is called with arguments of any type, which it checks itself (cel-go: a singleton binding, or type
    /// guards disabled). Errors among the arguments are never passed.
    pub unguarded: bool,
    /// Whether cel-go binds it as a function of any number of arguments though it has one or two: then arguments behind
    /// one that failed are not evaluated, as with three and more.
    pub variadic: bool,
    /// Which argument is a regular expression: where that is constant, it is compiled with the program.
    pub regex: Option<usize>,
    /// What a call costs at run time, where it is not what the overload's identifier says (see `cost`).
    pub cost: Option<CallCost>,
}

/// What an overload does.
pub type Implementation = for<'a> fn(&Call<'_, 'a>) -> Result<Value<'a>, Error>;

/// The cost of a call at run time, from the overload's identifier, the arguments and the result; none if the default
/// for the overload's identifier holds. The result of a call that failed is none.
///
/// Source: apiserver pkg/cel/library/cost.go, `CallCost`.
pub type CallCost = fn(overload: &str, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64>;

/// One call of an overload.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'c, 'a> {
    /// The arguments; the target of a member call is the first.
    pub arguments: &'c [Value<'a>],
    /// The regular expression, where it is constant.
    pub regex: Option<&'c Regexp>,
}

impl<'c, 'a> Call<'c, 'a> {
    /// The argument of an index.
    ///
    /// # Errors
    ///
    /// There is none: the checker and the guards of the overload prevent it.
    pub fn argument(&self, index: usize) -> Result<&'c Value<'a>, Error> {
        self.arguments.get(index).ok_or_else(Error::no_such_overload)
    }

    /// The text that is the argument of an index.
    ///
    /// # Errors
    ///
    /// It is not a text: the guards of the overload prevent it.
    pub fn text(&self, index: usize) -> Result<&'c Text<'a>, Error> {
        let Value::String(text) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(text)
    }

    /// The integer that is the argument of an index.
    ///
    /// # Errors
    ///
    /// It is not an integer: the guards of the overload prevent it.
    pub fn int(&self, index: usize) -> Result<i64, Error> {
        let Value::Int(number) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(*number)
    }

    /// The boolean that is the argument of an index.
    ///
    /// # Errors
    ///
    /// It is not a boolean: the guards of the overload prevent it.
    pub fn bool(&self, index: usize) -> Result<bool, Error> {
        let Value::Bool(value) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(*value)
    }

    /// The value of a library's type that is the argument of an index.
    ///
    /// # Errors
    ///
    /// It is of another type: the guards of the overload prevent it.
    pub fn opaque<T: Opaque>(&self, index: usize) -> Result<&'c T, Error> {
        self.argument(index)?.downcast().ok_or_else(Error::no_such_overload)
    }

    /// The list that is the argument of an index.
    ///
    /// # Errors
    ///
    /// It is not a list: the guards of the overload prevent it.
    pub fn list(&self, index: usize) -> Result<&'c List<'a>, Error> {
        let Value::List(list) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(list)
    }
}

/// Why an evaluation has no value. Its `Display` is the text that kube-apiserver shows behind `resulted in error: `,
/// unless kube-apiserver would have gone on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the language: a value that most operations pass on.
    #[error("{0}")]
    Language(String),
    /// A panic of kube-apiserver's code, which ends the evaluation.
    #[error("internal error: {0}")]
    Panic(String),
    /// What this crate does not do, and kube-apiserver does while its memory lasts. It ends the evaluation.
    #[error("not supported: {0}")]
    Unsupported(String),
}

impl Error {
    /// An error of the language.
    pub fn new(text: impl Into<String>) -> Self {
        Self::Language(text.into())
    }

    /// The error of arguments for which there is no overload.
    pub fn no_such_overload() -> Self {
        Self::new("no such overload")
    }
}

impl From<RegexpError> for Error {
    fn from(error: RegexpError) -> Self {
        match error {
            RegexpError::Invalid(_) => Self::new(error.to_string()),
            RegexpError::TooLarge(_) => Self::Unsupported(error.to_string()),
        }
    }
}

impl Function {
    /// A function whose calls cost what the overload's identifier says.
    pub fn new(name: &'static str, overloads: Vec<Overload>) -> Self {
        Self { name, overloads: overloads.into_iter().map(Arc::new).collect() }
    }

    /// The same with a cost of its own for every overload.
    #[must_use]
    pub fn with_cost(mut self, cost: CallCost) -> Self {
        self.overloads = self
            .overloads
            .iter()
            .map(|overload| Arc::new(Overload { cost: Some(cost), ..(**overload).clone() }))
            .collect();
        self
    }
}

impl Function {
    /// The same with overloads bound as functions of any number of arguments.
    #[must_use]
    pub fn variadic(mut self) -> Self {
        self.overloads =
            self.overloads.iter().map(|overload| Arc::new((**overload).clone().variadic())).collect();
        self
    }
}

impl Overload {
    /// An overload called as `function(arguments)`.
    pub fn global(
        id: &'static str,
        parameters: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> Self {
        Self {
            id,
            member: false,
            parameters,
            result,
            implementation,
            unguarded: false,
            variadic: false,
            regex: None,
            cost: None,
        }
    }

    /// An overload called as `target.function(arguments)`; `parameters` begins with the target.
    pub fn member(
        id: &'static str,
        parameters: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> Self {
        Self { member: true, ..Self::global(id, parameters, result, implementation) }
    }

    /// The same, called with arguments of any type.
    #[must_use]
    pub fn unguarded(mut self) -> Self {
        self.unguarded = true;
        self
    }

    /// The same, bound as a function of any number of arguments.
    #[must_use]
    pub fn variadic(mut self) -> Self {
        self.variadic = true;
        self
    }

    /// The same with a regular expression as argument `index`.
    #[must_use]
    pub fn with_regex(mut self, index: usize) -> Self {
        self.regex = Some(index);
        self
    }
}

impl fmt::Debug for Overload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overload").field("id", &self.id).finish_non_exhaustive()
    }
}
