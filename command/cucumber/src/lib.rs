//! Wraps the crate `cucumber` so that its macros compile the expansion of expressions only once, to smaller regular
//! expressions.
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
    use cucumber_expressions::expand::IntoRegexCharIter as _;

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

    /// Matches ASCII white space and digits instead of those of Unicode.
    ///
    /// A regular expression of `{word}` or `{int}` has hundreds of states with the classes of Unicode. With the steps of
    /// `admit`, compiling these takes longer than everything else that a short run does.
    fn expand(expression: &'static str, get: &Get<'_>) -> Result<Regex, String> {
        let parsed = cucumber::codegen::Expression::parse(expression).map_err(|error| error.to_string())?;
        let chars = parsed.with_parameters(Parameters(get)).into_regex_char_iter();
        let text: String = chars.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
        let text = text.replace(r"[^\s]", r"[^\t-\r\x20]").replace(r"\d", "[0-9]");
        Regex::new(&text).map_err(|error| error.to_string())
    }

    #[cfg(test)]
    mod tests {
        use super::expand;

        #[test]
        fn words_and_numbers_are_expanded_to_ascii_classes() {
            let regex = expand("{word} is called {int} times", &|_| None).expect("an expression");
            let captures = regex.captures("größe is called -3 times").expect("it matches");
            assert_eq!((&captures[1], &captures[2]), ("größe", "-3"));
            for other in ["two words is called 1 times", "tab\t is called 1 times", "w is called ٣ times"] {
                assert!(!regex.is_match(other), "{other}");
            }
        }
    }
}
