Feature: Metrics
  kube-apiserver counts the decisions and failures of webhooks by webhook name under /metrics. The counters show which
  webhooks reject requests, and whether they deny them or cannot be reached.

  Each webhook here has a unique name, because all scenarios share the counters.

  Source: Dynamic admission control, "Admission webhook metrics", "API server admission webhook rejection count"; apiserver
  pkg/admission/metrics/metrics.go

  Rule: Rejections are counted with their cause
    The code is the one in the webhook's response. It is 503 for a failed call, and 0 for an internal error of the server.

    Scenario Outline: A rejection by a <kind> webhook that <does> has the error type <error type>
      Given a <kind> webhook "<kind>-<cause>.metrics.example.com" for configmaps
      And "<kind>-<cause>.metrics.example.com" <does>
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with <code>
      And the metric apiserver_admission_webhook_rejection_count for "<kind>-<cause>.metrics.example.com" increases by 1 with the labels:
        """yaml
        {type: <type>, operation: CREATE, error_type: <error type>, rejection_code: "<counted code>"}
        """

      Examples:
        | kind       | does                                                       | cause  | code | type       | error type               | counted code |
        | mutating   | denies the request with 403 Forbidden and the message "no" | denied | 403  | admit      | no_error                 | 403          |
        | validating | denies the request with 403 Forbidden and the message "no" | denied | 403  | validating | no_error                 | 403          |
        | mutating   | refuses connections                                        | failed | 500  | admit      | calling_webhook_error    | 503          |
        | validating | refuses connections                                        | failed | 500  | validating | calling_webhook_error    | 503          |
        | mutating   | returns the bad response "patch-that-does-not-apply"       | patch  | 500  | admit      | apiserver_internal_error | 0            |

  Rule: Match condition exclusions and evaluation errors are counted
    Source: KEP-3716, "Monitoring Requirements"

    Scenario: A request that a condition excludes is counted
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
      And the metric apiserver_admission_match_condition_exclusions_total for "excluded.metrics.example.com" increases by 1 with the labels:
        """yaml
        {kind: webhook, type: validate, operation: CREATE}
        """

    Scenario: A condition that cannot be evaluated is counted
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
      Then the request is rejected with 403
      And the metric apiserver_admission_match_condition_evaluation_errors_total for "unclear.metrics.example.com" increases by 1 with the labels:
        """yaml
        {kind: webhook, type: validating, operation: CREATE}
        """

  Rule: Failing open is counted
    Scenario: A request that is admitted without a response from the webhook is counted
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
      And the metric apiserver_admission_webhook_fail_open_count for "open.metrics.example.com" increases by 1 with the labels:
        """yaml
        {type: validating}
        """

  Rule: Every call is counted with its verdict and code
    Scenario: A call that allows the request is counted
      Given a mutating webhook "calls.metrics.example.com" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the metric apiserver_admission_webhook_request_total for "calls.metrics.example.com" increases by 1 with the labels:
        """yaml
        {type: admit, operation: CREATE, code: "200", rejected: "false"}
        """
      And the metric apiserver_admission_webhook_admission_duration_seconds_count for "calls.metrics.example.com" increases by 1 with the labels:
        """yaml
        {type: admit, operation: CREATE, rejected: "false"}
        """
