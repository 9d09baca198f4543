//! The declared type of a schema, for the checker and the cost estimate.
//!
//! Source: apiserver pkg/cel/common/schemas.go, `SchemaDeclType`, and pkg/cel/types.go.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::environment::{Environment, ObjectType};
use crate::estimate::{Range, Sizes};
use crate::schema::{Kind, Schema, escape};
use crate::types::Type;

/// The maximum size, in bytes, of a request.
///
/// Source: apiserver pkg/apis/cel/config.go, `MaxRequestSizeBytes`.
const MAX_REQUEST_SIZE_BYTES: i64 = 3 << 20;

/// The minimum and maximum lengths, in bytes, of JSON values.
///
/// Source: apiserver pkg/cel/limits.go.
mod limits {
    pub(super) const MAX_DURATION_LENGTH: i64 = 32;
    pub(super) const SHORTEST_DURATION: i64 = 3;
    pub(super) const MAX_DATE_TIME_LENGTH: i64 = 32;
    pub(super) const SHORTEST_DATE_TIME: i64 = 21;
    pub(super) const DATE: i64 = 12;
    pub(super) const SHORTEST_STRING: i64 = 2;
    pub(super) const SHORTEST_BOOLEAN: i64 = 4;
    pub(super) const SHORTEST_NUMBER: i64 = 1;
    pub(super) const SHORTEST_INT_OR_STRING: i64 = 1;
    pub(super) const EMPTY: i64 = 2;
}

/// The type of a schema's values, with their maximum sizes.
#[derive(Clone, Debug)]
pub struct DeclaredType {
    shape: Shape,
    /// The maximum number of characters, elements, or entries; 0 for values without a size.
    max_elements: i64,
    /// The minimum size, in bytes, of a value's JSON.
    min_serialized_size: i64,
}

#[derive(Clone, Debug)]
enum Shape {
    Scalar(Type),
    List(Box<DeclaredType>),
    Map(Box<DeclaredType>),
    /// The fields by their escaped names.
    Object(BTreeMap<Arc<str>, DeclaredType>),
}

impl Schema {
    /// Returns the type of the schema's values, or `None` if expressions cannot use them.
    ///
    /// Expressions cannot use values without a type, or lists and maps of such values.
    ///
    /// Source: apiserver pkg/cel/common/schemas.go, `SchemaDeclType`.
    pub fn declared_type(&self) -> Option<DeclaredType> {
        match self.kind {
            Kind::Array => self.declared_list(),
            Kind::Object => match &self.additional_properties {
                Some(values) => self.declared_map(values),
                None => Some(self.declared_object()),
            },
            Kind::String => Some(self.declared_text()),
            Kind::Boolean => Some(DeclaredType::scalar(Type::Bool, 0, limits::SHORTEST_BOOLEAN)),
            Kind::Number => Some(DeclaredType::scalar(Type::Double, 0, limits::SHORTEST_NUMBER)),
            Kind::Integer => Some(DeclaredType::scalar(Type::Int, 0, limits::SHORTEST_NUMBER)),
            Kind::IntOrString => {
                let longest = self.max_length.map_or(MAX_REQUEST_SIZE_BYTES - 2, bytes);
                Some(DeclaredType::scalar(Type::Dyn, longest, limits::SHORTEST_INT_OR_STRING))
            }
            Kind::Preserved | Kind::Other(_) => None,
        }
    }

    fn declared_list(&self) -> Option<DeclaredType> {
        let items = self.items.as_ref()?.declared_type()?;
        // Brackets, and a comma for each element.
        let fitting = (MAX_REQUEST_SIZE_BYTES - 2) / (items.min_serialized_size + 1);
        let max_elements = self.max_items.map_or(fitting, |most| most.max(0));
        let shape = Shape::List(Box::new(items));
        Some(DeclaredType { shape, max_elements, min_serialized_size: limits::EMPTY })
    }

    fn declared_map(&self, values: &Self) -> Option<DeclaredType> {
        let values = values.declared_type()?;
        // Braces, and for each value a comma, a colon, quotes, and a key of two bytes.
        let fitting = (MAX_REQUEST_SIZE_BYTES - 2) / (values.min_serialized_size + 6);
        let max_elements = self.max_properties.map_or(fitting, |most| most.max(0));
        let shape = Shape::Map(Box::new(values));
        Some(DeclaredType { shape, max_elements, min_serialized_size: limits::EMPTY })
    }

    fn declared_object(&self) -> DeclaredType {
        let mut min_serialized_size = limits::EMPTY;
        let mut fields = BTreeMap::new();
        for (name, property) in &self.properties {
            let Some(of) = property.declared_type() else { continue };
            // A request need not contain a property with a default, because the server adds it.
            if !property.has_default && self.required.contains(name) {
                let length = i64::try_from(name.len()).unwrap_or(i64::MAX);
                min_serialized_size =
                    min_serialized_size.saturating_add(length).saturating_add(of.min_serialized_size + 4);
            }
            if let Some(escaped) = escape(name) {
                fields.insert(escaped.into(), of);
            }
        }
        DeclaredType { shape: Shape::Object(fields), max_elements: 0, min_serialized_size }
    }

