//! Checks that every step in the features is defined.

use std::fmt::Write as _;
use std::path::Path;

use cucumber::step::Collection;
use gherkin::{Feature, Scenario, Step, StepType};

use crate::Failure;
use crate::steps::world::World;
use crate::steps::{STEPS, StepHelp, parameter};

/// Checks that every step of `features` has exactly one definition, before any scenario runs.
///
/// # Errors
/// Returns one failure that names each scenario without steps, each step without a definition (with the most similar
/// step), and each step with several definitions.
pub(crate) fn check(features: &[Feature], collection: &Collection<World>) -> Result<(), Failure> {
    let mut problems = Vec::new();
    let mut wrong: Vec<WrongStep> = Vec::new();
    for feature in features {
        let path = feature.path.as_deref().unwrap_or(Path::new(""));
        for scenario in scenarios(feature).filter(|scenario| scenario.steps.is_empty()) {
            problems.push(format!(
                "{}:{}:{}: the scenario `{}` has no steps: a line that begins with none of Given, When, Then, And, But \
                 belongs to its description",
                path.display(),
                scenario.position.line,
                scenario.position.col,
                scenario.name
            ));
        }
        for step in steps(feature) {
            let (problem, help) = match collection.find(step) {
                Ok(Some(_)) => continue,
                Ok(None) => undefined(step, &STEPS),
                Err(error) => {
                    (format!("several steps match `{step}`"), format!("\n{}", indented(&error.to_string())))
                }
            };
            let place = format!("{}:{}:{}", path.display(), step.position.line, step.position.col);
            match wrong.iter_mut().find(|known| known.problem == problem) {
                // Steps of a background or an outline occur once in the file.
                Some(known) if known.first == place || known.others.contains(&place) => {}
                Some(known) => known.others.push(place),
                None => wrong.push(WrongStep { problem, help, first: place, others: Vec::new() }),
            }
        }
    }
    problems.extend(wrong.iter().map(|WrongStep { problem, help, first, others }| {
        let also =
            if others.is_empty() { String::new() } else { format!("\n  also at: {}", others.join(", ")) };
        format!("{first}: {problem}{also}{help}")
    }));
    if problems.is_empty() {
        return Ok(());
    }
    problems.push("`admit steps` prints every step".to_owned());
    Err(Failure::usage(problems.join("\n")))
}

/// Returns a warning about scenarios that do not have a `Then` step and therefore pass regardless of the webhooks.
pub(crate) fn unchecked(features: &[Feature]) -> Option<String> {
    let mut places: Vec<String> = Vec::new();
    for feature in features {
        let path = feature.path.as_deref().unwrap_or(Path::new("")).display();
        let checks = |steps: &[Step]| steps.iter().any(|step| step.ty == StepType::Then);
        let background = feature.background.as_ref().is_some_and(|background| checks(&background.steps));
        let rules = feature.rules.iter().flat_map(|rule| {
            let background = rule.background.as_ref().is_some_and(|background| checks(&background.steps));
            rule.scenarios.iter().map(move |scenario| (background, scenario))
        });
        let all = feature.scenarios.iter().map(|scenario| (false, scenario)).chain(rules);
        let unchecked = all.filter(|(rule, scenario)| !background && !rule && !checks(&scenario.steps));
        places.extend(unchecked.map(|(_, scenario)| format!("{path}:{}", scenario.position.line)));
    }
    places.dedup();
    let which = match places.len() {
        0 => return None,
        1 => "1 scenario has no Then step, so it checks nothing".to_owned(),
        count => format!("{count} scenarios have no Then step, so they check nothing"),
    };
    Some(format!("{which}: {}", places.join(", ")))
}

/// A step that has no definition or several definitions, and its locations in the files.
struct WrongStep {
    problem: String,
    /// Additional lines about the problem, each preceded by a line break.
    help: String,
    first: String,
    others: Vec<String>,
}

