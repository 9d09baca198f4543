//! The declarations of an environment: variables, types, and functions.

pub(crate) mod well_known;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::function::{Function, Overload};
use crate::parser::MacroSet;
use crate::schema::is_keyword;
use crate::types::Type;
use crate::value::{JSON_PATCH, OBJECT, Object};

/// An object type with the types of its fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObjectType {
    /// The full name, such as `kubernetes.UserInfo`.
    pub name: Arc<str>,
    /// The types of the fields, by their names in expressions.
    pub fields: HashMap<Arc<str>, Type>,
}

impl ObjectType {
    /// Creates an object type from its fields.
    pub fn new(name: &str, fields: impl IntoIterator<Item = (impl Into<Arc<str>>, Type)>) -> Self {
        let fields = fields.into_iter().map(|(field, of)| (field.into(), of)).collect();
        Self { name: name.into(), fields }
    }

    /// Returns the type of a field. A field whose name is a keyword can also be found by its escaped name.
    ///
    /// Source: apiserver pkg/cel/types.go, `FindStructFieldType`.
    pub(crate) fn field(&self, name: &str) -> Option<&Type> {
        self.fields
            .get(name)
            .or_else(|| is_keyword(name).then(|| self.fields.get(format!("__{name}__").as_str())).flatten())
    }
}

/// A validation that runs after type checking.
///
/// Source: cel-go cel/validator.go, ext/formatting.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Validator {
    /// Checks that constant arguments of `duration` are valid durations.
    Duration,
    /// Checks that constant arguments of `timestamp` are valid timestamps.
    Timestamp,
    /// Checks that constant first arguments of `matches` are valid regular expressions.
    Matches,
    /// Checks that all elements of a list literal, and all keys and all values of a map literal, have the same type.
    HomogeneousLiterals,
    /// Checks that the arguments of `format` match the clauses of a constant format string.
    StringFormat,
}

/// All declarations of an environment.
#[derive(Clone, Debug)]
pub(crate) struct Declarations {
    /// The container in which names are resolved first, such as `a.b`; usually empty.
    pub(crate) container: Arc<str>,
    pub(crate) variables: HashMap<Arc<str>, Type>,
    /// The named types, by full name.
    pub(crate) types: HashMap<Arc<str>, NamedType>,
    pub(crate) objects: HashMap<Arc<str>, Arc<ObjectType>>,
    /// The named constants, by full name.
    pub(crate) constants: HashMap<Arc<str>, i64>,
    pub(crate) functions: HashMap<Arc<str>, Arc<Function>>,
    /// The first parts of all qualified names of variables, types, and constants, such as `google`.
    qualified: HashSet<Box<str>>,
    pub(crate) macros: Vec<MacroSet>,
    pub(crate) validators: Vec<Validator>,
    /// Whether `<`, `<=`, `>`, and `>=` can compare numbers of different types.
    pub(crate) compare_across_types: bool,
    /// Whether the types for mutations are declared: `Object`, `Object.FIELD`, and `JSONPatch`.
    pub(crate) patch_types: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    /// The type of a message literal with this name, such as `Name{}`.
    pub(crate) of: Type,
    /// The type that the name denotes as a value; lists and maps have type parameters.
    pub(crate) as_value: Type,
    /// Whether the name has a value at run time; otherwise, an expression that uses the name does not compile.
    pub(crate) has_value: bool,
}

/// The declaration that a name refers to.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    Variable(Type),
    Type(NamedType),
    Constant(i64),
}

impl Declarations {
    pub(crate) fn new() -> Self {
        let mut it = Self {
            container: "".into(),
            variables: HashMap::new(),
            types: HashMap::new(),
            objects: HashMap::new(),
            constants: HashMap::new(),
            functions: HashMap::new(),
            qualified: HashSet::new(),
            macros: vec![MacroSet::Standard],
            validators: Vec::new(),
            compare_across_types: false,
            patch_types: false,
        };
        well_known::declare(&mut it);
        it
    }

    pub(crate) fn add_variable(&mut self, name: &str, of: Type) {
        self.remember_qualified(name);
        self.variables.insert(name.into(), of);
    }

    /// Adds a type name that is also a value.
    pub(crate) fn add_type(&mut self, name: &str, of: Type) {
        self.add_named(name, NamedType { as_value: of.clone(), of, has_value: true });
    }

    pub(crate) fn add_type_name(&mut self, name: &str, of: Type) {
        self.add_named(name, NamedType { as_value: of.clone(), of, has_value: false });
    }

    pub(crate) fn add_named(&mut self, name: &str, named: NamedType) {
        self.remember_qualified(name);
        self.types.insert(name.into(), named);
    }

    pub(crate) fn add_constant(&mut self, name: &str, value: i64) {
        self.remember_qualified(name);
        self.constants.insert(name.into(), value);
    }

    pub(crate) fn add_object(&mut self, object: Arc<ObjectType>) {
        self.add_type_name(&object.name, Type::Object(Arc::clone(&object.name)));
        self.objects.insert(Arc::clone(&object.name), object);
    }

