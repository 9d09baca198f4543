//! Checks rules for the source code that the compiler does not check.

#![expect(clippy::expect_used, reason = "a test may panic about a tree that cannot be read")]

use std::fs;
use std::path::{Path, PathBuf};

mod cycles;
mod references;

/// The crates and directories whose modules have an order. The compiler checks the order of crates.
const LAYERS: [(&str, &[&str]); 4] = [
    ("harness/admission/src", &ADMISSION_LAYERS),
    ("harness/api-server/src", &API_SERVER_LAYERS),
    ("harness/api-server/src/kinds", &KIND_LAYERS),
    ("fake-webhooks/src", &FAKE_WEBHOOKS_LAYERS),
];

/// The modules of `kubernetes-admission` in dependency order: a module imports only from modules above it.
const ADMISSION_LAYERS: [&str; 29] = [
    "yaml",
    "attributes",
    "authorizer",
    "conditions",
    "config",
    "policy_expressions",
    "policy",
    "cluster_state",
    "custom_scale",
    "ownership",
    "trace_context",
    "caller",
    "patch",
    "event",
    "admission_run",
    "matching",
    "review",
    "manifests",
    "failure",
    "mutation",
    "reinvocation",
    "policies",
    "audit",
    "trace_log",
    "warnings",
    "metrics",
    "plugin",
    "converter",
    "dispatcher",
];

/// The directories of `kubernetes-api-server` in dependency order.
const API_SERVER_LAYERS: [&str; 8] =
    ["apimachinery", "storage", "kinds", "plugins", "registry", "subresources", "endpoints", "server"];

/// The modules of the kinds in dependency order: what kinds share, the API groups, the table of kinds, generic code.
const KIND_LAYERS: [&str; 38] = [
    "common",
    "conversion",
    "kind",
    "deletion",
    "server_writes",
    "discovery",
    "certificates",
    "core",
    "apps",
    "batch",
    "autoscaling",
    "networking",
    "discovery_k8s_io",
    "policy",
    "scheduling",
    "storage",
    "node",
    "coordination",
    "rbac",
    "resource",
    "admissionregistration",
    "object_names",
    "metadata_validation",
    "apiextensions",
    "apiregistration",
    "flowcontrol",
    "storagemigration",
    "authentication",
    "table",
    "validation",
    "defaulting",
    "strategy",
    "tables",
    "built_in_fields",
    "scale",
    "flow_control",
    "service_account_tokens",
    "webhook_configurations",
];

/// The modules of `fake-webhooks` in dependency order.
const FAKE_WEBHOOKS_LAYERS: [&str; 21] = [
    "json",
    "random",
    "suggestion",
    "admission_registration",
    "catalog",
    "behavior",
    "answer",
    "transport",
    "limits",
    "journal",
    "metrics",
    "socket",
    "endpoint",
    "fake_webhook",
    "fakes_file",
    "plan",
    "kubeconfig",
    "running",
    "admin",
    "fleet",
    "command",
];

const MAX_FILE_LINES: usize = 500;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Returns all `.rs` files of the workspace, relative to its root.
fn rust_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(root()).expect("the root is there") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // The fuzz targets are not part of the workspace.
        if path.is_dir() && !name.starts_with('.') && !["fuzz", "target"].contains(&name.as_str()) {
            collect(&path, &mut files);
        }
    }
    files.sort();
    assert!(files.len() > 30, "found only {} Rust files", files.len());
    files.into_iter().filter_map(|file| file.strip_prefix(root()).map(Path::to_path_buf).ok()).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

fn read(file: &Path) -> String {
    fs::read_to_string(root().join(file)).expect("the file is text")
}

