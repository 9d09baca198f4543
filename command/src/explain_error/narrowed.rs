//! Narrows the common causes of a failed expression or patch by the error in the message.

use std::sync::LazyLock;

use harness::verify::checks::unknown_metadata_field;
use regex::Regex;

use super::causes::CAUSES;
use super::pattern::pattern;

/// Matches the error of an expression; the error can be that of a variable that the expression uses.
static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"expression '(?P<expression>.*?)' resulted in error: (?:composited variable .* fails to evaluate: )?(?P<problem>.*)",
    )
});

/// Returns the causes that the error in a message leaves, or `None` if it does not rule out any of the usual ones.
///
/// `cause` is the ID of the cause of the message.
pub(super) fn causes(cause: &str, message: &str) -> Option<Vec<String>> {
    if !["policy-expression-failed", "mutating-policy-failed", "condition-failed"].contains(&cause) {
        return None;
    }
    if let Some(found) = EXPRESSION.captures(message) {
        let text = |name| found.name(name).map(|text| text.as_str()).unwrap_or_default();
        return Some(vec![of_expression(text("expression"), text("problem"))]);
    }
    let (_, problem) = message.split_once(" denied request: ")?;
    if let Some(patch) = problem.strip_prefix("JSON Patch: ") {
        let is_it =
            |cause: &&super::causes::Cause| cause.id.starts_with("patch-") && cause.pattern.is_match(patch);
        return CAUSES.iter().find(is_it).map(|cause| {
            cause
                .usually
                .iter()
                .filter(|it| !it.contains("{path}") && !it.contains("{field}"))
                .cloned()
                .collect()
        });
    }
    let apply = problem.strip_prefix("error applying patch: ")?;
    let cause = if apply.contains("may not mutate atomic") {
        "the apply configuration sets an atomic list or map, which only a JSON Patch can change; use patchType JSONPatch"
    } else if apply.contains("duplicate entries for key") {
        "the expression sets a list that has an item twice, for example because the object already has the new item in the \
         second round; set only the new item, because an apply configuration keeps the other items"
    } else {
        "the apply configuration does not fit the kind of the object; correct the field that the message names, or match \
         only kinds that have it"
    };
    Some(vec![cause.to_owned()])
}

fn of_expression(expression: &str, problem: &str) -> String {
    if let Some(rest) = problem.strip_prefix("no such key: ") {
        let is_end = |next: char| next.is_whitespace() || next == ',' || next == '"';
        let key = rest.split(is_end).next().unwrap_or_default();
        let reads = |variable: &str| reads(expression, variable, key);
        if let Some(unknown) = unknown_metadata_field(expression, key) {
            format!("{unknown}; correct the name of the field")
        } else if reads("params") {
            format!(
                "the param does not have the field `{key}`, or params is null because the binding has no paramRef; check \
                 `params != null && has(params.{key})` first"
            )
        } else if reads("oldObject") {
            format!(
                "oldObject is null on CREATE, or it does not have the field `{key}`; check \
                 `oldObject != null && has(oldObject.{key})` first"
            )
        } else if reads("object") {
            format!(
                "the object does not have the field `{key}`, or object is null on DELETE; check \
                 `object != null && has(object.{key})` first"
            )
        } else {
            format!(
                "the expression reads the field `{key}`, which the object does not have: if the name is correct, check the \
                 field with has(), or read it with `.?{key}`"
            )
        }
    } else if problem.ends_with("no such overload") {
        "an operator or function does not accept the types of its operands, such as `>` between a number and a string; \
         `admit lint -c FILE` names the types if the rules match one kind"
            .to_owned()
    } else if problem.contains("cost limit exceeded") {
        "the expression is too expensive; avoid nested loops over lists, or exclude large objects with matchConditions".to_owned()
    } else {
        "a value has an unexpected type or form; check the value before you use it".to_owned()
    }
}

/// Returns whether an expression reads the member `key` of a variable directly.
fn reads(expression: &str, variable: &str, key: &str) -> bool {
    let is_word = |character: char| character.is_alphanumeric() || character == '_' || character == '.';
    let path = format!("{variable}.{key}");
    expression.match_indices(&path).any(|(start, _)| {
        let before = expression.get(..start).and_then(|text| text.chars().next_back());
        let after = expression.get(start + path.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(is_word) && !after.is_some_and(|next| next.is_alphanumeric() || next == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, problem: &str, expected: &str) {
        let message = format!(
            "x is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: expression '{expression}' \
             resulted in error: {problem}"
        );
        let found = causes("policy-expression-failed", &message).unwrap();
        assert!(found.len() == 1 && found[0].contains(expected), "{expression}: {found:?}");
    }

    #[test]
    fn the_variable_that_lacks_the_key_decides() {
        check("object.data.none == 'a'", "no such key: none", "the expression reads the field `none`, which");
        check("object.data.none == 'a'", "no such key: data", "object is null on DELETE");
        check(
            "object.metadata.lables.team == 'a'",
            "no such key: lables",
            "metadata does not have a field lables (did you mean labels?); correct the name of the field",
        );
        check("oldObject.data.a == 'a'", "no such key: data", "oldObject is null on CREATE");
        check("params.data.a == 'a'", "no such key: data", "params is null");
        check(
            "variables.a == 1",
            "composited variable \"a\" fails to evaluate: no such key: b",
            "the field `b`",
        );
        check(
            "int('a') == 1",
            "type conversion error from 'string' to 'int'",
            "a value has an unexpected type",
        );
        check("a == 1", "operation cancelled: actual cost limit exceeded", "too expensive");
    }

    #[test]
    fn a_failed_patch_of_a_policy_has_the_causes_of_a_patch_of_a_webhook() {
        let found = |problem: &str| {
            causes(
                "mutating-policy-failed",
                &format!("policy 'a' with binding 'b' denied request: {problem}"),
            )
        };
        let patch = "JSON Patch: error in add for path: '/spec/containers/5': Unable to access invalid index: 5: invalid index \
                     referenced";
        assert!(found(patch).unwrap()[0].contains("append with the index `-`"));
        let atomic = "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec";
        assert!(found(atomic).unwrap()[0].contains("use patchType JSONPatch"));
        assert_eq!(found("converting (v1.A) to (v2.A): unknown conversion"), None);
    }
}
