Feature: Dry runs and side effects
  A dry run goes through admission but does not store the object. Each webhook declares whether it has side effects, because
  a webhook with side effects would cause them during a dry run, too.

  Source: Dynamic admission control, "Side effects"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go

  Rule: Webhooks without side effects on dry runs are called for dry runs
    Scenario Outline: A webhook with sideEffects <side effects> is called for a dry run, with dryRun set to true
      Given a mutating webhook "labels" for configmaps
      And "labels" is configured with:
        """yaml
        sideEffects: <side effects>
        """
      And "labels" adds the label "team=blue"
      And requests are dry runs
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object has the label "team=blue"
      And the configmap "settings" does not exist
      And the first review sent to "labels" contains:
        """yaml
        request: {dryRun: true, options: {dryRun: [All]}}
        """

      Examples:
        | side effects |
        | None         |
        | NoneOnDryRun |

    Scenario: A request that is not a dry run has dryRun set to false
      Given a validating webhook "policy" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request: {dryRun: false}
        """

    Scenario: A webhook can deny a dry run
      Given a validating webhook "policy" for configmaps
      And "policy" denies the request with the message "not today"
      And requests are dry runs
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And the message contains "not today"

  Rule: A webhook with NoneOnDryRun avoids its side effects on dry runs
    Source: Dynamic admission control, "Side effects", "Best practices: Side effects"

    Scenario: A webhook that checks dryRun returns the same response
      Given a mutating webhook "counter" for configmaps
      And "counter" is configured with:
        """yaml
        sideEffects: NoneOnDryRun
        """
      And "counter" behaves like this:
        """yaml
        when:
          if: {dry-run: true}
          then: {always-mutate: {labels: {team: blue}}}
          otherwise: {side-effect: {then: {always-mutate: {labels: {team: blue}}}}}
        """
      And requests are dry runs
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object has the label "team=blue"
      And the configmap "settings" does not exist

  Rule: A configuration must declare that there are no side effects, at least on dry runs
    Only v1beta1 accepted Some and Unknown. If such a configuration is still stored, dry runs that match its webhooks are
    rejected, whatever the failure policy.

    Source: Dynamic admission control, "Side effects"; KEP-492, "Goals"

    Scenario Outline: A configuration <that says> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingWebhookConfiguration
        metadata: {name: side-effects.admit.example.com}
        webhooks:
        - name: counter.admit.example.com
          clientConfig: {url: "https://127.0.0.1:9443/"}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          namespaceSelector: {matchLabels: {admit.example.com/nowhere: ""}}
          sideEffects: <side effects>
          admissionReviewVersions: [v1]
        """
      Then the request is rejected with 422 Invalid
      And the message contains '<because>'

      Examples:
        | that says                    | side effects | because                                                                                         |
        | without sideEffects          | null         | webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun                 |
        | with the sideEffects Some    | Some         | webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"    |
        | with the sideEffects Unknown | Unknown      | webhooks[0].sideEffects: Unsupported value: "Unknown": supported values: "None", "NoneOnDryRun" |