#[track_caller]
fn nothing(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn modules_import_only_from_modules_above_them() {
    let mut findings = Vec::new();
    let files = rust_files();
    for (folder, layers) in LAYERS {
        let layer_of = |module: &str| layers.iter().position(|known| *known == module);
        for (file, module, imports) in cycles::imports_by_file(Path::new(folder), &files) {
            let Some(layer) = layer_of(&module) else {
                findings.push(format!("{}: not in the layers of its crate", file.display()));
                continue;
            };
            for import in imports {
                if layer_of(&import).is_some_and(|other| other > layer) {
                    findings.push(format!("{}: imports {import}, which is below it", file.display()));
                }
            }
        }
    }
    nothing(&findings);
}

#[test]
fn no_rust_file_is_longer_than_one_responsibility_needs() {
    let findings: Vec<String> = rust_files()
        .into_iter()
        .filter_map(|file| {
            let lines = read(&file).lines().count();
            (lines > MAX_FILE_LINES).then(|| format!("{}: {lines} lines", file.display()))
        })
        .collect();
    nothing(&findings);
}

/// Returns whether Cargo builds a test binary from this file. With `autotests = false`, the manifest lists these files.
fn is_test_target(file: &Path) -> bool {
    let (Some(folder), Some(stem)) = (file.parent().filter(|it| it.ends_with("tests")), file.file_stem())
    else {
        return false;
    };
    let manifest = fs::read_to_string(root().join(folder).join("../Cargo.toml")).unwrap_or_default();
    !manifest.contains("autotests = false")
        || manifest.contains(&format!("[[test]]\nname = \"{}\"", stem.to_string_lossy()))
}

#[test]
fn every_rust_file_is_compiled() {
    let mut findings = Vec::new();
    for file in rust_files() {
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = file.parent().unwrap_or(Path::new(""));
        let is_root = matches!(stem.as_str(), "main" | "lib" | "build")
            || is_test_target(&file)
            || folder.ends_with("bin")
            || folder.ends_with("examples")
            || folder.ends_with("benches");
        if is_root {
            continue;
        }
        let (name, parent) = if stem == "mod" {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            (name, folder.parent().unwrap_or(Path::new("")))
        } else {
            (stem, folder)
        };
        let named_in = |candidate: PathBuf| {
            fs::read_to_string(root().join(candidate)).is_ok_and(|source| {
                source.lines().any(|line| line.trim_end_matches(';').ends_with(&format!("mod {name}")))
            })
        };
        let mut roots: Vec<PathBuf> = ["mod.rs", "lib.rs", "main.rs"].map(|root| parent.join(root)).into();
        roots.push(parent.with_extension("rs"));
        // A module that several tests share.
        if parent.ends_with("tests") {
            roots.extend(rust_files().into_iter().filter(|file| file.parent() == Some(parent)));
        }
        if !roots.into_iter().any(named_in) {
            findings.push(format!("{}: no module names it", file.display()));
        }
    }
    nothing(&findings);
}

#[test]
fn every_rust_file_begins_with_its_purpose() {
    let findings: Vec<String> = rust_files()
        .into_iter()
        .filter(|file| !read(file).starts_with("//! "))
        .map(|file| format!("{}: does not begin with `//! `", file.display()))
        .collect();
    nothing(&findings);
}

/// Clippy's `indexing_slicing` does not check assignments such as `value["a"] = …`.
///
/// For a `&mut Value`, the assignment panics if the value is not an object.
#[test]
fn nothing_is_changed_through_an_index() {
    let is_changed = regex::Regex::new(
        r"[\w)\]?]\[[^\]]+\](\s*[-+]?=($|[^=>])|\.(take|push|insert|as_\w+_mut|get_mut)\()|&mut \w[\w.]*\[",
    )
    .expect("the expression is one");
    for (line, expected) in [
        (r#"pod["spec"]["a"] = json!(1);"#, true),
        (r#"pod["spec"] ="#, true),
        ("counts[index] += 1;", true),
        (r#"list["items"].take()"#, true),
        ("go(&mut self.counts[0]);", true),
        (r#"if pod["kind"] == "Pod" {"#, false),
        ("fn sort(items: &mut [Value]) {", false),
        ("let [one, other] = pair;", false),
        ("const NAMES: [&str; 1] = [NAME];", false),
    ] {
        assert_eq!(is_changed.is_match(line), expected, "{line}");
    }
    let mut findings = Vec::new();
    for file in rust_files() {
        let is_test =
            file.components().any(|part| part.as_os_str() == "tests") || file.ends_with("testing.rs");
        if is_test || file.ends_with("tests.rs") {
            continue;
        }
        let source = read(&file);
        let outside_tests = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        for (index, line) in outside_tests.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if is_changed.is_match(code) {
                findings.push(format!("{}:{}: {}", file.display(), index + 1, line.trim()));
            }
        }
    }
    nothing(&findings);
}

#[test]
fn the_rules_of_kubernetes_name_their_source() {
    let mut findings = Vec::new();
    for file in [
        "harness/admission/src/matching/mod.rs",
        "harness/admission/src/matching/rules.rs",
        "harness/admission/src/reinvocation.rs",
        "harness/admission/src/failure.rs",
        "harness/admission/src/audit.rs",
        "harness/admission/src/warnings.rs",
        "harness/admission/src/dispatcher/mod.rs",
    ] {
        if !read(Path::new(file)).contains("Source: ") {
            findings.push(format!("{file}: no `Source:`"));
        }
    }
    nothing(&findings);
}

#[test]
fn harness_and_fake_webhooks_share_no_code() {
    for (member, other) in [("harness", "fake-webhooks"), ("fake-webhooks", "harness")] {
        let manifest =
            fs::read_to_string(root().join(member).join("Cargo.toml")).expect("there is a manifest");
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let own = dependencies.split("[dev-dependencies]").next().unwrap_or_default();
        assert!(!own.contains(&format!("{other}.")), "{member} depends on {other}");
    }
}

#[test]
fn no_private_key_is_committed() {
    let mut findings = Vec::new();
    let mut pending = vec![root()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("the entry can be read").path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    pending.push(path);
                }
            } else if fs::read_to_string(&path)
                .is_ok_and(|text| text.contains(concat!("-----BEGIN ", "PRIVATE KEY")))
                && path.extension().is_none_or(|extension| extension != "rs")
            {
                findings.push(path.display().to_string());
            }
        }
    }
    nothing(&findings);
}

#[test]
fn only_one_module_of_the_command_writes_to_the_terminal() {
    const WRITES: [&str; 5] =
        ["anstream::print", "anstream::eprint", "anstream::stdout", "anstream::stderr", "io::stdout().lock"];
    for file in rust_files() {
        if file.starts_with("command/src") && !file.ends_with("screen.rs") {
            let source = read(&file);
            let found: Vec<&str> = WRITES.into_iter().filter(|call| source.contains(call)).collect();
            assert!(found.is_empty(), "{}: {found:?}: use crate::screen", file.display());
        }
    }
}
