//! Tests `action.yml`: its format, its flags, its scripts, and the release archives that it downloads.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::helpers::machine;
use crate::workflows::workflow;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Action {
    name: String,
    description: String,
    author: String,
    branding: BTreeMap<String, String>,
    inputs: BTreeMap<String, Input>,
    outputs: BTreeMap<String, Output>,
    pub(crate) runs: Runs,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    description: String,
    #[serde(default)]
    required: bool,
    default: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Output {
    description: String,
    value: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Runs {
    using: String,
    pub(crate) steps: Vec<Step>,
}

/// A step of a composite action.
///
/// Source: GitHub's documentation, "Metadata syntax for GitHub Actions", `runs` for composite actions.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) name: String,
    #[expect(dead_code, reason = "the field is in the format")]
    id: Option<String>,
    #[serde(rename = "if")]
    condition: Option<String>,
    shell: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    run: Option<String>,
    pub(crate) uses: Option<String>,
    #[serde(default)]
    with: BTreeMap<String, String>,
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn action() -> Action {
    let text = std::fs::read_to_string(root().join("action.yml")).expect("there is an action.yml");
    serde_saphyr::from_str(&text).expect("it is an action")
}

fn script(name: &str) -> String {
    let step = action().runs.steps.into_iter().find(|step| step.name == name).expect("there is such a step");
    step.run.expect("it has a script")
}

/// Returns the words in `text` that look like long flags.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || "()\"'`;=[]{}".contains(letter));
    words.filter(|word| word.starts_with("--") && word.len() > 2).map(str::to_owned).collect()
}

/// Returns the long flags of `admit verify` or `admit lint`; panics unless there are more than `least`.
fn known_flags(command: &str, least: usize) -> BTreeSet<String> {
    let help = Command::new(env!("CARGO_BIN_EXE_admit")).args([command, "--help"]).output();
    let flags = flags(&String::from_utf8_lossy(&help.expect("the command runs").stdout));
    assert!(flags.contains("--sarif") && flags.len() > least, "{flags:?}");
    flags
}

/// Returns each `NAME` in `inputs.NAME` in `text`.
fn inputs_of(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let rests = text.split("inputs.").skip(1);
    rests.map(|rest| rest.split(|letter| !is_name(letter)).next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_workflow_can_use_it() {
    let Action { name, description, author, branding, inputs, outputs, runs } = action();
    assert!(![name, description, author].iter().any(String::is_empty) && branding.len() == 2);
    assert_eq!(runs.using, "composite");
    let mut used = BTreeSet::new();
    for Step { name, condition, shell, env, run, uses, with, .. } in &runs.steps {
        // A composite action has no default shell, and a step is either a script or an action.
        assert_eq!((run.is_some(), shell.is_some()), (uses.is_none(), uses.is_none()), "{name}");
        assert!(
            !run.iter().any(|run| run.contains("${{")),
            "{name}: values reach a script by its environment"
        );
        let texts = env.values().chain(with.values()).chain(condition);
        used.extend(texts.flat_map(|text| inputs_of(text)));
    }
    for Output { description, value } in outputs.values() {
        assert!(!description.is_empty());
        used.extend(inputs_of(value));
    }
    assert_eq!(used, inputs.keys().cloned().collect());
    for (name, Input { description, required, default }) in &inputs {
        assert!(!description.is_empty() && *required == default.is_none(), "{name}");
    }
}

#[test]
fn its_flags_and_those_of_the_documentation_exist() {
    let known = known_flags("verify", 20);
    let own: BTreeSet<String> = flags(&script("Run admit"));
    assert_eq!(own, ["--baseline", "--fail-on", "--sarif"].map(str::to_owned).into());
    assert!(own.is_subset(&known_flags("lint", 10)));
    let documentation =
        std::fs::read_to_string(root().join("docs/guide/verify-reports.md")).expect("it is there");
    let examples: Vec<&str> =
        documentation.lines().filter(|line| line.trim().starts_with("arguments:")).collect();
    assert!(!examples.is_empty());
    let wanted = own.into_iter().chain(examples.iter().flat_map(|line| flags(line)));
    let unknown: Vec<String> = wanted.filter(|flag| !known.contains(flag)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

/// Runs a script of the action as a runner does. Returns the exit status and the output.
///
/// Returns `None` and skips the test if bash cannot be run.
fn run(script: &str, folder: &Path, path: &str, environment: &[(&str, &str)]) -> Option<(i32, String)> {
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(folder);
    command.env_remove("GITHUB_ACTIONS").env_remove("GITHUB_STEP_SUMMARY");
    command.env("PATH", path).envs(environment.iter().copied());
    let Ok(output) = command.output() else {
        machine::skipped("bash cannot be run");
        return None;
    };
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some((output.status.code().unwrap_or(-1), text))
}

fn path_with(first: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", first.display())
}

/// Returns a directory with the file `my webhook.yaml`, for whose configuration check V57 reports a note.
fn folder_with_configuration() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let webhook = json!({"name": "w.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"},
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]});
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "c"}, "webhooks": [webhook]});
    std::fs::write(folder.path().join("my webhook.yaml"), configuration.to_string()).expect("it is written");
    folder
}

