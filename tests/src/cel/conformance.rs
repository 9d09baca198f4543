//! Runs the conformance tests of the CEL language: compares the crate with the expected results and with Kubernetes.
//!
//! The Go program `tests/cel/conformance` reads the tests from Go's module cache.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use kubernetes_cel::environment::Environment;
use kubernetes_cel::estimate::Unbounded;
use kubernetes_cel::kubernetes::{Version, environment_at};
use kubernetes_cel::types::Type;
use kubernetes_cel::value::Value;
use kubernetes_cel::{Limits, Program};
use serde::Deserialize;
use serde_json::Value as Json;

use super::answer::Answer;
use super::candidate::{evaluated, refused};
use super::oracle::{OracleError, build, folder};
use super::value_literal::literal;

/// The results of the conformance tests.
#[derive(Clone, Debug, Default)]
pub struct Conformance {
    /// The number of tests.
    pub tests: usize,
    /// The number of tests in which Kubernetes and the crate both return the expected result.
    pub met: usize,
    /// The number of tests in which Kubernetes and the crate agree on a different result, by reason.
    pub otherwise: BTreeMap<String, usize>,
    /// The number of tests that Kubernetes cannot run, by reason.
    pub skipped: BTreeMap<String, usize>,
    /// The number of tests that the crate cannot run, by reason.
    pub inexpressible: BTreeMap<String, usize>,
    /// The tests in which the crate differs from Kubernetes.
    ///
    /// If Kubernetes returns the expected result, the crate is compared with the expected result.
    pub differences: Vec<String>,
}

/// A line in the output of the Go program: a test and the answer of Kubernetes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    name: String,
    #[serde(default)]
    container: String,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    #[serde(default)]
    bindings: BTreeMap<String, Json>,
    #[serde(default)]
    functions: Vec<String>,
    expected: Expected,
    skipped: Option<String>,
    reason: Option<String>,
    answer: Answer,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    value: Option<Json>,
    r#type: Option<String>,
    error: Option<String>,
}

/// The number of times that Kubernetes evaluates a test again if the crate's answer differs.
const AGAIN: usize = 20;

/// Runs all tests. Requires Go to download the tests.
///
/// # Errors
/// Returns an error if Kubernetes' packages cannot be run. Differences are not errors.
pub fn conformance() -> Result<Conformance, OracleError> {
    let program = build("./conformance")?;
    go(&["mod", "download", "cel.dev/expr"])?;
    let module = go(&["list", "-m", "-f", "{{.Dir}}", "cel.dev/expr"])?;
    let folder = format!("{}/tests/simple/testdata", module.trim());
    let mut lines = ask(&program, &folder)?;
    // Results that depend on map order agree in some of these attempts.
    for _ in 0..AGAIN {
        let differs = |line: &Line| Conformance::from_lines([line]).differences.len() == 1;
        let differing: Vec<usize> =
            (0..lines.len()).filter(|at| lines.get(*at).is_some_and(differs)).collect();
        if differing.is_empty() {
            break;
        }
        for (at, line) in ask(&program, &folder)?.into_iter().enumerate() {
            if differing.contains(&at) {
                lines[at] = line;
            }
        }
    }
    Ok(Conformance::from_lines(&lines))
}

