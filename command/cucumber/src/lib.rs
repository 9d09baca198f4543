//! Wraps the crate `cucumber` so that its macros compile the expansion of expressions only once.
//!
//! For each step, `#[given(expr = "…")]` defines a type with the parameters of the expression, and instantiates the
//! whole expansion for this type. With a hundred steps, the expansions are a large part of the command's code. The
//! macros refer to [`codegen::Expression`] in the crate `cucumber`, so packages must depend on this crate under that
//! name:
//!
//! ```toml
//! cucumber = { package = "admit-cucumber", version = "0.1" }
//! ```

pub use cucumber::*;

/// The items that the macros refer to.
pub mod codegen {
    use std::fmt;

    pub use cucumber::codegen::*;

    /// Expands expressions.
    #[derive(Clone, Copy, Debug)]
    pub struct Expression;

    type Get<'a> = dyn Fn(&Spanned<'static>) -> Option<&'static str> + 'a;

    /// Looks up the parameters of an expression with a function, so that expansion does not depend on their type.
    #[derive(Clone, Copy)]
    struct Parameters<'a>(&'a Get<'a>);

    impl fmt::Debug for Parameters<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Parameters")
        }
    }

    impl ParametersProvider<Spanned<'static>> for Parameters<'_> {
        type Item = char;
        type Value = &'static str;

        fn get(&self, input: &Spanned<'static>) -> Option<&'static str> {
            (self.0)(input)
        }
    }

    impl Expression {
        /// Returns the regular expression of a step.
        ///
        /// # Errors
        /// Returns an error if the expression is invalid or has an unknown parameter.
        #[expect(clippy::needless_pass_by_value, reason = "the macros pass the parameters by value")]
        pub fn regex_with_parameters<P>(
            expression: &'static str,
            parameters: P,
        ) -> Result<Regex, impl fmt::Debug>
        where
            P: ParametersProvider<Spanned<'static>, Value = &'static str>,
        {
            expand(expression, &|input| parameters.get(input))
        }
    }

    fn expand(expression: &'static str, get: &Get<'_>) -> Result<Regex, String> {
        cucumber::codegen::Expression::regex_with_parameters(expression, Parameters(get))
            .map_err(|error| error.to_string())
    }
}
