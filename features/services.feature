Feature: Services and URLs
  A configuration refers to a webhook by URL or by Service. The certificate must be valid for the host in the URL or for the
  name of the Service. Both use TLS.

  Source: Dynamic admission control, "Contacting the webhook"; apiserver pkg/util/webhook/client.go

  Rule: A webhook behind a Service is called by the name of the Service
    Source: Dynamic admission control, "Contacting the webhook", "Service reference"; KEP-492, "Port configuration"

    Scenario: A certificate for the Service name is trusted
      Given a validating webhook "policy" for configmaps
      And "policy" is called through the Service "policy"
      And "policy" denies the request with the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 400
      And "policy" is called once

    Scenario: A certificate for another name is not trusted
      Given a validating webhook "policy" for configmaps
      And "policy" is called through the Service "policy"
      And "policy" presents a certificate with the defect "wrong-name"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains "tls: failed to verify certificate: x509: certificate is valid for"

    Scenario: A call to a missing Service fails
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        clientConfig: {service: {namespace: none, name: policy}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains 'failed calling webhook "policy.admit.example.com": failed to call webhook: Post "https://policy.none.svc:'
      And the message contains 'service "policy" not found'
      And "policy" is not called

    Scenario: With the failure policy Ignore, a missing Service is ignored
      Given a validating webhook "policy" for configmaps
      And "policy" has the failure policy Ignore
      And "policy" is configured with:
        """yaml
        clientConfig: {service: {namespace: none, name: policy}}
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the audit log records that "policy" failed open

    Scenario: Port and path can be omitted
      The default port is 443 and the default path is /.

      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: port.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {service: {namespace: none, name: policy}}
          rules: []
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is admitted
      And the object contains:
        """yaml
        webhooks: [{clientConfig: {service: {port: 443, path: null}}}]
        """

    Scenario Outline: A Service reference with <what> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: reference.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {service: {namespace: none, name: policy, <field>}}
          rules: []
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is rejected with 422 Invalid
      And the message contains "<because>"

      Examples:
        | what                   | field        | because                                                   |
        | an invalid port        | port: 65536  | port is not valid: must be between 1 and 65535, inclusive |
        | a path without a slash | path: review | clientConfig.service.path: Invalid value                  |

  Rule: A URL has the scheme https, a host, an optional port, and a path
    Source: Dynamic admission control, "Contacting the webhook", "URL"

    Scenario Outline: A URL with <what> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: url.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "<url>"}
          rules: []
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is rejected with 422 Invalid
      And the message contains "<because>"

      Examples:
        | what                  | url                                   | because                                       |
        | another scheme        | http://policy.example.com/review      | 'https' is the only allowed URL scheme        |
        | a user and a password | https://jane:d0e@policy.example.com/  | user information is not permitted in the URL  |
        | a fragment            | https://policy.example.com/review#one | fragments are not permitted in the URL        |
        | a query               | https://policy.example.com/review?a=1 | query parameters are not permitted in the URL |
        | no host               | https:///review                       | host must be specified                        |

    Scenario: A webhook cannot have both a URL and a Service
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: both.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "https://policy.example.com/", service: {namespace: none, name: policy}}
          rules: []
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is rejected with 422 Invalid
      And the message contains "clientConfig: Required value: exactly one of url or service is required"
