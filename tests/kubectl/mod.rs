//! Compares the output of everyday kubectl commands on `admit assets` and on a real kube-apiserver.
//!
//! The commands are in `kubectl/commands`, in groups. A group has its own namespace and directory. Its commands run one
//! after another with `sh`, and their output and exit status are compared. `kubectl/known-differences.yaml` lists the
//! commands whose output differs, with the reasons.
//!
//! Needs KUBEBUILDER_ASSETS with kubectl; without it, the comparison is skipped with a message. `KUBECTL_GROUPS='get
//! apply'` runs only these groups.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what a test does not expect may panic, and it says what it counted"
)]

mod masks;
pub(crate) mod servers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use self::masks::Masks;
use self::servers::Servers;
use crate::helpers::machine;

/// A group of commands that depend on each other.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    /// The manifests and other files in the directory of the commands, by name.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// The commands, one per line, in shell syntax.
    commands: String,
}

impl Group {
    fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.lines().map(str::trim).filter(|line| !line.is_empty())
    }
}

/// A command whose output on admit differs from its output on a real kube-apiserver.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Difference {
    group: String,
    command: String,
    reason: String,
    /// A text that the output of the command on admit contains.
    admit: String,
}

/// The output and the exit status of a command.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    group: String,
    command: String,
    text: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kubectl")
}

