//! The declarations of functions and their overloads.

use std::fmt;
use std::sync::Arc;

pub use crate::error::Error;
use crate::regexp::Regexp;
use crate::types::Type;
use crate::value::{List, Opaque, Text, Value};

/// A function with one or more overloads.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Function {
    /// The name, such as `size`, `ip.isCanonical`, or `_+_`.
    pub name: &'static str,
    /// The overloads, in the order in which the checker tries them and errors list them.
    pub overloads: Vec<Arc<Overload>>,
}

/// One signature of a function.
#[derive(Clone)]
#[non_exhaustive]
pub struct Overload {
    /// The identifier, such as `string_to_int`; the cost of a call depends on it.
    pub id: &'static str,
    /// Whether the function is called as `target.function(...)`; the target is the first of `parameters`.
    pub member: bool,
    /// The types of the arguments.
    ///
    /// A [`Type::Parameter`] matches any type, but all parameters with the same name must match the same type.
    pub parameters: Vec<Type>,
    /// The type of the result.
    pub result: Type,
    /// The function that evaluates a call. It receives only arguments that match `parameters` at run time, unless the
    /// overload is unguarded.
    pub implementation: Implementation,
    /// Whether the implementation accepts arguments of any type and checks them itself (in cel-go: a singleton binding,
    /// or disabled type guards). Errors are never passed as arguments.
    pub unguarded: bool,
    /// Whether cel-go binds the overload as variadic although it has one or two parameters.
    ///
    /// In that case, as for overloads with three or more parameters, the arguments after a failed argument are not
    /// evaluated.
    pub variadic: bool,
    /// The index of the argument that is a regular expression, if any. A constant regular expression is compiled
    /// together with the program.
    pub regex: Option<usize>,
    /// The run-time cost of a call, or `None` if the overload's identifier determines the cost.
    pub cost: Option<CallCost>,
}

/// The function that implements an overload.
pub type Implementation = for<'a> fn(&Call<'_, 'a>) -> Result<Value<'a>, Error>;

/// A function that returns the run-time cost of a call, or `None` for the default cost of the overload.
///
/// Its arguments are the overload's identifier, the arguments of the call, and the result. The result is `None` if the
/// call failed.
///
/// Source: apiserver pkg/cel/library/cost.go, `CallCost`.
pub type CallCost = fn(overload: &str, arguments: &[Value<'_>], result: Option<&Value<'_>>) -> Option<u64>;

/// The arguments of a call to an overload.
#[derive(Debug)]
#[non_exhaustive]
pub struct Call<'c, 'a> {
    /// The arguments; the target of a member call is the first.
    pub arguments: &'c [Value<'a>],
    /// The compiled regular expression among the arguments, if it is constant.
    pub regex: Option<&'c Regexp>,
}

impl<'c, 'a> Call<'c, 'a> {
    /// Returns the argument at `index`.
    ///
    /// # Errors
    ///
    /// Returns an error if the call has fewer arguments. The checker and the guards of the overload prevent this.
    pub fn argument(&self, index: usize) -> Result<&'c Value<'a>, Error> {
        self.arguments.get(index).ok_or_else(Error::no_such_overload)
    }

    /// Returns the string argument at `index`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument is not a string. The guards of the overload prevent this.
    pub fn text(&self, index: usize) -> Result<&'c Text<'a>, Error> {
        let Value::String(text) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(text)
    }

    /// Returns the integer argument at `index`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument is not an integer. The guards of the overload prevent this.
    pub fn int(&self, index: usize) -> Result<i64, Error> {
        let Value::Int(number) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(*number)
    }

    /// Returns the boolean argument at `index`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument is not a boolean. The guards of the overload prevent this.
    pub fn bool(&self, index: usize) -> Result<bool, Error> {
        let Value::Bool(value) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(*value)
    }

    /// Returns the argument at `index` as the library type `T`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument has a different type. The guards of the overload prevent this.
    pub fn opaque<T: Opaque>(&self, index: usize) -> Result<&'c T, Error> {
        self.argument(index)?.downcast().ok_or_else(Error::no_such_overload)
    }

    /// Returns the list argument at `index`.
    ///
    /// # Errors
    ///
    /// Returns an error if the argument is not a list. The guards of the overload prevent this.
    pub fn list(&self, index: usize) -> Result<&'c List<'a>, Error> {
        let Value::List(list) = self.argument(index)? else { return Err(Error::no_such_overload()) };
        Ok(list)
    }
}

impl Function {
    /// Creates a function. The identifiers of the overloads determine the costs of calls.
    pub fn new(name: &'static str, overloads: Vec<Overload>) -> Self {
        Self { name, overloads: overloads.into_iter().map(Arc::new).collect() }
    }

    /// Sets the cost function of all overloads.
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
    /// Makes all overloads variadic, as in cel-go, even if they have one or two parameters.
    #[must_use]
    pub fn variadic(mut self) -> Self {
        self.overloads =
            self.overloads.iter().map(|overload| Arc::new((**overload).clone().variadic())).collect();
        self
    }
}

impl Overload {
    /// Creates an overload called as `function(arguments)`.
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

    /// Creates an overload called as `target.function(arguments)`; `parameters` begins with the target.
    pub fn member(
        id: &'static str,
        parameters: Vec<Type>,
        result: Type,
        implementation: Implementation,
    ) -> Self {
        Self { member: true, ..Self::global(id, parameters, result, implementation) }
    }

    /// Lets the implementation receive arguments of any type.
    #[must_use]
    pub fn unguarded(mut self) -> Self {
        self.unguarded = true;
        self
    }

    /// Makes the overload variadic, as in cel-go, even if it has one or two parameters.
    #[must_use]
    pub fn variadic(mut self) -> Self {
        self.variadic = true;
        self
    }

    /// Declares that the argument at `index` is a regular expression.
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
