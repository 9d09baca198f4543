//! Runs the command lines and files in the README and the book.
//!
//! Each page has its own directory. A block whose first line is a comment with a file name is written to that file. The
//! admit commands in `console` blocks run in page order; `admit serve` and `admit fakes` run until the end of the page.
//! The output of a command must match the output that the page shows below it. If a command needs something that the
//! test does not have (a cluster, a file that the page does not show), only its arguments are checked.

use std::path::{Path, PathBuf};

use super::markdown::{self, Block};
use super::sandbox::{Sandbox, masked, matches};
use super::{pages_in, read, root, run, shell};

/// The options whose values are files that a command reads.
const INPUTS: [&str; 13] = [
    "-f",
    "--filename",
    "--file",
    "-c",
    "--configuration",
    "--configurations",
    "--with",
    "--old",
    "--fakes",
    "--baseline",
    "--record",
    "--request",
    "--admission-control-config-file",
];

/// The options that require a cluster or a kube-apiserver.
const REMOTE: [&str; 3] = ["--target", "--context", "--host"];

/// A command in a `console` block, and the output that the page shows for it.
struct Example<'a> {
    line: usize,
    command: String,
    output: &'a str,
}

/// Splits a block into commands and their outputs. A command begins with `$ `.
fn examples<'a>(block: &Block<'a>) -> Vec<Example<'a>> {
    let mut examples: Vec<Example<'a>> = Vec::new();
    let mut continues = false;
    let mut offset = 0;
    for (index, line) in block.text.split_inclusive('\n').enumerate() {
        offset += line.len();
        let rest = &block.text[offset..];
        let command = line.strip_prefix("$ ");
        match (command, examples.last_mut()) {
            (Some(command), _) => {
                examples.push(Example {
                    line: block.line + index,
                    command: command.to_owned(),
                    output: rest,
                });
            }
            (None, Some(example)) if continues => {
                example.command.push_str(line);
                example.output = rest;
            }
            (None, Some(_)) => continue,
            (None, None) => panic!("line {}: output without a command", block.line + index),
        }
        let end = line.trim_end();
        continues = end.ends_with('\\') || end.ends_with('|');
    }
    let ends: Vec<usize> =
        examples.iter().map(|it| it.output.find("\n$ ").map_or(it.output.len(), |end| end + 1)).collect();
    for (example, end) in examples.iter_mut().zip(ends) {
        example.output = if example.output.starts_with("$ ") { "" } else { &example.output[..end] };
    }
    examples
}

/// How an example is tested.
#[derive(Debug, PartialEq)]
enum Mode {
    /// The command runs until it exits.
    Run,
    /// The command runs until the end of the page.
    Serve,
    /// Only the command's arguments are checked.
    Parse,
}

fn mode(words: &[String], sandbox: &Sandbox) -> Mode {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let has =
        |option: &str| words.iter().any(|word| word == option || word.starts_with(&format!("{option}=")));
    let mut reads = false;
    for word in words.iter().skip(2) {
        if word.starts_with('-') && word != "-" {
            reads = INPUTS.contains(&word.as_str());
        } else if (reads || word.ends_with(".feature")) && !sandbox.has(word) {
            return Mode::Parse;
        }
    }
    if words.iter().any(|word| word.contains('$')) || REMOTE.iter().any(|option| has(option)) {
        return Mode::Parse;
    }
    let runs = match (word(1), word(2)) {
        ("fakes", "deploy") => has("--dry-run"),
        ("fakes", "journal" | "delete") | ("run", "" | "--quiet") => false,
        ("fakes", "list") => true,
        ("fakes" | "serve", _) => return Mode::Serve,
        // The built-in corpus and all checks take too long for a test, and so do all features.
        ("verify", _) => has("--list") || (has("-f") && has("--check")),
        _ => true,
    };
    if runs { Mode::Run } else { Mode::Parse }
}

/// The results of testing the commands on a page.
#[derive(Default)]
struct Tested {
    run: usize,
    parsed: usize,
    /// The page with the actual output of its commands.
    page: String,
    problems: Vec<String>,
}

