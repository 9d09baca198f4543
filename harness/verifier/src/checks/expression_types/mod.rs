//! Finds fields in expressions that the objects of the matched kinds cannot have, and operands of wrong types.
//!
//! Like the type checking of kube-controller-manager, the expressions are compiled with the types of the kinds. Values
//! whose type in CEL depends on the object or on its encoding, such as quantities and times, are `dyn`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use kubernetes_admission::attributes::GroupVersionKind;
use kubernetes_admission::config::Rule;
use kubernetes_api_server::ClusterFixture;
use kubernetes_cel::Issue;
use kubernetes_cel::environment::{CompileError, Environment, ObjectType};
use kubernetes_cel::kubernetes::{
    Expressions, RELEASE, Variables, environment, with_admission_variables, with_patch_types,
};
use kubernetes_cel::types::Type;
use kubernetes_types::schema::{Field, Form, Kind, MESSAGES, Message, Shape, Type as GoType};
use serde_json::Value;

use super::match_conditions::CORRECT_NAME;
use super::matched_kinds::{kinds_of, top_level_fields};
use crate::check::{Severity, Violation};
use crate::operand_types;
use crate::similar_name::most_similar;

/// The variables and functions of all expressions of policies and match conditions.
static DECLARED: LazyLock<Environment> = LazyLock::new(|| {
    let variables = Variables { params: true, authorizer: true };
    let declared = environment(RELEASE, Expressions::Stored);
    with_patch_types(with_admission_variables(declared, variables))
});

/// The beginning of the compile error about operands without an overload.
const NO_OVERLOAD: &str = "found no matching overload for '";

/// The operators and functions that fail at run time if they have no overload for their operands.
const STRICT: [&str; 14] = [
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_+_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "size",
    "startsWith",
    "endsWith",
    "contains",
    "matches",
];

/// The types of operands whose values always have that type at run time.
const SCALARS: [&str; 5] = ["bool", "double", "int", "string", "uint"];

/// The advice about operands of a wrong type.
const USE_EXPECTED_TYPE: &str = "Use values of the types that the operator or function expects.";

/// The variable with the variables of a policy, and the name of its type.
const VARIABLES: &str = "variables";

/// The name of the type for objects of kinds that rules do not name.
const COMMON: &str = "object#";

/// The types of the kinds that rules match.
pub(super) struct MatchedTypes {
    kinds: Vec<DeclaredKind>,
}

/// A kind whose type is declared for the variables `object` and `oldObject`.
struct DeclaredKind {
    kind: String,
    environment: Environment,
    types: BTreeMap<String, ObjectFields>,
    /// The types of the variables of a policy.
    variables: Vec<(Arc<str>, Type)>,
}

/// The fields of a declared object type.
struct ObjectFields {
    /// The name of the type in messages.
    label: String,
    fields: Vec<String>,
    /// Whether some objects of the type may have other fields.
    is_open: bool,
}

/// A field that an expression reads and that no object of the matched kinds has.
pub(super) struct UndefinedField {
    /// The name of the type that does not have the field.
    object: String,
    field: String,
    /// The field of the type whose name is similar.
    similar: Option<String>,
    /// Whether the expression tests whether the field exists.
    is_tested: bool,
}

impl UndefinedField {
    /// Returns whether the field has the name `key`.
    pub(super) fn is_named(&self, key: &str) -> bool {
        self.field == key
    }
}

/// Names the type, the field, and the similar field.
impl std::fmt::Display for UndefinedField {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { object, field, similar, .. } = self;
        write!(f, "{object} does not have a field {field}")?;
        similar.iter().try_for_each(|similar| write!(f, " (did you mean {similar}?)"))
    }
}

