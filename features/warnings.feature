Feature: Warnings
  A webhook can return warnings, for example about a deprecated field. kubectl prints them as "Warning: …". The text should
  be short and should not start with "Warning:".

  Source: Dynamic admission control, "Response"; apiserver pkg/endpoints/filters/warning.go

  Rule: Warnings are returned with every verdict
    Scenario Outline: A <kind> webhook that <verdict> the request can return warnings
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
      And the client receives the warning "MODE is given twice"
      And the client receives the warning "the limit is low"

      Examples:
        | kind       | verdict | behavior | decided           |
        | mutating   | allows  | allow    | admitted          |
        | validating | allows  | allow    | admitted          |
        | mutating   | denies  | deny     | rejected with 400 |
        | validating | denies  | deny     | rejected with 400 |

    Scenario: The client receives the warnings of all webhooks
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
      And the client receives the warning "from the first"
      And the client receives the warning "from the second"

    Scenario: A dry run returns warnings, too
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
      And the client receives the warning "the limit is low"

  Rule: Warnings in an invalid response are ignored
    Scenario: The client does not receive the warnings of a webhook that failed open
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
      And the client receives no warnings
      And the audit log records that "advice" failed open
