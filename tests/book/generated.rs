//! Generates the reference pages from the command and from the data files in `docs`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use expect_test::expect_file;
use serde::Deserialize;
use serde_json::Value;

use super::source_values::{SourceValues, forms, states};
use super::{read, root, stdout};

/// The maximum length of a cell in the table of differences.
const MAX_CELL_LENGTH: usize = 300;

/// A file in `docs/differences`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    title: String,
    rows: Vec<Row>,
    /// The text below the table.
    notes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// The behavior or error message that a user notices and searches for.
    symptom: String,
    difference: String,
}

/// A group of limits in `docs/data/limits.yaml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limits {
    title: String,
    /// The command whose options change the limits.
    #[serde(default = "serve")]
    command: String,
    rows: Vec<Bound>,
}

fn serve() -> String {
    "serve".to_owned()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    limit: String,
    value: String,
    above: String,
    /// The option that changes the limit.
    flag: Option<String>,
    default: Option<String>,
    /// The constants that set the limit: a file and a name each.
    #[serde(default)]
    constants: Vec<String>,
}

/// Returns a comment about the source of a generated page, followed by `text`.
fn head(source: &str, text: &str) -> String {
    format!("<!-- Written by `just book-pages`; change {source} instead. -->\n{text}")
}

/// Returns the names of the subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("\nCommands:\n") else { return Vec::new() };
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

fn command_section(page: &mut String, words: &[&str]) {
    let help = stdout(&[words, &["--help"]].concat());
    let title = [&["admit"], words].concat().join(" ");
    let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", help.trim_end());
    for name in subcommands(&help) {
        command_section(page, &[words, &[&name]].concat());
    }
}

#[test]
fn the_page_of_the_command_line_is_generated_from_the_help() {
    let mut page = head(
        "the help texts",
        "# Command line\n\nThe help text of each command, as `--help` prints it. `-h` prints a summary.\n",
    );
    command_section(&mut page, &[]);
    expect_file!["../../docs/reference/command-line.md"].assert_eq(&page);
}

#[test]
fn the_page_of_exit_statuses_is_generated_from_the_help() {
    let help = stdout(&["--help"]);
    let statuses = help.split("Exit status:\n").nth(1).expect("the help ends with the exit statuses");
    let mut page = head("`admit --help`", "# Exit status\n\n| Status | Meaning |\n|---|---|\n");
    let mut rows: Vec<(&str, String)> = Vec::new();
    for line in statuses.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.split_once("  "), rows.last_mut()) {
            (Some((status, meaning)), _) if status.parse::<u8>().is_ok() => {
                rows.push((status, meaning.trim().to_owned()));
            }
            (_, Some((_, meaning))) => *meaning = format!("{meaning} {line}"),
            (_, None) => panic!("a row must begin with a status: {line}"),
        }
    }
    assert!(rows.len() > 5, "{help}");
    for (status, meaning) in rows {
        let _ = writeln!(page, "| {status} | {meaning} |");
    }
    page.push_str(
        "
`admit serve` and `admit fakes` run until SIGINT or SIGTERM and then exit with 0. A second signal ends any command immediately, with 130 or
143. `admit run --target cluster` first removes what it deployed, unless a third signal arrives.

The help of [`lint`](command-line.md#admit-lint), [`review`](command-line.md#admit-review), and [`verify`](command-line.md#admit-verify) says what
each status means for that command.
",
    );
    expect_file!["../../docs/reference/exit-status.md"].assert_eq(&page);
}

#[test]
fn the_page_of_steps_is_generated_from_the_steps() {
    let list: Value = serde_json::from_str(&stdout(&["steps", "-o", "json"])).expect("JSON");
    let mut page = head(
        "the steps",
        "# Steps

The steps that features can use, as [`admit steps`](../guide/steps.md) prints them. A step contains parameters in braces:

",
    );
    for (name, values) in list["parameters"].as_object().expect("an object") {
        let _ = writeln!(page, "- `{{{name}}}`: {}", values.as_str().unwrap_or_default());
    }
    let mut section = "";
    for step in list["steps"].as_array().expect("a list") {
        let text = |name: &str| step[name].as_str().unwrap_or_else(|| panic!("{step}: no {name}"));
        if section != text("keyword") {
            section = step["keyword"].as_str().unwrap_or_default();
            let _ = write!(page, "\n## {section}\n");
        }
        let (expression, help, example) = (text("expression"), text("help"), text("example").trim_end());
        let _ = write!(page, "\n### `{expression}`\n\n{help}\n\n```gherkin\n{example}\n```\n");
    }
    expect_file!["../../docs/reference/steps.md"].assert_eq(&page);
}

