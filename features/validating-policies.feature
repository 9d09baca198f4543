Feature: Validating policies
  A ValidatingAdmissionPolicy contains CEL expressions that kube-apiserver evaluates. A ValidatingAdmissionPolicyBinding puts
  the policy into effect and decides what happens if an expression is false.

  Source: Validating Admission Policy; KEP-3488; apiserver pkg/admission/plugin/policy/validating/dispatcher.go

  Background:
    Given these objects exist:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: limits}
      data: {maximum: '3'}
      ---
      apiVersion: admissionregistration.k8s.io/v1
      kind: ValidatingAdmissionPolicy
      metadata: {name: entries}
      spec:
        paramKind: {apiVersion: v1, kind: ConfigMap}
        matchConstraints:
          resourceRules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
        matchConditions:
        - {name: has-data, expression: has(object.data)}
        variables:
        - {name: entries, expression: object.data.size()}
        validations:
        - expression: variables.entries <= int(params.data.maximum)
          messageExpression: "'at most ' + params.data.maximum + ' entries, found ' + string(variables.entries)"
          reason: Forbidden
      """

  Rule: A policy has an effect only with a binding

    Scenario: A policy without a binding admits everything
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1', b: '2', c: '3', d: '4'}
        """
      Then the request is admitted

  Rule: The actions of the binding decide what a violation does

    Scenario: A violation with the action Deny rejects the request before any validating webhook is called
      Given a validating webhook "other" for configmaps
      And this object exists:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {name: deny}
        spec:
          policyName: entries
          paramRef: {name: limits, parameterNotFoundAction: Deny}
          validationActions: [Deny]
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1', b: '2', c: '3', d: '4'}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "denied request: at most 3 entries, found 4"
      And "other" is not called

    Scenario: A violation with the action Warn warns the client
      Given this object exists:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {name: warn}
        spec:
          policyName: entries
          paramRef: {name: limits, parameterNotFoundAction: Deny}
          validationActions: [Warn]
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1', b: '2', c: '3', d: '4'}
        """
      Then the request is admitted
      And the client receives the warning "Validation failed for ValidatingAdmissionPolicy 'entries' with binding 'warn': at most 3 entries, found 4"

  Rule: A policy validates the object that mutating webhooks return

    Scenario: An entry that a mutating webhook adds counts
      Given a mutating webhook "adds" for configmaps
      And "adds" patches the object:
        """yaml
        - {op: add, path: /data/d, value: '4'}
        """
      And this object exists:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {name: mutated}
        spec:
          policyName: entries
          paramRef: {name: limits, parameterNotFoundAction: Deny}
          validationActions: [Deny]
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1', b: '2', c: '3'}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "found 4"

  Rule: parameterNotFoundAction applies if a param does not exist

    Scenario: A missing param rejects the request
      Given this object exists:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingAdmissionPolicyBinding
        metadata: {name: missing}
        spec:
          policyName: entries
          paramRef: {name: other, parameterNotFoundAction: Deny}
          validationActions: [Warn]
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1'}
        """
      Then the request is rejected with 422 Invalid
      And the message contains "no params found"
