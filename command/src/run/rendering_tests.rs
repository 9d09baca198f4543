//! Tests that hostile strings do not break the outputs of `admit run`.

use serde_json::Value;
use tokio::time::Instant;

use super::display::{Display, scenario_text};
use super::list;
use super::plan::{PlannedRule, PlannedScenario, PlannedStep};
use super::record::{Record, ScenarioKey, StepOutcome};
use super::report::{self, Circumstances};
use super::summary::{self, Evidence};
use crate::hostile;
use crate::narrator::{Note, NoteKind};
use crate::screen::Marks;
use crate::target::TargetKind;

/// Returns a scenario in which every string ends with `text`.
fn planned(text: &str) -> PlannedScenario {
    let step = PlannedStep {
        keyword: "Then".to_owned(),
        text: format!("it is{text}"),
        line: 3,
        argument: vec![format!("argument{text}")],
    };
    PlannedScenario {
        key: ScenarioKey { path: format!("a{text}.feature"), line: 2 },
        feature: format!("Feature{text}"),
        rule: Some(PlannedRule { name: format!("Rule{text}"), line: 1 }),
        name: format!("Scenario{text}"),
        tags: vec![format!("tag{text}")],
        steps: vec![step],
    }
}

/// Returns a record with a failed attempt, a passed attempt, and a skipped scenario.
fn record(text: &str) -> Record {
    let skipped = PlannedScenario { key: ScenarioKey { path: "b".to_owned(), line: 9 }, ..planned(text) };
    let scenarios = vec![(planned(text), None), (skipped, Some(format!("reason{text}")))];
    let mut record = Record::new(scenarios, Instant::now());
    let scenario = record.scenario_mut(0).unwrap();
    for _ in 0..2 {
        scenario.begin();
        let attempt = scenario.attempt_mut().unwrap();
        attempt.begin_step(0);
        attempt.end_step(
            0,
            StepOutcome::Failed(format!("message{text}")),
            vec![Note { kind: NoteKind::Cause, text: format!("told{text}") }],
        );
        attempt.trouble = Some(format!("trouble{text}"));
        scenario.end();
    }
    record
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn nothing_in_a_feature_controls_a_terminal_or_breaks_a_report(text in hostile::texts()) {
        let record = record(&text);
        let circumstances = Circumstances { target: TargetKind::InProcess, unchecked_audits: 1, warnings: &[] };
        let (junit, json, markdown) = report::documents(&record, circumstances).unwrap();
        hostile::is_xml(&junit);
        let json: Value = serde_json::from_str(&json).unwrap();
        let scenario = &json["features"][0]["rules"][0]["scenarios"][0];
        assert_eq!(scenario["name"], format!("Scenario{text}"));
        assert_eq!(scenario["attempts"][0]["steps"][0]["argument"][0], format!("argument{text}"));
        let listed = [(planned(&text), Some(format!("reason{text}")))];
        let mut display = Display::quiet();
        for shown in [
            list::text(&listed),
            summary::summary(&record, 1, Evidence::Documents),
            display.heading(&record.scenarios()[0]),
            scenario_text(&record.scenarios()[0], Marks::UNICODE, true),
            markdown,
        ] {
            hostile::is_safe(&shown);
        }
    }
}

#[test]
fn the_summary_in_markdown_has_a_row_per_feature_and_a_section_per_failure() {
    let circumstances = Circumstances { target: TargetKind::InProcess, unchecked_audits: 0, warnings: &[] };
    let (_, _, markdown) = report::documents(&record(" a|b*"), circumstances).unwrap();
    let (totals, rest) = markdown.split_once("\n\n| feature |").unwrap();
    assert!(
        totals.starts_with("## admit run\n\n2 features, 2 scenarios (1 failed, 1 skipped), 1 step, "),
        "{totals}"
    );
    let expected = r"
 passed | failed | skipped | not run |
|---|---|---|---|---|
| ❌ a a\|b\*.feature |  | 1 |  |  |
| b |  |  | 1 |  |

### ❌ Scenario a|b\*

a a|b\*.feature:3: **Then** it is a|b\*

```text
message a|b*
```

* told a|b\*

> **Skipped** 1 scenario: reason a|b\*
";
    assert_eq!(rest, expected.trim_start_matches('\n'));
}

#[test]
fn a_long_message_is_shortened_in_the_summary_and_cannot_leave_its_code_block() {
    let circumstances = Circumstances { target: TargetKind::InProcess, unchecked_audits: 0, warnings: &[] };
    let text = format!("\n```\n# heading\n{}", "x".repeat(10_000));
    let (_, _, markdown) = report::documents(&record(&text), circumstances).unwrap();
    assert!(markdown.contains("\n````text\nmessage\n```\n# heading\nxxx"), "{markdown}");
    assert!(markdown.contains("xxx…\n````\n"), "{markdown}");
}

