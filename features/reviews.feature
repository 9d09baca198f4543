Feature: Reviews
  Mutating webhooks are called first, and may change the object; then validating webhooks see what has become of it. Each
  gets a review with all that is known of the request, and answers with a response that allows or denies.

  Source: Dynamic admission control, "What are admission webhooks?"; apiserver
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: Mutating webhooks come before validating ones
    Source: Dynamic admission control, "What are admission webhooks?"

    Scenario: Whatever the order in which they were configured
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

    Scenario: What a mutating webhook denies, validating ones do not see
      Given a mutating webhook "policy" for configmaps
      And "policy" denies the request with the message "not today"
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 400
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
      Then the request is refused with 500 InternalError
      And the message contains "validating webhook may not return response.patch"

  Rule: Only a validating webhook sees what the object has become
    Source: Dynamic admission control, "Guaranteeing the final state of the object is seen"

    Scenario: A sidecar that is taken away after the injector has put it there
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
      Then the request is refused with 400
      And the message contains "the sidecar is missing"
      And the first review of "guard" does not show the container "foo-sidecar"

    Scenario: A sidecar that is there
      Given a mutating webhook "injector" for pods
      And "injector" adds the container "foo-sidecar"
      And a validating webhook "guard" for pods
      And "guard" behaves like this:
        """yaml
        when: {if: {container: foo-sidecar}, then: allow, otherwise: {deny: {message: the sidecar is missing}}}
        """
      When a pod is created
      Then the request is admitted
      And the first review of "guard" shows the container "foo-sidecar"

  Rule: The review says what is asked, of which object, and by whom
    Source: Dynamic admission control, "Request"

    Scenario: The resource, the kind and the user
      Given the user "jane" may create configmaps
      And a validating webhook "policy" for configmaps
      And requests are made by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the first review of "policy" contains:
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
    Scenario: What is in no namespace has none in the review
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
      And the first review of "policy" contains:
        """yaml
        request: {name: admit-review, namespace: null, kind: {group: networking.k8s.io, version: v1, kind: IngressClass}}
        """

  Rule: The response allows or denies, and says why
    Source: Dynamic admission control, "Response"

    Scenario Outline: A denial with <what> is <told> to the client
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
      Then the request is refused with <code>
      And the message is 'admission webhook "policy.admit.example.com" <told>'

      Examples:
        | what                | status                                                  | code | told                                   |
        | nothing             |                                                         | 400  | denied the request without explanation |
        | code and message    | , status: {code: 403, message: it is Tuesday}           | 403  | denied the request: it is Tuesday      |

    Scenario: A response that allows can bring a patch
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

    Scenario Outline: A patch that is <what> makes the response invalid
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
      Then the request is refused with 500 InternalError
      And the message contains '<because>'

      Examples:
        | what                | patch                             | because                                                    |
        | of no type          | patch: W10=                       | webhook returned response.patch but not response.patchType |
        | of another type     | patchType: MergePatch, patch: W3sib3AiOiAiYWRkIiwgInBhdGgiOiAiL2RhdGEiLCAidmFsdWUiOiB7fX1d | unsupported patch type "MergePatch" |
