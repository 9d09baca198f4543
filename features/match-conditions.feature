Feature: Match conditions
  The rules and selectors of a webhook choose requests by resource and labels. A match condition is a CEL expression about the
  request. The webhook is called only if all of its match conditions are true.

  Source: KEP-3716, "API"; Dynamic admission control, "Matching requests: matchConditions"; apiserver
  pkg/admission/plugin/webhook/matchconditions/matcher.go

  Rule: A webhook is called only if every condition is true

    Scenario Outline: A <kind> webhook whose condition excludes the name skip-me <is called> for <name>
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the match condition "not-skipped":
        """cel
        object.metadata.name != 'skip-me'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: <name>}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | kind       | name     | is called      |
        | mutating   | settings | is called once |
        | mutating   | skip-me  | is not called  |
        | validating | settings | is called once |
        | validating | skip-me  | is not called  |

    Scenario Outline: A webhook with two conditions <is called> if <conditions>
      Given a validating webhook "policy" for configmaps
      And "policy" has the match condition "team":
        """cel
        has(object.metadata.labels) && 'team' in object.metadata.labels
        """
      And "policy" has the match condition "production":
        """cel
        has(object.data) && object.data.?stage.orValue('') == 'production'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, labels: <labels>}
        data: {stage: <stage>}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | conditions              | labels       | stage      | is called      |
        | both are true           | {team: blue} | production | is called once |
        | only the first is true  | {team: blue} | test       | is not called  |
        | only the second is true | {}           | production | is not called  |
        | neither is true         | {}           | test       | is not called  |

    Scenario: A changed condition applies to the next request
      Given a validating webhook "policy" for configmaps
      And "policy" denies the request with the message "seen"
      And "policy" has the match condition "never":
        """cel
        false
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: first}
        """
      Then the request is admitted
      Given "policy" has the match condition "never":
        """cel
        object.metadata.name == 'second'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: second}
        """
      Then the request is rejected with 400
      And the message contains "denied the request: seen"

  Rule: A condition can use the request and the object as the webhook would receive it

    Scenario: In the mutating phase, a condition sees the changes of earlier webhooks
      Given a mutating webhook "first" for configmaps
      And "first" adds the label "team=blue"
      And a mutating webhook "second" for configmaps
      And "second" has the match condition "blue":
        """cel
        object.metadata.?labels.team.orValue('') == 'blue'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the webhooks are called in the order "first, second"

    Scenario: A condition is evaluated again before a reinvocation
      Given a mutating webhook "first" for configmaps
      And "first" has the reinvocation policy IfNeeded
      And "first" has the match condition "not-yet-blue":
        """cel
        !has(object.metadata.labels) || !('team' in object.metadata.labels)
        """
      And a mutating webhook "second" for configmaps
      And "second" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "first" is called once

    Scenario: For an update, a condition can use both objects
      Given a ConfigMap "settings" with the label "team=blue" exists
      And a validating webhook "policy" for configmaps
      And "policy" matches only the operation UPDATE
      And "policy" has the match condition "team-changes":
        """cel
        object.metadata.?labels.team != oldObject.metadata.?labels.team
        """
      When the label "team=green" is added to the configmap "settings"
      Then the request is admitted
      And "policy" is called once

    Scenario: For a deletion, a condition can use only the old object
      Given a ConfigMap "settings" with the label "team=blue" exists
      And a validating webhook "policy" for configmaps
      And "policy" matches only the operation DELETE
      And "policy" has the match condition "blue":
        """cel
        object == null && oldObject.metadata.labels.team == 'blue' && request.operation == 'DELETE'
        """
      When the configmap "settings" is deleted
      Then the request is admitted
      And "policy" is called once

    Scenario Outline: A condition can <select> dry runs
      Given requests are dry runs
      And a validating webhook "policy" for configmaps
      And "policy" has the match condition "dry-run":
        """cel
        <expression>
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" <is called>

      Examples:
        | select  | expression      | is called      |
        | select  | request.dryRun  | is called once |
        | exclude | !request.dryRun | is not called  |

  Rule: A condition limits a webhook to the objects that it handles
    Source: KEP-3716, "Scope an NFS access management webhook to Pods mounting NFS volumes"

    Scenario Outline: A webhook for pods with NFS volumes is <called> for a pod with the volume type <type>
      Given a validating webhook "nfs access" for pods
      And "nfs access" has the match condition "nfs-volume-present":
        """cel
        has(object.spec.volumes) && object.spec.volumes.exists(volume, has(volume.nfs))
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: Pod
        metadata: {name: web}
        spec:
          containers: [{name: web, image: example.com/web:1}]
          volumes: [{name: data, <type>: <volume>}]
        """
      Then the request is admitted
      And "nfs access" <is called>

      Examples:
        | called     | type     | volume                                 | is called      |
        | called     | nfs      | {server: nfs.example.com, path: /data} | is called once |
        | not called | emptyDir | {}                                     | is not called  |

  Rule: Conditions can exclude requests that the cluster depends on
    The rules match only namespaced objects: a namespace selector cannot exclude cluster-scoped objects.

    Source: KEP-3716, "Exclude resources from a wildcard rule", "Exempt system users from security policy"; Dynamic admission
    control, "Matching requests: matchConditions"

    Scenario: Node leases are excluded
      Given a validating webhook "everything" for *
      And "everything" is configured with:
        """yaml
        rules: [{operations: [CREATE, UPDATE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Namespaced}]
        """
      And "everything" denies the request with the message "seen"
      And "everything" has the match condition "exclude-leases":
        """cel
        !(request.resource.group == 'coordination.k8s.io' && request.resource.resource == 'leases')
        """
      When this object is created:
        """yaml
        apiVersion: coordination.k8s.io/v1
        kind: Lease
        metadata: {name: node-1}
        spec: {holderIdentity: node-1, leaseDurationSeconds: 40}
        """
      Then the request is admitted
      And "everything" is not called

    Scenario Outline: A condition that excludes RBAC resources <result>
      Given a validating webhook "everything" for *
      And "everything" is configured with:
        """yaml
        rules: [{operations: [CREATE, UPDATE], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"], scope: Namespaced}]
        """
      And "everything" has the match condition "exclude-rbac":
        """cel
        request.resource.group != 'rbac.authorization.k8s.io'
        """
      When this object is created:
        """yaml
        <object>
        """
      Then the request is admitted
      And "everything" <is called>

      Examples:
        | result              | object                                                                                      | is called      |
        | is false for roles  | {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: reader}, rules: []} | is not called  |
        | is true for secrets | {apiVersion: v1, kind: Secret, metadata: {name: token}}                                     | is called once |

    Scenario Outline: A condition that excludes the controllers of kube-system <result>
      Given the user "<user>" can create configmaps
      And requests are sent by the user "<user>" in the group "<group>"
      And a validating webhook "policy" for configmaps
      And "policy" denies the request with the message "seen"
      And "policy" has the match condition "exclude-kube-system-service-accounts":
        """cel
        !request.userInfo.groups.exists(group, group == 'system:serviceaccounts:kube-system')
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then "policy" <is called>

      Examples:
        | user                                       | group                              | result                    | is called      |
        | system:serviceaccount:kube-system:deployer | system:serviceaccounts:kube-system | is false for a controller | is not called  |
        | jane                                       | developers                         | is true for a user        | is called once |

  Rule: A condition can use the authorizer
    Source: KEP-3716, "Exempt system users from security policy"

    Scenario Outline: A condition that exempts users with the verb breakglass <result>
      Given the user "jane" can create configmaps
      And the user "jane" can <verb> secrets
      And requests are sent by the user "jane"
      And a validating webhook "policy" for configmaps
      And "policy" denies the request with the message "seen"
      And "policy" has the match condition "breakglass":
        """cel
        !authorizer.group('').resource('secrets').namespace(request.namespace).check('breakglass').allowed()
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then "policy" <is called>

      Examples:
        | result                   | verb       | is called      |
        | is false for such a user | breakglass | is not called  |
        | is true for other users  | get        | is called once |

    Scenario: The authorizer can check the resource of the request
      Given the user "jane" can create configmaps
      And requests are sent by the user "jane"
      And a validating webhook "policy" for configmaps
      And "policy" has the match condition "may-not-delete":
        """cel
        authorizer.requestResource.check('create').allowed() && !authorizer.requestResource.check('delete').allowed()
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is called once

  Rule: The failure policy applies when a condition cannot be evaluated
    Source: KEP-3716, "API"; Dynamic admission control, "Matching requests: matchConditions", "Failure policy"


    Scenario: With the failure policy Fail, the request is rejected without a call
      Given a validating webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" has the match condition "stage":
        """cel
        object.data.stage == 'production'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "is forbidden: expression 'object.data.stage == 'production'' resulted in error: no such key: data"
      And "policy" is not called

    Scenario: With the failure policy Ignore, the webhook is skipped
      Given a mutating webhook "policy" for configmaps
      And "policy" has the failure policy Ignore
      And "policy" adds the label "seen=yes"
      And "policy" has the match condition "stage":
        """cel
        object.data.stage == 'production'
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is not called

    Scenario: A condition that is false takes precedence over one that fails
      Given a validating webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" has the match condition "stage":
        """cel
        object.data.stage == 'production'
        """
      And "policy" has the match condition "never":
        """cel
        false
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is not called

  Rule: The evaluation of conditions has a cost budget
    Source: KEP-3716, "Performance"


    Scenario: An expression that exceeds the cost limit fails
      Given a validating webhook "policy" for configmaps
      And "policy" has the match condition "expensive":
        """cel
        [0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c,
          [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a + b + c + d + e + f >= 0))))))
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "operation cancelled: actual cost limit exceeded"

    Scenario: A third authorizer check exceeds the cost limit of an expression
      Given a validating webhook "policy" for configmaps
      And "policy" has the match condition "asks-thrice":
        """cel
        ['get', 'list', 'watch'].all(verb, authorizer.requestResource.check(verb).allowed())
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "operation cancelled: actual cost limit exceeded"

    Scenario: All conditions of a webhook share one budget
      Given a validating webhook "policy" for configmaps
      And "policy" has the match condition "first":
        """cel
        ['get', 'list'].all(verb, authorizer.requestResource.check(verb).allowed())
        """
      And "policy" has the match condition "second":
        """cel
        ['get', 'list'].all(verb, authorizer.requestResource.check(verb).allowed())
        """
      And "policy" has the match condition "third":
        """cel
        ['get', 'list'].all(verb, authorizer.requestResource.check(verb).allowed())
        """
      And "policy" has the match condition "fourth":
        """cel
        ['get', 'list'].all(verb, authorizer.requestResource.check(verb).allowed())
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message contains "validation failed due to running out of cost budget, no further validation rules will be run"

  Rule: A condition that does not compile makes its configuration invalid

    Scenario Outline: A configuration whose condition <is wrong> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: <kind>WebhookConfiguration
        metadata: {name: conditions.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "https://127.0.0.1:9443/"}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          namespaceSelector: {matchLabels: {admit.example.com/nowhere: ""}}
          sideEffects: None
          admissionReviewVersions: [v1]
          matchConditions: [{name: condition, expression: "<expression>"}]
        """
      Then the request is rejected with 422 Invalid
      And the message contains "webhooks[0].matchConditions[0].expression: Invalid value:"
      And the message contains "<because>"

      Examples:
        | is wrong                          | kind       | expression              | because                                                                                    |
        | has a syntax error                | Validating | object.metadata.name == | compilation failed: ERROR: <input>:1:24: Syntax error: mismatched input                    |
        | uses an undeclared variable       | Mutating   | params.stage == 'x'     | compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '') |
        | reads a field that does not exist | Validating | request.uid == 'x'      | compilation failed: ERROR: <input>:1:8: undefined field 'uid'                              |
        | compares different types          | Mutating   | request.dryRun == 'yes' | found no matching overload for '_==_' applied to '(bool, string)'                          |
        | returns a string                  | Validating | request.operation       | must evaluate to bool but got string                                                       |