impl MatchedTypes {
    /// Returns the types of the kinds that `rules` match, or `None` without rules.
    ///
    /// If the rules have a `*` or can match unknown kinds, the type has the fields that all objects have, such as
    /// `metadata`.
    pub(super) fn new<'a>(
        rules: impl IntoIterator<Item = &'a Rule>,
        cluster_fixture: &ClusterFixture,
    ) -> Option<Self> {
        let rules: Vec<&Rule> = rules.into_iter().collect();
        if rules.is_empty() {
            return None;
        }
        let named: Option<Vec<Vec<GroupVersionKind>>> =
            rules.iter().map(|rule| kinds_of(rule, cluster_fixture)).collect();
        let declared = named.and_then(|named| {
            let mut kinds = named.concat();
            kinds.sort();
            kinds.dedup();
            kinds.iter().map(|kind| DeclaredKind::new(kind, cluster_fixture)).collect()
        });
        let kinds = declared.filter(|kinds: &Vec<DeclaredKind>| !kinds.is_empty());
        Some(Self { kinds: kinds.unwrap_or_else(|| vec![DeclaredKind::common(&rules, cluster_fixture)]) })
    }

    /// Declares a variable of the policy for the expressions that are checked later.
    pub(super) fn declare_variable(&mut self, name: &str, text: &str) {
        for kind in &mut self.kinds {
            kind.declare_variable(name, text);
        }
    }

    /// Returns the compile errors of an expression for each of the kinds.
    fn issues(&self, text: &str) -> Vec<Vec<Issue>> {
        self.kinds.iter().map(|kind| kind.issues(text)).collect()
    }

    /// Returns the fields of an expression that none of the kinds has.
    pub(super) fn undefined(&self, text: &str) -> Vec<UndefinedField> {
        self.undefined_in(&self.issues(text))
    }

    /// Returns the fields that none of the kinds has, from the compile errors of an expression for each kind.
    fn undefined_in(&self, issues: &[Vec<Issue>]) -> Vec<UndefinedField> {
        let (Some(first), Some((issues, others))) = (self.kinds.first(), issues.split_first()) else {
            return Vec::new();
        };
        let mut found: Vec<UndefinedField> = Vec::new();
        for issue in issues {
            let is_same =
                |other: &Issue| (other.position, &other.message) == (issue.position, &issue.message);
            let Some(undefined) = &issue.undefined_field else { continue };
            let Some(object) = first.types.get(&*undefined.object) else { continue };
            if !others.iter().all(|issues| issues.iter().any(is_same)) {
                continue;
            }
            let (label, field) = (&object.label, &*undefined.field);
            if let Some(known) = found.iter_mut().find(|known| known.object == *label && known.field == field)
            {
                known.is_tested |= undefined.is_tested;
                continue;
            }
            let similar = most_similar(field, object.fields.iter().map(String::as_str));
            if object.is_open && similar.is_none() {
                continue;
            }
            found.push(UndefinedField {
                object: label.clone(),
                field: field.to_owned(),
                similar: similar.map(str::to_owned),
                is_tested: undefined.is_tested,
            });
        }
        found
    }

    /// Returns the names of the kinds.
    fn kinds(&self) -> String {
        let kinds: Vec<&str> = self.kinds.iter().map(|kind| kind.kind.as_str()).collect();
        kinds.join(" or ")
    }

    /// Returns the findings about an expression. An expression that fails has the consequence `follows`.
    pub(super) fn violations(&self, text: &str, follows: &str) -> Vec<Violation> {
        let violation = |undefined: UndefinedField| {
            let field = &undefined.field;
            let (effect, severity) = if undefined.is_tested {
                (
                    format!(
                        "no {} has it, so `has()` is always false and `.?` never has a value",
                        self.kinds()
                    ),
                    Severity::Warning,
                )
            } else {
                (format!("reading it fails with `no such key: {field}`, and {follows}"), Severity::Error)
            };
            Violation::new(format!("reads the unknown field {field}"), format!("{undefined}: {effect}"))
                .with_severity(severity)
                .with_help(CORRECT_NAME)
        };
        let of_operands = |issue: &Issue| {
            let help = operand_types::advice(&issue.message);
            let help = help.map_or(Cow::Borrowed(USE_EXPECTED_TYPE), Cow::from);
            let message =
                format!("{}: evaluating it fails with `no such overload`, and {follows}", issue.message);
            Violation::new("wrong operand types", message).with_severity(Severity::Error).with_help(help)
        };
        let issues = self.issues(text);
        let undefined = self.undefined_in(&issues).into_iter().map(violation);
        undefined.chain(wrong_operands(&issues).map(of_operands)).collect()
    }
}

