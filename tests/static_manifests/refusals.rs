//! Tests invalid manifest directories: a server does not start with them.

use std::fs;
use std::process::Command;

use super::{ENVTEST, IN_PROCESS, configuration, machine, write_plugins};

/// An invalid directory of manifests, and the error with which the server exits.
struct RejectedDirectory {
    /// The proved statements of `tests/behaviors.md`.
    proves: &'static [&'static str],
    /// The value of `staticManifestsDir`, with the placeholder FOLDER.
    folder: &'static str,
    /// The files in FOLDER, with the placeholders CONFIGURATION and VALIDATING for valid configurations.
    files: &'static [(&'static str, &'static str)],
    /// The error of kube-apiserver 1.37.1, with the placeholder FOLDER.
    says: &'static str,
}

const REFUSALS: [RejectedDirectory; 9] = [
    RejectedDirectory {
        proves: &["LOAD-10", "NEW-04"],
        folder: "relative",
        files: &[],
        says: "staticManifestsDir: Invalid value: \"relative\": must be an absolute file path",
    },
    RejectedDirectory {
        proves: &["LOAD-10"],
        folder: "FOLDER/nowhere",
        files: &[],
        says: "staticManifestsDir: Invalid value: \"FOLDER/nowhere\": unable to read: stat FOLDER/nowhere: no such file \
               or directory",
    },
    RejectedDirectory {
        proves: &["LOAD-11", "LOAD-14"],
        folder: "FOLDER",
        files: &[("a.txt", "left out"), ("b.YML", "CONFIGURATION"), ("c.json", "VALIDATING")],
        says: "failed to load static webhook manifests from \"FOLDER\": error loading FOLDER/c.json: unsupported resource \
               type *v1.ValidatingWebhookConfiguration",
    },
    RejectedDirectory {
        proves: &["LOAD-11"],
        folder: "FOLDER",
        files: &[("a.yaml", ""), ("b.yaml", "# nothing\n---\nCONFIGURATION")],
        says: "error loading FOLDER/b.yaml: Object 'Kind' is missing in '# nothing'",
    },
    RejectedDirectory {
        proves: &["LOAD-11"],
        folder: "FOLDER",
        files: &[("a.yaml", "CONFIGURATION\n--- more\n")],
        says: "failed to split YAML documents in file \"FOLDER/a.yaml\": invalid Yaml document separator: more",
    },
    RejectedDirectory {
        proves: &["LOAD-12"],
        folder: "FOLDER",
        files: &[(
            "a.json",
            "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [CONFIGURATION, {\"kind\": \"x\"}]}",
        )],
        says: "error loading FOLDER/a.json: failed to decode list item: Object 'apiVersion' is missing in '{\"kind\": \
               \"x\"}'",
    },
    RejectedDirectory {
        proves: &["LOAD-12"],
        folder: "FOLDER",
        files: &[("a.yaml", "CONFIGURATION"), ("b.yaml", "CONFIGURATION")],
        says: "error loading FOLDER/b.yaml: duplicate name \"a.static.k8s.io\" found in file \"FOLDER/b.yaml\" \
               (previously seen in \"FOLDER/a.yaml\")",
    },
    RejectedDirectory {
        proves: &["LOAD-12"],
        folder: "FOLDER",
        files: &[(
            "a.yaml",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
             metadata: {name: a.static.k8s.io}\nwebhooks: [{name: w.example.com, zoo: 1}]\n",
        )],
        says: "error loading FOLDER/a.yaml: strict decoding error: unknown field \"webhooks[0].zoo\"",
    },
    RejectedDirectory {
        proves: &["LOAD-12"],
        folder: "FOLDER",
        files: &[(
            "a.yaml",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
             metadata: {name: a.static.k8s.io}\nwebhooks:\n- name: w.example.com\n  sideEffects: None\n  \
             admissionReviewVersions: [v1]\n  clientConfig: {service: {namespace: ns, name: s}}\n",
        )],
        says: "error loading FOLDER/a.yaml: webhook \"w.example.com\" in \"a.static.k8s.io\" (file \"FOLDER/a.yaml\"): \
               clientConfig.service is not supported for static manifests; use clientConfig.url instead",
    },
];

/// Starts a server with each of the directories, and checks its error.
fn refuses(target: &str) {
    for RejectedDirectory { proves, folder, files, says } in REFUSALS {
        let stage = tempfile::tempdir().expect("a folder");
        let manifests = stage.path().join("manifests");
        fs::create_dir(&manifests).expect("a folder");
        let shown = manifests.display().to_string();
        for (name, text) in files {
            let configuration = |kind: &str| configuration(kind, "a.static.k8s.io", &[]).to_string();
            let text = text
                .replace("CONFIGURATION", &configuration("MutatingWebhookConfiguration"))
                .replace("VALIDATING", &configuration("ValidatingWebhookConfiguration"));
            fs::write(manifests.join(name), text).expect("the file is written");
        }
        let plugins = stage.path().join("admission.json");
        write_plugins(&plugins, &folder.replace("FOLDER", &shown), None);
        fs::write(
            stage.path().join("any.feature"),
            "Feature: Any\n  Scenario: Any\n    When a pod is created\n    Then the request is admitted\n",
        )
        .expect("the feature is written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["run", "any.feature", "--target", target, "--admission-control-config-file"]);
        command.arg(&plugins).current_dir(stage.path()).env("NO_COLOR", "1");
        let output = command.output().expect("the command runs");
        let error = String::from_utf8_lossy(&output.stderr);
        let says = says.replace("FOLDER", &shown);
        // kube-apiserver quotes the error in its log.
        assert!(error.replace("\\\"", "\"").contains(&says), "{proves:?}: {says}\n{error}");
        let code = if target == ENVTEST { 3 } else { 2 };
        assert_eq!(output.status.code(), Some(code), "{proves:?}: {error}");
    }
}

#[test]
fn admit_does_not_start_with_manifests_that_cannot_be_used() {
    refuses(IN_PROCESS);
}

#[test]
fn kube_apiserver_does_not_start_with_them_either() {
    if machine::has_kube_apiserver() {
        refuses(ENVTEST);
    }
}