fn groups() -> Vec<Group> {
    let mut files: Vec<_> =
        fs::read_dir(folder().join("commands")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &PathBuf| -> Vec<Group> {
        serde_saphyr::from_str(&fs::read_to_string(file).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    files.iter().flat_map(read).collect()
}

fn known_differences() -> Vec<Difference> {
    serde_saphyr::from_str(&fs::read_to_string(folder().join("known-differences.yaml")).unwrap()).unwrap()
}

/// The shell functions that the commands can use.
///
/// `eventually` repeats a command until it succeeds or, with `!`, until it fails. `first` prints the first lines of a
/// command that does not exit.
const SHELL: &str = r#"
eventually() {
  if [ "$1" = ! ]; then shift; while "$@" >/dev/null 2>&1; do sleep 0.05; done
  else until "$@" >/dev/null 2>&1; do sleep 0.05; done; fi
}
first() {
  lines=$1; shift; : >"$TMPDIR/first"; "$@" >"$TMPDIR/first" 2>&1 & process=$!
  while [ "$(wc -l <"$TMPDIR/first")" -lt "$lines" ] && kill -0 $process 2>/dev/null; do sleep 0.05; done
  kill $process 2>/dev/null; head -n "$lines" "$TMPDIR/first"
}
"#;

/// Runs the groups on the servers from a directory.
fn run(assets: &Path, kubectl: &Path, groups: &[Group]) -> Vec<Outcome> {
    let servers = Servers::start(assets, kubectl);
    let masks = Masks::new(servers.folder());
    let mut outcomes = Vec::new();
    for group in groups {
        let place = servers.folder().join("groups").join(&group.name);
        let home = servers.folder().join("home");
        for folder in [&place, &home.join("tmp")] {
            fs::create_dir_all(folder).unwrap();
        }
        for (name, text) in &group.files {
            fs::write(place.join(name), text).unwrap();
        }
        let kubeconfig = servers.kubeconfig(&group.name);
        let ask = |command: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let paths =
                std::iter::once(kubectl.parent().unwrap().to_owned()).chain(std::env::split_paths(&path));
            // A command that hangs is a difference.
            let output = Command::new("timeout")
                .args(["90", "sh", "-c", &format!("{SHELL}{command}")])
                .current_dir(&place)
                .env("PATH", std::env::join_paths(paths).unwrap())
                .env("HOME", &home)
                .env("TMPDIR", home.join("tmp"))
                .env("KUBECONFIG", &kubeconfig)
                .env("TZ", "UTC")
                .env("LC_ALL", "C")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            // The order of members does not matter in raw output.
            if command.contains("--raw")
                && let Ok(mut document) = serde_json::from_str::<serde_json::Value>(&text)
            {
                // The API server sorts them by time, in seconds.
                if let Some(managers) =
                    document.pointer_mut("/metadata/managedFields").and_then(|it| it.as_array_mut())
                {
                    managers.sort_by_key(|manager| manager["fieldsV1"].to_string());
                }
                text = format!("{document:#}\n");
            }
            text = masks.apply(&text);
            for line in masks.apply(&String::from_utf8_lossy(&output.stderr)).lines() {
                writeln!(text, "stderr: {line}").unwrap();
            }
            writeln!(text, "{}", output.status).unwrap();
            text
        };
        let made = ask(&format!("kubectl create namespace {}", group.name));
        assert!(made.contains("created"), "{made}");
        outcomes.extend(group.commands().map(|command| Outcome {
            group: group.name.clone(),
            command: command.to_owned(),
            text: ask(command),
        }));
    }
    outcomes
}

fn stand_ins(folder: &Path) -> PathBuf {
    let made = folder.join("assets");
    let output =
        Command::new(env!("CARGO_BIN_EXE_admit")).arg("assets").arg("--dir").arg(&made).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    made
}

#[test]
fn both_servers_make_kubectl_print_the_same() {
    if !machine::has_kube_apiserver() {
        return;
    }
    let Some(kubectl) = machine::kubectl() else { return };
    let mut groups = groups();
    if let Ok(chosen) = std::env::var("KUBECTL_GROUPS") {
        let chosen: BTreeSet<&str> = chosen.split_whitespace().collect();
        groups.retain(|group| chosen.is_empty() || chosen.contains(group.name.as_str()));
    }
    let folder = tempfile::tempdir().unwrap();
    let stand_ins = stand_ins(folder.path());
    let real = PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS").unwrap());
    let (admit, real) = std::thread::scope(|scope| {
        let admit = scope.spawn(|| run(&stand_ins, &kubectl, &groups));
        let real = run(&real, &kubectl, &groups);
        (admit.join().unwrap(), real)
    });
    let known = known_differences();
    let mut wrong = String::new();
    let mut differing = 0;
    for (admit, real) in admit.iter().zip(&real) {
        let (group, command) = (&admit.group, &admit.command);
        let known = known.iter().find(|known| known.group == *group && known.command == *command);
        match (known, admit == real) {
            (None, true) => {}
            (None, false) => {
                let lines = similar::TextDiff::from_lines(&real.text, &admit.text);
                let lines = lines.unified_diff().header("kube-apiserver", "admit").to_string();
                writeln!(wrong, "{group}: {command}\n{lines}").unwrap();
            }
            (Some(_), true) => writeln!(
                wrong,
                "{group}: {command}\nprints the same by now: take it out of known-differences.yaml"
            )
            .unwrap(),
            (Some(known), false) if !admit.text.contains(&known.admit) => {
                writeln!(wrong, "{group}: {command}\ndiffers in another way than is known:\n{}", admit.text)
                    .unwrap();
            }
            (Some(_), false) => differing += 1,
        }
    }
    println!("{} commands, {differing} known to differ", real.len());
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(admit.len(), real.len());
}

#[test]
fn the_list_is_in_order() {
    let groups = groups();
    let mut commands = BTreeSet::new();
    let mut names = BTreeSet::new();
    for group in &groups {
        assert!(names.insert(&group.name), "{} is there twice", group.name);
        commands.extend(group.commands().map(|command| (group.name.as_str(), command)));
    }
    assert!(commands.len() >= 500, "only {} commands", commands.len());
    for known in known_differences() {
        let place = (known.group.as_str(), known.command.as_str());
        assert!(commands.contains(&place), "{place:?} is not in the list");
        assert!(!known.reason.is_empty() && !known.admit.is_empty(), "{place:?} lacks its reason");
    }
}