#[test]
fn the_verify_step_quotes_writes_sarif_and_fails_as_the_command_does() {
    let folder = folder_with_configuration();
    let admit = Path::new(env!("CARGO_BIN_EXE_admit")).parent().expect("it is in a folder");
    let arguments = "-c 'my webhook.yaml'\n  --check V57 --skip 'V50=$(touch run) `touch run`'";
    let verify = |fail_on: &str, baseline: &str| {
        let environment = [
            ("COMMAND", "verify"),
            ("ARGUMENTS", arguments),
            ("BASELINE", baseline),
            ("FAIL_ON", fail_on),
            ("SARIF", "out.sarif"),
        ];
        run(&script("Run admit"), folder.path(), &path_with(admit), &environment)
    };
    let Some((status, text)) = verify("note", "") else { return };
    assert_eq!(status, 1, "{text}");
    let sarif = std::fs::read_to_string(folder.path().join("out.sarif")).expect("it is written");
    let sarif: Value = serde_json::from_str(&sarif).expect("JSON");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "V57");
    assert!(!folder.path().join("run").exists(), "what stands in an argument must not be run");
    let (status, text) = verify("warning", "").expect("there is a bash");
    assert_eq!(status, 0, "{text}");
    let (status, text) = verify("note", "none.yaml").expect("there is a bash");
    assert!(status == 2 && text.contains("--baseline none.yaml"), "{text}");
}

#[test]
fn each_command_of_the_action_runs_and_writes_its_summary() {
    let folder = folder_with_configuration();
    let admit = Path::new(env!("CARGO_BIN_EXE_admit")).parent().expect("it is in a folder");
    let summary = folder.path().join("summary.md");
    let webhook = "-c 'my webhook.yaml' --check V57";
    let feature = root().join("tests/features/fails.feature").display().to_string();
    let runs = |command: &str, arguments: &str, fail_on: &str| {
        let environment = [
            ("COMMAND", command),
            ("ARGUMENTS", arguments),
            ("BASELINE", ""),
            ("FAIL_ON", fail_on),
            ("SARIF", "admit.sarif"),
            ("GITHUB_STEP_SUMMARY", summary.to_str().expect("text")),
        ];
        run(&script("Run admit"), folder.path(), &path_with(admit), &environment)
    };
    let Some((status, text)) = runs("lint", webhook, "") else { return };
    assert_eq!(status, 0, "{text}");
    let (status, text) = runs("lint", webhook, "note").expect("there is a bash");
    assert_eq!(status, 1, "{text}");
    assert!(folder.path().join("admit.sarif").exists());
    std::fs::remove_file(folder.path().join("admit.sarif")).expect("it can be removed");
    let (status, text) = runs("run", &feature, "").expect("there is a bash");
    assert_eq!(status, 1, "{text}");
    assert!(!folder.path().join("admit.sarif").exists());
    let pages = std::fs::read_to_string(&summary).expect("each command wrote its summary");
    let titles: Vec<&str> = pages.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(titles, ["## admit lint", "## admit lint", "## admit run"]);

    let (status, text) = runs("run", &feature, "error").expect("there is a bash");
    let expected = "the inputs 'baseline' and 'fail-on' are not supported with the command 'run'";
    assert!(status == 2 && text.contains(expected), "{text}");
    let (status, text) =
        runs("explain-error", "x509: certificate signed by unknown authority", "").expect("there is a bash");
    assert!(status == 0 && text.contains("unknown-authority"), "{text}");
    let (status, text) = runs("steps", " \n", "").expect("there is a bash");
    assert!(status == 0 && text.contains("a {admission} webhook"), "{text}");
    let (status, text) = runs("no-command", "", "").expect("there is a bash");
    assert!(status == 2 && text.contains("unrecognized subcommand 'no-command'"), "{text}");
}

