Feature: Failure policy
  A webhook can be slow, unreachable or broken. Its failure policy says whether requests are refused then or admitted
  without it. It says nothing about the verdict of a webhook that works.

  Source: Dynamic admission control, "Failure policy"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go and pkg/admission/plugin/webhook/request

  Rule: With the policy Fail a call that fails refuses the request
    The client is told which webhook failed and how. It is the policy of a webhook that does not say which.

    Scenario Outline: A <kind> webhook that does not answer in time refuses the request
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" has a timeout of 1 second
      And "policy" never answers
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And the message contains 'Internal error occurred: failed calling webhook "policy.admit.example.com": '
      And the message contains "?timeout=1s"
      And the message contains "context deadline exceeded"
      And the configmap "settings" does not exist

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: A <kind> webhook that <fails> refuses the request
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" <fails>
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And the message contains 'Internal error occurred: failed calling webhook "policy.admit.example.com": '
      And the message contains '<reason>'
      And the configmap "settings" does not exist
      And the audit log does not say that "policy" failed open

      Examples: Nobody answers
        | kind       | fails               | reason                      |
        | mutating   | refuses connections | connect: connection refused |
        | validating | refuses connections | connect: connection refused |

      Examples: The answer cannot be trusted
        | kind       | fails                                             | reason                                         |
        | mutating   | presents an untrusted certificate                 | x509: certificate signed by unknown authority  |
        | validating | presents an untrusted certificate                 | x509: certificate signed by unknown authority  |
        | validating | presents a certificate with the defect "expired"  | x509: certificate has expired or is not yet valid |

      Examples: The answer is no review
        | kind       | fails                                             | reason                                                             |
        | mutating   | answers with the HTTP status 500                  | failed to call webhook: an error on the server ("Internal Server Error") has prevented the request from succeeding |
        | validating | answers with the HTTP status 404                  | failed to call webhook: the server could not find the requested resource |
        | mutating   | gives the bad response "not-json"                 | get version/kind; json parse error: json: cannot unmarshal string into Go value |
        | validating | gives the bad response "empty"                    | failed to call webhook: 0-length response with status code: 200    |
        | mutating   | gives the bad response "no-response"              | received invalid webhook response: webhook response was absent     |
        | validating | gives the bad response "wrong-uid"                | received invalid webhook response: expected response.uid=          |
        | mutating   | gives the bad response "wrong-kind"               | no kind "AdmissionResponse" is registered for version "admission.k8s.io/v1" |
        | validating | gives the bad response "wrong-version"            | converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion |

      Examples: The answer holds a patch that cannot be used
        | kind       | fails                                             | reason                                                             |
        | mutating   | gives the bad response "patch-without-patch-type" | webhook returned response.patch but not response.patchType         |
        | mutating   | gives the bad response "undecodable-patch"        | received undecodable patch in webhook response                     |
        | validating | gives the bad response "patch-without-patch-type" | validating webhook may not return response.patch                   |

    Scenario: Fail is the policy of a webhook that says nothing of it
      Given a validating webhook "policy" for configmaps
      And "policy" refuses connections
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError

    Scenario: The webhooks after a mutating one that fails are not called
      Given a mutating webhook "broken" for configmaps
      And "broken" gives the bad response "no-response"
      And a mutating webhook "later" for configmaps
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And "broken" is called once
      And "later" is not called
      And "guard" is not called

    Scenario: The validating webhooks beside one that fails are called all the same
      Given a validating webhook "broken" for configmaps
      And "broken" gives the bad response "no-response"
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And "broken" is called once
      And "guard" is called once

  Rule: With the policy Ignore a call that fails counts as if the webhook had allowed the request
    Only the audit log tells of it.

    Scenario Outline: A <kind> webhook that does not answer in time is passed over
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Ignore
      And "policy" has a timeout of 1 second
      And "policy" never answers
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client is not warned
      And the configmap "settings" exists
      And the audit log says that "policy" failed open in the first round

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: A <kind> webhook that <fails> is passed over
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Ignore
      And "policy" <fails>
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client is not warned
      And the configmap "settings" exists
      And the audit log says that "policy" failed open in the first round

      Examples:
        | kind       | fails                                             |
        | mutating   | refuses connections                               |
        | validating | refuses connections                               |
        | mutating   | presents an untrusted certificate                 |
        | validating | presents an untrusted certificate                 |
        | mutating   | answers with the HTTP status 500                  |
        | validating | answers with the HTTP status 500                  |
        | mutating   | gives the bad response "not-json"                 |
        | validating | gives the bad response "empty"                    |
        | mutating   | gives the bad response "wrong-uid"                |
        | validating | gives the bad response "wrong-kind"               |
        | mutating   | gives the bad response "undecodable-patch"        |

    Scenario: The webhooks after one that failed open are called
      Given a mutating webhook "broken" for configmaps
      And "broken" has the failure policy Ignore
      And "broken" gives the bad response "no-response"
      And a mutating webhook "labels" for configmaps
      And "labels" adds the label "team=blue"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the object has the label "team=blue"
      And the webhooks are called in the order "broken, labels"
      And the audit log says that "broken" did not change the object in the first round
      And the audit log says that "broken" failed open in the first round
      And the audit log says that "labels" changed the object in the first round

  Rule: Ignore does not cover what a webhook says
    Scenario Outline: A denial by a <kind> webhook stays a denial
      Given a <kind> webhook "guard" for configmaps
      And "guard" has the failure policy Ignore
      And "guard" denies the request with 403 Forbidden and the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 403 Forbidden
      And the message is 'admission webhook "guard.admit.example.com" denied the request: not today'
      And the audit log does not say that "guard" failed open

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: A denial reaches the client with <said>
      Given a validating webhook "guard" for configmaps
      And "guard" has the failure policy Ignore
      And "guard" behaves like this:
        """yaml
        deny: <denial>
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with <decision>
      And the message is 'admission webhook "guard.admit.example.com" <message>'

      Examples:
        | said                        | denial                                         | decision      | message                                |
        | any code and reason         | {code: 418, reason: Teapot, message: tea only} | 418 Teapot    | denied the request: tea only           |
        | a reason for a message      | {code: 403, reason: Forbidden}                 | 403 Forbidden | denied the request: Forbidden          |
        | no explanation              | {}                                             | 400           | denied the request without explanation |
        | a code that is no refusal   | {code: 200, message: no}                       | 400           | denied the request: no                 |

    Scenario: A denial brings its warnings and audit annotations along
      Given a validating webhook "guard" for configmaps
      And "guard" behaves like this:
        """yaml
        deny:
          message: not today
          warnings: [ask the operators]
          auditAnnotations: {rule: weekdays}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 400
      And the client is warned "ask the operators"
      And the audit annotation "rule" of "guard" is "weekdays"

  Rule: Ignore does not cover a patch that cannot be applied
    The call itself succeeded. That nothing can be made of its patch is an error of the server.

    Scenario: A patch of what the object does not have refuses the request
      Given a mutating webhook "stale" for configmaps
      And "stale" has the failure policy Ignore
      And "stale" patches the object:
        """yaml
        - {op: remove, path: /data/none}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        data: {some: thing}
        """
      Then the request is refused with 500 InternalError
      And the message contains "Internal error occurred: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value"
      And the audit log does not say that "stale" failed open

    Scenario: A patch of what is being deleted refuses the request
      Given a config map "settings" exists
      And a mutating webhook "stale" for configmaps
      And "stale" is registered only for DELETE
      And "stale" has the failure policy Ignore
      And "stale" patches the object:
        """yaml
        - {op: add, path: /metadata/labels, value: {team: blue}}
        """
      When the configmap "settings" is deleted
      Then the request is refused with 500 InternalError
      And the message is 'Internal error occurred: admission webhook "stale.admit.example.com" attempted to modify the object, which is not supported for this operation'
      And the configmap "settings" exists
