@in-process @envtest
Feature: Verifying webhooks
  A webhook is called again with what it made before, after others have changed it, and with objects of every shape. The
  checks of "admit verify" ask whether it bears that, here about the webhooks of a scenario.

  Not on a cluster: the checks call the webhook from this machine, and nothing here reaches a pod behind its Service.

  Source: Kubernetes documentation, Admission Webhook Good Practices; KEP-492

  Rule: A mutating webhook leaves alone what it has done already
    Source: Dynamic admission control, "Idempotence"; KEP-492, "Mutating Plugin ordering"

    Scenario: A label that is set once more is the same label
      Given a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      Then "labels" is idempotent for every pod in the corpus

    Scenario: A text that grows at every call does not
      Given a mutating webhook "counter" for configmaps
      And "counter" behaves like this:
        """yaml
        non-idempotent
        """
      Then "counter" is not idempotent

    Scenario: What is found can be told by its words
      Given a mutating webhook "counter" for services
      And "counter" behaves like this:
        """yaml
        non-idempotent
        """
      Then the check V01 finds "called with its own result" for "counter"

  Rule: What a webhook does to an object does not depend on who came first
    Scenario: A label is set whatever others add
      Given a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      Then the check V02 finds nothing for "labels"

  Rule: The same question has the same answer
    Scenario: A policy that always agrees
      Given a validating webhook "policy" for configmaps
      Then the check V11 finds nothing for "policy"

  Rule: Objects of a custom resource are made from the schema of its definition
    Scenario: A label is set whatever a widget holds
      Given a custom resource "widgets.verify.example.com" with the versions "v1"
      And a mutating webhook "labels" for widgets
      And "labels" adds the label "team=blue"
      Then "labels" is idempotent for every widget in the corpus

    Scenario: A field that only the definition knows is enough to go wrong
      Given this object exists:
        """yaml
        apiVersion: apiextensions.k8s.io/v1
        kind: CustomResourceDefinition
        metadata: {name: gadgets.verify.example.com}
        spec:
          group: verify.example.com
          scope: Namespaced
          names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
          versions:
          - name: v1
            served: true
            storage: true
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec: {type: object, properties: {size: {type: integer, minimum: 3}}}
        """
      And a mutating webhook "sizes" for gadgets
      And "sizes" behaves like this:
        """yaml
        when: {if: {not: {absent: /spec/size}}, then: non-idempotent, otherwise: allow}
        """
      Then "sizes" is not idempotent
