Feature: Namespace selector
  A webhook can ask to be called only for what is in namespaces with certain labels. Who may label namespaces decides, so
  that teams cannot escape a policy in the namespace that they were given.

  Source: Dynamic admission control, "Matching requests: namespaceSelector"; apiserver
  pkg/admission/plugin/webhook/predicates/namespace/matcher.go

  Rule: An object is judged by the labels of its namespace
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

    Scenario Outline: A webhook for all but run levels 0 and 1 is <called> in a namespace with <label>
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

    Scenario: The labels of the object itself do not matter
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

    Scenario Outline: An object <labeled> in a namespace for <stage>
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
        | labeled         | watched | stage      | is called      |
        | that is watched  | yes     | production | is called once |
        | that is watched  | yes     | test       | is not called  |
        | that is not      | no      | production | is not called  |

  Rule: A namespace is judged by its own labels
    @serial
    Scenario Outline: A change of a namespace is <seen> if it has the label <label>
      Given the webhooks are called for the namespace "<namespace>", too
      And a validating webhook "policy" for namespaces
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchLabels: {team: blue}}
        """
      When the namespace "<namespace>" gets the label "<label>"
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | seen     | label      | namespace   | is called      |
        | seen     | team=blue  | admit-blue  | is called once |
        | not seen | team=green | admit-green | is not called  |

    # On a cluster a scenario's webhooks are called for no Namespace that a step makes.
    @in-process @envtest @serial
    Scenario Outline: A new namespace is <seen> if it has the label <label>
      Given the webhooks are called for Namespaces, too
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
        | seen     | label | is called      |
        | seen     | blue  | is called once |
        | not seen | green | is not called  |

    @in-process @envtest @serial
    Scenario: The finalizers of a namespace are written by a request of their own
      Given the webhooks are called for Namespaces, too
      And this object exists:
        """yaml
        apiVersion: v1
        kind: Namespace
        metadata: {name: admit-finalized}
        """
      And a validating webhook "policy" for namespaces/finalize
      When the finalize of the namespace "admit-finalized" is updated:
        """yaml
        apiVersion: v1
        kind: Namespace
        metadata: {name: admit-finalized}
        spec: {finalizers: []}
        """
      Then the request is admitted
      And "policy" is called once

  Rule: What is in no namespace is not judged by any
    @serial
    Scenario: An ingress class is seen whatever the selector says
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