/// Returns all scenarios, inside and outside of rules, in file order.
fn scenarios(feature: &Feature) -> impl Iterator<Item = &Scenario> {
    feature.scenarios.iter().chain(feature.rules.iter().flat_map(|rule| &rule.scenarios))
}

/// Returns the steps of the backgrounds and scenarios, in file order.
pub(super) fn steps(feature: &Feature) -> impl Iterator<Item = &Step> {
    let rules = feature.rules.iter().flat_map(|rule| {
        let background = rule.background.iter().flat_map(|background| &background.steps);
        background.chain(rule.scenarios.iter().flat_map(|scenario| &scenario.steps))
    });
    let background = feature.background.iter().flat_map(|background| &background.steps);
    background.chain(feature.scenarios.iter().flat_map(|scenario| &scenario.steps)).chain(rules)
}

/// Returns the error message for an undefined step, and a hint about the most similar step, if any.
fn undefined(step: &Step, known: &[StepHelp]) -> (String, String) {
    let keyword = keyword(step.ty);
    let sentence = format!("no step matches `{} {}`", step.keyword.trim(), step.value);
    let Some(nearest) = nearest(keyword, &step.value, known) else { return (sentence, String::new()) };
    let example = nearest.example.lines().next().unwrap_or_default();
    let explained = |name: &str| {
        !["string", "word", "int"].contains(&name) && nearest.expression.contains(&format!("{{{name}}}"))
    };
    let values = parameter::VALUES.iter().filter(|(name, _)| explained(name));
    let values = values.fold(String::new(), |mut text, (name, values)| {
        let _ = write!(text, "\n  {{{name}}}: {values}");
        text
    });
    let hint = if nearest.keyword == keyword {
        String::new()
    } else {
        format!(" (a `{}`, and here it is a `{keyword}`)", nearest.keyword)
    };
    let example = match without_keyword(example) {
        // An expression without parameters is its own example.
        same if same == nearest.expression => String::new(),
        _ => format!("\n  for example: {example}"),
    };
    let quotes = if has_nested_quotes(&step.value, nearest.expression) {
        "\n  if a string contains double quotes, enclose it in single quotes"
    } else {
        ""
    };
    let nearest =
        format!("\n  the nearest: {} {}{hint}{values}{example}{quotes}", nearest.keyword, nearest.expression);
    (sentence, nearest)
}

/// Returns the step that is most similar to `sentence`; among equally similar steps, prefers the same keyword.
fn nearest<'a>(keyword: &str, sentence: &str, known: &'a [StepHelp]) -> Option<&'a StepHelp> {
    if let Some(named) = by_meaning(sentence, known) {
        return Some(named);
    }
    let sentence = shape(&in_words_of_steps(sentence));
    let decided = decision(&sentence);
    known
        .iter()
        .map(|step| {
            let example = without_keyword(step.example.lines().next().unwrap_or_default());
            let likeness =
                likeness(&sentence, &shape(step.expression)).max(likeness(&sentence, &shape(example)));
            let keyword = if step.keyword == keyword { SAME_KEYWORD } else { 0.0 };
            let decision = match (decided, decision(step.expression)) {
                (Some(wanted), Some(found)) if wanted == found => SAME_DECISION,
                (Some(_), Some(_)) => -SAME_DECISION,
                (None, _) | (_, None) => 0.0,
            };
            (step, likeness + keyword + decision)
        })
        .filter(|(_, likeness)| *likeness > TOO_DIFFERENT)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(step, _)| step)
}

/// Returns the step for a sentence whose words are similar to those of a step with another meaning.
fn by_meaning<'a>(sentence: &str, known: &'a [StepHelp]) -> Option<&'a StepHelp> {
    let shape = shape(sentence);
    let words: Vec<&str> = shape.split(' ').collect();
    let expression = match words.as_slice() {
        ["the", "field", "_", ..] => "the object contains:",
        // A step with the kind in words exists only for pods.
        ["a" | "an" | "the", kind, rest @ ..]
            if *kind != "pod" && !["object", "namespace", "_"].contains(kind) =>
        {
            match rest {
                ["is", "created"] | ["_", "is", "created"] => "the object in the file {string} is created",
                ["is", "updated"] | ["_", "is", "updated"] => "the object in the file {string} is updated",
                _ => return None,
            }
        }
        _ => return None,
    };
    known.iter().find(|step| step.expression == expression)
}