    /// Adds a function; if a function with this name exists, adds the overloads to it.
    ///
    /// An overload replaces an existing one with the same identifier.
    pub(crate) fn add_function(&mut self, function: &Function) {
        let known = self
            .functions
            .entry(function.name.into())
            .or_insert_with(|| Arc::new(Function { name: function.name, overloads: Vec::new() }));
        let known = Arc::make_mut(known);
        for overload in &function.overloads {
            match known.overloads.iter_mut().find(|other| other.id == overload.id) {
                Some(other) => *other = Arc::clone(overload),
                None => known.overloads.push(Arc::clone(overload)),
            }
        }
    }

    fn remember_qualified(&mut self, name: &str) {
        if let Some((first, _)) = name.split_once('.') {
            self.qualified.insert(first.into());
        }
    }

    /// Returns whether a qualified name of a variable, type, or constant may begin with this part.
    pub(crate) fn can_qualify(&self, first: &str) -> bool {
        let first = first.trim_start_matches('.');
        !self.container.is_empty() || self.qualified.contains(first) || self.patch_types && first == OBJECT
    }

    /// Resolves a name: calls `find` with each possible full name in order, and returns the first result.
    ///
    /// Source: cel-go common/containers/container.go, `ResolveCandidateNames`.
    fn candidates<T>(&self, name: &str, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        if let Some(absolute) = name.strip_prefix('.') {
            return find(absolute);
        }
        let mut container: &str = &self.container;
        while !container.is_empty() {
            if let Some(found) = find(&format!("{container}.{name}")) {
                return Some(found);
            }
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        find(name)
    }

    /// Returns the type for mutations with this name, or `None` if the name is unknown.
    ///
    /// Source: apiserver pkg/cel/mutation/typeresolver.go, `Resolve`.
    fn patch_type(&self, name: &str) -> Option<(Arc<str>, NamedType)> {
        if !self.is_patch_type(name) {
            return None;
        }
        let of = Type::object(name);
        Some((name.into(), NamedType { as_value: of.clone(), of, has_value: false }))
    }

    /// Returns the type of a field of `Object`, `Object.FIELD`, or `JSONPatch`, or `None` for all other types.
    ///
    /// Source: apiserver pkg/cel/mutation/dynamic/objects.go and pkg/cel/mutation/jsonpatch.go, `Field`.
    pub(crate) fn patch_field(&self, message: &str, field: &str) -> Option<Type> {
        self.is_patch_type(message).then(|| match field {
            "op" | "from" | "path" if message == JSON_PATCH => Type::String,
            _ => Type::Dyn,
        })
    }

    fn is_patch_type(&self, name: &str) -> bool {
        self.patch_types && Object::is_named(name)
    }

    /// Returns whether `message` is the type of JSON patch operations but does not have this field.
    pub(crate) fn is_unknown_in_operation(&self, message: &str, field: &str) -> bool {
        self.patch_types && message == JSON_PATCH && !["op", "from", "path", "value"].contains(&field)
    }

    /// Returns the full name and the declaration of a name, or `None` if the environment does not declare the name.
    pub(crate) fn global(&self, name: &str) -> Option<(Arc<str>, Meaning)> {
        self.candidates(name, |name| {
            if let Some((name, of)) = self.variables.get_key_value(name) {
                return Some((Arc::clone(name), Meaning::Variable(of.clone())));
            }
            if let Some((name, named)) = self.patch_type(name) {
                return Some((name, Meaning::Type(named)));
            }
            if let Some((name, named)) = self.types.get_key_value(name) {
                return Some((Arc::clone(name), Meaning::Type(named.clone())));
            }
            let (name, value) = self.constants.get_key_value(name)?;
            Some((Arc::clone(name), Meaning::Constant(*value)))
        })
    }

    /// Returns the full name and the type of a message literal, or `None` if its name is not declared.
    pub(crate) fn struct_type(&self, name: &str) -> Option<(Arc<str>, Type)> {
        self.candidates(name, |name| {
            let change = self.patch_type(name).map(|(name, named)| (name, named.of));
            change.or_else(|| {
                self.types.get_key_value(name).map(|(name, named)| (Arc::clone(name), named.of.clone()))
            })
        })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.candidates(name, |name| self.functions.get(name.strip_prefix('.').unwrap_or(name)))
    }
}

/// Returns whether an overload compares numbers of different types.
///
/// Source: cel-go checker/env.go, `crossTypeNumericComparisonOverloads`.
pub(crate) fn compares_across_types(overload: &Overload) -> bool {
    let is_number = |of: &Type| matches!(of, Type::Int | Type::Uint | Type::Double);
    let is_comparison = ["less_", "greater_"].iter().any(|prefix| overload.id.starts_with(prefix));
    match overload.parameters.as_slice() {
        [left, right] => is_comparison && left != right && is_number(left) && is_number(right),
        _ => false,
    }
}
