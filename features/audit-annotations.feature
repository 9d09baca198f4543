Feature: Audit annotations
  The audit log records who changed an object during admission. Each call of a mutating webhook adds one annotation that
  says whether the object changed and one that contains the patch. Webhooks can add annotations of their own.

  Source: Dynamic admission control, "Mutating webhook auditing annotations"; apiserver
  pkg/admission/plugin/webhook/mutating/dispatcher.go and pkg/admission/audit.go

  Rule: The audit log records every call of a mutating webhook and whether it changed the object
    Scenario: One webhook changes the object and another does not
      Given a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      And a mutating webhook "watcher" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the audit log records that "labels" changed the object in the first round
      And the audit log records that "watcher" did not change the object in the first round
      And the audit log records that "labels" was not called in the second round

    Scenario: A call in the second round has its own annotation
      Given a mutating webhook "early" for configmaps
      And "early" has the reinvocation policy IfNeeded
      And a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the audit log records that "early" did not change the object in the first round
      And the audit log records that "early" did not change the object in the second round

    Scenario: A call that denies the request is recorded
      Given a mutating webhook "guard" for configmaps
      And "guard" denies the request with the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And the audit log records that "guard" did not change the object in the first round

  Rule: At the level Request and higher, the audit log contains the patch
    Scenario: The patch is recorded as the webhook returned it
      Given a mutating webhook "stage" for configmaps
      And "stage" patches the object:
        """yaml
        - {op: add, path: /data/stage, value: production}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the audit log records the patch of "stage" in the first round:
        """yaml
        - {op: add, path: /data/stage, value: production}
        """

  Rule: A webhook's own audit annotations are prefixed with its name
    Source: Dynamic admission control, "Response"; apiserver pkg/admission/audit.go

    Scenario Outline: The audit annotations of a <kind> webhook that <verdict> are recorded
      Given a <kind> webhook "policy" for configmaps
      And "policy" behaves like this:
        """yaml
        <behavior>: {auditAnnotations: {rule: weekdays, limit: "3"}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is <decided>
      And the audit annotation "rule" of "policy" is "weekdays"
      And the audit annotation "limit" of "policy" is "3"

      Examples:
        | kind       | verdict | behavior | decided           |
        | mutating   | allows  | allow    | admitted          |
        | validating | allows  | allow    | admitted          |
        | mutating   | denies  | deny     | rejected with 400 |
        | validating | denies  | deny     | rejected with 400 |
