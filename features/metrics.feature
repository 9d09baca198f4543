Feature: Metrics
  kube-apiserver counts under /metrics what webhooks decide and how they fail, by the name of the webhook. So one sees
  which of them refuses requests, and whether it does so because it should or because it cannot be reached.

  No two webhooks here have the same name: the counters are those of all scenarios.

  Source: Dynamic admission control, "Admission webhook metrics", "API server admission webhook rejection count"; apiserver
  pkg/admission/metrics/metrics.go

  Rule: A rejection is counted with its cause
    The code is that of the webhook's answer. A call that failed has 503 in place of one, an error of the server itself 0.

    Scenario Outline: A <kind> webhook that <does> is counted as <cause>
      Given a <kind> webhook "<kind>-<cause>.metrics.example.com" for configmaps
      And "<kind>-<cause>.metrics.example.com" <does>
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with <code>
      And the metric apiserver_admission_webhook_rejection_count of "<kind>-<cause>.metrics.example.com" counts the request with:
        """yaml
        {type: <type>, operation: CREATE, error_type: <error type>, rejection_code: "<counted code>"}
        """

      Examples:
        | kind       | does                                                          | cause       | code | type       | error type               | counted code |
        | mutating   | denies the request with 403 Forbidden and the message "no"    | denied      | 403  | admit      | no_error                 | 403          |
        | validating | denies the request with 403 Forbidden and the message "no"    | denied      | 403  | validating | no_error                 | 403          |
        | mutating   | refuses connections                                           | failed      | 500  | admit      | calling_webhook_error    | 503          |
        | validating | refuses connections                                           | failed      | 500  | validating | calling_webhook_error    | 503          |
        | mutating   | gives the bad response "patch-that-does-not-apply"            | patch       | 500  | admit      | apiserver_internal_error | 0            |

  Rule: What match conditions leave out is counted, and what they cannot say
    Source: KEP-3716, "Monitoring Requirements"

    Scenario: A request that a condition leaves out
      Given a validating webhook "excluded.metrics.example.com" for configmaps
      And "excluded.metrics.example.com" has the match condition "never":
        """cel
        false
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the metric apiserver_admission_match_condition_exclusions_total of "excluded.metrics.example.com" counts the request with:
        """yaml
        {kind: webhook, type: validate, operation: CREATE}
        """

    Scenario: A condition that fails
      Given a validating webhook "unclear.metrics.example.com" for configmaps
      And "unclear.metrics.example.com" has the match condition "stage":
        """cel
        object.data.stage == 'production'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 403
      And the metric apiserver_admission_match_condition_evaluation_errors_total of "unclear.metrics.example.com" counts the request with:
        """yaml
        {kind: webhook, type: validating, operation: CREATE}
        """

  Rule: A webhook that failed open is counted
    Scenario: A request that went by a webhook without an answer
      Given a validating webhook "open.metrics.example.com" for configmaps
      And "open.metrics.example.com" has the failure policy Ignore
      And "open.metrics.example.com" refuses connections
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the metric apiserver_admission_webhook_fail_open_count of "open.metrics.example.com" counts the request with:
        """yaml
        {type: validating}
        """

  Rule: Every call is counted, with its verdict and its code
    Scenario: A call that allows
      Given a mutating webhook "calls.metrics.example.com" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the metric apiserver_admission_webhook_request_total of "calls.metrics.example.com" counts the request with:
        """yaml
        {type: admit, operation: CREATE, code: "200", rejected: "false"}
        """
      And the metric apiserver_admission_webhook_admission_duration_seconds_count of "calls.metrics.example.com" counts the request with:
        """yaml
        {type: admit, operation: CREATE, rejected: "false"}
        """
