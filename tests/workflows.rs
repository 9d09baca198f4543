//! Tests the workflows: their rights, the actions that they use, and the commands that they run.

#![expect(clippy::expect_used, reason = "what is not there fails the test")]

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::action::{Step, action, root};

/// The fields of a workflow that the tests use.
#[derive(Debug, Deserialize)]
pub(crate) struct Workflow {
    pub(crate) permissions: BTreeMap<String, String>,
    pub(crate) jobs: BTreeMap<String, Job>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Job {
    #[serde(default)]
    pub(crate) permissions: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) strategy: Option<Strategy>,
    pub(crate) steps: Vec<WorkflowStep>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Strategy {
    pub(crate) matrix: Matrix,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Matrix {
    pub(crate) include: Vec<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct WorkflowStep {
    pub(crate) name: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) uses: Option<String>,
}

pub(crate) fn workflow(name: &str) -> Workflow {
    let path = root().join(".github/workflows").join(name);
    let text = std::fs::read_to_string(path).expect("there is such a workflow");
    serde_saphyr::from_str(&text).expect("it is a workflow")
}

/// Returns whether the `uses` of a step pins an action to a commit.
fn is_pinned(action: &str) -> bool {
    let commit = action.split_once('@').map_or("", |(_, commit)| commit);
    commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[test]
fn workflows_have_the_least_rights_and_pinned_actions() {
    let writing = |permissions: &BTreeMap<String, String>| {
        permissions.iter().filter(|(_, right)| *right != "read").map(|(what, _)| what.clone()).collect()
    };
    let mut writers: Vec<(String, Vec<String>)> = Vec::new();
    for file in std::fs::read_dir(root().join(".github/workflows")).expect("there are workflows") {
        let name = file.expect("it can be read").file_name().into_string().expect("a name");
        let Workflow { permissions, jobs } = workflow(&name);
        assert_eq!(writing(&permissions), Vec::<String>::new(), "{name}");
        for (job, Job { permissions, steps, .. }) in jobs {
            let rights: Vec<String> = writing(&permissions);
            if !rights.is_empty() {
                writers.push((format!("{name} {job}"), rights));
            }
            for step in &steps {
                let Some(action) = &step.uses else { continue };
                assert!(is_pinned(action), "{name}: {action} is not pinned to a commit");
            }
            for run in steps.iter().filter_map(|step| step.run.as_ref()) {
                assert!(!run.contains("${{"), "{name}: values reach a script by its environment");
            }
        }
    }
    for Step { name, uses, .. } in action().runs.steps {
        let Some(action) = uses else { continue };
        assert!(is_pinned(&action), "action.yml, {name}: {action} is not pinned to a commit");
    }
    writers.sort();
    let writer = |job: &str, rights: &[&str]| {
        (job.to_owned(), rights.iter().map(|right| (*right).to_owned()).collect::<Vec<_>>())
    };
    let expected = [
        writer("docs.yml publish", &["contents"]),
        writer("release.yml publish", &["attestations", "contents", "id-token"]),
    ];
    assert_eq!(writers, expected);
}

#[test]
fn ci_runs_the_two_commands_of_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("there is a README");
    let ci = workflow("ci.yml");
    let commands: Vec<&str> =
        ci.jobs.values().flat_map(|job| &job.steps).filter_map(|step| step.run.as_deref()).collect();
    for command in ["cargo run -- run", "cargo test"] {
        assert!(readme.lines().any(|line| line == format!("$ {command}")), "README.md: {command}");
        assert!(commands.contains(&command), "ci.yml: {command}: {commands:?}");
    }
}
