//! Runs the command lines and files in the README and the book.
//!
//! Each page runs in its own directory. A block whose first line is a comment with a file name is written to that
//! file. The admit commands in `console` blocks run in page order; `admit serve` and `admit fakes` run until the end
//! of the page. The output below a command must match. [`fixtures`] provides the files and the webhook of the reader.
//! Commands that need more, such as a cluster, are listed in [`EXCEPTIONS`]; only their arguments are checked.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use super::markdown::{self, Block};
use super::sandbox::{Sandbox, masked, matches};
use super::{fixtures, pages_in, read, root, run, shell};

/// The options whose values are files that a command reads.
const INPUTS: [&str; 14] = [
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
    "--ca-file",
    "--admission-control-config-file",
];

/// The commands that the test does not run, with the reason: whole commands without `admit`, or one of their options.
const EXCEPTIONS: [(&str, &str); 13] = [
    ("--record records", "reads records of requests to a server; tests/review/record.rs runs it"),
    ("--target cluster", "requires a cluster"),
    ("--target envtest", "requires etcd and kube-apiserver"),
    ("--ready-command", "requires a webhook with a second port"),
    ("--rotate-command", "requires commands that renew a certificate and stop the webhook"),
    ("assets --dir $KUBE_API_TEST_DIR/k8s/1.37.1-linux-amd64", "contains a variable of the shell"),
    ("fakes delete", "requires a cluster"),
    ("fakes deploy -f fakes.yaml", "requires a cluster"),
    ("fakes deploy -f timeout.yaml", "requires a cluster"),
    ("fakes journal --follow", "requires a cluster"),
    ("fakes journal --wait 1", "requires a cluster"),
    ("verify merge *.json --sarif verify.sarif", "requires the reports of all shards"),
    ("verify merge -", "requires the logs of all pods of a Job"),
];

/// Returns the position of the exception that applies to a command.
fn exception(command: &str) -> Option<usize> {
    EXCEPTIONS.iter().position(|(text, _)| {
        if text.starts_with("--") { command.contains(text) } else { command == format!("admit {text}") }
    })
}

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

/// Returns whether a command runs until it is stopped.
fn is_server(words: &[String]) -> bool {
    match (words.get(1).map(String::as_str), words.get(2).map(String::as_str)) {
        (Some("fakes"), Some("list" | "deploy")) => false,
        (Some("fakes" | "serve"), _) => true,
        _ => false,
    }
}

/// Returns options that make a command quick: fewer features, or one check.
fn limits(words: &[String]) -> &'static [&'static str] {
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    match words.get(1).map(String::as_str) {
        Some("run")
            if !has(&["--name", "--list"]) && !words.iter().any(|word| word.ends_with(".feature")) =>
        {
            &["--name", "A dry run returns warnings"]
        }
        Some("verify") if !has(&["--check", "--quick", "--list", "--explain"]) => &["--check", "V01"],
        _ => &[],
    }
}

/// Returns the files that a command reads.
fn inputs(words: &[String]) -> Vec<String> {
    let mut inputs = Vec::new();
    let mut reads = false;
    for word in words.iter().skip(2) {
        if word.starts_with('-') && word != "-" {
            reads = INPUTS.contains(&word.as_str());
        } else if (reads || word.ends_with(".feature")) && word != "-" {
            inputs.push(word.clone());
        }
    }
    inputs
}

