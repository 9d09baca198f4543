@in-process @envtest
Feature: Verifying webhooks
  A webhook is called again for its own result, for objects that other webhooks changed, and for unusual objects. The checks
  of "admit verify" check whether it tolerates that, here for the webhooks of a scenario.

  Not on a cluster: the checks call the webhook from this machine, which cannot reach a pod behind its Service.

  Source: Kubernetes documentation, Admission Webhook Good Practices; KEP-492

  Rule: A mutating webhook does not change its own result
    Source: Dynamic admission control, "Idempotence"; KEP-492, "Mutating Plugin ordering"

    Scenario: A webhook that sets a label is idempotent
      Given a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      Then "labels" is idempotent for every pod in the corpus

    Scenario: A webhook that appends to a text is not idempotent
      Given a mutating webhook "counter" for configmaps
      And "counter" behaves like this:
        """yaml
        non-idempotent
        """
      Then "counter" is not idempotent

    Scenario: A step can look for the text of a finding
      Given a mutating webhook "counter" for services
      And "counter" behaves like this:
        """yaml
        non-idempotent
        """
      Then the check V01 reports "called with its own result" for "counter"

  Rule: The result of a webhook does not depend on the order of webhooks
    Scenario: A webhook that sets a label does not depend on other webhooks
      Given a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      Then the check V02 passes for "labels"

  Rule: The same request gets the same response
    Scenario: A policy that always allows is consistent
      Given a validating webhook "policy" for configmaps
      Then the check V11 passes for "policy"

  Rule: Objects of a custom resource are generated from the schema in its definition
    Scenario: A webhook that sets a label is idempotent for every widget
      Given a custom resource "widgets.verify.example.com" with the versions "v1"
      And a mutating webhook "labels" for widgets
      And "labels" adds the label "team=blue"
      Then "labels" is idempotent for every widget in the corpus

    Scenario: A generated object can contain a field that only the definition declares
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