/// Returns `sentence` in the words that the steps use, such as `rejected` or `admitted` for a decision.
fn in_words_of_steps(sentence: &str) -> String {
    let word = |word: &str| match word {
        "denied" | "refused" | "forbidden" | "blocked" => "rejected".to_owned(),
        "allowed" | "accepted" => "admitted".to_owned(),
        "sidecar" => "container".to_owned(),
        other => other.to_owned(),
    };
    let sentence = sentence.split(' ').map(word).collect::<Vec<_>>().join(" ");
    let active = [("I create ", "created"), ("I update ", "updated"), ("I delete ", "deleted")];
    let passive =
        |(verb, done): (&str, &str)| sentence.strip_prefix(verb).map(|what| format!("{what} is {done}"));
    if let Some(passive) = active.into_iter().find_map(passive) {
        return passive;
    }
    let namespace = sentence.strip_prefix("a namespace ").or_else(|| sentence.strip_prefix("the namespace "));
    match namespace.and_then(|rest| rest.strip_suffix(" exists")) {
        Some(name) => format!("webhooks are also called in the namespace {name}"),
        None => sentence,
    }
}

/// Returns whether a sentence has more double quotes than the strings of `expression` need.
fn has_nested_quotes(sentence: &str, expression: &str) -> bool {
    sentence.matches('"').count() > 2 * expression.matches("{string}").count() && !sentence.contains('\'')
}

/// Returns the decision about a request that a sentence contains.
fn decision(sentence: &str) -> Option<&'static str> {
    ["rejected", "admitted"].into_iter().find(|decision| sentence.split(' ').any(|word| word == *decision))
}

fn likeness(a: &str, b: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(a, b)
}

/// Returns the sentence with a placeholder for every quoted string, number, and expression parameter.
fn shape(sentence: &str) -> String {
    let mut shape = String::new();
    let mut closing = None;
    for character in sentence.chars() {
        match (closing, character) {
            (Some(end), _) if character == end => closing = None,
            (Some(_), _) => {}
            (None, '"') => (closing, shape) = (Some('"'), shape + "_"),
            (None, '{') => (closing, shape) = (Some('}'), shape + "_"),
            (None, digit) if digit.is_ascii_digit() => {
                if !shape.ends_with('_') {
                    shape.push('_');
                }
            }
            (None, other) => shape.extend(other.to_lowercase()),
        }
    }
    shape
}

fn without_keyword(example: &str) -> &str {
    let example = example.trim();
    ["Given ", "When ", "Then ", "And "]
        .iter()
        .find_map(|keyword| example.strip_prefix(keyword))
        .unwrap_or(example)
}

/// Returns the keyword of a step, even if the step is written with `And`.
pub(crate) fn keyword(ty: StepType) -> &'static str {
    match ty {
        StepType::Given => "Given",
        StepType::When => "When",
        StepType::Then => "Then",
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}

