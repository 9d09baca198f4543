Feature: Reinvocation
  Mutating admission calls its plugins and webhooks one after another. An earlier webhook does not see what a later one
  changes, unless it is reinvoked in a second round.

  Source: Dynamic admission control, "Reinvocation policy"; KEP-492, "Mutating Plugin ordering"; apiserver
  pkg/admission/reinvocation.go and pkg/admission/plugin/webhook/mutating

  Background:
    Given a LimitRange with the default CPU limit "500m" exists

  Rule: A second round requires that a webhook changed the object
    Webhooks see the changes of in-tree plugins in the first round.

    Scenario: A webhook that does not change the object is called once
      Given a mutating webhook "watcher" for pods
      And "watcher" has the reinvocation policy IfNeeded
      When a pod is created
      Then the request is admitted
      And the container "web" has the CPU limit "500m"
      And "watcher" is called once
      And the audit log records that "watcher" did not change the object in the first round
      And the audit log records that "watcher" was not called in the second round

  Rule: After a webhook changes the object, in-tree plugins run again
    The webhook is called again only if a plugin or another webhook changes the object after it.

    Scenario: The webhook is not called again if in-tree plugins change nothing
      Given a mutating webhook "labels" for pods
      And "labels" has the reinvocation policy IfNeeded
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the object has the label "team=blue"
      And "labels" is called once
      And the audit log records that "labels" changed the object in the first round
      And the audit log records that "labels" was not called in the second round

    Scenario: LimitRanger sets the limits of a container that a webhook added
      Given a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the container "web" has the CPU limit "500m"
      And the container "proxy" has the CPU limit "500m"
      And "sidecar" is called once

    Scenario: The webhook is called again after in-tree plugins change the object
      Given a mutating webhook "sidecar" for pods
      And "sidecar" has the reinvocation policy IfNeeded
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the container "proxy" has the CPU limit "500m"
      And "sidecar" is called twice
      And the first review sent to "sidecar" does not have the container "proxy"
      And the second review sent to "sidecar" contains:
        """yaml
        request:
          object:
            spec:
              containers:
              - name: web
              - name: proxy
                resources:
                  limits:
                    cpu: 500m
        """
      And the audit log records that "sidecar" changed the object in the first round
      And the audit log records that "sidecar" did not change the object in the second round

  Rule: A webhook with the policy IfNeeded is called again if another webhook changes the object after it
    There is no third round: a webhook is called at most twice.

    Scenario: The last webhook to change the object is not called again
      Given a mutating webhook "first" for pods
      And "first" has the reinvocation policy IfNeeded
      And "first" adds the label "first=yes"
      And a mutating webhook "last" for pods
      And "last" has the reinvocation policy IfNeeded
      And "last" adds the label "last=yes"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "first, last, first"
      And the second review sent to "first" contains:
        """yaml
        request:
          object:
            metadata:
              labels:
                first: "yes"
                last: "yes"
        """
      And the audit log records that "last" changed the object in the first round
      And the audit log records that "first" did not change the object in the second round
      And the audit log records that "last" was not called in the second round

    Scenario: Later webhooks see a change that was made in the second round
      Given a mutating webhook "first" for pods
      And "first" has the reinvocation policy IfNeeded
      And "first" adds the label "first=yes" on its first call
      And "first" adds the label "again=yes" on its second call
      And a mutating webhook "last" for pods
      And "last" has the reinvocation policy IfNeeded
      And "last" adds the label "last=yes"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "first, last, first, last"
      And the object contains:
        """yaml
        metadata:
          labels:
            first: "yes"
            last: "yes"
            again: "yes"
        """
      And the second review sent to "last" contains:
        """yaml
        request:
          object:
            metadata:
              labels:
                again: "yes"
        """
      And the audit log records that "first" changed the object in the second round
      And the audit log records that "last" did not change the object in the second round

    Scenario: A change in the second round does not reinvoke an earlier webhook
      Given a mutating webhook "first" for pods
      And "first" has the reinvocation policy IfNeeded
      And a mutating webhook "middle" for pods
      And "middle" has the reinvocation policy IfNeeded
      And "middle" adds the label "middle=once" on its first call
      And "middle" adds the label "again=yes" on its second call
      And a mutating webhook "last" for pods
      And "last" adds the label "last=yes"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "first, middle, last, first, middle"
      And the second review sent to "first" does not contain:
        """yaml
        request:
          object:
            metadata:
              labels:
                again: "yes"
        """

  Rule: A webhook with the policy Never is called once
    Scenario: A webhook with the policy Never does not see later changes
      Given a mutating webhook "early" for pods
      And "early" has the reinvocation policy Never
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And "early" is called once
      And the first review sent to "early" does not have the container "proxy"
      And the audit log records that "early" was not called in the second round

    Scenario: The default reinvocation policy is Never
      Given a mutating webhook "early" for pods
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "early, sidecar"

  Rule: Only a webhook that was called in the first round is reinvoked
    Scenario: A webhook that matches only after a later change is not called
      Given a mutating webhook "blue only" for pods
      And "blue only" has the reinvocation policy IfNeeded
      And "blue only" selects objects with the label "team=blue"
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod with the label "app=web" is created
      Then the request is admitted
      And the object has the label "team=blue"
      And "blue only" is not called

    Scenario: A webhook that no longer matches is not called again
      Given a mutating webhook "green only" for pods
      And "green only" has the reinvocation policy IfNeeded
      And "green only" selects objects with the label "team=green"
      And a mutating webhook "repaint" for pods
      And "repaint" patches the object:
        """yaml
        - {op: replace, path: /metadata/labels/team, value: blue}
        """
      When a pod with the label "team=green" is created
      Then the request is admitted
      And "green only" is called once

    Scenario: A webhook that failed open is called again
      Given a mutating webhook "shaky" for pods
      And "shaky" has the reinvocation policy IfNeeded
      And "shaky" has the failure policy Ignore
      And "shaky" returns the bad response "no-response" on its first call
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "shaky, sidecar, shaky"
      And the second review sent to "shaky" has the container "proxy"
      And the audit log records that "shaky" failed open in the first round
      And the audit log records that "shaky" did not change the object in the second round
