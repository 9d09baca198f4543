Feature: Assertions that cannot fail

  Background:
    Given a validating webhook "policy" for configmaps
    When this object is created:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: settings, labels: {team: blue}}
      data: {a: b}
      """

  Scenario Outline: <step>
    Then <step>

    Examples:
      | step                                                                        |
      | "polcy" is not called                                                       |
      | the audit log records that "polcy" was not called in the first round           |
      | the audit log does not record that "polcy" failed open                         |
      | the audit log records that "policy" was not called in the second round         |
      | the audit log records that "policy" did not change the object in the first round |

  Scenario: One of two fields is missing
    Then the object does not contain:
      """yaml
      metadata: {labels: {team: blue, tier: web}}
      """