const SAME_KEYWORD: f64 = 0.05;
const SAME_DECISION: f64 = 0.2;
const TOO_DIFFERENT: f64 = 0.45;

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [StepHelp; 3] = [
        StepHelp {
            keyword: "Given",
            expression: "a webhook {string} that denies",
            help: "",
            example: "Given a webhook \"strict\" that denies",
        },
        StepHelp {
            keyword: "When",
            expression: "a pod is created",
            help: "",
            example: "When a pod is created",
        },
        StepHelp {
            keyword: "Then",
            expression: "{string} is called {int} time(s)",
            help: "",
            example: "Then \"strict\" is called 2 times",
        },
    ];

    #[track_caller]
    fn check(keyword: &str, sentence: &str, expected: Option<&str>) {
        assert_eq!(nearest(keyword, sentence, &KNOWN).map(|step| step.expression), expected);
    }

    #[test]
    fn a_sentence_with_a_wrong_letter_is_near_to_the_right_one() {
        check("Given", "a webhok \"other\" that denise", Some("a webhook {string} that denies"));
        check(
            "Then",
            "\"a very long name of a webhook\" is called 3 tims",
            Some("{string} is called {int} time(s)"),
        );
    }

    #[test]
    fn other_words_for_a_decision_find_the_step_about_this_decision() {
        let nearest = |sentence: &str| nearest("Then", sentence, &STEPS).map(|step| step.expression);
        for word in ["rejected", "denied", "refused", "forbidden", "blocked"] {
            let sentence = format!("the request is {word}");
            assert_eq!(nearest(&sentence), Some("the request is rejected with {int}"), "{word}");
            let sentence = format!("the request is {word} with 403 Forbidden");
            assert_eq!(nearest(&sentence), Some("the request is rejected with {int} {word}"), "{word}");
        }
        for word in ["allowed", "accepted"] {
            let sentence = format!("the request is {word}");
            assert_eq!(nearest(&sentence), Some("the request is admitted"), "{word}");
        }
        assert_eq!(nearest("the pod is denied"), Some("the request is rejected with {int}"));
    }

    #[test]
    fn other_words_find_the_step_about_the_same_thing() {
        for (keyword, sentence, expected) in [
            ("Given", "a namespace \"shop\" exists", "webhooks are also called in the namespace {string}"),
            ("Then", "the object has the sidecar \"proxy\"", "the object has the container {string}"),
            ("When", "I create a pod", "a pod is created"),
            ("When", "a deployment is created", "the object in the file {string} is created"),
            ("When", "the deployment \"web\" is updated", "the object in the file {string} is updated"),
            (
                "Then",
                "the field \"spec.containers[0].imagePullPolicy\" is \"Always\"",
                "the object contains:",
            ),
        ] {
            let found = nearest(keyword, sentence, &STEPS).map(|step| step.expression);
            assert_eq!(found, Some(expected), "{sentence}");
        }
    }

    #[test]
    fn double_quotes_in_a_string_are_explained() {
        let help = |sentence: &str| {
            let text = format!("Feature: A\n  Scenario: B\n    Then {sentence}\n");
            let feature = Feature::parse(text, gherkin::GherkinEnv::default()).unwrap();
            undefined(&feature.scenarios[0].steps[0], &STEPS).1
        };
        let advice = "if a string contains double quotes, enclose it in single quotes";
        let shown = help("the message contains \"image tag \"latest\" forbidden\"");
        assert!(shown.contains("the nearest: Then the message contains {string}\n"), "{shown}");
        assert!(shown.ends_with(advice), "{shown}");
        let shown = help("the message contain \"latest\"");
        assert!(!shown.contains(advice), "{shown}");
    }

    #[test]
    fn a_sentence_under_another_keyword_is_found() {
        check("Then", "a pod is created", Some("a pod is created"));
    }

    #[test]
    fn scenarios_without_a_then_step_are_named() {
        let warning = |text: &str| {
            let feature = Feature::parse(text, gherkin::GherkinEnv::default()).unwrap();
            unchecked(&[Feature { path: Some("a.feature".into()), ..feature }])
        };
        let given = "Feature: A\n  Scenario: One\n    Given a namespace\n";
        let other = "  Scenario: Two\n    When a pod is created\n";
        let then = "    Then it exists\n";
        let expected = "1 scenario has no Then step, so it checks nothing: a.feature:2";
        assert_eq!(warning(given).as_deref(), Some(expected));
        let expected = "2 scenarios have no Then step, so they check nothing: a.feature:2, a.feature:4";
        assert_eq!(warning(&format!("{given}{other}")).as_deref(), Some(expected));
        assert_eq!(warning(&format!("{given}{then}")), None);
    }

    #[test]
    fn nothing_is_near_to_an_unrelated_sentence() {
        check("When", "the moon is full of cheese and mice dance", None);
    }
}
