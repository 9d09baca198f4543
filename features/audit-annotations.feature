Feature: Audit annotations
  The audit log tells who changed an object on its way: each call of a mutating webhook leaves an annotation that says
  whether it changed something, and one with its patch. Webhooks can add what they want to be known later.

  Source: Dynamic admission control, "Mutating webhook auditing annotations"; apiserver
  pkg/admission/plugin/webhook/mutating/dispatcher.go and pkg/admission/audit.go

  Rule: Every call of a mutating webhook is told, with whether it changed the object
    Scenario: One that does and one that does not
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
      And the audit log says that "labels" changed the object in the first round
      And the audit log says that "watcher" did not change the object in the first round
      And the audit log says that "labels" was not called in the second round

    Scenario: A call in the second round is told beside that of the first
      Given a mutating webhook "early" for configmaps
      And "early" may be reinvoked
      And a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the audit log says that "early" did not change the object in the first round
      And the audit log says that "early" did not change the object in the second round

    Scenario: A webhook that denies has been called, too
      Given a mutating webhook "guard" for configmaps
      And "guard" denies the request with the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 400
      And the audit log says that "guard" did not change the object in the first round

  Rule: From the level Request on, the log has the patch
    Scenario: The operations as the webhook sent them
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
      And the audit log has the patch of "stage" in the first round:
        """yaml
        - {op: add, path: /data/stage, value: production}
        """

  Rule: What a webhook wants to be known stands in the log under its name
    Source: Dynamic admission control, "Response"; apiserver pkg/admission/audit.go

    Scenario Outline: The annotations of a <kind> webhook that <verdict>
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
        | kind       | verdict | behavior | decided          |
        | mutating   | allows  | allow     | admitted         |
        | validating | allows  | allow     | admitted         |
        | mutating   | denies  | deny      | refused with 400 |
        | validating | denies  | deny      | refused with 400 |
