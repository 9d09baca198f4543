Feature: Faults
  A webhook can go wrong in its connection, its certificate, its HTTP, its review or its patch. Whatever it is, the server
  does one of three things with the request. `admit fakes list` tells all faults and which of the three it is.

  Source: Dynamic admission control, "Failure policy"; apiserver
  pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go and pkg/admission/plugin/webhook/request

  Rule: Of a webhook that cannot be asked or does not say anything that is understood, the failure policy decides
    Its class is policy.

    Scenario Outline: With the fault <fault> and the policy Fail the request is refused
      Given a <kind> webhook "broken" for configmaps
      And "broken" has the fault "<fault>"
      And "broken" has the failure policy Fail
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
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

      Examples: The answer
        | kind       | fault            |
        | validating | hang             |
        | mutating   | cut-off-body     |
        | validating | status-503       |
        | mutating   | uid-missing      |
        | validating | allowed-is-text  |
        | mutating   | patch-not-base64 |

    Scenario Outline: With the fault <fault> and the policy Ignore the request is admitted
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
      And the audit log says that "broken" failed open

      Examples: The connection and the certificate
        | kind       | fault               |
        | mutating   | connection-refused  |
        | validating | silent-handshake    |
        | validating | unknown-authority   |
        | mutating   | authority-expired   |

      Examples: The answer
        | kind       | fault        |
        | mutating   | bad-chunks   |
        | validating | status-404   |
        | mutating   | E07-wrong    |
        | mutating   | P01-no-patch |

  Rule: An answer that is understood counts, whatever the failure policy is
    Its class is immune: that it refuses or cannot be applied is no failure of the call.

    Scenario Outline: With the fault <fault> the request is refused though the policy is Ignore
      Given a <kind> webhook "broken" for configmaps
      And "broken" has the fault "<fault>"
      And "broken" has the failure policy Ignore
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with <code>
      And "broken" is called once
      And the configmap "settings" does not exist

      Examples:
        | kind       | fault                             | code |
        | validating | denial-without-a-word             | 400  |
        | mutating   | denial-with-a-patch               | 400  |
        | validating | allowed-missing                   | 400  |
        | mutating   | op-unknown                        | 500  |
        | mutating   | test-that-fails                   | 500  |
        | mutating   | patch-of-the-namespace            | 400  |

  Rule: What only looks broken is accepted
    Its class is accepted: the request is admitted also under the policy Fail.

    Scenario Outline: With the fault <fault> the request is admitted though the policy is Fail
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
      And the audit log does not say that "odd" failed open

      Examples:
        | kind       | fault                     |
        | validating | intermediate-shown        |
        | mutating   | certificate-without-usages |
        | validating | status-201-with-a-review  |
        | mutating   | redirect-307              |
        | validating | gzip                      |
        | mutating   | patch-without-operations  |