    fn declared_text(&self) -> DeclaredType {
        let longest = MAX_REQUEST_SIZE_BYTES - 2;
        match self.format.as_str() {
            "byte" => {
                let longest = self.max_length.map_or(longest, |length| length.max(0));
                DeclaredType::scalar(Type::Bytes, longest, limits::SHORTEST_STRING)
            }
            "duration" => {
                DeclaredType::scalar(Type::Duration, limits::MAX_DURATION_LENGTH, limits::SHORTEST_DURATION)
            }
            "date" => DeclaredType::scalar(Type::Timestamp, limits::DATE, limits::DATE),
            "date-time" => DeclaredType::scalar(
                Type::Timestamp,
                limits::MAX_DATE_TIME_LENGTH,
                limits::SHORTEST_DATE_TIME,
            ),
            _ => {
                let longest = match self.max_length {
                    Some(length) => bytes(length),
                    None if self.values.is_empty() => longest,
                    None => self.longest_value(),
                };
                DeclaredType::scalar(Type::String, longest, limits::SHORTEST_STRING)
            }
        }
    }

    fn longest_value(&self) -> i64 {
        let lengths = self.values.iter().filter_map(|value| i64::try_from(value.as_str()?.len()).ok());
        lengths.max().unwrap_or_default()
    }
}

/// Converts a length in characters to the maximum length in bytes, at four bytes per character.
fn bytes(length: i64) -> i64 {
    length.max(0).wrapping_mul(4)
}

impl DeclaredType {
    fn scalar(of: Type, max_elements: i64, min_serialized_size: i64) -> Self {
        Self { shape: Shape::Scalar(of), max_elements, min_serialized_size }
    }

    /// Returns the maximum number of times that a value of the type can occur in one object.
    ///
    /// For a rule below unbounded lists and maps, kube-apiserver multiplies the estimated cost by this number.
    ///
    /// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `maxCardinality`.
    pub fn max_cardinality(&self) -> u64 {
        u64::try_from(MAX_REQUEST_SIZE_BYTES / (self.min_serialized_size + 1)).unwrap_or_default()
    }

    /// Returns the type, and adds object types to `objects`: `name` for the type itself, `name.field` for the type of a
    /// field, `@idx` and `@elem` for the types of elements.
    ///
    /// Source: apiserver pkg/cel/types.go, `MaybeAssignTypeName`.
    fn named(&self, name: &str, objects: &mut Vec<ObjectType>) -> Type {
        match &self.shape {
            Shape::Scalar(of) => of.clone(),
            Shape::List(items) => Type::list(items.named(&format!("{name}.@idx"), objects)),
            Shape::Map(values) => Type::map(Type::String, values.named(&format!("{name}.@elem"), objects)),
            Shape::Object(fields) => {
                let named = |(field, of): (&Arc<str>, &Self)| {
                    (Arc::clone(field), of.named(&format!("{name}.{field}"), objects))
                };
                let fields: Vec<_> = fields.iter().map(named).collect();
                objects.push(ObjectType::new(name, fields));
                Type::object(name)
            }
        }
    }

    fn part(&self, name: &str) -> Option<&Self> {
        match (&self.shape, name) {
            (Shape::List(elements) | Shape::Map(elements), "@items" | "@values") => Some(elements),
            (Shape::Object(fields), _) => fields.get(name),
            _ => None,
        }
    }
}

/// Returns the sizes of variables of this type, regardless of their names.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `sizeEstimator`.
impl Sizes for DeclaredType {
    fn size(&self, path: &[String], _of: &Type) -> Option<Range> {
        let (_variable, parts) = path.split_first()?;
        let mut at = self;
        for (place, part) in parts.iter().enumerate() {
            if part == "@keys" && matches!(at.shape, Shape::Map(_)) {
                // Keys can have any length, but kube-apiserver estimates their size as 0.
                return (place + 1 == parts.len()).then(|| Range::new(0, 0));
            }
            at = at.part(part)?;
        }
        Some(Range::new(0, at.max_elements.cast_unsigned()))
    }
}

/// Declares variables of the type in an environment; the names of object types begin with `name`.
///
/// kube-apiserver uses the variables `self` and `oldSelf`, and a different type name each time, such as
/// `selfType123456789`.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `prepareEnvSet`.
#[must_use]
pub fn with_declared_type(
    environment: Environment,
    of: &DeclaredType,
    name: &str,
    variables: &[&str],
) -> Environment {
    let (environment, named) = with_names(environment, of, name);
    variables
        .iter()
        .fold(environment, |environment, variable| environment.with_variable(variable, named.clone()))
}

/// Declares `self` with the type, and `oldSelf` with its optional type, for a rule with `optionalOldSelf`.
///
/// Source: apiextensions-apiserver pkg/apiserver/schema/cel/compilation.go, `prepareEnvSet`.
#[must_use]
pub fn with_optional_old_self(environment: Environment, of: &DeclaredType, name: &str) -> Environment {
    let (environment, named) = with_names(environment, of, name);
    environment.with_variable("self", named.clone()).with_variable("oldSelf", Type::optional(named))
}

fn with_names(environment: Environment, of: &DeclaredType, name: &str) -> (Environment, Type) {
    let mut objects = Vec::new();
    let named = of.named(name, &mut objects);
    let environment =
        objects.into_iter().fold(environment, Environment::with_object).with_names_of_scalar_types();
    (environment, named)
}