/// Writes a shell script that replaces a program.
fn write_program(path: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("it is written");
    let permissions = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, permissions).expect("it is made a program");
}

/// Runs the steps of the action that select and install the binary. Returns the exit status and the output.
///
/// Returns `None` and skips the test if bash cannot be run.
fn install(folder: &Path, path: &str, reference: &str, version: &str) -> Option<(i32, String)> {
    std::fs::create_dir_all(folder.join("action")).expect("it is made");
    std::fs::write(folder.join("action/Cargo.toml"), "[workspace.package]\nversion = \"1.2.3\"\n")
        .expect("it is written");
    let selected = folder.join("selected").display().to_string();
    std::fs::write(&selected, "").expect("it is written");
    let action = folder.join("action").display().to_string();
    let mut environment = vec![
        ("RUNNER_TEMP", "."),
        ("GITHUB_PATH", "path"),
        ("GITHUB_OUTPUT", &selected),
        ("VERSION", version),
        ("ACTION_REF", reference),
        ("ACTION_REPOSITORY", "OWNER/admit"),
        ("ACTION_PATH", &action),
    ];
    let (status, text) = run(&script("Select the binary"), folder, path, &environment)?;
    if status != 0 {
        return Some((status, text));
    }
    let selected = std::fs::read_to_string(&selected).expect("it is written");
    let output = |name: &str| {
        let mut lines = selected.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| *key == name).expect("the step has the output").1
    };
    assert!(output("key").starts_with("admit-") && output("key").ends_with(output("platform")), "{selected}");
    assert!(output("key").contains(output("release")), "{selected}");
    environment.extend([("RELEASE", output("release")), ("PLATFORM", output("platform"))]);
    run(&script("Install admit"), folder, path, &environment)
}

#[test]
fn the_install_step_takes_the_release_or_builds_its_own_ref() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = folder.path().join("tools");
    std::fs::create_dir(&tools).expect("it is made");
    let tool = |name: &str, script: &str| write_program(&tools.join(name), script);
    tool("cargo", "echo cargo \"$@\" >> log");
    tool("git", "echo \"$TAGS\"");
    let install =
        |reference: &str, version: &str| install(folder.path(), &path_with(&tools), reference, version);
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let builds = |log: &str| log.contains("cargo install --locked --path") && log.contains("--root ./admit");

    // Without a release, `main` is built; a missing version that the user requested is an error.
    tool("curl", "echo curl \"$@\" >> log; exit 22");
    let Some((status, text)) = install("main", "") else { return };
    assert!(status == 0 && text.contains("::notice::") && builds(&log()), "{text}{}", log());
    assert!(!log().contains("curl"), "{}", log());
    let (status, text) = install("main", "v9").expect("there is a bash");
    assert!(status == 1 && text.contains("in the release v9. To build it from source, run"), "{text}");

    // The tags v1 and v1.2.3 are those of the release 1.2.3, and so is the commit of this tag.
    let commit = "0123456789abcdef0123456789abcdef01234567";
    for (reference, tags, release) in [
        ("v1", "", Some("v1.2.3")),
        ("v1.2.3", "", Some("v1.2.3")),
        (commit, commit, Some("v1.2.3")),
        (commit, "another", None),
    ] {
        tool("git", &format!("echo '{tags}\trefs/tags/v1.2.3'"));
        std::fs::remove_file(folder.path().join("log")).expect("it can be removed");
        let (status, text) = install(reference, "").expect("there is a bash");
        assert!(status == 0 && builds(&log()), "{reference}: {text}");
        assert_eq!(text.contains("::warning::"), release.is_some(), "{reference}: {text}");
        let url = "https://github.com/OWNER/admit/releases/download/v1.2.3/admit-";
        assert_eq!(log().contains(url), release.is_some(), "{reference}: {}", log());
    }

    // The archive of the release does not have the checksum in SHA256SUMS, or is not in this file.
    let release = |sums: &str| {
        let archive = "mkdir -p made; touch made/admit; chmod +x made/admit; tar -czf \"$2\" -C made admit";
        let script = format!(
            "while [ \"$1\" != -o ]; do shift; done\ncase $2 in *SHA256SUMS) {sums} ;; *) {archive} ;; esac"
        );
        tool("curl", &script);
    };
    for sums in ["exit 22", "touch \"$2\"", "(cd admit; printf '%064d  %s\\n' 0 admit-*.tar.gz) > \"$2\""] {
        release(sums);
        let (status, text) = install("main", "v1").expect("there is a bash");
        assert!(status == 1 && text.contains("::error::"), "{sums}: {text}");
        assert!(!folder.path().join("admit/bin/admit").exists(), "{sums}");
    }

    // The release exists, and the second job finds the binary in the cache.
    release("(cd admit; sha256sum admit-*.tar.gz) > \"$2\"");
    let (status, text) = install("main", "v1").expect("there is a bash");
    assert_eq!(status, 0, "{text}");
    assert!(folder.path().join("admit/bin/admit").exists());
    tool("curl", "exit 22");
    let (status, text) = install("main", "v1").expect("there is a bash");
    assert!(status == 0 && text.contains("the binary is cached"), "{text}");
    let path = std::fs::read_to_string(folder.path().join("path")).expect("it is written");
    assert!(path.lines().all(|line| line == "./admit/bin"), "{path}");

    tool("uname", "case $1 in -m) echo x86_64 ;; -s) echo MINGW64_NT-10.0-20348 ;; esac");
    let (status, text) = install("v1", "").expect("there is a bash");
    assert!(status == 1 && text.contains("::error::admit does not support Windows"), "{text}");
}

