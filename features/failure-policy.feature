Feature: Failure policy
  A webhook can be slow, unreachable or broken. Its failure policy decides whether the request is then rejected, or admitted
  without that webhook. It does not affect the verdict of a webhook that responds correctly.

  Source: Dynamic admission control, "Failure policy"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go and pkg/admission/plugin/webhook/request

  Rule: With the failure policy Fail, a failed call rejects the request
    The client learns which webhook failed and why. Fail is the default.

    Scenario Outline: A <kind> webhook that times out rejects the request
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" has a timeout of 1 second
      And "policy" never responds
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains 'Internal error occurred: failed calling webhook "policy.admit.example.com": '
      And the message contains "?timeout=1s"
      And the message contains "context deadline exceeded"
      And the configmap "settings" does not exist

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: A <kind> webhook that <fails> rejects the request
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Fail
      And "policy" <fails>
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains 'Internal error occurred: failed calling webhook "policy.admit.example.com": '
      And the message contains '<reason>'
      And the configmap "settings" does not exist
      And the audit log does not record that "policy" failed open

      Examples: The connection fails
        | kind       | fails               | reason                      |
        | mutating   | refuses connections | connect: connection refused |
        | validating | refuses connections | connect: connection refused |

      Examples: The certificate is not trusted
        | kind       | fails                                                   | reason                                            |
        | mutating   | presents a certificate with the defect "unknown-issuer" | x509: certificate signed by unknown authority     |
        | validating | presents a certificate with the defect "unknown-issuer" | x509: certificate signed by unknown authority     |
        | validating | presents a certificate with the defect "expired"        | x509: certificate has expired or is not yet valid |

      Examples: The response is not a valid review
        | kind       | fails                                    | reason                                                                                                             |
        | mutating   | responds with the HTTP status 500        | failed to call webhook: an error on the server ("Internal Server Error") has prevented the request from succeeding |
        | validating | responds with the HTTP status 404        | failed to call webhook: the server could not find the requested resource                                           |
        | mutating   | returns the bad response "not-json"      | get version/kind; json parse error: json: cannot unmarshal string into Go value                                    |
        | validating | returns the bad response "empty"         | failed to call webhook: 0-length response with status code: 200                                                    |
        | mutating   | returns the bad response "no-response"   | received invalid webhook response: webhook response was absent                                                     |
        | validating | returns the bad response "wrong-uid"     | received invalid webhook response: expected response.uid=                                                          |
        | mutating   | returns the bad response "wrong-kind"    | no kind "AdmissionResponse" is registered for version "admission.k8s.io/v1"                                        |
        | validating | returns the bad response "wrong-version" | converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion                                   |

      Examples: The response contains an invalid patch
        | kind       | fails                                               | reason                                                     |
        | mutating   | returns the bad response "patch-without-patch-type" | webhook returned response.patch but not response.patchType |
        | mutating   | returns the bad response "undecodable-patch"        | received undecodable patch in webhook response             |
        | validating | returns the bad response "patch-without-patch-type" | validating webhook may not return response.patch           |

    Scenario: The default failure policy is Fail
      Given a validating webhook "policy" for configmaps
      And "policy" refuses connections
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError

    Scenario: Webhooks after a failed mutating webhook are not called
      Given a mutating webhook "broken" for configmaps
      And "broken" returns the bad response "no-response"
      And a mutating webhook "later" for configmaps
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And "broken" is called once
      And "later" is not called
      And "guard" is not called

    Scenario: Other validating webhooks are called even if one fails
      Given a validating webhook "broken" for configmaps
      And "broken" returns the bad response "no-response"
      And a validating webhook "guard" for configmaps
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And "broken" is called once
      And "guard" is called once

  Rule: With the failure policy Ignore, a failed call counts as allowed
    Only the audit log shows the failure.

    Scenario Outline: A <kind> webhook that times out is ignored
      Given a <kind> webhook "policy" for configmaps
      And "policy" has the failure policy Ignore
      And "policy" has a timeout of 1 second
      And "policy" never responds
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the client receives no warnings
      And the configmap "settings" exists
      And the audit log records that "policy" failed open in the first round

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: A <kind> webhook that <fails> is ignored
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
      And the client receives no warnings
      And the configmap "settings" exists
      And the audit log records that "policy" failed open in the first round

      Examples:
        | kind       | fails                                                   |
        | mutating   | refuses connections                                     |
        | validating | refuses connections                                     |
        | mutating   | presents a certificate with the defect "unknown-issuer" |
        | validating | presents a certificate with the defect "unknown-issuer" |
        | mutating   | responds with the HTTP status 500                       |
        | validating | responds with the HTTP status 500                       |
        | mutating   | returns the bad response "not-json"                     |
        | validating | returns the bad response "empty"                        |
        | mutating   | returns the bad response "wrong-uid"                    |
        | validating | returns the bad response "wrong-kind"                   |
        | mutating   | returns the bad response "undecodable-patch"            |

    Scenario: Webhooks after one that failed open are called
      Given a mutating webhook "broken" for configmaps
      And "broken" has the failure policy Ignore
      And "broken" returns the bad response "no-response"
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
      And the audit log records that "broken" did not change the object in the first round
      And the audit log records that "broken" failed open in the first round
      And the audit log records that "labels" changed the object in the first round

  Rule: The failure policy Ignore does not apply to denials
    Scenario Outline: A denial by a <kind> webhook rejects the request
      Given a <kind> webhook "guard" for configmaps
      And "guard" has the failure policy Ignore
      And "guard" denies the request with 403 Forbidden and the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 403 Forbidden
      And the message is 'admission webhook "guard.admit.example.com" denied the request: not today'
      And the audit log does not record that "guard" failed open

      Examples:
        | kind       |
        | mutating   |
        | validating |

    Scenario Outline: The client receives a denial with <said>
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
      Then the request is rejected with <decision>
      And the message is 'admission webhook "guard.admit.example.com" <message>'

      Examples:
        | said                       | denial                                         | decision      | message                                |
        | any code and reason        | {code: 418, reason: Teapot, message: tea only} | 418 Teapot    | denied the request: tea only           |
        | a reason and no message    | {code: 403, reason: Forbidden}                 | 403 Forbidden | denied the request: Forbidden          |
        | neither reason nor message | {}                                             | 400           | denied the request without explanation |
        | a success code             | {code: 200, message: no}                       | 400           | denied the request: no                 |

    Scenario: A denial keeps its warnings and audit annotations
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
      Then the request is rejected with 400
      And the client receives the warning "ask the operators"
      And the audit annotation "rule" of "guard" is "weekdays"

  Rule: The failure policy Ignore does not apply to a patch that cannot be applied
    The call itself succeeded, so a patch that cannot be applied is an internal error of the server.

    Scenario: A patch of a missing field rejects the request
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
      Then the request is rejected with 500 InternalError
      And the message contains "Internal error occurred: error in remove for path: '/data/none': Unable to remove nonexistent key: none: missing value"
      And the audit log does not record that "stale" failed open

    Scenario: A patch of an object that is being deleted rejects the request
      Given a ConfigMap "settings" exists
      And a mutating webhook "stale" for configmaps
      And "stale" matches only the operation DELETE
      And "stale" has the failure policy Ignore
      And "stale" patches the object:
        """yaml
        - {op: add, path: /metadata/labels, value: {team: blue}}
        """
      When the configmap "settings" is deleted
      Then the request is rejected with 500 InternalError
      And the message is 'Internal error occurred: admission webhook "stale.admit.example.com" attempted to modify the object, which is not supported for this operation'
      And the configmap "settings" exists
