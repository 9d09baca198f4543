//! Checks that assertions fail if they hold for any webhook, and that the error message explains the reason.

use expect_test::expect;

use crate::run::prints;

#[test]
#[expect(clippy::too_many_lines, reason = "the output of one run")]
fn assertions_that_cannot_fail_are_rejected() {
    prints(
        &["run", "tests/features/vacuous.feature", "--jobs", "1"],
        1,
        &expect![[r#"
            Feature: Assertions that cannot fail  tests/features/vacuous.feature
                FAIL "polcy" is not called  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  FAIL Then "polcy" is not called
                FAIL the audit log records that "polcy" was not called in the first round  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  FAIL Then the audit log records that "polcy" was not called in the first round
                FAIL the audit log does not record that "polcy" failed open  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  FAIL Then the audit log does not record that "polcy" failed open
                FAIL the audit log records that "policy" was not called in the second round  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  FAIL Then the audit log records that "policy" was not called in the second round
                FAIL the audit log records that "policy" did not change the object in the first round  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  FAIL Then the audit log records that "policy" did not change the object in the first round
                ok One of two fields is missing  _ s
                  ok Given a validating webhook "policy" for configmaps
                  ok When this object is created:
                        apiVersion: v1
                        kind: ConfigMap
                        metadata: {name: settings, labels: {team: blue}}
                        data: {a: b}
                      policy: CREATE configmaps: allowed
                      201 Created
                  ok Then the object does not contain:
                        metadata: {labels: {team: blue, tier: web}}
                      missing 1 of 2 fields: metadata.labels.tier: expected "web", found nothing

            error: "polcy" is not called
              --> tests/features/vacuous.feature:14
               |
            14 | Then "polcy" is not called
               |
               = message: unknown webhook "polcy": the scenario defines "policy"

            error: the audit log records that "polcy" was not called in the first round
              --> tests/features/vacuous.feature:14
               |
            14 | Then the audit log records that "polcy" was not called in the first round
               |
               = message: unknown webhook "polcy": the scenario defines "policy"

            error: the audit log does not record that "polcy" failed open
              --> tests/features/vacuous.feature:14
               |
            14 | Then the audit log does not record that "polcy" failed open
               |
               = message: unknown webhook "polcy": the scenario defines "policy"

            error: the audit log records that "policy" was not called in the second round
              --> tests/features/vacuous.feature:14
               |
            14 | Then the audit log records that "policy" was not called in the second round
               |
               = message: "policy" is a validating webhook: the audit log records rounds and changes only of mutating webhooks; use '"policy" is called …' instead

            error: the audit log records that "policy" did not change the object in the first round
              --> tests/features/vacuous.feature:14
               |
            14 | Then the audit log records that "policy" did not change the object in the first round
               |
               = message: "policy" is a validating webhook: the audit log records rounds and changes only of mutating webhooks; use '"policy" is called …' instead

            1 feature, 6 scenarios (1 passed, 5 failed), 18 steps, _ s
            1 passed, 5 failed
        "#]],
    );
}
