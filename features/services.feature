Feature: Services and URLs
  A configuration says where a webhook is called: by a URL, or by a Service of the cluster, whose name is that which the
  certificate must have. Either way the connection is TLS.

  Source: Dynamic admission control, "Contacting the webhook"; apiserver pkg/util/webhook/client.go

  Rule: A webhook behind a Service is called by the name of the Service
    Source: Dynamic admission control, "Contacting the webhook", "Service reference"; KEP-492, "Port configuration"

    Scenario: The certificate has the name of the Service
      Given a validating webhook "policy" for configmaps
      And "policy" is called through the service "policy"
      And "policy" denies the request with the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 400
      And "policy" is called once

    Scenario: A certificate with another name is not trusted
      Given a validating webhook "policy" for configmaps
      And "policy" is called through the service "policy"
      And "policy" presents a certificate with the defect "wrong-name"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And the message contains "tls: failed to verify certificate: x509: certificate is valid for"

    Scenario: A Service that is not there is a call that failed
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
      Then the request is refused with 500 InternalError
      And the message contains 'failed calling webhook "policy.admit.example.com": failed to call webhook: Post "https://policy.none.svc:'
      And the message contains 'service "policy" not found'
      And "policy" is not called

    Scenario: With the failure policy Ignore nobody notices
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
      And the audit log says that "policy" failed open

    Scenario: Port and path may be left out
      The port is 443 then, and the path is /.

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

    Scenario Outline: A reference with <what> is refused
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
      Then the request is refused with 422 Invalid
      And the message contains "<because>"

      Examples:
        | what                       | field        | because                                                          |
        | a port that is none        | port: 65536  | port is not valid: must be between 1 and 65535, inclusive        |
        | a path without a slash     | path: review | clientConfig.service.path: Invalid value                         |

  Rule: A URL is https, and nothing but host, port and path
    Source: Dynamic admission control, "Contacting the webhook", "URL"

    Scenario Outline: A URL with <what> is refused
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
      Then the request is refused with 422 Invalid
      And the message contains "<because>"

      Examples:
        | what              | url                                    | because                                         |
        | another scheme    | http://policy.example.com/review       | 'https' is the only allowed URL scheme          |
        | user and password | https://jane:d0e@policy.example.com/   | user information is not permitted in the URL    |
        | a fragment        | https://policy.example.com/review#one  | fragments are not permitted in the URL          |
        | a query           | https://policy.example.com/review?a=1  | query parameters are not permitted in the URL   |
        | no host           | https:///review                        | host must be specified                          |

    Scenario: A webhook has a URL or a Service, not both
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
      Then the request is refused with 422 Invalid
      And the message contains "clientConfig: Required value: exactly one of url or service is required"
