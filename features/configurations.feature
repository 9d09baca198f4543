Feature: Webhook configurations
  Webhooks are configured by objects of the API: who may write them decides at run time which webhooks there are. The
  server reads a configuration a moment after it was written, and refuses one that contradicts itself.

  Source: Dynamic admission control, "Webhook configuration"; kubernetes pkg/apis/admissionregistration/validation

  Rule: A configuration takes effect while the server runs
    Source: Dynamic admission control, "Configure admission webhooks on the fly"

    Scenario: A rule that is added decides about the next request
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
      Given "policy" is also registered for configmaps in v1
      When the configmap "settings" gets the label "team=blue"
      Then the request is refused with 400
      And "policy" is called once

  Rule: What is left out has a default
    Source: Dynamic admission control, "Matching requests: matchPolicy", "Reinvocation policy", "Failure policy", "Timeouts";
    KEP-492, "timeout configuration", "V1 API"

    Scenario: The defaults of v1
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

  Rule: Webhooks have names by which logs and metrics tell them apart
    Scenario Outline: A configuration whose webhook is called <what> is refused
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: <configuration>}
        webhooks:
        - {name: <first>, clientConfig: {url: "https://127.0.0.1:9443/"}, sideEffects: None, admissionReviewVersions: [v1]}
        - {name: policy.admit.example.com, clientConfig: {url: "https://127.0.0.1:9443/"}, sideEffects: None, admissionReviewVersions: [v1]}
        """
      Then the request is refused with 422 Invalid
      And the message contains '<because>'

      Examples:
        | what                      | configuration           | first                    | because                                                              |
        | like another one          | names.admit.example.com | policy.admit.example.com | webhooks[1].name: Duplicate value: "policy.admit.example.com"         |
        | by less than three labels | names.admit.example.com | admit.example            | should be a domain with at least three segments separated by dots    |
        | in a configuration whose name is no DNS subdomain | Names_ | other.admit.example.com | metadata.name: Invalid value: "Names_"                        |
