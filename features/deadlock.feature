Feature: Webhook deadlocks
  A webhook that runs in the cluster may be called for its own pods, or for the pods of system components that it needs.
  While the webhook is down, those pods cannot be created.

  Source: Dynamic admission control, "Avoiding deadlocks in self-hosted webhooks"; Admission Webhook Good Practices

  Rule: A webhook that matches its own pods cannot be restarted
    Scenario: A pod of an unavailable webhook is rejected by that webhook
      Given a mutating webhook "labels" for pods
      And "labels" has the failure policy Fail
      And "labels" refuses connections
      When a pod with the label "app=labels" is created
      Then the request is rejected with 500 InternalError
      And the message contains 'failed calling webhook "labels.admit.example.com"'
      And the pod "web" does not exist

    Scenario: A webhook that requires a label on every pod rejects its own pod
      Given a mutating webhook "policy" for pods
      And "policy" behaves like this:
        """yaml
        when: {if: {label: {env: prod}}, then: allow, otherwise: {deny: {message: pods need the label env=prod}}}
        """
      When a pod with the label "app=policy" is created
      Then the request is rejected with 400
      And the message contains "pods need the label env=prod"

  Rule: A namespace selector exempts the webhook's own namespace
    Scenario: A pod of an unavailable webhook is admitted in the exempted namespace
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

    Scenario: An object selector exempts the webhook's pods, but clients choose the labels of their pods
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

  Rule: A namespace selector exempts kube-system in the same way
    Source: Dynamic admission control, "Avoiding operating on the kube-system namespace"

    @in-process @envtest @serial
    Scenario Outline: A webhook <scope> is <called> for objects in kube-system
      Not on a cluster: a scenario does not change namespaces of a cluster that it did not create.

      Given webhooks are also called in the namespace "kube-system"
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
        | called     | scope                     | expressions                                                                  | decided           |
        | called     | for all namespaces        | []                                                                           | rejected with 400 |
        | not called | that excludes kube-system | [{key: kubernetes.io/metadata.name, operator: NotIn, values: [kube-system]}] | admitted          |
