Feature: Authorization
  Webhooks see only requests whose user may make them: kube-apiserver asks its authorizer before it reads the object.
  So a webhook need not refuse what roles refuse, and cannot allow it.

  Source: "Controlling Access to the Kubernetes API"; "Using RBAC Authorization"; apiserver pkg/server/config.go

  Rule: A request that no role allows is refused before any webhook is called
    Background:
      Given a validating webhook "guard" for configmaps

    Scenario: Without a role a user is refused
      Given requests are made by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 403 Forbidden
      And the message contains 'User "jane" cannot create resource "configmaps" in API group "" in the namespace'
      And "guard" is not called

    Scenario: What a role allows, the webhook sees with its user
      Given the user "jane" may create configmaps
      And requests are made by the user "jane"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "guard" is called once
      And the first review of "guard" contains:
        """yaml
        request: {operation: CREATE, userInfo: {username: jane, groups: ["system:authenticated"]}}
        """

    Scenario: A role allows what its verbs say and nothing else
      Given the user "jane" may get and list configmaps
      And a config map "settings" exists
      And requests are made by the user "jane"
      When the configmap "settings" gets the label "team=blue"
      Then the request is refused with 403 Forbidden
      And "guard" is not called

  Rule: Nobody gives rights away without having them
    Scenario: A role with more than its writer may do is refused after the mutating webhooks
      Given a mutating webhook "sees" for roles in rbac.authorization.k8s.io/v1
      And a validating webhook "guard" for roles in rbac.authorization.k8s.io/v1
      And the user "jane" may create roles
      And requests are made by the user "jane"
      When this object is created:
        """yaml
        apiVersion: rbac.authorization.k8s.io/v1
        kind: Role
        metadata: {name: readers}
        rules:
        - {verbs: [get], apiGroups: [""], resources: [secrets]}
        """
      Then the request is refused with 403 Forbidden
      And the message contains "is attempting to grant RBAC permissions not currently held"
      And "sees" is called once
      And "guard" is not called
