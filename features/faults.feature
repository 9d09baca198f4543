Feature: Faults
  The connection, the certificate, the HTTP response, the review, or the patch of a webhook can be broken. The server treats
  each fault in one of three ways. `admit fakes list` lists all faults and how the server treats each.

  Source: Dynamic admission control, "Failure policy"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go and pkg/admission/plugin/webhook/request

  Rule: failurePolicy applies when a webhook is unreachable or its response is unreadable
    These faults have the class policy.

    Scenario Outline: With the failure policy Fail, the fault <fault> rejects the request
      Given a <kind> webhook "broken" for configmaps
      And "broken" has the fault "<fault>"
      And "broken" has the failure policy Fail
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains 'failed calling webhook "broken.admit.example.com": '
      And the configmap "settings" does not exist

      Examples: The connection and the certificate
        | kind       | fault                        |
        | mutating   | connection-refused           |
        | validating | connection-closed            |
        | validating | silent-handshake             |
        | mutating   | certificate-expired          |
        | validating | certificate-for-another-name |
        | validating | intermediate-missing         |
        | mutating   | tls-1-1-only                 |

      Examples: The response
        | kind       | fault            |
        | validating | hang             |
        | mutating   | cut-off-body     |
        | validating | status-503       |
        | mutating   | uid-missing      |
        | validating | allowed-is-a-string  |
        | mutating   | patch-not-base64 |

    Scenario Outline: With the failure policy Ignore, a request is admitted in spite of the fault <fault>
      Given a <kind> webhook "broken" for configmaps
      And "broken" has the fault "<fault>"
      And "broken" has the failure policy Ignore
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the configmap "settings" exists
      And the audit log records that "broken" failed open

      Examples: The connection and the certificate
        | kind       | fault              |
        | mutating   | connection-refused |
        | validating | silent-handshake   |
        | validating | unknown-authority  |
        | mutating   | authority-expired  |

      Examples: The response
        | kind       | fault        |
        | mutating   | bad-chunks   |
        | validating | status-404   |
        | mutating   | E07-wrong    |
        | mutating   | P01-no-patch |

  Rule: failurePolicy does not apply to a readable response
    These faults have the class immune: a denial or a patch that cannot be applied is not a failed call.

    Scenario Outline: With the failure policy Ignore, the fault <fault> still rejects the request
      Given a <kind> webhook "broken" for configmaps
      And "broken" has the fault "<fault>"
      And "broken" has the failure policy Ignore
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with <code>
      And "broken" is called once
      And the configmap "settings" does not exist

      Examples:
        | kind       | fault                  | code |
        | validating | denial-without-explanation  | 400  |
        | mutating   | denial-with-a-patch    | 400  |
        | validating | allowed-missing        | 400  |
        | mutating   | op-unknown             | 500  |
        | mutating   | failing-test        | 500  |
        | mutating   | patch-of-the-namespace | 400  |

  Rule: Some faults are accepted
    These faults have the class accepted: the request is admitted even with the failure policy Fail.

    Scenario Outline: With the failure policy Fail, a request is admitted in spite of the fault <fault>
      Given a <kind> webhook "odd" for configmaps
      And "odd" has the fault "<fault>"
      And "odd" has the failure policy Fail
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the configmap "settings" exists
      And the audit log does not record that "odd" failed open

      Examples:
        | kind       | fault                      |
        | validating | intermediate-shown         |
        | mutating   | certificate-without-usages |
        | validating | status-201-with-a-review   |
        | mutating   | redirect-307               |
        | validating | gzip                       |
        | mutating   | patch-without-operations   |
