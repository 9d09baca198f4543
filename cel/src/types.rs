//! The static types of expressions.

use std::fmt;
use std::sync::Arc;

/// The static type of an expression.
///
/// `Display` writes the name in kube-apiserver's error messages, such as `map(string, list(int))`.
///
/// Source: cel-go common/types/types.go and checker/format.go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Type {
    /// `dyn`: a type that is known only at run time.
    Dyn,
    /// The type of an expression with a reported error.
    Error,
    /// The type of `null`.
    Null,
    /// The type of `true` and `false`.
    Bool,
    /// The type of signed 64-bit integers.
    Int,
    /// The type of unsigned 64-bit integers.
    Uint,
    /// The type of 64-bit floating-point numbers.
    Double,
    /// The type of Unicode strings.
    String,
    /// The type of byte sequences.
    Bytes,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// `google.protobuf.Duration`.
    Duration,
    /// The type of lists with elements of this type.
    List(Arc<Type>),
    /// The type of maps with keys and values of these types.
    Map(Arc<Type>, Arc<Type>),
    /// The type of a type: `type(int)` is the type of `int`.
    Type(Arc<Type>),
    /// The type `type`, whose values are types.
    AnyType,
    /// `google.protobuf.Any`. It is equivalent to [`Type::Dyn`].
    Any,
    /// A nullable wrapper of a basic type, such as `google.protobuf.Int64Value`.
    Wrapper(Arc<Type>),
    /// An object type that the environment declares under this name, or a library type such as
    /// `kubernetes.Quantity`.
    Object(Arc<str>),
    /// A library type that does not support fields, such as `net.IP` or `optional_type(int)`.
    ///
    /// Most Kubernetes types are declared as objects without fields instead; selecting a field of an object gives a
    /// different error.
    Opaque(Arc<str>, Arc<[Type]>),
    /// A parameter in the signature of an overload, such as `A` in `list(A)`.
    Parameter(&'static str),
    /// A type variable of the checker.
    Variable(u32),
}

/// The name of the type of optional values.
pub const OPTIONAL: &str = "optional_type";

impl Type {
    /// Returns the name of a type at run time.
    pub(crate) fn runtime_name(&self) -> &str {
        match self {
            Self::Dyn | Self::Variable(_) => "dyn",
            Self::Error => "error",
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Type(_) | Self::AnyType => "type",
            Self::Any => "google.protobuf.Any",
            Self::Wrapper(of) => of.runtime_name(),
            Self::Object(name) | Self::Opaque(name, _) => name,
            Self::Parameter(name) => name,
        }
    }

    /// Creates the type `list(element)`.
    pub fn list(element: Self) -> Self {
        Self::List(Arc::new(element))
    }

    /// Creates the type `map(key, value)`.
    pub fn map(key: Self, value: Self) -> Self {
        Self::Map(Arc::new(key), Arc::new(value))
    }

    /// Creates the type `optional_type(value)`.
    pub fn optional(value: Self) -> Self {
        Self::Opaque(OPTIONAL.into(), [value].into())
    }

    /// Creates an object type, or a library type that cel-go declares as an object type.
    pub fn object(name: &str) -> Self {
        Self::Object(name.into())
    }

    /// Returns whether a condition can have this type: `bool`, or its wrapper, which kube-apiserver treats as `bool`.
    ///
    /// Source: cel-go common/types/types.go, `IsExactType`.
    pub fn is_bool(&self) -> bool {
        match self {
            Self::Bool => true,
            Self::Wrapper(of) => **of == Self::Bool,
            _ => false,
        }
    }

    /// Creates a library type without parameters.
    pub fn opaque(name: &str) -> Self {
        Self::Opaque(name.into(), [].into())
    }
}

impl Type {
    /// Returns the name of the type at run time, without type parameters.
    ///
    /// Source: cel-go common/types/types.go, `DeclaredTypeName`.
    pub(crate) fn declared_name(&self) -> String {
        match self {
            Self::List(_) => "list".to_owned(),
            Self::Map(..) => "map".to_owned(),
            Self::Type(_) => "type".to_owned(),
            Self::Opaque(name, _) => name.to_string(),
            Self::Parameter(_) | Self::Variable(_) => self.to_string(),
            _ => self.runtime_text(),
        }
    }

    /// Formats the type with run-time names, as in the error `must evaluate to bool but got ...`.
    ///
    /// Source: cel-go common/types/types.go, `Type.String`.
    pub fn runtime_text(&self) -> String {
        match self {
            Self::Error => "error".to_owned(),
            Self::Null => "null_type".to_owned(),
            Self::Timestamp => "google.protobuf.Timestamp".to_owned(),
            Self::Duration => "google.protobuf.Duration".to_owned(),
            Self::Any => "google.protobuf.Any".to_owned(),
            Self::List(element) => format!("list({})", element.runtime_text()),
            Self::Map(key, value) => format!("map({}, {})", key.runtime_text(), value.runtime_text()),
            Self::Type(of) => format!("type({})", of.runtime_text()),
            Self::Opaque(name, parameters) if !parameters.is_empty() => {
                let parameters: Vec<_> = parameters.iter().map(Self::runtime_text).collect();
                format!("{name}({})", parameters.join(", "))
            }
            Self::Parameter(_) | Self::Variable(_) => format!("<{self}>"),
            Self::Dyn
            | Self::Bool
            | Self::Int
            | Self::Uint
            | Self::Double
            | Self::String
            | Self::Bytes
            | Self::AnyType
            | Self::Wrapper(_)
            | Self::Object(_)
            | Self::Opaque(..) => self.to_string(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Duration => f.write_str("duration"),
            Self::List(element) => write!(f, "list({element})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Type(of) => write!(f, "type({of})"),
            Self::AnyType => f.write_str("type"),
            Self::Any => f.write_str("any"),
            Self::Wrapper(of) => write!(f, "wrapper({of})"),
            Self::Object(name) => f.write_str(name),
            Self::Opaque(name, parameters) if parameters.is_empty() => f.write_str(name),
            Self::Opaque(name, parameters) => {
                write!(f, "{name}(")?;
                for (index, parameter) in parameters.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{parameter}")?;
                }
                f.write_str(")")
            }
            Self::Parameter(name) => f.write_str(name),
            Self::Variable(number) => write!(f, "_var{number}"),
        }
    }
}
