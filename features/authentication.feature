Feature: Authenticating to webhooks
  A webhook can require credentials. kube-apiserver sends none unless it was started with
  --admission-control-config-file. That file names one kubeconfig for each of the two plugins that call webhooks. The users
  in the kubeconfig are named after the host and port of a webhook, or "*" for all webhooks.

  The scenarios tagged @admission-control-config-file need an API server whose mutating plugin has the user "*" with the
  token "s3cret" and whose validating plugin has the user "*" with the name "jane" and the password "d0e". They are skipped
  without that option, and on clusters, whose API servers were started with other flags.

  Source: Dynamic admission control, "Authenticate API servers"; apiserver pkg/util/webhook/authentication.go

  Rule: A webhook that requires credentials answers an API server that sends them
    @admission-control-config-file
    Scenario: A mutating webhook receives the token of its plugin
      Given a mutating webhook "labels" for configmaps
      And "labels" behaves like this:
        """yaml
        demand:
          credentials: {token: s3cret}
          then: {always-mutate: {labels: {team: blue}}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object has the label "team=blue"

    @admission-control-config-file
    Scenario: A validating webhook receives the user name and password of its plugin
      Given a validating webhook "policy" for configmaps
      And "policy" behaves like this:
        """yaml
        demand:
          credentials: {basic: {username: jane, password: d0e}}
          then: {deny: {message: "I know you, but no"}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And the message contains "I know you, but no"

    @admission-control-config-file
    Scenario: Plugins do not share credentials
      Given a validating webhook "policy" for configmaps
      And "policy" behaves like this:
        """yaml
        demand: {credentials: {token: s3cret}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains "the server has asked for the client to provide credentials"

  Rule: Missing credentials make the call fail; they do not deny the request
    Scenario: The request is rejected with the failure policy Fail
      Given a mutating webhook "labels" for configmaps
      And "labels" has the failure policy Fail
      And "labels" behaves like this:
        """yaml
        demand: {credentials: {token: no API server has this one}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains 'failed calling webhook "labels.admit.example.com"'
      And the message contains "the server has asked for the client to provide credentials"
      And the configmap "settings" does not exist

    Scenario: The request is admitted with the failure policy Ignore
      Given a mutating webhook "labels" for configmaps
      And "labels" has the failure policy Ignore
      And "labels" behaves like this:
        """yaml
        demand:
          credentials: {token: no API server has this one}
          then: {always-mutate: {labels: {team: blue}}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object does not contain:
        """yaml
        metadata: {labels: {team: blue}}
        """
      And the audit log records that "labels" failed open

    Scenario: A webhook that requires a password receives the call that it rejects
      Given a validating webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" behaves like this:
        """yaml
        demand: {credentials: {basic: {username: jane, password: no API server has this one}}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And "policy" is called once