impl DeclaredKind {
    /// Declares a type with the fields that all objects have, and those that some object has that the rules match.
    fn common(rules: &[&Rule], cluster_fixture: &ClusterFixture) -> Self {
        let known = top_level_fields(rules, cluster_fixture);
        let is_open = known.is_none();
        let names = known.unwrap_or_default().into_iter();
        let mut fields: Vec<(String, Type)> = names
            .filter(|name| !["apiVersion", "kind", "metadata"].contains(name))
            .map(|name| (name.to_owned(), Type::Dyn))
            .collect();
        let mut declarations = Declarations::default();
        if let GoType::Object(metadata) = GoType::for_metadata() {
            fields.push(("metadata".to_owned(), declarations.message(metadata)));
        }
        declarations.object(COMMON, "a matched object", fields);
        if let Some(object) = declarations.types.get_mut(COMMON) {
            object.is_open = is_open;
        }
        Self::declared("matched object", &Type::object(COMMON), declarations)
    }

    fn new(kind: &GroupVersionKind, cluster_fixture: &ClusterFixture) -> Option<Self> {
        let mut declarations = Declarations::default();
        let of = match MESSAGES.of_kind(kind) {
            Some(id) => declarations.message(MESSAGES.get(id)),
            None => declarations.custom_resource(&cluster_fixture.schema_of(kind)?, &kind.kind),
        };
        Some(Self::declared(&kind.kind, &of, declarations))
    }

    /// Declares `object` and `oldObject` with the type `of`.
    fn declared(kind: &str, of: &Type, declarations: Declarations) -> Self {
        let objects = declarations.objects.into_iter();
        let environment = objects.fold(DECLARED.clone(), Environment::with_object);
        let environment = ["object", "oldObject"]
            .into_iter()
            .fold(environment, |environment, name| environment.with_variable(name, of.clone()));
        Self {
            kind: kind.to_owned(),
            environment: with_policy_variables(environment, &[]),
            types: declarations.types,
            variables: Vec::new(),
        }
    }

    fn declare_variable(&mut self, name: &str, text: &str) {
        let of = self.environment.type_of(text).unwrap_or(Type::Dyn);
        self.variables.push((name.into(), of));
        self.environment = with_policy_variables(self.environment.clone(), &self.variables);
    }

    fn issues(&self, text: &str) -> Vec<Issue> {
        match self.environment.type_of(text) {
            Err(CompileError::Invalid(report)) => report.issues,
            Ok(_) | Err(_) => Vec::new(),
        }
    }
}

/// Returns the compile errors about scalar operands without an overload that the expression has for each of the kinds.
///
/// These are also errors at run time. Others are not: values of different types are unequal, the items of a list can have any
/// type, and an object is a map.
fn wrong_operands(issues: &[Vec<Issue>]) -> impl Iterator<Item = &Issue> {
    let (first, others) =
        issues.split_first().map_or((&[][..], &[][..]), |(first, others)| (&first[..], others));
    let is_wrong = |issue: &Issue| is_wrong_for_scalars(&issue.message);
    let is_wrong_at =
        move |issues: &Vec<Issue>, at| issues.iter().any(|other| is_wrong(other) && other.position == at);
    first.iter().filter(move |issue| {
        is_wrong(issue) && others.iter().all(|issues| is_wrong_at(issues, issue.position))
    })
}

/// Returns whether a compile error is about an operator or function that fails at run time for these operands.
fn is_wrong_for_scalars(message: &str) -> bool {
    let Some((function, rest)) =
        message.strip_prefix(NO_OVERLOAD).and_then(|rest| rest.split_once("' applied to '"))
    else {
        return false;
    };
    let mut operands = rest.split(['(', ')', ',', '.', ' ', '\'']).filter(|operand| !operand.is_empty());
    STRICT.contains(&function) && operands.all(|operand| SCALARS.contains(&operand))
}

/// Declares `variables`, whose fields have the types of the expressions.
fn with_policy_variables(environment: Environment, variables: &[(Arc<str>, Type)]) -> Environment {
    let object = ObjectType::new(VARIABLES, variables.iter().cloned());
    environment.with_object(object).with_variable(VARIABLES, Type::object(VARIABLES))
}