#[test]
fn the_page_of_limits_is_generated_from_the_data() {
    let groups: Vec<Limits> =
        serde_saphyr::from_str(&read(Path::new("docs/data/limits.yaml"))).expect("a list of limits");
    let mut page = head(
        "docs/data/limits.yaml",
        "# Limits

These limits bound the memory and CPU time of admit, whatever a client, a webhook, or a file sends. *429* is a response `TooManyRequests` with
`Retry-After: 1`, and *501* is the response to everything that admit does not support.
",
    );
    let mut values = SourceValues::default();
    for Limits { title, command, rows } in &groups {
        let _ =
            write!(page, "\n## {title}\n\n| Limit | Value | Above the limit | Option |\n|---|---|---|---|\n");
        for Bound { limit, value, above, flag, default, constants } in rows {
            for constant in constants {
                let expected = values.of(constant);
                let is_stated = forms(expected).iter().any(|form| states(&format!("{limit}: {value}"), form));
                assert!(is_stated, "{limit}: {value}: {constant} is {expected}");
            }
            let option = flag.as_ref().map(|flag| format!("`{flag}`")).unwrap_or_default();
            let _ = writeln!(page, "| {limit} | {value} | {above} | {option} |");
            if let (Some(flag), Some(default)) = (flag, default) {
                assert_eq!(&default_of(command, flag), default, "{command} {flag}");
            }
        }
    }
    expect_file!["../../docs/reference/limits.md"].assert_eq(&page);
}

/// Returns the default value of an option, as stated in the help of its command.
fn default_of(command: &str, flag: &str) -> String {
    let help = stdout(&[command, "--help"]);
    let (_, rest) =
        help.split_once(&format!("{flag} <")).unwrap_or_else(|| panic!("{command} has no {flag}"));
    let (_, rest) = rest.split_once("[default: ").expect("the option has a default");
    rest.split(']').next().unwrap_or_default().to_owned()
}

#[test]
fn the_page_of_differences_is_generated_from_the_data() {
    let mut files: Vec<_> = std::fs::read_dir(root().join("docs/differences"))
        .expect("the folder exists")
        .map(|entry| entry.expect("the entry can be read").path())
        .collect();
    files.sort();
    let mut page = head(
        "docs/differences",
        "# Differences from kube-apiserver

admit implements Kubernetes 1.37.1. If a request needs something that admit does not support, the API server returns HTTP 501 with a message
that says so, and the command exits with status 5. admit does not guess.

Search this page for the symptom that you see. If a test depends on a difference, run it on envtest or on a cluster instead. Rows that begin
with \"As in kube-apiserver\" or \"As with a kube-apiserver alone\" are not differences: they explain symptoms that users look for here.
",
    );
    let mut ids = BTreeSet::new();
    for file in files {
        let Area { title, rows, notes } = serde_saphyr::from_str(&read(&file))
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let _ = write!(page, "\n## {title}\n\n| Symptom | Difference |\n|---|---|\n");
        for Row { id, symptom, difference } in rows {
            for cell in [&symptom, &difference] {
                assert!(
                    cell.chars().count() <= MAX_CELL_LENGTH,
                    "{id}: a cell has more than {MAX_CELL_LENGTH} characters"
                );
            }
            let _ = writeln!(page, "| <a id=\"{id}\"></a>{symptom} | {difference} |");
            assert!(ids.insert(id.clone()), "{id} appears twice");
        }
        if let Some(notes) = notes {
            let _ = write!(page, "\n{notes}");
        }
    }
    expect_file!["../../docs/reference/differences.md"].assert_eq(&page);
}
