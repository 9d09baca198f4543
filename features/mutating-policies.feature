Feature: Mutating policies
  A MutatingAdmissionPolicy contains CEL expressions that change an object: apply configurations, which are merged into the
  object, and JSON patches. A MutatingAdmissionPolicyBinding puts the policy into effect.

  Source: Mutating Admission Policy; KEP-3962; apiserver pkg/admission/plugin/policy/mutating/dispatcher.go

  Background:
    Given this object exists:
      """yaml
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: owners}
      data: {owner: platform}
      """

  Rule: An apply configuration is merged into the object

    Scenario: A policy adds an annotation with the value of a param
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: owner}
        spec:
          paramKind: {apiVersion: v1, kind: ConfigMap}
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          matchConditions:
          - {name: has-data, expression: has(object.data)}
          reinvocationPolicy: Never
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{metadata: Object.metadata{annotations: {"owner": params.data.owner}}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: owner}
        spec:
          policyName: owner
          paramRef: {name: owners, parameterNotFoundAction: Deny}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, annotations: {team: blue}}
        data: {a: '1'}
        """
      Then the request is admitted
      And the object contains:
        """yaml
        metadata: {annotations: {owner: platform, team: blue}}
        """

    Scenario: A policy adds a sidecar to the init containers of a pod
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: sidecar}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
          reinvocationPolicy: Never
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{spec: Object.spec{initContainers: [
                  Object.spec.initContainers{name: "proxy", image: "example.com/proxy:1", restartPolicy: "Always"}
                ]}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: sidecar}
        spec: {policyName: sidecar}
        """
      When a pod is created
      Then the request is admitted
      And the object has the container "web"
      And the object does not have the container "proxy"
      And the object has the init container "proxy"
      And the object does not have the init container "web"

    Scenario: An apply configuration may not contain an atomic list
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: tolerations}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
          reinvocationPolicy: Never
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "batch"}]}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: tolerations}
        spec: {policyName: tolerations}
        """
      When a pod is created
      Then the request is rejected with 403 Invalid
      And the message contains "may not mutate atomic arrays, maps or structs: .spec.tolerations"

  Rule: A JSON patch replaces values by their paths

    Scenario: A failed test operation leaves the object unchanged
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: doubles}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          matchConditions:
          - {name: has-data, expression: has(object.data)}
          reinvocationPolicy: Never
          mutations:
          - patchType: JSONPatch
            jsonPatch:
              expression: |
                [JSONPatch{op: "test", path: "/data/mode", value: "double"},
                 JSONPatch{op: "replace", path: "/data/size", value: string(int(object.data.size) * 2)}]
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: doubles}
        spec: {policyName: doubles}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: double}
        data: {mode: double, size: '4'}
        """
      Then the object contains:
        """yaml
        data: {size: '8'}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: single}
        data: {mode: single, size: '4'}
        """
      Then the object contains:
        """yaml
        data: {size: '4'}
        """

  Rule: Policies are applied before the mutating webhooks of each round

    Background:
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: counts}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          matchConditions:
          - {name: has-data, expression: has(object.data)}
          reinvocationPolicy: IfNeeded
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{data: {"entries": string(size(object.data))}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: counts}
        spec: {policyName: counts}
        """
      And a mutating webhook "labels" for configmaps
      And "labels" patches the object:
        """yaml
        - {op: add, path: /data/webhook, value: called}
        """

    Scenario: A policy with the reinvocation policy IfNeeded sees the changes of a webhook in the second round
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {a: '1'}
        """
      Then the request is admitted
      And "labels" is called once
      And the object contains:
        """yaml
        data: {entries: '3', webhook: called}
        """

  Rule: The failure policy decides what an error does

    Scenario: An error under Fail rejects the request
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: copies}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
            objectSelector: {matchLabels: {copied: 'yes'}}
          failurePolicy: Fail
          reinvocationPolicy: Never
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{data: {"copy": object.data.missing}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: copies}
        spec: {policyName: copies}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, labels: {copied: 'yes'}}
        data: {a: '1'}
        """
      Then the request is rejected with 403 Invalid
      And the message contains "no such key: missing"

    Scenario: An error under Ignore leaves the object unchanged
      Given these objects exist:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicy
        metadata: {name: copies}
        spec:
          matchConstraints:
            resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
            objectSelector: {matchLabels: {copied: 'yes'}}
          failurePolicy: Ignore
          reinvocationPolicy: Never
          mutations:
          - patchType: ApplyConfiguration
            applyConfiguration:
              expression: |
                Object{data: {"copy": object.data.missing}}
        ---
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingAdmissionPolicyBinding
        metadata: {name: copies}
        spec: {policyName: copies}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, labels: {copied: 'yes'}}
        data: {a: '1'}
        """
      Then the request is admitted
      And the object contains:
        """yaml
        data: {a: '1'}
        """
