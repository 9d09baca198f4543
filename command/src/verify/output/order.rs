//! Formats the interactions of mutating webhooks: as lines of text, and as a Mermaid graph for Markdown.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use harness::verify::report::{Interaction, Relation, Report};
use output::OneLine;

use crate::diagnostic::several;

/// The maximum number of fields to name for an interaction.
const MAX_NAMED_FIELDS: usize = 3;
/// The maximum number of interactions in a graph. GitHub does not draw large graphs.
const MAX_EDGES: usize = 100;

/// Appends a line for each interaction.
pub(super) fn lines(text: &mut String, report: &Report) {
    if report.interactions.is_empty() {
        return;
    }
    text.push_str("\nOrder of the mutating webhooks\n");
    for interaction in &report.interactions {
        let Interaction { webhook, other, objects, example, .. } = interaction;
        let does = match interaction.relation {
            Relation::DependsOn => "makes different changes to",
            Relation::Overwrites => "overwrites",
        };
        let _ = writeln!(
            text,
            "  called after {}, {} {does} {} ({}, such as {})",
            OneLine(other),
            OneLine(webhook),
            OneLine(&fields(interaction)),
            several(*objects, "object"),
            OneLine(example)
        );
    }
}

/// Appends a graph with an arrow to each webhook that depends on another or overwrites it.
pub(super) fn graph(text: &mut String, report: &Report) {
    if report.interactions.is_empty() {
        return;
    }
    text.push_str(
        "\n### Order of the mutating webhooks\n\nAn arrow points to a webhook that makes different \
         changes if the other webhook is called first. A dotted arrow points to a webhook that overwrites changes of the \
         other one.\n\n```mermaid\ngraph LR\n",
    );
    let shown = || report.interactions.iter().take(MAX_EDGES);
    let webhooks: BTreeSet<&String> =
        shown().flat_map(|interaction| [&interaction.webhook, &interaction.other]).collect();
    let number = |name: &String| webhooks.range::<String, _>(..name).count();
    for (number, name) in webhooks.iter().enumerate() {
        let _ = writeln!(text, "  w{number}[\"{}\"]", label(name));
    }
    for interaction in shown() {
        let arrow = match interaction.relation {
            Relation::DependsOn => "-->",
            Relation::Overwrites => "-.->",
        };
        let (other, webhook) = (number(&interaction.other), number(&interaction.webhook));
        let _ = writeln!(text, "  w{other} {arrow}|\"{}\"| w{webhook}", label(&fields(interaction)));
    }
    text.push_str("```\n");
    let hidden = report.interactions.len().saturating_sub(MAX_EDGES);
    if hidden > 0 {
        let _ = writeln!(text, "\nThe graph omits {}.", several(hidden, "interaction"));
    }
}

fn fields(interaction: &Interaction) -> String {
    let mut named: Vec<&str> = interaction.fields.iter().take(MAX_NAMED_FIELDS).map(String::as_str).collect();
    let rest = interaction.fields.len().saturating_sub(MAX_NAMED_FIELDS);
    let rest = format!("{rest} more");
    if interaction.fields.len() > MAX_NAMED_FIELDS {
        named.push(&rest);
    }
    match named.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} and {last}", all.join(", ")),
        _ => named.concat(),
    }
}

/// Escapes a text for a quoted Mermaid label: characters that Mermaid or Markdown interpret become entity codes.
fn label(text: &str) -> String {
    let mut label = String::new();
    for letter in text.chars() {
        if letter.is_alphanumeric() || " ./-_,*".contains(letter) {
            label.push(letter);
        } else {
            let _ = write!(label, "#{};", u32::from(letter));
        }
    }
    label
}
