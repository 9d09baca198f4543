//! Finds fields in expressions that the objects of the matched kinds cannot have.
//!
//! Like the type checking of kube-controller-manager, the expressions are compiled with the types of the kinds. Values
//! other than objects, lists, and maps are `dyn`, so that only undefined fields are errors.

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
use crate::similar_name::most_similar;

/// The variables and functions of all expressions of policies and match conditions.
static DECLARED: LazyLock<Environment> = LazyLock::new(|| {
    let variables = Variables { params: true, authorizer: true };
    let declared = environment(RELEASE, Expressions::Stored);
    with_patch_types(with_admission_variables(declared, variables))
});

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

    /// Returns the fields of an expression that none of the kinds has.
    pub(super) fn undefined(&self, text: &str) -> Vec<UndefinedField> {
        let Some((first, others)) = self.kinds.split_first() else { return Vec::new() };
        let others: Vec<Vec<Issue>> = others.iter().map(|kind| kind.issues(text)).collect();
        let mut found: Vec<UndefinedField> = Vec::new();
        for issue in first.issues(text) {
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
        self.undefined(text).into_iter().map(violation).collect()
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
        let of = if let Kind::Message(id) = field.kind { self.message(MESSAGES.get(id)) } else { Type::Dyn };
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
            _ => Type::Dyn,
        }
    }
}

#[cfg(test)]
mod tests {
    use kubernetes_admission::config::Scope;
    use serde_json::json;

    use super::*;

    /// Returns the undefined fields of an expression, for rules that match `resources` of the groups.
    fn undefined(groups: &[&str], resources: &[&str], text: &str) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let rule = Rule {
            api_groups: owned(groups),
            resources: owned(resources),
            api_versions: owned(&["v1"]),
            operations: owned(&["*"]),
            scope: Scope::All,
        };
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {"type": "object", "properties": {
                        "size": {"type": "integer"},
                        "parts": {"type": "array", "items": {
                            "type": "object", "properties": {"name": {"type": "string"}},
                        }},
                        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                        "by": {"type": "object", "additionalProperties": {"type": "string"}},
                    }}},
                }}}],
            },
        });
        let cluster_fixture = ClusterFixture::new([&definition]);
        let Some(mut types) = MatchedTypes::new([&rule], &cluster_fixture) else {
            return vec!["?".to_owned()];
        };
        types.declare_variable("containers", "object.spec.template.spec.containers");
        let shown = |found: UndefinedField| {
            let similar = found.similar.map(|similar| format!(", {similar}?")).unwrap_or_default();
            format!("{}.{}{similar}", found.object, found.field)
        };
        types.undefined(text).into_iter().map(shown).collect()
    }

    #[test]
    fn misspelled_field_of_a_built_in_kind_is_undefined() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(undefined(&["apps"], &["deployments"], text), expected, "{text}");
        };
        let replicas = ["DeploymentSpec.replica, replicas?"];
        check("object.spec.replica <= 5", &replicas);
        check("!has(object.spec.replica) || object.spec.replica <= 5", &replicas);
        check("object.spec.?replica.orValue(1) <= 5", &replicas);
        check("oldObject != null && oldObject.spec.replica > 1", &replicas);
        let image = ["Container.imge, image?"];
        check("object.spec.template.spec.containers.all(c, c.imge != 'a')", &image);
        check("variables.containers.exists(c, c.imge == 'a')", &image);
        check("object.metadata.label.a == 'b'", &["ObjectMeta.label, labels?"]);
        check("object.zzz", &["Deployment.zzz"]);
    }

    #[test]
    fn correct_and_unknown_types_are_not_reported() {
        let check = |text: &str| {
            assert!(undefined(&["apps"], &["deployments"], text).is_empty(), "{text}");
        };
        check("object.spec.replicas <= 5 && object.metadata.labels.any == 'a'");
        check("object.metadata.annotations[?'a/b'].orValue('') == object.apiVersion + object.kind");
        check("object.spec.template.spec.containers.all(c, c.resources.limits.cpu.any == 1)");
        check("object.spec.strategy.rollingUpdate.maxSurge == '25%'");
        check("dyn(object).spec.replica == 1");
        check("object.spec == {'replica': 1} || object.spec == oldObject.spec");
        check("params.any.field == 1 && request.namespace != ''");
        let pods =
            "has(object.spec.template) ? object.spec.template.spec.containers : object.spec.containers";
        let both =
            undefined(&["", "apps"], &["pods", "deployments"], &format!("({pods}).all(c, c.image != '')"));
        assert!(both.is_empty(), "{both:?}");
    }

    #[test]
    fn field_of_several_kinds_is_undefined_only_if_no_kind_has_it() {
        let resources = ["deployments", "statefulsets"];
        let found =
            undefined(&["apps"], &resources, "object.spec.serviceName == '' || object.spec.replica == 1");
        assert_eq!(found, ["DeploymentSpec.replica, replicas?"]);
    }

    #[test]
    fn objects_of_unknown_kinds_have_apiversion_kind_and_metadata() {
        for (groups, resources) in [
            (&["*"][..], &["deployments"][..]),
            (&["*"], &["*"]),
            (&["example.com"], &["*"]),
            (&["apps"], &["deployments/scale"]),
            (&["apps", "other.example.com"], &["deployments"]),
            (&["apps"], &["deployments", "others"]),
        ] {
            let check = |text: &str, expected: &[&str]| {
                assert_eq!(undefined(groups, resources, text), expected, "{groups:?} {resources:?} {text}");
            };
            let metadata = ["a matched object.metdata, metadata?"];
            check("object.metdata.name == 'a'", &metadata);
            check("has(oldObject.metdata)", &metadata);
            check("object.metadata.nmae == 'a'", &["ObjectMeta.nmae, name?"]);
            check("object.spec.replica == 1 && object.other.field == 1 && object.kind == 'A'", &[]);
        }
    }

    #[test]
    fn objects_of_all_kinds_of_built_in_groups_have_the_fields_of_these_kinds() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(undefined(&["", "apps"], &["*"], text), expected, "{text}");
        };
        check("object.metdata.name == 'a'", &["a matched object.metdata, metadata?"]);
        check("object.sepc.replicas == 1", &["a matched object.sepc, spec?"]);
        check("object.webhooks.size() == 1", &["a matched object.webhooks"]);
        check("object.data.a == 'b' || object.spec.replica == 1 || object.type == 'Opaque'", &[]);
    }

    #[test]
    fn misspelled_field_of_a_custom_resource_is_undefined() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(undefined(&["example.com"], &["widgets"], text), expected, "{text}");
        };
        check("object.spec.sise > 1", &["Widget.spec.sise, size?"]);
        check("object.spec.parts.all(p, p.nam != '')", &["Widget.spec.parts.nam, name?"]);
        check("object.metadata.nam != ''", &["ObjectMeta.nam, name?"]);
        check("object.spec.any.field == 1 && object.spec.by.field == '' && object.spec.size > 1", &[]);
    }
}
