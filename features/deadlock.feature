Feature: Webhooks that stand in their own way
  A webhook that runs in the cluster may be called for what it needs itself: its own pods, or those of the cluster's
  system. While it is down, nobody can start it again.

  Source: Dynamic admission control, "Avoiding deadlocks in self-hosted webhooks"; Admission Webhook Good Practices

  Rule: A webhook that is called for its own pods cannot come back
    Scenario: The pod of a webhook that is down is refused because the webhook is down
      Given a mutating webhook "labels" for pods
      And "labels" has the failure policy Fail
      And "labels" refuses connections
      When a pod with the label "app=labels" is created
      Then the request is refused with 500 InternalError
      And the message contains 'failed calling webhook "labels.admit.example.com"'
      And the pod "web" does not exist

    Scenario: A webhook that demands a label of every pod refuses its own
      Given a mutating webhook "policy" for pods
      And "policy" behaves like this:
        """yaml
        when: {if: {label: {env: prod}}, then: allow, otherwise: {deny: {message: pods need the label env=prod}}}
        """
      When a pod with the label "app=policy" is created
      Then the request is refused with 400
      And the message contains "pods need the label env=prod"

  Rule: A namespace selector leaves out the namespace where the webhook runs
    Scenario: The pod of a webhook that is down starts in its own namespace
      Given the namespace has the label "app.example.com/runs=labels"
      And a mutating webhook "labels" for pods
      And "labels" is configured with:
        """yaml
        namespaceSelector:
          matchExpressions:
          - {key: app.example.com/runs, operator: NotIn, values: [labels]}
        """
      And "labels" refuses connections
      When a pod with the label "app=labels" is created
      Then the request is admitted

    Scenario: An object selector on its own pods helps, too, but clients that create pods choose their labels
      Source: KEP-492, "Object selector"

      Given a mutating webhook "labels" for pods
      And "labels" is configured with:
        """yaml
        objectSelector:
          matchExpressions:
          - {key: app, operator: NotIn, values: [labels]}
        """
      And "labels" refuses connections
      When a pod with the label "app=labels" is created
      Then the request is admitted

  Rule: The namespace of the system is left out in the same way
    Source: Dynamic admission control, "Avoiding operating on the kube-system namespace"

    @in-process @envtest @serial
    Scenario Outline: What is created in kube-system is <seen> by a webhook <which>
      Not on a cluster: a scenario takes no namespace there that it has not made.

      Given the webhooks are called for the namespace "kube-system", too
      And a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        namespaceSelector: {matchExpressions: <expressions>}
        """
      And "policy" denies the request with the message "seen"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: admit-system, namespace: kube-system}
        """
      Then the request is <decided>

      Examples:
        | seen     | which                  | expressions                                                                | decided          |
        | seen     | for all namespaces     | []                                                                         | refused with 400 |
        | not seen | that leaves it out     | [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}] | admitted         |
