Feature: Idempotence
  A mutating webhook can receive an object that it has already changed, because a client sends it again or because the
  webhook is reinvoked. The webhook is idempotent if it does not change its own result.

  Source: Dynamic admission control, "Idempotence"; KEP-492, "Mutating Plugin ordering"

  Rule: Three idempotent webhooks
    @in-process @envtest
    Scenario: A webhook that sets a field to a fixed value is idempotent
      Given a mutating webhook "non root" for pods
      And "non root" matches only the operation CREATE
      And "non root" behaves like this:
        """yaml
        mutate: [{set: {/spec/securityContext/runAsNonRoot: true}}]
        """
      Then "non root" is idempotent for every pod in the corpus

    Scenario: Reinvoking a webhook that sets a field to a fixed value changes nothing
      Given a mutating webhook "non root" for pods
      And "non root" matches only the operation CREATE
      And "non root" has the reinvocation policy IfNeeded
      And "non root" behaves like this:
        """yaml
        mutate: [{set: {/spec/securityContext/runAsNonRoot: true}}]
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "non root, labels, non root"
      And the audit log records that "non root" did not change the object in the second round

    @in-process @envtest
    Scenario: A webhook that sets missing limits is idempotent
      Given a mutating webhook "limits" for pods
      And "limits" matches only the operation CREATE
      And "limits" behaves like this:
        """yaml
        when:
          if: {absent: /spec/containers/0/resources/limits}
          then: {mutate: [{set: {/spec/containers/0/resources/limits: {memory: 64Mi}}}]}
        """
      Then "limits" is idempotent

    Scenario: Reinvoking a webhook that sets missing limits changes nothing
      Given a mutating webhook "limits" for pods
      And "limits" matches only the operation CREATE
      And "limits" has the reinvocation policy IfNeeded
      And "limits" behaves like this:
        """yaml
        when:
          if: {absent: /spec/containers/0/resources/limits}
          then: {mutate: [{set: {/spec/containers/0/resources/limits: {memory: 64Mi}}}]}
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "limits, labels, limits"
      And the audit log records that "limits" did not change the object in the second round

    @in-process @envtest
    Scenario: A webhook that checks for its sidecar is idempotent
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" adds the container "foo-sidecar"
      Then "injector" is idempotent

    Scenario: Reinvoking a webhook that checks for its sidecar changes nothing
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" has the reinvocation policy IfNeeded
      And "injector" adds the container "foo-sidecar"
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "injector, labels, injector"
      And the second review sent to "injector" has the container "foo-sidecar"
      And the audit log records that "injector" did not change the object in the second round

  Rule: Three webhooks that are not idempotent
    @in-process @envtest
    Scenario: A webhook that names its sidecar differently each time is not idempotent
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" behaves like this:
        """yaml
        mutate: [{append: {path: /spec/containers, value: {name: 'foo-sidecar-{call}', image: 'example.com/foo:1'}, repeat: every-call}}]
        """
      Then "injector" is not idempotent

    Scenario: Reinvoking a webhook that names its sidecar differently each time injects a second sidecar
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" has the reinvocation policy IfNeeded
      And "injector" behaves like this:
        """yaml
        mutate: [{append: {path: /spec/containers, value: {name: 'foo-sidecar-{call}', image: 'example.com/foo:1'}, repeat: every-call}}]
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the object contains:
        """yaml
        spec: {containers: [{name: web}, {name: foo-sidecar-1}, {name: foo-sidecar-2}]}
        """

    @in-process @envtest
    Scenario: A webhook that denies its own result is not idempotent
      Given a mutating webhook "environment" for pods
      And "environment" matches only the operations CREATE and UPDATE
      And "environment" behaves like this:
        """yaml
        when:
          if: {present: /metadata/labels/env}
          then: {deny: {message: the label env is ours}}
          otherwise: {always-mutate: {labels: {env: prod}}}
        """
      Then "environment" is not idempotent

    Scenario: Reinvoking a webhook that denies its own result rejects every pod
      Given a mutating webhook "environment" for pods
      And "environment" matches only the operations CREATE and UPDATE
      And "environment" has the reinvocation policy IfNeeded
      And "environment" behaves like this:
        """yaml
        when:
          if: {present: /metadata/labels/env}
          then: {deny: {message: the label env is ours}}
          otherwise: {always-mutate: {labels: {env: prod}}}
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is rejected with 400
      And the message contains "the label env is ours"
      And the webhooks are called in the order "environment, labels, environment"

    @in-process @envtest
    Scenario: A webhook that adds its sidecar unconditionally is not idempotent
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" patches the object:
        """yaml
        - {op: add, path: /spec/containers/-, value: {name: foo-sidecar, image: "example.com/foo:1"}}
        """
      Then "injector" is not idempotent

    Scenario: Reinvoking a webhook that adds its sidecar unconditionally makes the pod invalid
      Given a mutating webhook "injector" for pods
      And "injector" matches only the operation CREATE
      And "injector" has the reinvocation policy IfNeeded
      And "injector" patches the object:
        """yaml
        - {op: add, path: /spec/containers/-, value: {name: foo-sidecar, image: "example.com/foo:1"}}
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is rejected with 422 Invalid
      And the message contains 'spec.containers[2].name: Duplicate value: "foo-sidecar"'
      And "injector" is called twice
