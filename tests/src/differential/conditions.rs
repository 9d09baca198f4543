//! Generates random match conditions: valid conditions, and conditions that a server rejects.

use serde_json::{Value, json};

use super::expressions::{boolean, check, number, text};
use super::situation::Generator;

/// The maximum nesting depth of `&&`, `||`, `!`, and `? :`.
const MAX_DEPTH: usize = 2;
/// The possible numbers of conditions in one webhook, with their weights.
const COUNT_WEIGHTS: [(usize, usize); 4] = [(50, 1), (28, 2), (14, 3), (8, 4)];

/// Returns valid conditions for a webhook.
pub(crate) fn conditions(generator: &mut Generator<'_>) -> Value {
    if generator.random.chance(9) {
        return expensive(generator);
    }
    let count = generator.random.weighted(&COUNT_WEIGHTS);
    named((0..count).map(|_| condition(generator)))
}

/// Returns conditions for a webhook. A server rejects some of them.
pub(crate) fn doubtful(generator: &mut Generator<'_>) -> Value {
    let count = generator.random.weighted(&COUNT_WEIGHTS);
    let expressions: Vec<String> = (0..count)
        .map(|_| if generator.random.chance(30) { invalid(generator) } else { condition(generator) })
        .collect();
    let mut conditions = named(expressions.into_iter());
    if generator.random.chance(12) {
        let wrong = generator.random.one_of(&[
            json!({"name": "c0", "expression": "true"}),
            json!({"name": "c0", "expression": "false"}),
            json!({"name": "", "expression": "true"}),
            json!({"name": "no name", "expression": "true"}),
            json!({"name": "a/b", "expression": " "}),
            json!({"name": "none", "expression": ""}),
        ]);
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.push(wrong);
        }
    }
    conditions
}

fn named(expressions: impl Iterator<Item = String>) -> Value {
    expressions
        .enumerate()
        .map(|(number, expression)| json!({"name": format!("c{number}"), "expression": expression}))
        .collect()
}

/// Returns four conditions whose total cost may exceed the limit for a webhook.
fn expensive(generator: &mut Generator<'_>) -> Value {
    let mut expressions: Vec<String> = (0..4)
        .map(|_| {
            let (one, other) = (check(generator), check(generator));
            let operator = generator.random.one_of(&["&&", "&&", "||", "!="]);
            format!("({one}.allowed()) {operator} ({other}.allowed())")
        })
        .collect();
    if generator.random.chance(40) {
        let place = generator.random.below(4);
        expressions[place] = condition(generator);
    }
    named(expressions.into_iter())
}

fn condition(generator: &mut Generator<'_>) -> String {
    let depth = generator.random.weighted(&[(50, 0), (30, 1), (20, MAX_DEPTH)]);
    match generator.random.below(100) {
        0..=13 => "true".to_owned(),
        14..=16 => "false".to_owned(),
        17..=21 => costly(generator),
        22..=25 => {
            // Compiled without the blanks when it is accepted, and with them when it is evaluated.
            let expression = boolean(generator, depth);
            let (before, after) = generator.random.one_of(&[
                (" ", ""),
                ("\n", "\n"),
                ("", " // why\n"),
                ("\u{c}", "\t"),
                ("\u{a0}", ""),
                ("", "\u{b}"),
                ("\u{2003}", "\u{85}"),
            ]);
            format!("{before}{expression}{after}")
        }
        _ => boolean(generator, depth),
    }
}

/// Returns an expression whose cost is near the limit, or a loop.
fn costly(generator: &mut Generator<'_>) -> String {
    match generator.random.below(4) {
        0 | 1 => {
            let checks: Vec<String> = (0..3).map(|_| format!("{}.allowed()", check(generator))).collect();
            checks.join(" && ")
        }
        2 => {
            let many = generator.random.between(2, 40);
            format!(
                "lists.range({many}).all(i, lists.range(20).exists(j, i + j > {}))",
                generator.random.below(30)
            )
        }
        _ => {
            let check = check(generator);
            format!("[1, 2, 3, 4].all(i, {check}.allowed() || i < {})", generator.random.between(1, 5))
        }
    }
}

/// Returns an expression that a server usually rejects.
fn invalid(generator: &mut Generator<'_>) -> String {
    let (condition, text, number) = (boolean(generator, 1), text(generator), number(generator));
    match generator.random.below(24) {
        0..=5 => mistaken(generator, &condition),
        6 => format!("{condition} &&"),
        7 => format!("({condition}"),
        8 => text,
        9 => number,
        10 => format!("{text} + {number} == \"\""),
        11 => format!("has({text})"),
        12 => format!("{text}.nope()"),
        13 => format!("{number} == {text}"),
        14 => format!("({condition}) ? 1 : \"a\""),
        15 => format!("{condition} && none.of == \"these\""),
        16 => format!("request.nope == {text}"),
        _ => generator
            .random
            .one_of(&[
                "params == null",
                "variables.x == 1",
                "request.uid == \"\"",
                "request.object == null",
                "namespaceObject.metadata.uid == \"\"",
                "int(\"x\") == 1",
                "1 / 0 == 1",
                "object.x.matches(\"(\")",
                "duration(\"x\") == duration(\"1s\")",
                "[1, 2].includes(1)",
                "[1, \"a\"].size() == 2",
                "authorizer",
                "authorizer.requestResource.check(\"get\")",
                "request.userInfo.groups == [1]",
            ])
            .to_owned(),
    }
}

/// Returns `text` with a typo: one letter is removed, duplicated, or replaced.
fn mistaken(generator: &mut Generator<'_>, text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let place = generator.random.below(letters.len());
    let what = generator.random.below(3);
    let other = generator.random.one_of(&['(', ')', '"', '.', '&', 'a', '1', ' ', '[', '$']);
    let changed = letters.iter().enumerate().flat_map(|(index, letter)| match (index == place, what) {
        (false, _) => vec![*letter],
        (true, 0) => Vec::new(),
        (true, 1) => vec![*letter, *letter],
        (true, _) => vec![other],
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kubernetes_cel::kubernetes::{
        Expressions, Variables, Version, environment, with_admission_variables,
    };

    use super::*;

    #[test]
    fn conditions_of_webhooks_compile_and_some_of_the_doubtful_do_not() {
        let variables = Variables { params: false, authorizer: true };
        let release = environment(Version::new(1, 37), Expressions::New);
        let environment = with_admission_variables(release, variables);
        let none = BTreeSet::new();
        let mut refused = 0;
        for number in 0..1000 {
            let mut generator = Generator::new(1, number, &none);
            for condition in conditions(&mut generator).as_array().unwrap() {
                let expression = condition["expression"].as_str().unwrap().trim();
                if let Err(error) = environment.compile(expression) {
                    panic!("situation {number}: {error}");
                }
            }
            for condition in doubtful(&mut generator).as_array().unwrap() {
                let expression = condition["expression"].as_str().unwrap().trim();
                refused += usize::from(environment.compile(expression).is_err());
            }
        }
        assert!((200..800).contains(&refused), "{refused}");
    }
}
