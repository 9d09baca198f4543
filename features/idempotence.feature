Feature: Idempotence
  A mutating webhook meets objects that it has changed before: a client sends such an object again, or the webhook is
  reinvoked. It is idempotent if its result, handed to it once more, stays as it is.

  Source: Dynamic admission control, "Idempotence"; KEP-492, "Mutating Plugin ordering"

  Rule: Three webhooks that are idempotent
    @in-process @envtest
    Scenario: One that sets a field to a fixed value
      Given a mutating webhook "non root" for pods
      And "non root" is registered only for CREATE
      And "non root" behaves like this:
        """yaml
        mutate: [{set: {/spec/securityContext/runAsNonRoot: true}}]
        """
      Then "non root" is idempotent for every pod in the corpus

    Scenario: One that sets a field to a fixed value, reinvoked
      Given a mutating webhook "non root" for pods
      And "non root" is registered only for CREATE
      And "non root" may be reinvoked
      And "non root" behaves like this:
        """yaml
        mutate: [{set: {/spec/securityContext/runAsNonRoot: true}}]
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "non root, labels, non root"
      And the audit log says that "non root" did not change the object in the second round

    @in-process @envtest
    Scenario: One that fills in limits where there are none
      Given a mutating webhook "limits" for pods
      And "limits" is registered only for CREATE
      And "limits" behaves like this:
        """yaml
        when:
          if: {absent: /spec/containers/0/resources/limits}
          then: {mutate: [{set: {/spec/containers/0/resources/limits: {memory: 64Mi}}}]}
        """
      Then "limits" is idempotent for every pod in the corpus

    Scenario: One that fills in limits where there are none, reinvoked
      Given a mutating webhook "limits" for pods
      And "limits" is registered only for CREATE
      And "limits" may be reinvoked
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
      And the audit log says that "limits" did not change the object in the second round

    @in-process @envtest
    Scenario: One that looks whether its sidecar is there
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" adds the container "foo-sidecar"
      Then "injector" is idempotent for every pod in the corpus

    Scenario: One that looks whether its sidecar is there, reinvoked
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" may be reinvoked
      And "injector" adds the container "foo-sidecar"
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "injector, labels, injector"
      And the second review of "injector" shows the container "foo-sidecar"
      And the audit log says that "injector" did not change the object in the second round

  Rule: Three webhooks that are not
    @in-process @envtest
    Scenario: One that gives its sidecar another name each time
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" behaves like this:
        """yaml
        mutate: [{append: {path: /spec/containers, value: {name: 'foo-sidecar-{call}', image: 'example.com/foo:1'}, repeat: every-call}}]
        """
      Then "injector" is not idempotent

    Scenario: One that gives its sidecar another name each time, reinvoked, injects two
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" may be reinvoked
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
    Scenario: One that denies what it has made itself
      Given a mutating webhook "environment" for pods
      And "environment" is registered only for CREATE and UPDATE
      And "environment" behaves like this:
        """yaml
        when:
          if: {present: /metadata/labels/env}
          then: {deny: {message: the label env is ours}}
          otherwise: {always-mutate: {labels: {env: prod}}}
        """
      Then "environment" is not idempotent

    Scenario: One that denies what it has made itself, reinvoked, denies every pod
      Given a mutating webhook "environment" for pods
      And "environment" is registered only for CREATE and UPDATE
      And "environment" may be reinvoked
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
      Then the request is refused with 400
      And the message contains "the label env is ours"
      And the webhooks are called in the order "environment, labels, environment"

    @in-process @envtest
    Scenario: One that adds its sidecar without a look
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" patches the object:
        """yaml
        - {op: add, path: /spec/containers/-, value: {name: foo-sidecar, image: "example.com/foo:1"}}
        """
      Then "injector" is not idempotent

    Scenario: One that adds its sidecar without a look, reinvoked, makes a pod that is not valid
      Given a mutating webhook "injector" for pods
      And "injector" is registered only for CREATE
      And "injector" may be reinvoked
      And "injector" patches the object:
        """yaml
        - {op: add, path: /spec/containers/-, value: {name: foo-sidecar, image: "example.com/foo:1"}}
        """
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is refused with 422 Invalid
      And the message contains 'spec.containers[2].name: Duplicate value: "foo-sidecar"'
      And "injector" is called twice
