//! What an environment declares: variables, types and functions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::function::{Function, Overload};
use crate::parser::MacroSet;
use crate::schema::is_keyword;
use crate::types::Type;

/// An object type with the types of its fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ObjectType {
    /// The full name, such as `kubernetes.UserInfo`.
    pub name: Arc<str>,
    /// The types of the fields by their names as expressions write them.
    pub fields: HashMap<Arc<str>, Type>,
}

impl ObjectType {
    /// An object type of some fields.
    pub fn new(name: &str, fields: impl IntoIterator<Item = (impl Into<Arc<str>>, Type)>) -> Self {
        let fields = fields.into_iter().map(|(field, of)| (field.into(), of)).collect();
        Self { name: name.into(), fields }
    }

    /// The type of a field. A field whose name is a keyword is also found under its escaped name.
    ///
    /// Source: apiserver pkg/cel/types.go, `FindStructFieldType`.
    pub(crate) fn field(&self, name: &str) -> Option<&Type> {
        self.fields
            .get(name)
            .or_else(|| is_keyword(name).then(|| self.fields.get(format!("__{name}__").as_str())).flatten())
    }
}

/// A check of a tree whose types are right.
///
/// Source: cel-go cel/validator.go, ext/formatting.go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Validator {
    /// Constant arguments of `duration` are durations.
    Duration,
    /// Constant arguments of `timestamp` are timestamps.
    Timestamp,
    /// Constant first arguments of `matches` are regular expressions.
    Matches,
    /// The elements of a list literal, the keys and the values of a map literal have one type.
    HomogeneousLiterals,
    /// Constant targets of `format` fit their arguments.
    StringFormat,
}

/// Everything that is declared.
#[derive(Clone, Debug)]
pub(crate) struct Declarations {
    /// The name within which other names are searched first, such as `a.b`; mostly empty.
    pub(crate) container: Arc<str>,
    pub(crate) variables: HashMap<Arc<str>, Type>,
    /// Names of types and what they name.
    pub(crate) types: HashMap<Arc<str>, NamedType>,
    pub(crate) objects: HashMap<Arc<str>, Arc<ObjectType>>,
    /// Names of constants.
    pub(crate) constants: HashMap<Arc<str>, i64>,
    pub(crate) functions: HashMap<Arc<str>, Arc<Function>>,
    /// The first part of every qualified name of a variable, type or constant.
    qualified: HashSet<Box<str>>,
    pub(crate) macros: Vec<MacroSet>,
    pub(crate) validators: Vec<Validator>,
    /// Whether `<`, `<=`, `>` and `>=` compare numbers of different types.
    pub(crate) compare_across_types: bool,
}

/// What the name of a type names.
#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    /// The type of struct literals.
    pub(crate) of: Type,
    /// The same where the name is used as a value: with parameters for lists and maps.
    pub(crate) as_value: Type,
    /// Whether the name has a value at run time. For others, a program cannot be made.
    pub(crate) has_value: bool,
}

/// What a name means.
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
        };
        crate::well_known::declare(&mut it);
        it
    }

    pub(crate) fn add_variable(&mut self, name: &str, of: Type) {
        self.remember_qualified(name);
        self.variables.insert(name.into(), of);
    }

    /// Adds a name of a type that is also a value.
    pub(crate) fn add_type(&mut self, name: &str, of: Type) {
        self.add_named(name, NamedType { as_value: of.clone(), of, has_value: true });
    }

    /// Adds a name of a type that is no value.
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

    /// Adds the overloads of a function to those of the same name; the same identifier replaces an overload.
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

    /// Whether a name that begins with this part can be that of a variable, type or constant.
    pub(crate) fn can_qualify(&self, first: &str) -> bool {
        !self.container.is_empty() || self.qualified.contains(first.trim_start_matches('.'))
    }

    /// The full names that a name can stand for, the first that exists being meant.
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

    /// The full name and the meaning of a name that no comprehension declares.
    pub(crate) fn global(&self, name: &str) -> Option<(Arc<str>, Meaning)> {
        self.candidates(name, |name| {
            if let Some((name, of)) = self.variables.get_key_value(name) {
                return Some((Arc::clone(name), Meaning::Variable(of.clone())));
            }
            if let Some((name, named)) = self.types.get_key_value(name) {
                return Some((Arc::clone(name), Meaning::Type(named.clone())));
            }
            let (name, value) = self.constants.get_key_value(name)?;
            Some((Arc::clone(name), Meaning::Constant(*value)))
        })
    }

    /// The full name and the type that the name of a struct literal means.
    pub(crate) fn struct_type(&self, name: &str) -> Option<(Arc<str>, Type)> {
        self.candidates(name, |name| {
            self.types.get_key_value(name).map(|(name, named)| (Arc::clone(name), named.of.clone()))
        })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.candidates(name, |name| self.functions.get(name.strip_prefix('.').unwrap_or(name)))
    }
}

/// Whether an overload compares numbers of different types.
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