#[test]
fn a_failed_scenario_is_shown_again_in_the_summary() {
    let summary = summary::summary(&record(""), 0, Evidence::Causes);
    let summary = anstream::adapter::strip_str(&summary).to_string();
    let expected = "\nerror: Scenario\n --> a.feature:3\n  |\n3 | Then it is\n  |\n  = message: message\n  = note: told\n\n";
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn a_summary_without_the_steps_has_the_calls_of_the_last_request() {
    let notes =
        [(NoteKind::Event, "labels: CREATE pods: allowed"), (NoteKind::Cause, "check: not called: false")];
    let notes = notes.map(|(kind, text)| Note { kind, text: text.to_owned() });
    let record = record_of([(StepOutcome::Failed("the object differs".to_owned()), notes.to_vec())]);
    let expected = "  = message: the object differs\n  = note: labels: CREATE pods: allowed\n  = note: check: not called: false\n";
    for (evidence, has_call) in [(Evidence::Calls, true), (Evidence::Causes, false)] {
        let summary = summary::summary(&record, 0, evidence);
        let summary = anstream::adapter::strip_str(&summary).to_string();
        assert_eq!(summary.contains(expected), has_call, "{summary}");
        assert!(summary.contains("= note: check"), "{summary}");
    }
}

/// Returns a record of scenarios that end with these outcomes of their only step, which has these notes.
fn record_of<const COUNT: usize>(outcomes: [(StepOutcome, Vec<Note>); COUNT]) -> Record {
    let scenarios = (0..COUNT).map(|index| {
        let mut scenario = planned("");
        scenario.key.line = 10 * index;
        scenario.steps[0].line = scenario.key.line + 1;
        (scenario, None)
    });
    let mut record = Record::new(scenarios.collect(), Instant::now());
    for (index, (outcome, notes)) in outcomes.into_iter().enumerate() {
        let scenario = record.scenario_mut(index).unwrap();
        scenario.begin();
        let attempt = scenario.attempt_mut().unwrap();
        attempt.begin_step(0);
        attempt.end_step(0, outcome, notes);
        scenario.end();
    }
    record
}

#[test]
fn help_for_a_rejection_is_not_shown_in_a_scenario_that_passes() {
    let notes = [(NoteKind::Cause, "403 Forbidden"), (NoteKind::Help, "change the object")];
    let notes = notes.map(|(kind, text)| Note { kind, text: text.to_owned() });
    let record = record_of([(StepOutcome::Passed, notes.to_vec())]);
    let text = scenario_text(&record.scenarios()[0], Marks::UNICODE, true);
    assert!(text.contains("403 Forbidden") && !text.contains("change the object"), "{text}");
}

#[test]
fn a_note_that_the_error_repeats_is_shortened_below_its_step() {
    let scenario_with = |outcome: StepOutcome| {
        let note = Note { kind: NoteKind::Cause, text: format!("500 InternalError: {}", "x".repeat(100)) };
        scenario_text(&record_of([(outcome, vec![note])]).scenarios()[0], Marks::UNICODE, true)
    };
    let failed = scenario_with(StepOutcome::Failed("expected the request to be admitted".to_owned()));
    assert!(failed.contains("500 InternalError: xxx") && failed.contains("xxx…"), "{failed}");
    let passed = scenario_with(StepOutcome::Passed);
    assert!(passed.contains(&"x".repeat(100)), "{passed}");
}

#[test]
fn failures_that_differ_in_a_uid_are_one_error() {
    let uids = ["0d4a0c3e-9f2b-4a7e-8c1d-1a2b3c4d5e6f", "5f6e7d8c-0b1a-4293-b4c5-d6e7f8091a2b"];
    let record = record_of(uids.map(|uid| {
        let message = format!("expected response.uid=\"{uid}\", got \"wrong\"");
        (StepOutcome::Failed(message), Vec::new())
    }));
    let summary = summary::summary(&record, 0, Evidence::Causes);
    assert!(summary.contains("2 scenarios fail in the same step"), "{summary}");
}

#[test]
fn only_the_first_of_several_failures_shows_their_common_help() {
    let record = record_of(["first", "second"].map(|message| {
        let help = Note { kind: NoteKind::Help, text: "change the object".to_owned() };
        (StepOutcome::Failed(message.to_owned()), vec![help])
    }));
    let summary = summary::summary(&record, 0, Evidence::Causes);
    assert_eq!(summary.matches("change the object").count(), 1, "{summary}");
    assert!(summary.contains("see the help for a.feature:1"), "{summary}");
}
