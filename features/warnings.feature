Feature: Warnings
  A webhook can tell the client something beside its verdict: what will not work, what is going away. kubectl prints it
  as "Warning: …", so that the text says no "Warning:" itself, and is best short.

  Source: Dynamic admission control, "Response"; apiserver pkg/endpoints/filters/warning.go

  Rule: Warnings come with every verdict
    Scenario Outline: A <kind> webhook warns of what it <verdict>
      Given a <kind> webhook "advice" for configmaps
      And "advice" behaves like this:
        """yaml
        <behavior>: {warnings: [MODE is given twice, the limit is low]}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is <decided>
      And the client is warned "MODE is given twice"
      And the client is warned "the limit is low"

      Examples:
        | kind       | verdict | behavior | decided          |
        | mutating   | allows  | allow     | admitted         |
        | validating | allows  | allow     | admitted         |
        | mutating   | denies  | deny      | refused with 400 |
        | validating | denies  | deny      | refused with 400 |

    Scenario: The warnings of all webhooks reach the client
      Given a mutating webhook "early" for configmaps
      And "early" behaves like this:
        """yaml
        allow: {warnings: [from the first]}
        """
      And a validating webhook "late" for configmaps
      And "late" behaves like this:
        """yaml
        allow: {warnings: [from the second]}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client is warned "from the first"
      And the client is warned "from the second"

    Scenario: A dry run brings them, too
      Given a validating webhook "advice" for configmaps
      And "advice" behaves like this:
        """yaml
        allow: {warnings: [the limit is low]}
        """
      And requests are dry runs
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client is warned "the limit is low"

  Rule: A response that is not valid warns of nothing
    Scenario: The warnings of a webhook that failed open are lost
      Given a validating webhook "advice" for configmaps
      And "advice" has the failure policy Ignore
      And "advice" behaves like this:
        """yaml
        raw: {response: {uid: of-another-review, allowed: true, warnings: [the limit is low]}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client is not warned
      And the audit log says that "advice" failed open
