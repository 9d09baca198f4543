Feature: Authenticating to webhooks
  A webhook that must not answer everybody can demand credentials. kube-apiserver shows none unless it was started with
  --admission-control-config-file: that file names a kubeconfig for each of the two plugins that call webhooks, whose users
  are named after the hosts and ports of webhooks, or "*" for all of them.

  The scenarios with the tag @admission-control-config-file are about an API server whose mutating plugin has a user "*" with the
  token "s3cret", and whose validating plugin has a user "*" with the name "jane" and the password "d0e". They are skipped
  without that option, and so on a cluster: its API server has been started with flags of its own.

  Source: Dynamic admission control, "Authenticate API servers"; apiserver pkg/util/webhook/authentication.go

  Rule: A webhook answers an API server that shows what it demands
    @admission-control-config-file
    Scenario: A mutating webhook gets the token of its plugin
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
    Scenario: A validating webhook gets the user and the password of its plugin
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
      Then the request is refused with 400
      And the message contains "I know you, but no"

    @admission-control-config-file
    Scenario: The credentials of one plugin are not those of the other
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
      Then the request is refused with 500 InternalError
      And the message contains "the server has asked for the client to provide credentials"

  Rule: A webhook that does not get what it demands is a failed call, and no verdict
    Scenario: With the failure policy Fail the request is refused
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
      Then the request is refused with 500 InternalError
      And the message contains 'failed calling webhook "labels.admit.example.com"'
      And the message contains "the server has asked for the client to provide credentials"
      And the configmap "settings" does not exist

    Scenario: With the failure policy Ignore it is admitted without the webhook
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
      And the audit log says that "labels" failed open

    Scenario: A webhook that demands a password sees the call that it does not answer
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
      Then the request is refused with 500 InternalError
      And "policy" is called once
