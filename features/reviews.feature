Feature: Reviews
  Mutating webhooks are called first and may change the object; validating webhooks are called next and see the result. Each
  receives a review that describes the request, and responds with a review that allows or denies it.

  Source: Dynamic admission control, "What are admission webhooks?"; apiserver
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: Mutating webhooks are called before validating webhooks
    Source: Dynamic admission control, "What are admission webhooks?"

    Scenario: The order of the configurations does not matter
      Given a validating webhook "guard" for configmaps
      And a mutating webhook "labels" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the webhooks are called in the order "labels, guard"

    Scenario: Validating webhooks are not called if a mutating webhook denies the request
      Given a mutating webhook "policy" for configmaps
      And "policy" denies the request with the message "not today"
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And "guard" is not called

    Scenario: A validating webhook cannot change the object
      Given a validating webhook "guard" for configmaps
      And "guard" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains "validating webhook may not return response.patch"

  Rule: Only a validating webhook sees the final object
    Source: Dynamic admission control, "Guaranteeing the final state of the object is seen"

    Scenario: A validating webhook rejects a pod whose injected sidecar was removed
      Given a mutating webhook "injector" for pods
      And "injector" adds the container "foo-sidecar"
      And a mutating webhook "cleaner" for pods
      And "cleaner" behaves like this:
        """yaml
        mutate: [{remove-containers: {except: [web]}}]
        """
      And a validating webhook "guard" for pods
      And "guard" behaves like this:
        """yaml
        when: {if: {container: foo-sidecar}, then: allow, otherwise: {deny: {message: the sidecar is missing}}}
        """
      When a pod is created
      Then the request is rejected with 400
      And the message contains "the sidecar is missing"
      And the first review sent to "guard" does not have the container "foo-sidecar"

    Scenario: A validating webhook allows a pod with the sidecar
      Given a mutating webhook "injector" for pods
      And "injector" adds the container "foo-sidecar"
      And a validating webhook "guard" for pods
      And "guard" behaves like this:
        """yaml
        when: {if: {container: foo-sidecar}, then: allow, otherwise: {deny: {message: the sidecar is missing}}}
        """
      When a pod is created
      Then the request is admitted
      And the first review sent to "guard" has the container "foo-sidecar"

  Rule: The review describes the request, the object, and the user
    Source: Dynamic admission control, "Request"

    Scenario: The review contains the resource, the kind, and the user
      Given the user "jane" can create configmaps
      And a validating webhook "policy" for configmaps
      And requests are sent by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        apiVersion: admission.k8s.io/v1
        kind: AdmissionReview
        request:
          kind: {group: "", version: v1, kind: ConfigMap}
          resource: {group: "", version: v1, resource: configmaps}
          subResource: null
          requestKind: {group: "", version: v1, kind: ConfigMap}
          requestResource: {group: "", version: v1, resource: configmaps}
          name: settings
          operation: CREATE
          userInfo: {username: jane, groups: ["system:authenticated"]}
          object: {apiVersion: v1, kind: ConfigMap, data: {color: blue}}
          oldObject: null
          dryRun: false
        """

    @serial
    Scenario: The review of a cluster-scoped object does not have a namespace
      Given a validating webhook "policy" for ingressclasses
      And "policy" selects objects with the label "admit.example.com/seen=review"
      When this object is created:
        """yaml
        apiVersion: networking.k8s.io/v1
        kind: IngressClass
        metadata: {name: admit-review, labels: {admit.example.com/seen: review}}
        spec: {controller: admit.example.com/none}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request: {name: admit-review, namespace: null, kind: {group: networking.k8s.io, version: v1, kind: IngressClass}}
        """

  Rule: The response allows or denies the request, and gives a reason
    Source: Dynamic admission control, "Response"

    Scenario Outline: The client receives the message of a denial with <what>
      Given a validating webhook "policy" for configmaps
      And "policy" behaves like this:
        """yaml
        raw: {response: {uid: '{uid}', allowed: false<status>}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with <code>
      And the message is 'admission webhook "policy.admit.example.com" <told>'

      Examples:
        | what                     | status                                        | code | told                                   |
        | neither code nor message |                                               | 400  | denied the request without explanation |
        | a code and a message     | , status: {code: 403, message: it is Tuesday} | 403  | denied the request: it is Tuesday      |

    Scenario: A response that allows the request can contain a patch
      Given a mutating webhook "replicas" for deployments
      And "replicas" behaves like this:
        """yaml
        raw:
          response:
            uid: '{uid}'
            allowed: true
            patchType: JSONPatch
            patch: W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL3NwZWMvcmVwbGljYXMiLCAidmFsdWUiOiAyfV0=
        """
      When this object is created:
        """yaml
        apiVersion: apps/v1
        kind: Deployment
        metadata: {name: web}
        spec:
          selector: {matchLabels: {app: web}}
          template:
            metadata: {labels: {app: web}}
            spec: {containers: [{name: web, image: example.com/web:1}]}
        """
      Then the request is admitted
      And the object contains:
        """yaml
        spec: {replicas: 2}
        """

    Scenario Outline: A patch with <what> makes the response invalid
      Given a mutating webhook "labels" for configmaps
      And "labels" behaves like this:
        """yaml
        raw: {response: {uid: '{uid}', allowed: true, <patch>}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains '<because>'

      Examples:
        | what         | patch                                                                                      | because                                                    |
        | no type      | patch: W10=                                                                                | webhook returned response.patch but not response.patchType |
        | another type | patchType: MergePatch, patch: W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL2RhdGEiLCAidmFsdWUiOiB7fX1d | unsupported patch type "MergePatch"                        |
