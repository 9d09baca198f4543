Feature: Authorization
  kube-apiserver authorizes a request before it reads the object, so webhooks see only authorized requests. A webhook does
  not need to reject what RBAC rejects, and it cannot allow it.

  Source: "Controlling Access to the Kubernetes API"; "Using RBAC Authorization"; apiserver pkg/server/config.go

  Rule: An unauthorized request is rejected before any webhook is called
    Background:
      Given a validating webhook "guard" for configmaps

    Scenario: A user without a role is rejected
      Given requests are sent by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains 'User "jane" cannot create resource "configmaps" in API group "" in the namespace'
      And "guard" is not called

    Scenario: A webhook sees an authorized request and its user
      Given the user "jane" can create configmaps
      And requests are sent by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "guard" is called once
      And the first review sent to "guard" contains:
        """yaml
        request: {operation: CREATE, userInfo: {username: jane, groups: ["system:authenticated"]}}
        """

    Scenario: A role allows only the verbs that it lists
      Given the user "jane" can get and list configmaps
      And a ConfigMap "settings" exists
      And requests are sent by the user "jane"
      When the label "team=blue" is added to the configmap "settings"
      Then the request is rejected with 403 Forbidden
      And "guard" is not called

  Rule: Users cannot grant permissions that they do not have
    Scenario: A role that exceeds its author's permissions is rejected after mutating admission
      Given a mutating webhook "sees" for roles in rbac.authorization.k8s.io/v1
      And a validating webhook "guard" for roles in rbac.authorization.k8s.io/v1
      And the user "jane" can create roles
      And requests are sent by the user "jane"
      When this object is created:
        """yaml
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata: {name: readers}
        rules:
        - {verbs: [get], apiGroups: [""], resources: [secrets]}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "is attempting to grant RBAC permissions not currently held"
      And "sees" is called once
      And "guard" is not called
