Feature: Timeouts
  Clients wait for webhooks. timeoutSeconds limits how long the API server waits for a webhook. After that the call has
  failed, and the failure policy applies.

  Source: Dynamic admission control, "Timeouts"; KEP-492, "timeout configuration"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go

  Rule: A response within the timeout counts
    Source: Dynamic admission control, "Timeouts", "Availability"

    Scenario: A slow response within the timeout counts
      Given a validating webhook "slow" for configmaps
      And "slow" has a timeout of 5 seconds
      And "slow" behaves like this:
        """yaml
        timeout: {hang: 200ms, then: {deny: {message: not today}}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And the message contains "not today"

  Rule: After the timeout, the failure policy applies
    Source: Dynamic admission control, "Timeouts", "Availability", "Failure policy"; KEP-492, "timeout configuration"

    Scenario Outline: With the failure policy <policy>, the request is <decided>
      Given a validating webhook "slow" for configmaps
      And "slow" has a timeout of 1 second
      And "slow" has the failure policy <policy>
      And "slow" never responds
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is <decided>

      Examples:
        | policy | decided                         |
        | Fail   | rejected with 500 InternalError |
        | Ignore | admitted                        |

    Scenario: Each webhook has its own timeout
      Given a mutating webhook "slow" for configmaps
      And "slow" has a timeout of 1 second
      And "slow" has the failure policy Ignore
      And "slow" never responds
      And a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object has the label "team=blue"

  Rule: The timeout is between 1 and 30 seconds, and 10 by default
    Source: Dynamic admission control, "Timeouts"; KEP-492, "timeout configuration", "Validations"

    Scenario: The API server sends the timeout to the webhook
      Given a validating webhook "broken" for configmaps
      And "broken" refuses connections
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains "?timeout=10s"

    Scenario Outline: A timeout of <seconds> seconds is <decided>
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: timeout.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "https://127.0.0.1:9443/"}
          rules: []
          sideEffects: None
          admissionReviewVersions: [v1]
          timeoutSeconds: <seconds>
        """
      Then the request is rejected with 422 Invalid
      And the message contains "the timeout value must be between 1 and 30 seconds"

      Examples:
        | seconds | decided   |
        | 0       | too short |
        | 31      | too long  |