/// The results of testing the commands on a page.
#[derive(Default)]
struct Tested {
    run: usize,
    /// The places of commands that are not run, with the positions of their exceptions.
    exceptions: Vec<(String, usize)>,
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
    let mut input = Vec::new();
    for command in &line.commands {
        let words = &command.words;
        let program = words.first().map_or("", String::as_str);
        if program != "admit" {
            input = fixtures::output_of(program, sandbox);
            continue;
        }
        let arguments = words.get(1..).unwrap_or_default();
        if let Some(position) = exception(&words.join(" ")) {
            // The help is printed only if everything before it is valid.
            let words: Vec<&str> = arguments.iter().map(String::as_str).chain(["--help"]).collect();
            let output = run(&words);
            if !output.status.success() {
                tested.problems.push(format!("{place}: {}", String::from_utf8_lossy(&output.stderr)));
            }
            tested.exceptions.push((place.clone(), position));
            continue;
        }
        tested.run += 1;
        for name in inputs(words) {
            if !sandbox.has(&name) && !fixtures::provide_file(&name, words, sandbox) {
                tested
                    .problems
                    .push(format!("{place}: the page does not show {name}, and no fixture provides it"));
                return;
            }
        }
        if is_server(words) {
            sandbox.serve(arguments);
            continue;
        }
        fixtures::provide_webhook(words, sandbox);
        let limits = limits(words);
        let arguments: Vec<String> =
            arguments.iter().cloned().chain(limits.iter().map(ToString::to_string)).collect();
        let output = sandbox.run(&arguments, command.redirect.as_deref(), &input);
        let text = sandbox.shown(&String::from_utf8_lossy(&output.stdout));
        let status = output.status.code();
        let is_compared = line.is_single && limits.is_empty() && !example.output.is_empty();
        if !matches!(status, Some(0 | 1)) {
            let errors = String::from_utf8_lossy(&output.stderr);
            tested.problems.push(format!("{place}: exit status {status:?}\n{text}{errors}"));
        } else if is_compared && !matches(&masked(example.output), &masked(&text)) {
            if std::env::var_os("UPDATE_EXPECT").is_some() && !example.output.contains("…\n") {
                let old = format!("$ {}{}", example.command, example.output);
                let new = format!("$ {}{}\n", example.command, text.trim_end());
                tested.page = tested.page.replacen(&old, &new, 1);
            } else {
                tested.problems.push(format!("{place}: the output is now\n{text}"));
            }
        }
        input = output.stdout;
    }
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![PathBuf::from("README.md")];
    pages.extend(["docs/guide", "docs/concepts"].into_iter().flat_map(pages_in));
    pages
}

/// Tests the pages, as many at a time as there are cores. Returns the results in alphabetical order of the pages.
fn test_all(pages: &[PathBuf]) -> Vec<(&PathBuf, Tested)> {
    let queue = Mutex::new(pages.iter());
    let next = || queue.lock().expect("the queue cannot panic").next();
    let test_some = || std::iter::from_fn(next).map(|page| (page, test(page))).collect::<Vec<_>>();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut tested: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(test_some)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("the pages can be tested")).collect()
    });
    tested.sort_by_key(|(page, _)| *page);
    tested
}

#[test]
fn every_command_line_of_the_documentation_works() {
    let mut problems = Vec::new();
    let mut run = 0;
    let mut exceptions = Vec::new();
    for (page, tested) in test_all(&pages()) {
        run += tested.run;
        exceptions.extend(tested.exceptions);
        if tested.page != read(page) {
            std::fs::write(root().join(page), &tested.page).expect("the page can be written");
        }
        problems.extend(tested.problems);
    }
    println!("{run} commands run, {} only parsed:", exceptions.len());
    for (position, (command, reason)) in EXCEPTIONS.iter().enumerate() {
        let places: Vec<&str> =
            exceptions.iter().filter(|it| it.1 == position).map(|it| it.0.as_str()).collect();
        println!("{command}: {reason} ({})", places.join(", "));
        if places.is_empty() {
            problems.push(format!("no page contains the exception: {command}"));
        }
    }
    assert!(problems.is_empty(), "UPDATE_EXPECT=1 writes new output to the pages\n{}", problems.join("\n"));
}

#[test]
fn unknown_options_are_noticed() {
    assert!(!run(&["run", "--no-such-option", "--help"]).status.success());
    assert!(!run(&["run", "--jobs", "many", "--help"]).status.success());
    assert!(run(&["run", "--jobs", "4", "--help"]).status.success());
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
