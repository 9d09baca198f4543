//! Implements the functions for named string formats.
//!
//! Source: apiserver pkg/cel/library/format.go and pkg/cel/format.go.

use std::fmt;
use std::sync::Arc;

use super::costs::{NOMINAL, share};
use crate::formats;
use crate::function::{Call, CallCost, Error, Function, Implementation, Overload};
use crate::names;
use crate::types::Type;
use crate::value::{Opaque, Value};

const TYPE: &str = "kubernetes.NamedFormat";

pub(crate) fn functions() -> Vec<Function> {
    let constants = FORMATS.iter().map(|format| {
        let overload = Overload::global(format.function, vec![], named_format(), format.implementation);
        Function::new(format.function, vec![overload])
    });
    let validate = Overload::member(
        "format-validate",
        vec![named_format(), Type::String],
        Type::optional(Type::list(Type::String)),
        validate,
    );
    let named = Overload::global("format-named", vec![Type::String], Type::optional(named_format()), named);
    let functions = [
        Function::new("validate", vec![validate]).with_cost(COST),
        Function::new("format.named", vec![named]).with_cost(NOMINAL),
    ];
    constants.chain(functions).collect()
}

/// A named string format.
#[derive(Clone, Copy, Debug)]
struct Format {
    function: &'static str,
    implementation: Implementation,
    name: &'static str,
    /// Returns the error messages for a string that does not conform to the format, or an empty list.
    validate: fn(&str) -> Vec<String>,
    /// The size that kube-apiserver assumes for the format's regular expression.
    expression_size: u64,
}

/// All named formats.
///
/// Source: apiserver pkg/cel/library/format.go, `ConstantFormats`.
static FORMATS: [Format; 13] = [
    Format {
        function: "format.dns1123Label",
        implementation: constant::<0>,
        name: "DNS1123Label",
        validate: names::dns1123_label,
        expression_size: 30,
    },
    Format {
        function: "format.dns1123Subdomain",
        implementation: constant::<1>,
        name: "DNS1123Subdomain",
        validate: names::dns1123_subdomain,
        expression_size: 60,
    },
    Format {
        function: "format.dns1035Label",
        implementation: constant::<2>,
        name: "DNS1035Label",
        validate: names::dns1035_label,
        expression_size: 30,
    },
    Format {
        function: "format.qualifiedName",
        implementation: constant::<3>,
        name: "QualifiedName",
        validate: names::label_key,
        expression_size: 60,
    },
    Format {
        function: "format.dns1123LabelPrefix",
        implementation: constant::<4>,
        name: "DNS1123LabelPrefix",
        validate: |text| names::dns1123_label(&formats::completed(text)),
        expression_size: 30,
    },
    Format {
        function: "format.dns1123SubdomainPrefix",
        implementation: constant::<5>,
        name: "DNS1123SubdomainPrefix",
        validate: |text| names::dns1123_subdomain(&formats::completed(text)),
        expression_size: 60,
    },
    Format {
        function: "format.dns1035LabelPrefix",
        implementation: constant::<6>,
        name: "DNS1035LabelPrefix",
        validate: |text| names::dns1035_label(&formats::completed(text)),
        expression_size: 30,
    },
    Format {
        function: "format.labelValue",
        implementation: constant::<7>,
        name: "LabelValue",
        validate: names::label_value,
        expression_size: 40,
    },
    Format {
        function: "format.uri",
        implementation: constant::<8>,
        name: "URI",
        validate: formats::uri,
        expression_size: 1103,
    },
    Format {
        function: "format.uuid",
        implementation: constant::<9>,
        name: "uuid",
        validate: formats::uuid,
        expression_size: 70,
    },
    Format {
        function: "format.byte",
        implementation: constant::<10>,
        name: "byte",
        validate: formats::byte,
        expression_size: 84,
    },
    Format {
        function: "format.date",
        implementation: constant::<11>,
        name: "date",
        validate: formats::date,
        expression_size: 71,
    },
    Format {
        function: "format.datetime",
        implementation: constant::<12>,
        name: "datetime",
        validate: formats::date_time,
        expression_size: 71,
    },
];

impl Opaque for Format {
    fn type_name(&self) -> &'static str {
        TYPE
    }

    fn native_name(&self) -> &'static str {
        "Format"
    }

    fn unhashable(&self) -> Option<&'static str> {
        Some("cel.Format")
    }

    fn go_type(&self) -> &'static str {
        "cel.Format"
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other = (other as &dyn std::any::Any).downcast_ref::<Self>()?;
        Some(self.name == other.name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The cost of matching a regular expression with the format's size.
const COST: CallCost = |_, arguments, _| {
    let [format, text, ..] = arguments else { return None };
    let format = format.downcast::<Format>()?;
    Some(share(text.size_or_one() + 1, 0.1) * share(format.expression_size, 0.25))
};

fn named_format() -> Type {
    Type::Object(TYPE.into())
}

fn value<'a>(format: &Format) -> Value<'a> {
    Value::Opaque(Arc::new(*format))
}

fn constant<'a, const INDEX: usize>(_: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    FORMATS.get(INDEX).map(value).ok_or_else(Error::no_such_overload)
}

fn named<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let name = call.text(0)?.as_str();
    let format = FORMATS.iter().find(|format| format.function.strip_prefix("format.") == Some(name));
    Ok(Value::Optional(format.map(value).map(Arc::new)))
}

fn validate<'a>(call: &Call<'_, 'a>) -> Result<Value<'a>, Error> {
    let format = call.opaque::<Format>(0)?;
    let wrong = (format.validate)(call.text(1)?.as_str());
    if wrong.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(wrong.into_iter().map(Value::text).collect())))
}
