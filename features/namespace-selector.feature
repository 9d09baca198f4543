Feature: Namespace selector
  A namespace selector limits a webhook to namespaces with certain labels. Only users who may label namespaces control it,
  so teams with access to one namespace cannot bypass the policy.

  Source: Dynamic admission control, "Matching requests: namespaceSelector"; apiserver
  pkg/admission/plugin/webhook/predicates/namespace/matcher.go

  Rule: An object is selected by the labels of its namespace
    Scenario Outline: A webhook for production and staging is <called> in <stage>
      Given the namespace has the label "environment=<stage>"
      And a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        namespaceSelector:
          matchExpressions:
          - {key: environment, operator: In, values: [production, staging]}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | called     | stage      | is called      |
        | called     | production | is called once |
        | called     | staging    | is called once |
        | not called | test       | is not called  |

    Scenario Outline: A webhook that excludes run levels 0 and 1 is <called> in a namespace with the label <label>
      Given the namespace has the label "<label>"
      And a mutating webhook "labels" for configmaps
      And "labels" is configured with:
        """yaml
        namespaceSelector:
          matchExpressions:
          - {key: runlevel, operator: NotIn, values: ["0", "1"]}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "labels" <is called>

      Examples:
        | called     | label      | is called      |
        | not called | runlevel=0 | is not called  |
        | not called | runlevel=1 | is not called  |
        | called     | runlevel=2 | is called once |
        | called     | team=blue  | is called once |

    Scenario: The labels of the object itself are not used
      Given the namespace has the label "environment=test"
      And a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {environment: production}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, labels: {environment: production}}
        """
      Then the request is admitted
      And "policy" is not called

  Rule: Both selectors must match
    Source: KEP-492, "Object selector"

    Scenario Outline: A webhook <is called> for an object with the label watched=<watched> in <stage>
      Given the namespace has the label "environment=<stage>"
      And a validating webhook "policy" for configmaps
      And "policy" selects objects with the label "watched=yes"
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {environment: production}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, labels: {watched: "<watched>"}}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | watched | stage      | is called      |
        | yes     | production | is called once |
        | yes     | test       | is not called  |
        | no      | production | is not called  |

  Rule: A Namespace is selected by its own labels
    @serial
    Scenario Outline: A webhook is <called> for an update of a namespace with the label <label>
      Given webhooks are also called in the namespace "<namespace>"
      And a validating webhook "policy" for namespaces
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {team: blue}}
        """
      When the label "<label>" is added to the namespace "<namespace>"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | called     | label      | namespace   | is called      |
        | called     | team=blue  | admit-blue  | is called once |
        | not called | team=green | admit-green | is not called  |

    # On a cluster, webhooks of a scenario are not called for Namespace objects.
    @in-process @envtest @serial
    Scenario Outline: A webhook is <called> for a new namespace with the label team=<label>
      Given webhooks are also called for Namespace objects
      And a validating webhook "policy" for namespaces
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {team: blue}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: Namespace
        metadata: {name: admit-new, labels: {team: <label>}}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | called     | label | is called      |
        | called     | blue  | is called once |
        | not called | green | is not called  |

    @in-process @envtest @serial
    Scenario: The finalizers of a namespace are updated by a separate request
      Given webhooks are also called for Namespace objects
      And this object exists:
        """yaml
        apiVersion: v1
        kind: Namespace
        metadata: {name: admit-finalized}
        """
      And a validating webhook "policy" for namespaces/finalize
      When the finalize subresource of the namespace "admit-finalized" is updated:
        """yaml
        apiVersion: v1
        kind: Namespace
        metadata: {name: admit-finalized}
        spec: {finalizers: []}
        """
      Then the request is admitted
      And "policy" is called once

  Rule: The namespace selector does not apply to cluster-scoped objects
    @serial
    Scenario: A webhook is called for an IngressClass, whatever its namespace selector
      Given a validating webhook "policy" for ingressclasses
      And "policy" selects objects with the label "admit.example.com/seen=selector"
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {team: of-no-namespace}}
        """
      When this object is created:
        """yaml
        apiVersion: networking.k8s.io/v1
        kind: IngressClass
        metadata: {name: admit-selector, labels: {admit.example.com/seen: selector}}
        spec: {controller: admit.example.com/none}
        """
      Then the request is admitted
      And "policy" is called once
