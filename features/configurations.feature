Feature: Webhook configurations
  Webhooks are configured by API objects and can change while the server runs. The server uses a new configuration shortly
  after it was written, and rejects an invalid one.

  Source: Dynamic admission control, "Webhook configuration"; kubernetes pkg/apis/admissionregistration/validation

  Rule: A configuration takes effect without a restart
    Source: Dynamic admission control, "Configure admission webhooks on the fly"

    Scenario: A rule that is added applies to the next request
      Given a validating webhook "policy" for secrets
      And "policy" denies the request with the message "not today"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And "policy" is not called
      Given "policy" also matches configmaps in v1
      When the label "team=blue" is added to the configmap "settings"
      Then the request is rejected with 400
      And "policy" is called once

  Rule: Omitted fields are defaulted
    Source: Dynamic admission control, "Matching requests: matchPolicy", "Reinvocation policy", "Failure policy", "Timeouts";
    KEP-492, "timeout configuration", "V1 API"

    Scenario: A v1 configuration gets the documented defaults
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: MutatingWebhookConfiguration
        metadata: {name: defaults.admit.example.com}
        webhooks:
        - name: labels.admit.example.com
          clientConfig: {service: {namespace: none, name: labels}}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          namespaceSelector: {matchLabels: {admit.example.com/nowhere: ""}}
          sideEffects: None
          admissionReviewVersions: [v1]
        """
      Then the request is admitted
      And the object contains:
        """yaml
        webhooks:
        - clientConfig: {service: {port: 443}}
          rules: [{scope: "*"}]
          failurePolicy: Fail
          matchPolicy: Equivalent
          objectSelector: {}
          timeoutSeconds: 10
          reinvocationPolicy: Never
        """

  Rule: Webhook names are unique domain names
    Scenario Outline: A configuration with <what> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: <configuration>}
        webhooks:
        - {name: <first>, clientConfig: {url: "https://127.0.0.1:9443/"}, sideEffects: None, admissionReviewVersions: [v1]}
        - {name: policy.admit.example.com, clientConfig: {url: "https://127.0.0.1:9443/"}, sideEffects: None, admissionReviewVersions: [v1]}
        """
      Then the request is rejected with 422 Invalid
      And the message contains '<because>'

      Examples:
        | what                                      | configuration           | first                    | because                                                           |
        | a duplicate webhook name                  | names.admit.example.com | policy.admit.example.com | webhooks[1].name: Duplicate value: "policy.admit.example.com"     |
        | a webhook name of fewer than three labels | names.admit.example.com | admit.example            | should be a domain with at least three segments separated by dots |
        | a name that is not a DNS subdomain        | Names_                  | other.admit.example.com  | metadata.name: Invalid value: "Names_"                            |