/// Returns what `uname -m` and `uname -s` print on a machine of the target.
fn uname(target: &str) -> (&'static str, &'static str) {
    match target {
        "x86_64-unknown-linux-gnu" => ("x86_64", "Linux"),
        "aarch64-unknown-linux-gnu" => ("aarch64", "Linux"),
        "x86_64-apple-darwin" => ("x86_64", "Darwin"),
        "aarch64-apple-darwin" => ("arm64", "Darwin"),
        other => panic!("what does uname print on {other}?"),
    }
}

#[test]
fn the_release_workflow_makes_the_assets_that_the_install_step_downloads() {
    let release = workflow("release.yml");
    let build = &release.jobs["build"];
    let script_of = |name: &str| {
        let mut steps = release.jobs.values().flat_map(|job| &job.steps);
        let step = steps.find(|step| step.name.as_deref() == Some(name));
        step.and_then(|step| step.run.as_deref()).expect("a step with a script")
    };
    let pack = script_of("Pack");
    let profile = script_of("Build").split_once("--profile ").and_then(|(_, rest)| rest.split(' ').next());
    let profile = profile.expect("it names a profile");
    let folder = tempfile::tempdir().expect("a folder");
    let tools = folder.path().join("tools");
    std::fs::create_dir(&tools).expect("it is made");
    std::fs::write(folder.path().join("LICENSE"), "").expect("it is written");
    let tool = |name: &str, script: &str| write_program(&tools.join(name), script);
    // The release consists of the files in the directory; other files do not exist.
    tool(
        "curl",
        r#"for url; do :; done; while [ "$1" != -o ]; do shift; done; cp "${url##*/}" "$2" || exit 22"#,
    );
    let matrix = &build.strategy.as_ref().expect("it is for several machines").matrix.include;
    let targets: BTreeSet<&String> = matrix.iter().map(|entry| &entry["target"]).collect();
    assert_eq!((targets.len(), matrix.len()), (4, 4), "{targets:?}");
    for entry in matrix {
        let (target, asset) = (&entry["target"], &entry["asset"]);
        let output = folder.path().join("target").join(target).join(profile);
        std::fs::create_dir_all(&output).expect("it is made");
        std::fs::write(output.join("admit"), target).expect("it is written");
        let path = path_with(&tools);
        let Some((status, text)) = run(pack, folder.path(), &path, &[("TARGET", target), ("ASSET", asset)])
        else {
            return;
        };
        assert_eq!(status, 0, "{text}");
        let sums = run(script_of("Checksums"), folder.path(), &path, &[]).expect("a bash");
        assert_eq!(sums.0, 0, "{}", sums.1);

        let (machine, system) = uname(target);
        tool("uname", &format!("case $1 in -m) echo {machine} ;; -s) echo {system} ;; esac"));
        let installed = folder.path().join("admit/bin/admit");
        let (status, text) = install(folder.path(), &path, "main", "v1").expect("a bash");
        assert_eq!(status, 0, "{target}: {text}");
        assert_eq!(std::fs::read_to_string(installed).expect("it is installed"), *target);
    }
}