/// The object types of a kind.
#[derive(Default)]
struct Declarations {
    /// The Go types whose fields are declared. The position is part of the name of the type.
    messages: Vec<&'static Message>,
    objects: Vec<ObjectType>,
    types: BTreeMap<String, ObjectFields>,
}

impl Declarations {
    /// Declares an object type, with `apiVersion` and `kind`.
    fn object(&mut self, name: &str, label: &str, mut fields: Vec<(String, Type)>) {
        fields.extend(["apiVersion", "kind"].map(|field| (field.to_owned(), Type::Dyn)));
        let names = fields.iter().map(|(field, _)| field.clone()).collect();
        let fields_of = ObjectFields { label: label.to_owned(), fields: names, is_open: false };
        self.types.insert(name.to_owned(), fields_of);
        self.objects.push(ObjectType::new(name, fields));
    }

    /// Returns the type of a Go struct, and declares the struct and its fields.
    fn message(&mut self, message: &'static Message) -> Type {
        if message.form == Form::Value || message.members().is_empty() {
            return Type::Dyn;
        }
        let known = self.messages.iter().position(|known| std::ptr::eq(*known, message));
        let name = format!("{}#{}", message.name, known.unwrap_or(self.messages.len()));
        if known.is_none() {
            self.messages.push(message);
            let members = message.members().iter();
            let fields = members.map(|field| (field.name.to_owned(), self.field(field))).collect();
            self.object(&name, message.name, fields);
        }
        Type::object(&name)
    }

    fn field(&mut self, field: &Field) -> Type {
        let of = match field.kind {
            Kind::Message(id) => self.message(MESSAGES.get(id)),
            Kind::String => Type::String,
            Kind::Bool => Type::Bool,
            Kind::Int32 | Kind::Int64 => Type::Int,
            Kind::Double
            | Kind::Bytes
            | Kind::Json
            | Kind::Quantity
            | Kind::Time
            | Kind::MicroTime
            | Kind::IntOrString => Type::Dyn,
        };
        match field.shape {
            Shape::Plain | Shape::Optional => of,
            Shape::List => Type::list(of),
            Shape::Map => Type::map(Type::String, of),
        }
    }

    /// Returns the type of a custom resource with a structural schema.
    fn custom_resource(&mut self, schema: &Value, kind: &str) -> Type {
        let GoType::Object(metadata) = GoType::for_metadata() else { return Type::Dyn };
        let metadata = ("metadata".to_owned(), self.message(metadata));
        self.schema(schema, kind, Some(metadata))
    }

    /// Returns the type of the values at `path` of a custom resource.
    ///
    /// `further` is a field that the schema need not declare.
    fn schema(&mut self, schema: &Value, path: &str, further: Option<(String, Type)>) -> Type {
        let is_set = |extension: &str| schema[extension] == true;
        if ["preserve-unknown-fields", "embedded-resource"]
            .iter()
            .any(|it| is_set(&format!("x-kubernetes-{it}")))
        {
            return Type::Dyn;
        }
        match schema["type"].as_str() {
            Some("array") => Type::list(self.schema(&schema["items"], path, None)),
            Some("object") => match (&schema["additionalProperties"], schema["properties"].as_object()) {
                (Value::Null, Some(properties)) => {
                    let properties = properties
                        .iter()
                        .filter(|(name, _)| further.as_ref().is_none_or(|(further, _)| further != *name));
                    let mut fields: Vec<(String, Type)> = properties
                        .map(|(name, property)| {
                            (name.clone(), self.schema(property, &format!("{path}.{name}"), None))
                        })
                        .collect();
                    fields.extend(further);
                    let name = format!("{path}#");
                    self.object(&name, path, fields);
                    Type::object(&name)
                }
                (values @ Value::Object(_), _) => Type::map(Type::String, self.schema(values, path, None)),
                _ => Type::Dyn,
            },
            // A nullable value may be null, and a value with a format may have another type in CEL.
            Some(_) if schema["nullable"] == true || schema["format"].is_string() => Type::Dyn,
            Some("string") => Type::String,
            Some("integer") => Type::Int,
            Some("boolean") => Type::Bool,
            _ => Type::Dyn,
        }
    }
}
