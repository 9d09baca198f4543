//! Compile errors and types, as Kubernetes' own packages give them.

use std::sync::Arc;

use crate::environment::{CompileError, Environment, MacroSet, ObjectType, Validator};
use crate::library;
use crate::types::Type;

fn environment() -> Environment {
    let list = Type::list(Type::String);
    let gvk = ["group", "version", "kind"].map(|field| (field, Type::String));
    let gvr = ["group", "version", "resource"].map(|field| (field, Type::String));
    let user = [
        ("username", Type::String),
        ("uid", Type::String),
        ("groups", list.clone()),
        ("extra", Type::map(Type::String, list.clone())),
    ];
    let kind = Type::object("kubernetes.GroupVersionKind");
    let resource = Type::object("kubernetes.GroupVersionResource");
    let request = [
        ("kind", kind.clone()),
        ("resource", resource.clone()),
        ("subResource", Type::String),
        ("requestKind", kind),
        ("requestResource", resource),
        ("requestSubResource", Type::String),
        ("name", Type::String),
        ("namespace", Type::String),
        ("operation", Type::String),
        ("userInfo", Type::object("kubernetes.UserInfo")),
        ("dryRun", Type::Bool),
        ("options", Type::Dyn),
    ];
    let mut it = Environment::standard()
        .with_validator(Validator::HomogeneousLiterals)
        .with_functions(library::url::functions())
        .with_functions(library::regex::library())
        .with_functions(library::authorizer::functions())
        .with_comparisons_across_types()
        .with_macros(MacroSet::Optional)
        .with_type("optional_type", Type::optional(Type::Dyn))
        .with_functions(library::optional::functions())
        .with_functions(library::quantity::functions())
        .with_validator(Validator::Duration)
        .with_validator(Validator::Timestamp)
        .with_validator(Validator::Matches)
        .with_functions(library::strings::library(2))
        .with_validator(Validator::StringFormat)
        .with_functions(library::sets::library())
        .with_functions(library::ip::functions())
        .with_type("net.IP", Type::opaque("net.IP"))
        .with_functions(library::cidr::functions())
        .with_type("net.CIDR", Type::opaque("net.CIDR"))
        .with_functions(library::named_format::functions())
        .with_functions(library::authorizer::selector_functions())
        .with_functions(library::comprehensions::library())
        .with_macros(MacroSet::TwoVariables)
        .with_functions(library::semver::functions())
        .with_functions(library::lists::library())
        .with_macros(MacroSet::SortBy)
        .with_functions(library::kubernetes_lists::library(1));
    for object in [
        ObjectType::new("kubernetes.GroupVersionKind", gvk),
        ObjectType::new("kubernetes.GroupVersionResource", gvr),
        ObjectType::new("kubernetes.UserInfo", user),
        ObjectType::new("kubernetes.AdmissionRequest", request),
        ObjectType::new(
            "kubernetes.Namespace",
            [
                ("metadata", Type::object("kubernetes.NamespaceMetadata")),
                ("spec", Type::object("kubernetes.NamespaceSpec")),
                ("status", Type::object("kubernetes.NamespaceStatus")),
            ],
        ),
    ] {
        it = it.with_object(Arc::new(object));
    }
    for (name, of) in [("duration", Type::Duration), ("timestamp", Type::Timestamp)] {
        it = it.with_type_name(name, of);
    }
    it.with_variable("object", Type::Dyn)
        .with_variable("oldObject", Type::Dyn)
        .with_variable("namespaceObject", Type::object("kubernetes.Namespace"))
        .with_variable("request", Type::object("kubernetes.AdmissionRequest"))
        .with_variable("authorizer", library::authorizer::authorizer())
        .with_variable("authorizer.requestResource", library::authorizer::resource_check())
}

#[test]
fn compile_errors_and_types_are_those_of_kubernetes() {
    let file = std::env::var("CEL_EXPRESSIONS").unwrap_or_else(|_| {
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cel/expressions.jsonl").to_owned()
    });
    let text = std::fs::read_to_string(file).unwrap();
    let environment = environment();
    let (mut count, mut wrong) = (0, 0);
    for line in text.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(expression) = answer["expr"].as_str() else { continue };
        let expected = match (answer["compile_error"].as_str(), answer["type"].as_str()) {
            (Some(error), None) if error.starts_with("program instantiation") => continue,
            (_, Some(of)) => of.to_owned(),
            (Some(error), None) => error.to_owned(),
            (None, None) => continue,
        };
        count += 1;
        let found = match environment.check(expression) {
            Ok(checked) => checked.type_of(checked.ast.root).runtime_text(),
            Err(error @ CompileError::Invalid(_)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        if found != expected {
            wrong += 1;
            println!("{expression:?}\n  expected {expected:?}\n  found    {found:?}");
        }
    }
    println!("{count} expressions, {wrong} wrong");
    assert_eq!(wrong, 0);
}

#[test]
fn syntax_errors_are_those_of_kubernetes() {
    use crate::parser::{self, Syntax};
    use crate::source::{Issues, Source};
    let Ok(file) = std::env::var("CEL_SYNTAX") else { return };
    let macros = [MacroSet::Standard, MacroSet::Optional, MacroSet::TwoVariables, MacroSet::SortBy];
    let text = std::fs::read_to_string(file).unwrap();
    let (mut count, mut kinds, mut texts) = (0, 0, 0);
    for line in text.lines() {
        let answer: serde_json::Value = serde_json::from_str(line).unwrap();
        let Some(expression) = answer["expr"].as_str() else { continue };
        count += 1;
        let source = Source::new(expression);
        let mut issues = Issues::default();
        let parsed = parser::parse(&source, Syntax { macros: &macros }, &mut issues);
        let found = parsed.is_err().then(|| issues.into_report(&source).to_string());
        let expected = answer["err"].as_str();
        if found.is_some() != expected.is_some() {
            kinds += 1;
            println!("KIND {expression:?}\n  expected {expected:?}\n  found    {found:?}");
        } else if found.as_deref() != expected {
            texts += 1;
            println!("TEXT {expression:?}\n  expected {expected:?}\n  found    {found:?}");
        }
    }
    println!("{count} expressions, {kinds} accepted or refused wrongly, {texts} with another text");
}
