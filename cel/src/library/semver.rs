//! Implements the functions for semantic versions.
//!
//! Source: apiserver pkg/cel/library/semverlib.go and pkg/cel/semver.go.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::costs::{NOMINAL, ONE_PASS};
use crate::function::{Call, Error, Function, Implementation, Overload};
use crate::semver::Version;
use crate::types::Type;
use crate::value::{Opaque, Value};

const TYPE: &str = "kubernetes.Semver";

/// Returns the functions of version 1 of the semver library.
pub(crate) fn functions() -> Vec<Function> {
    vec![
        conversion(
            "semver",
            ["string_to_semver", "string_bool_to_semver"],
            &version(),
            [|call| parse(call, false), |call| parse(call, call.bool(1)?)],
        ),
        conversion(
            "isSemver",
            ["is_semver_string", "is_semver_string_bool"],
            &Type::Bool,
            [|call| is_version(call, false), |call| is_version(call, call.bool(1)?)],
        ),
        comparison("isGreaterThan", "semver_is_greater_than", Type::Bool, |call| {
            Ok(Value::Bool(compare(call)?.is_gt()))
        }),
        comparison("isLessThan", "semver_is_less_than", Type::Bool, |call| {
            Ok(Value::Bool(compare(call)?.is_lt()))
        }),
        comparison("compareTo", "semver_compare_to", Type::Int, |call| Ok(Value::Int(compare(call)? as i64))),
        number("major", "semver_major", |call| Ok(Value::Int(receiver(call)?.0.major()))),
        number("minor", "semver_minor", |call| Ok(Value::Int(receiver(call)?.0.minor()))),
        number("patch", "semver_patch", |call| Ok(Value::Int(receiver(call)?.0.patch()))),
    ]
}

#[derive(Debug)]
struct VersionValue(Version);

impl Opaque for VersionValue {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "Semver"
    }

    fn is_text(&self) -> bool {
        true
    }

    fn unhashable(&self) -> Option<&'static str> {
        Some("cel.Semver")
    }

    fn go_type(&self) -> &'static str {
        "cel.Semver"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        Some(self.0.compare(&other.0).is_eq())
    }
}

impl fmt::Display for VersionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn version() -> Type {
    Type::Object(TYPE.into())
}

fn conversion(
    name: &'static str,
    ids: [&'static str; 2],
    result: &Type,
    implementations: [Implementation; 2],
) -> Function {
    let [id, id_bool] = ids;
    let [implementation, implementation_bool] = implementations;
    Function::new(
        name,
        vec![
            Overload::global(id, vec![Type::String], result.clone(), implementation),
            Overload::global(id_bool, vec![Type::String, Type::Bool], result.clone(), implementation_bool),
        ],
    )
    .with_cost(ONE_PASS)
}

fn comparison(
    name: &'static str,
    id: &'static str,
    result: Type,
    implementation: Implementation,
) -> Function {
    Function::new(name, vec![Overload::member(id, vec![version(), version()], result, implementation)])
        .with_cost(NOMINAL)
}

fn number(name: &'static str, id: &'static str, implementation: Implementation) -> Function {
    Function::new(name, vec![Overload::member(id, vec![version()], Type::Int, implementation)])
        .with_cost(NOMINAL)
}

fn receiver<'c>(call: &Call<'c, '_>) -> Result<&'c VersionValue, Error> {
    call.opaque(0)
}

fn read(call: &Call<'_, '_>, normalize: bool) -> Result<Result<Version, String>, Error> {
    let text = call.text(0)?.as_str();
    Ok(if normalize { Version::parse_normalized(text) } else { Version::parse(text) })
}

fn parse<'a>(call: &Call<'_, 'a>, normalize: bool) -> Result<Value<'a>, Error> {
    let version = read(call, normalize)?.map_err(Error::new)?;
    Ok(Value::Opaque(Arc::new(VersionValue(version))))
}

fn is_version<'a>(call: &Call<'_, 'a>, normalize: bool) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(read(call, normalize)?.is_ok()))
}

fn compare(call: &Call<'_, '_>) -> Result<Ordering, Error> {
    Ok(receiver(call)?.0.compare(&call.opaque::<VersionValue>(1)?.0))
}
