//! Computes the answers of the crate `kubernetes-cel` to rules of custom resources.
//!
//! The answers have the format of the Go program `tests/cel/oracle`.
//!
//! The tests of `kubernetes-cel` also compile this file.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use kubernetes_cel::declared_type::{DeclaredType, with_declared_type};
use kubernetes_cel::environment::Environment;
use kubernetes_cel::kubernetes::{Version, environment_at};
use kubernetes_cel::schema::Schema;
use kubernetes_cel::types::Type;
use kubernetes_cel::value::Value;
use serde_json::{Map, Value as Json};

use super::answer::{Answer, Question};
use super::candidate::{evaluated, refused};

/// A schema in `tests/cel/schemas.json`, with the inputs for compiling and evaluating its rules.
struct Rules {
    schema: Schema,
    declared: DeclaredType,
    environment: Environment,
    documents: Map<String, Json>,
}

/// The schemas with their documents, by schema name.
pub(crate) static SCHEMAS: LazyLock<Map<String, Json>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../cel/schemas.json")).unwrap_or_default());

/// The schemas whose rules the crate can compile. Questions about other schemas are rejected.
static RULES: LazyLock<BTreeMap<&str, Rules>> = LazyLock::new(|| {
    SCHEMAS.iter().filter_map(|(name, description)| Some((name.as_str(), Rules::new(description)?))).collect()
});

impl Rules {
    fn new(description: &Json) -> Option<Self> {
        let schema = Schema::from_json(&description["schema"]).ok()?;
        let schema = if description["root"] == true { schema.of_resource() } else { schema };
        let declared = schema.declared_type()?;
        let base = environment_at(Version::new(1, 37));
        let environment = with_declared_type(base, &declared, "selfType", &["self", "oldSelf"]);
        let documents = description["documents"].as_object()?.clone();
        Some(Self { schema, declared, environment, documents })
    }
}

/// Returns the crate's answer to a rule of a schema.
pub(crate) fn answer(question: &Question, schema: &str) -> Answer {
    let document = question.context.as_deref().unwrap_or("usual");
    let found = RULES.get(schema).and_then(|rules| Some((rules, rules.documents.get(document)?)));
    let answer =
        match found.map(|(rules, document)| (rules, document, rules.environment.compile(&question.expr))) {
            None => Answer { failure: Some("no such schema or document".to_owned()), ..Answer::default() },
            Some((_, _, Err(error))) => refused(&question.expr, &error),
            Some((rules, document, Ok(program))) => {
                let members = document.as_object().into_iter().flatten();
                let variables: HashMap<&str, Value<'_>> = members
                    .map(|(name, value)| (name.as_str(), Value::from_structured(value, &rules.schema)))
                    .collect();
                let is_rule = *program.result_type() == Type::Bool;
                let answer = evaluated(&rules.environment, &program, &variables, &rules.declared);
                let refused = (!is_rule).then(|| "cel expression must evaluate to a bool".to_owned());
                Answer { compile_error: refused, ..answer }
            }
        };
    Answer {
        expr: question.expr.clone(),
        schema: question.schema.clone(),
        context: question.context.clone(),
        ..answer
    }
}