fn test(path: &Path) -> Tested {
    let page = read(path);
    let mut tested = Tested { page: page.clone(), ..Tested::default() };
    let mut sandbox = Sandbox::new();
    for block in markdown::blocks(&page) {
        // The README shows one feature, without its name.
        let unnamed = (block.language == "gherkin" && path == Path::new("README.md")).then_some("my.feature");
        if let Some(name) = block.file_name().or(unnamed) {
            sandbox.write(name, block.text);
        }
        if block.language == "yaml"
            && block.text.contains("version: 1\n")
            && block.text.contains("\nwebhooks:\n")
            && let Err(error) = fake_webhooks::FakesFile::parse(block.text, "the page")
        {
            tested.problems.push(format!("{}:{}: {error}", path.display(), block.line));
        }
        if block.language == "console" {
            for example in examples(&block) {
                check(path, &example, &mut sandbox, &mut tested);
            }
        }
    }
    tested
}

fn check(path: &Path, example: &Example<'_>, sandbox: &mut Sandbox, tested: &mut Tested) {
    let place = format!("{}:{}", path.display(), example.line);
    let line = shell::parse(&example.command);
    for command in &line.commands {
        let words = &command.words;
        if words.first().is_none_or(|word| word != "admit") {
            continue;
        }
        let arguments = words.get(1..).unwrap_or_default();
        match if line.is_single { mode(words, sandbox) } else { Mode::Parse } {
            Mode::Parse => {
                // The help is printed only if everything before it is valid.
                let words: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
                let output = run(&words);
                if !output.status.success() {
                    tested.problems.push(format!("{place}: {}", String::from_utf8_lossy(&output.stderr)));
                }
                tested.parsed += 1;
            }
            Mode::Serve => {
                sandbox.serve(arguments);
                tested.run += 1;
            }
            Mode::Run => {
                let output = sandbox.run(arguments, command.redirect.as_deref());
                let text = sandbox.shown(&String::from_utf8_lossy(&output.stdout));
                let status = output.status.code();
                if !matches!(status, Some(0 | 1)) {
                    let errors = String::from_utf8_lossy(&output.stderr);
                    tested.problems.push(format!("{place}: exit status {status:?}\n{text}{errors}"));
                } else if !example.output.is_empty() && !matches(&masked(example.output), &masked(&text)) {
                    if std::env::var_os("UPDATE_EXPECT").is_some() && !example.output.contains("…\n") {
                        let old = format!("$ {}{}", example.command, example.output);
                        let new = format!("$ {}{}\n", example.command, text.trim_end());
                        tested.page = tested.page.replacen(&old, &new, 1);
                    } else {
                        tested.problems.push(format!("{place}: the output is now\n{text}"));
                    }
                }
                tested.run += 1;
            }
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(["docs/guide", "docs/concepts"].into_iter().flat_map(pages_in));
    pages
}

#[test]
fn every_command_line_of_the_documentation_works() {
    let mut problems = Vec::new();
    let (mut run, mut parsed) = (0, 0);
    for page in pages() {
        let tested = test(&page);
        run += tested.run;
        parsed += tested.parsed;
        if tested.page != read(&page) {
            std::fs::write(root().join(&page), &tested.page).expect("the page can be written");
        }
        problems.extend(tested.problems);
    }
    assert!(run > 40 && parsed > 30, "only {run} commands were run, and {parsed} parsed");
    assert!(problems.is_empty(), "UPDATE_EXPECT=1 writes new output to the pages\n{}", problems.join("\n"));
}

#[test]
fn unknown_options_are_noticed() {
    assert!(!run(&["run", "--no-such-option", "--help"]).status.success());
    assert!(!run(&["run", "--concurrency", "many", "--help"]).status.success());
    assert!(run(&["run", "--concurrency", "4", "--help"]).status.success());
}

#[test]
fn the_number_of_faults_is_that_of_the_catalog() {
    let count = fake_webhooks::catalog().len();
    for (page, text) in [
        ("docs/concepts/failures.md", format!("lists {count} failures")),
        ("docs/reference/faults.md", format!("{count} ways in which")),
    ] {
        assert!(read(Path::new(page)).contains(&text), "{page} has another number: {text}");
    }
}

#[test]
fn a_block_has_commands_with_their_outputs() {
    let text = "$ admit a \\\n    b\none\ntwo\n$ admit c\n$ admit d\nthree\n";
    let block = Block { language: "console", text, line: 10 };
    let found: Vec<_> = examples(&block).into_iter().map(|it| (it.line, it.command, it.output)).collect();
    assert_eq!(
        found,
        [
            (10, "admit a \\\n    b\n".to_owned(), "one\ntwo\n"),
            (14, "admit c\n".to_owned(), ""),
            (15, "admit d\n".to_owned(), "three\n")
        ]
    );
}
