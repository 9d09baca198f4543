Feature: Reinvocation
  Mutating admission goes through its plugins and webhooks one after another. What a later one changes, an earlier one
  has not seen. A second round gives it the chance to look again.

  Source: Dynamic admission control, "Reinvocation policy"; KEP-492, "Mutating Plugin ordering"; apiserver
  pkg/admission/reinvocation.go and pkg/admission/plugin/webhook/mutating

  Background:
    Given a limit range that gives containers the default cpu limit "500m"

  Rule: There is no second round unless a webhook changed the object
    What the plugins of the server itself change in the first round, every webhook sees anyway.

    Scenario: A webhook that changes nothing is called once
      Given a mutating webhook "watcher" for pods
      And "watcher" may be reinvoked
      When a pod is created
      Then the request is admitted
      And the container "web" has the cpu limit "500m"
      And "watcher" is called once
      And the audit log says that "watcher" did not change the object in the first round
      And the audit log says that "watcher" was not called in the second round

  Rule: After a webhook changed the object, the server's own plugins run again
    The webhook itself is called again only if somebody else changes the object after it.

    Scenario: The server's own plugins find nothing to change and the webhook is not called again
      Given a mutating webhook "labels" for pods
      And "labels" may be reinvoked
      And "labels" adds the label "team=blue"
      When a pod is created
      Then the request is admitted
      And the object has the label "team=blue"
      And "labels" is called once
      And the audit log says that "labels" changed the object in the first round
      And the audit log says that "labels" was not called in the second round

    Scenario: A container that a webhook added gets the limits that every container gets
      Given a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the container "web" has the cpu limit "500m"
      And the container "proxy" has the cpu limit "500m"
      And "sidecar" is called once

    Scenario: The webhook is called again to see what the server's own plugins added after it
      Given a mutating webhook "sidecar" for pods
      And "sidecar" may be reinvoked
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the container "proxy" has the cpu limit "500m"
      And "sidecar" is called twice
      And the first review of "sidecar" does not show the container "proxy"
      And the second review of "sidecar" contains:
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
      And the audit log says that "sidecar" changed the object in the first round
      And the audit log says that "sidecar" did not change the object in the second round

  Rule: A webhook that may be reinvoked is called again if another one changed the object after it
    There is no third round, so that no webhook is called more than twice.

    Scenario: The last webhook to change the object is not called again
      Given a mutating webhook "first" for pods
      And "first" may be reinvoked
      And "first" adds the label "first=yes"
      And a mutating webhook "last" for pods
      And "last" may be reinvoked
      And "last" adds the label "last=yes"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "first, last, first"
      And the second review of "first" contains:
        """yaml
        request:
          object:
            metadata:
              labels:
                first: "yes"
                last: "yes"
        """
      And the audit log says that "last" changed the object in the first round
      And the audit log says that "first" did not change the object in the second round
      And the audit log says that "last" was not called in the second round

    Scenario: A change in the second round is shown to the webhooks that follow
      Given a mutating webhook "first" for pods
      And "first" may be reinvoked
      And "first" adds the label "first=yes" on its first call
      And "first" adds the label "again=yes" on its second call
      And a mutating webhook "last" for pods
      And "last" may be reinvoked
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
      And the second review of "last" contains:
        """yaml
        request:
          object:
            metadata:
              labels:
                again: "yes"
        """
      And the audit log says that "first" changed the object in the second round
      And the audit log says that "last" did not change the object in the second round

    Scenario: A change in the second round does not bring back a webhook that was before it
      Given a mutating webhook "first" for pods
      And "first" may be reinvoked
      And a mutating webhook "middle" for pods
      And "middle" may be reinvoked
      And "middle" adds the label "middle=once" on its first call
      And "middle" adds the label "again=yes" on its second call
      And a mutating webhook "last" for pods
      And "last" adds the label "last=yes"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "first, middle, last, first, middle"
      And the second review of "first" does not contain:
        """yaml
        request:
          object:
            metadata:
              labels:
                again: "yes"
        """

  Rule: A webhook that does not ask for it is never called again
    Scenario: A webhook with the policy Never does not see what came after it
      Given a mutating webhook "early" for pods
      And "early" is never reinvoked
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And "early" is called once
      And the first review of "early" does not show the container "proxy"
      And the audit log says that "early" was not called in the second round

    Scenario: Never is what a webhook gets that says nothing of it
      Given a mutating webhook "early" for pods
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "early, sidecar"

  Rule: Only a webhook that was called in the first round is called in the second
    Scenario: A webhook that matches only after a later change is not called
      Given a mutating webhook "blue only" for pods
      And "blue only" may be reinvoked
      And "blue only" selects objects with the label "team=blue"
      And a mutating webhook "labels" for pods
      And "labels" adds the label "team=blue"
      When a pod with the label "app=web" is created
      Then the request is admitted
      And the object has the label "team=blue"
      And "blue only" is not called

    Scenario: A webhook that no longer matches is not called again
      Given a mutating webhook "green only" for pods
      And "green only" may be reinvoked
      And "green only" selects objects with the label "team=green"
      And a mutating webhook "repaint" for pods
      And "repaint" patches the object:
        """yaml
        - {op: replace, path: /metadata/labels/team, value: blue}
        """
      When a pod with the label "team=green" is created
      Then the request is admitted
      And "green only" is called once

    Scenario: A webhook whose call failed open was called, and is called again
      Given a mutating webhook "shaky" for pods
      And "shaky" may be reinvoked
      And "shaky" has the failure policy Ignore
      And "shaky" gives the bad response "no-response" on its first call
      And a mutating webhook "sidecar" for pods
      And "sidecar" adds the container "proxy"
      When a pod is created
      Then the request is admitted
      And the webhooks are called in the order "shaky, sidecar, shaky"
      And the second review of "shaky" shows the container "proxy"
      And the audit log says that "shaky" failed open in the first round
      And the audit log says that "shaky" did not change the object in the second round
