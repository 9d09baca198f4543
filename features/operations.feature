Feature: Operations
  A review says what happens to the object: CREATE, UPDATE, DELETE or CONNECT, whether it is asked for with POST, PUT or
  PATCH, by name or for a whole collection. What of object, old object and options it holds depends on that.

  Source: Dynamic admission control, "Request"; apiserver pkg/endpoints/handlers and
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: A creation has an object and no old one
    Source: Dynamic admission control, "Request"; KEP-492, "Passing {Operation}Option to Webhook"

    Scenario: The object is sent as the client wrote it, with defaults, and with the options
      Given a validating webhook "policy" for secrets
      When this object is created:
        """yaml
        apiVersion: v1
        kind: Secret
        metadata: {name: token}
        stringData: {color: blue}
        """
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request:
          operation: CREATE
          name: token
          object: {apiVersion: v1, kind: Secret, type: Opaque, data: {color: Ymx1ZQ==}}
          oldObject: null
          options: {apiVersion: meta.k8s.io/v1, kind: CreateOptions}
        """

    Scenario: The name that the server makes is not there yet for a mutating webhook
      Given a mutating webhook "labels" for configmaps
      And a validating webhook "policy" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {generateName: settings-}
        """
      Then the request is admitted
      And the first review of "labels" contains:
        """yaml
        request: {name: null, object: {metadata: {name: null, generateName: settings-}}}
        """
      And the first review of "policy" does not contain:
        """yaml
        request: {name: null}
        """

  Rule: A change has both objects, whether it is a PUT or a PATCH
    Source: Dynamic admission control, "Request"; KEP-492, "Passing {Operation}Option to Webhook"

    Background:
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: green}
        """

    Scenario: A PUT
      Given a validating webhook "policy" for configmaps
      When this object is updated:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {data: {color: blue}}
          oldObject: {data: {color: green}}
          options: {apiVersion: meta.k8s.io/v1, kind: UpdateOptions}
        """

    Scenario: A PATCH is the object that it makes, and not the patch
      Given a validating webhook "policy" for configmaps
      When the configmap "settings" is patched:
        """yaml
        data: {size: large}
        """
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {data: {color: green, size: large}}
          oldObject: {data: {color: green, size: null}}
          options: {apiVersion: meta.k8s.io/v1, kind: UpdateOptions}
        """

  Rule: A deletion has the old object only
    Source: Dynamic admission control, "Request"; KEP-492, "Plumbing existing objects to delete admission", "Passing
    {Operation}Option to Webhook"

    Background:
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: Secret
        metadata: {name: blue, labels: {team: blue}}
        """

    Scenario: What is deleted is the old object
      Given a validating webhook "policy" for secrets
      When the secret "blue" is deleted
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request:
          operation: DELETE
          name: blue
          object: null
          oldObject: {metadata: {name: blue, labels: {team: blue}}}
          options: {apiVersion: meta.k8s.io/v1, kind: DeleteOptions}
        """

    Scenario: The options of the client come with it
      Given a validating webhook "policy" for secrets
      When the secret "blue" is deleted with:
        """yaml
        {propagationPolicy: Background, gracePeriodSeconds: 0}
        """
      Then the request is admitted
      And the first review of "policy" contains:
        """yaml
        request: {operation: DELETE, options: {propagationPolicy: Background, gracePeriodSeconds: 0}}
        """

    Scenario: A webhook that denies the deletion keeps the object
      Given a validating webhook "policy" for secrets
      And "policy" is registered only for DELETE
      And "policy" denies the request with 403 Forbidden and the message "still in use"
      When the secret "blue" is deleted
      Then the request is refused with 403 Forbidden
      And the secret "blue" exists

  Rule: The deletion of a collection is a deletion of each object in it
    Source: KEP-492, "Plumbing existing objects to delete admission"

    Background:
      Given these objects exist:
        """yaml
        apiVersion: v1
        kind: Secret
        metadata: {name: blue}
        ---
        apiVersion: v1
        kind: Secret
        metadata: {name: green}
        """

    Scenario: Each has a review of its own, in which only the old object has its name
      Given a validating webhook "policy" for secrets
      When all secrets are deleted
      Then the request is admitted
      And "policy" is called twice
      And the first review of "policy" contains:
        """yaml
        request: {operation: DELETE, name: null, object: null, oldObject: {kind: Secret}}
        """

    Scenario: One denial is enough to fail the request
      Given a validating webhook "policy" for secrets
      And "policy" behaves like this:
        """yaml
        deny: {message: still in use}
        """
      When all secrets are deleted
      Then the request is refused with 400
      And the message contains "still in use"

  Rule: A connection has its options as the object
    Source: Dynamic admission control, "Request"; KEP-492, "Connection Options"

    Scenario: An exec into a pod can be denied
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: web, image: example.com/web:1}]}
        """
      And a validating webhook "policy" for pods/exec
      And "policy" is registered only for CONNECT
      And "policy" denies the request with 403 Forbidden and the message "no shells here"
      When a client connects to the exec of the pod "web" with:
        """yaml
        {command: [sh], stdin: true, tty: true}
        """
      Then the request is refused with 403 Forbidden
      And the message contains "no shells here"
      And the first review of "policy" contains:
        """yaml
        request:
          operation: CONNECT
          name: web
          subResource: exec
          kind: {group: "", version: v1, kind: PodExecOptions}
          object: {apiVersion: v1, kind: PodExecOptions, command: [sh], stdin: true, tty: true}
          oldObject: null
          options: null
        """