/// Returns all tests with the answers of Kubernetes, in a fixed order.
fn ask(program: &Path, folder: &str) -> Result<Vec<Line>, OracleError> {
    let output = Command::new(program).arg(folder).output()?;
    if !output.status.success() {
        return Err(OracleError::Ended(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    let line = |text: &str| {
        serde_json::from_str(text).map_err(|why| OracleError::Answer { text: text.to_owned(), why })
    };
    String::from_utf8_lossy(&output.stdout).lines().map(line).collect()
}

fn go(arguments: &[&str]) -> Result<String, OracleError> {
    let output = Command::new("go").args(arguments).current_dir(folder()).output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(OracleError::Ended(String::from_utf8_lossy(&output.stderr).into_owned()))
}

impl Conformance {
    fn from_lines<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Self {
        let mut conformance = Self::default();
        lines.into_iter().for_each(|line| conformance.add(line));
        conformance
    }

    fn add(&mut self, line: &Line) {
        self.tests += 1;
        if let Some(reason) = &line.skipped {
            *self.skipped.entry(class(reason)).or_default() += 1;
            return;
        }
        let actual = match answer(line) {
            Ok(actual) => actual,
            Err(reason) => {
                *self.inexpressible.entry(reason).or_default() += 1;
                return;
            }
        };
        if let Some(difference) = line.answer.differs(&actual) {
            self.differences.push(format!("{}: {}\n{difference}", line.name, line.answer.expr));
        } else if let Some(reason) = &line.reason {
            *self.otherwise.entry(class(reason)).or_default() += 1;
        } else if line.expected.is_met_by(&actual) {
            self.met += 1;
        } else {
            self.differences
                .push(format!("{}: {}\n  is not what the test expects", line.name, line.answer.expr));
        }
    }

    /// Returns whether the crate agrees with Kubernetes in every test.
    pub fn agrees(&self) -> bool {
        self.differences.is_empty()
    }
}

impl Expected {
    fn is_met_by(&self, actual: &Answer) -> bool {
        if self.error.is_some() {
            return actual.compile_error.is_some() || actual.run_error.is_some();
        }
        // A type alone says nothing about the evaluation.
        actual.compile_error.is_none()
            && self.r#type.as_ref().is_none_or(|expected| actual.r#type.as_ref() == Some(expected))
            && self.value.as_ref().is_none_or(|expected| actual.value.as_ref() == Some(expected))
    }
}

/// Removes the parts of a reason that vary between tests.
fn class(reason: &str) -> String {
    let reason = reason.lines().next().unwrap_or_default();
    let message = reason.strip_prefix("ERROR: <input>:").and_then(|rest| rest.split_once(": "));
    let message = message.map_or(reason, |(_, message)| message);
    let message = message.find(": ").map_or(message, |end| message.get(..end).unwrap_or(message));
    let quoted: Vec<&str> = message.split('\'').collect();
    let names: Vec<&str> =
        quoted.iter().enumerate().map(|(at, part)| if at % 2 == 0 { *part } else { "_" }).collect();
    match names.concat() {
        text if text.starts_with("variable ") => {
            "a variable of a type that Kubernetes does not have".to_owned()
        }
        text if text.starts_with("undeclared reference to ") => {
            "a function, type or constant that Kubernetes does not have".to_owned()
        }
        text if text.starts_with("the value is ") => "another value".to_owned(),
        text if text.starts_with("the type is ") => "another type".to_owned(),
        text => text,
    }
}

/// Returns the crate's answer to a test, or an error if the crate cannot run it.
fn answer(line: &Line) -> Result<Answer, String> {
    if !line.functions.is_empty() {
        return Err("a function that the test declares".to_owned());
    }
    let mut environment = environment_at(Version::new(1, 37)).with_container(&line.container);
    for (name, of) in &line.variables {
        let of = declared(of).ok_or_else(|| format!("a variable of the type {of}"))?;
        environment = environment.with_variable(name, of);
    }
    let expression = &line.answer.expr;
    let values: Vec<(&str, Program)> = line
        .bindings
        .iter()
        .map(|(name, value)| Ok((name.as_str(), constant(value).ok_or("a value that is no expression")?)))
        .collect::<Result<_, &str>>()?;
    let mut variables: Vec<(&str, Value<'_>)> = Vec::with_capacity(values.len());
    for (name, value) in &values {
        let value =
            value.evaluate(&Bound(&[]), &Limits::default()).value.map_err(|error| error.to_string())?;
        variables.push((name, value));
    }
    Ok(match environment.compile(expression) {
        Ok(program) => evaluated(&environment, &program, &Bound(&variables), &Unbounded::default()),
        Err(error) => refused(expression, &error),
    })
}

/// Returns a program that evaluates to `value`. The value is in the format of answers.
fn constant(value: &Json) -> Option<Program> {
    let environment: Environment = environment_at(Version::new(1, 37));
    environment.compile(&literal(value)?).ok()
}

/// Parses a type in the format of cel-go.
fn declared(text: &str) -> Option<Type> {
    let inner = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(element) = inner("list") {
        return declared(element).map(Type::list);
    }
    if let Some(of) = inner("wrapper") {
        return Some(Type::Wrapper(declared(of)?.into()));
    }
    if let Some((key, value)) = inner("map").and_then(|both| both.split_once(", ")) {
        return Some(Type::map(declared(key)?, declared(value)?));
    }
    Some(match text {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "dyn" => Type::Dyn,
        "int" => Type::Int,
        "null_type" => Type::Null,
        "string" => Type::String,
        "uint" => Type::Uint,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        _ => return None,
    })
}

struct Bound<'b, 'a>(&'b [(&'b str, Value<'a>)]);

impl<'a> kubernetes_cel::Variables<'a> for Bound<'_, 'a> {
    fn get(&self, name: &str) -> Option<Value<'a>> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }
}

impl std::fmt::Display for Conformance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sum = |reasons: &BTreeMap<String, usize>| reasons.values().sum::<usize>();
        writeln!(f, "{} conformance tests", self.tests)?;
        writeln!(f, "{} are met by Kubernetes and by admit", self.met)?;
        for (what, reasons) in [
            ("are answered otherwise by Kubernetes, and by admit as by Kubernetes", &self.otherwise),
            ("cannot be asked of Kubernetes", &self.skipped),
            ("cannot be asked of admit", &self.inexpressible),
        ] {
            writeln!(f, "{} {what}", sum(reasons))?;
            for (reason, count) in reasons {
                writeln!(f, "  {count} {reason}")?;
            }
        }
        write!(f, "{} are answered by admit as neither", self.differences.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_read_as_cel_go_writes_it() {
        for text in ["int", "map(string, list(dyn))", "wrapper(uint)", "google.protobuf.Duration"] {
            assert_eq!(declared(text).map(|of| of.runtime_text()).as_deref(), Some(text));
        }
        assert_eq!(declared("cel.expr.conformance.proto3.TestAllTypes"), None);
    }

    #[test]
    fn reasons_are_counted_without_names() {
        let check = |reason: &str, expected: &str| assert_eq!(class(reason), expected);
        check(
            "ERROR: <input>:1:6: expected type 'int' but found 'uint'\n | x",
            "expected type _ but found _",
        );
        check("the value is {\"int\":\"1\"}", "another value");
        check("variable x: unknown type: 'a.B'", "a variable of a type that Kubernetes does not have");
    }
}
