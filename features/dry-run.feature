Feature: Dry runs and side effects
  A dry run asks what would happen: the server does everything but store the object. A webhook that changes something
  elsewhere would do so for nothing, so that each says whether it has such side effects.

  Source: Dynamic admission control, "Side effects"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go

  Rule: Webhooks without side effects on dry runs are called for dry runs
    Scenario Outline: A webhook with the side effects <side effects> is told that it is a dry run
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
      And the first review of "labels" contains:
        """yaml
        request: {dryRun: true, options: {dryRun: [All]}}
        """

      Examples:
        | side effects |
        | None         |
        | NoneOnDryRun |

    Scenario: A request that is none says so, too
      Given a validating webhook "policy" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request: {dryRun: false}
        """

    Scenario: A dry run can be denied
      Given a validating webhook "policy" for configmaps
      And "policy" denies the request with the message "not today"
      And requests are dry runs
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 400
      And the message contains "not today"

  Rule: A webhook with side effects leaves them out on dry runs
    Source: Dynamic admission control, "Side effects", "Best practices: Side effects"

    Scenario: A webhook that looks whether it is a dry run answers as ever
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

  Rule: A configuration must say that there are none, at least on dry runs
    Only a server of years ago took Some and Unknown. Where such a configuration is still stored, dry runs that its webhooks
    match are refused, whatever the failure policy says.

    Source: Dynamic admission control, "Side effects"; KEP-492, "Goals"

    Scenario Outline: A configuration <that says> is refused
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
      Then the request is refused with 422 Invalid
      And the message contains '<because>'

      Examples:
        | that says                     | side effects | because                                                                        |
        | that says nothing of them     | null         | webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun |
        | that says Some                | Some         | webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun" |
        | that says Unknown             | Unknown      | webhooks[0].sideEffects: Unsupported value: "Unknown": supported values: "None", "NoneOnDryRun" |
