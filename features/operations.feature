Feature: Operations
  A review has one of the operations CREATE, UPDATE, DELETE, or CONNECT, whether the client sends POST, PUT, PATCH, or DELETE
  for one object or for a collection. The operation determines which of object, oldObject, and options are set.

  Source: Dynamic admission control, "Request"; apiserver pkg/endpoints/handlers and
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: A create has an object and no old object
    Source: Dynamic admission control, "Request"; KEP-492, "Passing {Operation}Option to Webhook"

    Scenario: The review contains the object with defaults, and the options
      Given a validating webhook "policy" for secrets
      When this object is created:
        """yaml
        apiVersion: v1
        kind: Secret
        metadata: {name: token}
        stringData: {color: blue}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: CREATE
          name: token
          object: {apiVersion: v1, kind: Secret, type: Opaque, data: {color: Ymx1ZQ==}}
          oldObject: null
          options: {apiVersion: meta.k8s.io/v1, kind: CreateOptions}
        """

    Scenario: A generated name is not yet set for a mutating webhook
      Given a mutating webhook "labels" for configmaps
      And a validating webhook "policy" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {generateName: settings-}
        """
      Then the request is admitted
      And the first review sent to "labels" contains:
        """yaml
        request: {name: null, object: {metadata: {name: null, generateName: settings-}}}
        """
      And the first review sent to "policy" does not contain:
        """yaml
        request: {name: null}
        """

  Rule: An update has both objects
    Source: Dynamic admission control, "Request"; KEP-492, "Passing {Operation}Option to Webhook"

    Background:
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: green}
        """

    Scenario: The review of a PUT contains the new and the old object
      Given a validating webhook "policy" for configmaps
      When this object is updated:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {data: {color: blue}}
          oldObject: {data: {color: green}}
          options: {apiVersion: meta.k8s.io/v1, kind: UpdateOptions}
        """

    Scenario: The review of a PATCH contains the patched object and not the patch
      Given a validating webhook "policy" for configmaps
      When the configmap "settings" is patched:
        """yaml
        data: {size: large}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {data: {color: green, size: large}}
          oldObject: {data: {color: green, size: null}}
          options: {apiVersion: meta.k8s.io/v1, kind: UpdateOptions}
        """

  Rule: A strategic merge patch merges lists by key
    Source: kubernetes.io, "Update API Objects in Place Using kubectl patch"; apiserver pkg/endpoints/handlers/patch.go

    Scenario: The patched list contains the new and the existing container
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: PodTemplate
        metadata: {name: web}
        template:
          metadata: {labels: {app: web}}
          spec: {containers: [{name: web, image: "example.com/web:1"}]}
        """
      And a validating webhook "policy" for podtemplates
      When the podtemplate "web" is patched with the strategic merge patch:
        """yaml
        template: {spec: {containers: [{name: proxy, image: "example.com/proxy:1"}]}}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {template: {spec: {containers: [{name: proxy}, {name: web}]}}}
          oldObject: {template: {spec: {containers: [{name: web}]}}}
        """

  Rule: Server-side apply is a create or an update
    Source: kubernetes.io, "Server-Side Apply"; apiserver pkg/endpoints/handlers/patch.go

    Scenario: The review of an applied new object has the operation CREATE
      Given a validating webhook "policy" for configmaps
      When this object is applied by the field manager "ci":
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: CREATE
          object: {data: {color: blue}, metadata: {managedFields: [{manager: ci, operation: Apply}]}}
          oldObject: null
          options: {apiVersion: meta.k8s.io/v1, kind: CreateOptions, fieldManager: ci}
        """

    Scenario: The review of an applied existing object has the operation UPDATE and the merged object
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: green}
        """
      And a validating webhook "policy" for configmaps
      When this object is applied by the field manager "ci":
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {size: large}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: UPDATE
          object: {data: {color: green, size: large}}
          oldObject: {data: {color: green, size: null}}
          options: {apiVersion: meta.k8s.io/v1, kind: UpdateOptions, fieldManager: ci}
        """

    Scenario: A conflict with another field manager rejects the request before any webhook is called
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: green}
        """
      And a validating webhook "policy" for configmaps
      When this object is applied by the field manager "ci":
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is rejected with 409 Conflict
      And "policy" is not called

    Scenario: Applying with force takes over the field
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: green}
        """
      And a validating webhook "policy" for configmaps
      When this object is applied with force by the field manager "ci":
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {color: blue}
        """
      Then the request is admitted
      And the stored configmap "settings" contains:
        """yaml
        data: {color: blue}
        """
      And the first review sent to "policy" contains:
        """yaml
        request: {operation: UPDATE, options: {fieldManager: ci, force: null}}
        """

  Rule: A deletion has only the old object
    Source: Dynamic admission control, "Request"; KEP-492, "Plumbing existing objects to delete admission", "Passing
    {Operation}Option to Webhook"

    Background:
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: Secret
        metadata: {name: blue, labels: {team: blue}}
        """

    Scenario: The old object is the deleted object
      Given a validating webhook "policy" for secrets
      When the secret "blue" is deleted
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request:
          operation: DELETE
          name: blue
          object: null
          oldObject: {metadata: {name: blue, labels: {team: blue}}}
          options: {apiVersion: meta.k8s.io/v1, kind: DeleteOptions}
        """

    Scenario: The review contains the client's DeleteOptions
      Given a validating webhook "policy" for secrets
      When the secret "blue" is deleted with:
        """yaml
        {propagationPolicy: Background, gracePeriodSeconds: 0}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        request: {operation: DELETE, options: {propagationPolicy: Background, gracePeriodSeconds: 0}}
        """

    Scenario: A denied deletion keeps the object
      Given a validating webhook "policy" for secrets
      And "policy" matches only the operation DELETE
      And "policy" denies the request with 403 Forbidden and the message "still in use"
      When the secret "blue" is deleted
      Then the request is rejected with 403 Forbidden
      And the secret "blue" exists

  Rule: Deleting a collection deletes each object in it
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

    Scenario: Each object has its own review, and only its old object has the name
      Given a validating webhook "policy" for secrets
      When all secrets are deleted
      Then the request is admitted
      And "policy" is called twice
      And the first review sent to "policy" contains:
        """yaml
        request: {operation: DELETE, name: null, object: null, oldObject: {kind: Secret}}
        """

    Scenario: One denial fails the request
      Given a validating webhook "policy" for secrets
      And "policy" behaves like this:
        """yaml
        deny: {message: still in use}
        """
      When all secrets are deleted
      Then the request is rejected with 400
      And the message contains "still in use"

  Rule: A connection has its options as the object
    Source: Dynamic admission control, "Request"; KEP-492, "Connection Options"

    Scenario: A webhook can deny an exec into a pod
      Given this object exists:
        """yaml
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec: {containers: [{name: web, image: example.com/web:1}]}
        """
      And a validating webhook "policy" for pods/exec
      And "policy" matches only the operation CONNECT
      And "policy" denies the request with 403 Forbidden and the message "no shells here"
      When a client connects to the exec subresource of the pod "web" with:
        """yaml
        {command: [sh], stdin: true, tty: true}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "no shells here"
      And the first review sent to "policy" contains:
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
