//! Tests `--baseline` and `--write-baseline` of `admit verify`.

use serde_json::Value;

use super::command::{Stage, ends_with};

const BASE: [&str; 6] = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V17"];

async fn verify(stage: &Stage, more: &[&str], status: i32) -> String {
    ends_with(&stage.verify(&[&BASE[..], more].concat()).await, status)
}

#[tokio::test(flavor = "multi_thread")]
async fn known_findings_are_accepted_and_only_others_fail() {
    let stage = Stage::with("non-idempotent").await;
    verify(&stage, &[], 1).await;
    // Known findings do not fail the run, but every entry needs a reason before it counts.
    let text = verify(&stage, &["--write-baseline", "known.yaml"], 0).await;
    // The command shows what the baseline accepts from now on.
    assert!(
        text.contains("error[V01]: not idempotent: called with its own result")
            && text.contains("  = help: "),
        "{text}"
    );
    assert!(text.contains("  = baseline: accepts this finding from now on\n"), "{text}");
    assert!(text.contains("0 findings, 1 accepted (1 added to the baseline); "), "{text}");
    let text = verify(&stage, &["--baseline", "known.yaml"], 2).await;
    assert!(
        text.contains("known.yaml:11: findings[0].reason: must say why the finding is accepted"),
        "{text}"
    );
    verify(&stage, &["--write-baseline", "known.yaml", "--baseline-reason", "injector#12"], 0).await;
    let text = verify(&stage, &["--write-baseline", "known.yaml"], 0).await;
    assert!(text.contains("(injector#12)") && !text.contains("accepts this finding from now on"), "{text}");
    let text = verify(&stage, &["--baseline", "known.yaml"], 0).await;
    let accepted =
        "accepted[V01] c/w.example.com: not idempotent: metadata.annotations.non-idempotent (injector#12)\n";
    assert!(text.contains(accepted), "{text}");
    assert!(text.contains("0 findings, 1 accepted; "), "{text}");

    // An entry accepts only its fields: another change of the second call is a new finding.
    let known = std::fs::read_to_string(stage.path("known.yaml")).expect("it is there");
    let other = known.replace("metadata.annotations.non-idempotent", "spec.volumes");
    assert_ne!(other, known);
    std::fs::write(stage.path("other.yaml"), other).expect("it is written");
    let text = verify(&stage, &["--baseline", "other.yaml"], 1).await;
    assert!(text.contains("error[V01]: not idempotent"), "{text}");

    // A JSON report contains the same, and merging evaluates it again.
    let output = stage.verify(&[&BASE[..], &["-o", "json", "--baseline", "known.yaml"]].concat()).await;
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(report["checks"][0]["findings"][0]["accepted"], "injector#12");
    let output = stage.verify(&[&BASE[..], &["-o", "json"]].concat()).await;
    std::fs::write(stage.path("report.json"), &output.stdout).expect("it is written");
    ends_with(&stage.verify(&["merge", "report.json"]).await, 1);
    ends_with(&stage.verify(&["merge", "report.json", "--baseline", "known.yaml"]).await, 0);

    // A finding that is not in the baseline fails the run.
    let other = std::fs::read_to_string(stage.path("known.yaml")).expect("it is there").replace("c/w", "c/v");
    std::fs::write(stage.path("other.yaml"), other).expect("it is written");
    let text = verify(&stage, &["--baseline", "other.yaml"], 1).await;
    assert!(
        text.contains("warning: the baseline accepts V01") && text.contains(" --> other.yaml:5\n"),
        "{text}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn stale_entries_are_reported_and_dropped_when_the_file_is_rewritten() {
    let broken = Stage::with("non-idempotent").await;
    verify(&broken, &["--write-baseline", "known.yaml", "--baseline-reason", "injector#12"], 0).await;
    let mended = Stage::with("always-mutate").await;
    std::fs::copy(broken.path("known.yaml"), mended.path("known.yaml")).expect("it is copied");
    let text = verify(&mended, &["--baseline", "known.yaml"], 0).await;
    assert!(
        text.contains("warning: the baseline accepts V01") && text.contains(" --> known.yaml:5\n"),
        "{text}"
    );
    let output = mended.verify(&[&BASE[..], &["--write-baseline", "known.yaml"]].concat()).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    let removed = "known.yaml: removed V01 \"not idempotent\" for c/w.example.com (metadata.annotations.non-idempotent): \
                   no longer found\n";
    assert!(output.status.success() && errors.contains(removed), "{errors}");
    let text = verify(&mended, &["--baseline", "known.yaml"], 0).await;
    assert!(!text.contains("the baseline accepts"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_that_an_accepted_finding_explains_does_not_make_the_run_incomplete() {
    let stage = Stage::with("non-idempotent").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V02"];
    let write =
        [&arguments[..], &["--write-baseline", "known.yaml", "--baseline-reason", "injector#12"]].concat();
    let text = ends_with(&stage.verify(&write).await, 0);
    assert!(text.contains("1 check not completed: V02"), "{text}");
    let text = ends_with(&stage.verify(&[&arguments[..], &["--baseline", "known.yaml"]].concat()).await, 0);
    assert!(!text.contains("exit status"), "{text}");
    // Without V01, nothing explains V02.
    let text =
        ends_with(&stage.verify(&["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V02"]).await, 6);
    let reason = "exit status 6: V02 could not be completed for c/w.example.com: the webhook changes its own result: see V01 (first for Pod bare)\n";
    assert!(text.contains(reason), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn accepted_patch_that_does_not_apply_does_not_make_the_run_incomplete() {
    let stage =
        Stage::with("patch: {operations: [{op: add, path: /spec/nodeSelector/zone, value: a}]}").await;
    let arguments = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V02,V15"];
    let write =
        [&arguments[..], &["--write-baseline", "known.yaml", "--baseline-reason", "injector#12"]].concat();
    let text = ends_with(&stage.verify(&write).await, 0);
    assert!(text.contains("2 checks not completed: V01, V02"), "{text}");
    ends_with(&stage.verify(&[&arguments[..], &["--baseline", "known.yaml"]].concat()).await, 0);
    // Without V15, nothing explains V02.
    let text =
        ends_with(&stage.verify(&["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V02"]).await, 6);
    assert!(text.contains("see V15\n"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn baseline_of_an_incomplete_run_has_a_warning() {
    let stage = Stage::with("non-idempotent").await;
    let base = ["-c", "configuration.yaml", "-f", "pods.yaml", "--write-baseline", "known.yaml"];
    let output = stage.verify(&[&base[..], &["--check", "V02"]].concat()).await;
    assert_eq!(output.status.code(), Some(6));
    let errors = String::from_utf8_lossy(&output.stderr);
    let warning = "warning: the baseline may be incomplete: V02 could not be completed for c/w.example.com: the webhook \
                   changes its own result: see V01; write it again when they can be completed";
    assert!(errors.contains(warning), "{errors}");
    let output = stage.verify(&[&base[..], &["--check", "V01"]].concat()).await;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("incomplete"), "{errors}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_of_denials_is_not_exercised_without_a_denial() {
    let checks = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V22,V25,V11"];
    let stage = Stage::with("always-mutate").await;
    let text = ends_with(&stage.verify(&checks).await, 0);
    let line = "1 check not exercised: V25: the webhook denied no object; add an object that the webhook denies \
                to the files of -f\n";
    assert!(text.contains(line) && text.contains("\n2 checks passed"), "{text}");
    let text = ends_with(&stage.verify(&[&checks[..], &["-v"]].concat()).await, 0);
    assert!(
        text.contains(
            "\nV25 not exercised   c/w.example.com: denial messages (the webhook denied no object)\n"
        ),
        "{text}"
    );
    // A single denied object is enough.
    let stage = Stage::with(
        "when: {if: {equals: {/metadata/name: bare}}, then: {deny: {message: no}}, otherwise: always-mutate}",
    )
    .await;
    let text = ends_with(&stage.verify(&checks).await, 0);
    assert!(!text.contains("not exercised"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_of_changes_are_not_exercised_without_a_change() {
    let stage = Stage::with("allow").await;
    let checks = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V04,V11,V17,V24"];
    let text = ends_with(&stage.verify(&checks).await, 0);
    let line = "4 checks not exercised: V01, V04, V17, V24: the webhook never changed an object; add objects that \
                the webhook changes to the files of -f\n";
    assert!(text.contains(line) && text.contains("\n1 check passed"), "{text}");
    assert!(text.starts_with("c/w.example.com: never changed an object\n"), "{text}");
    // The reasons of checks of changes and of denials are one sentence.
    let checks = ["-c", "configuration.yaml", "-f", "pods.yaml", "--check", "V01,V25"];
    let text = ends_with(&stage.verify(&checks).await, 0);
    let line = "2 checks not exercised: V01, V25: the webhook denied no object and the webhook never changed an \
                object; add objects that the webhook denies and objects that it changes to the files of -f\n";
    assert!(text.contains(line), "{text}");
}
