Feature: Review versions
  AdmissionReview has two versions, v1 and v1beta1. A webhook lists the versions that it supports in order of preference.
  The API server sends the first version that it supports, and the webhook responds in the same version.

  Source: Dynamic admission control, "Request", "Response"; KEP-492, "AdmissionReview v1"; apiserver
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: The API server sends the first version that it supports
    Scenario Outline: A webhook with the versions <versions> receives <sent>
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        admissionReviewVersions: <versions>
        """
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is admitted
      And the first review sent to "policy" contains:
        """yaml
        apiVersion: admission.k8s.io/<sent>
        kind: AdmissionReview
        """

      Examples:
        | versions      | sent    |
        | [v1]          | v1      |
        | [v1beta1]     | v1beta1 |
        | [v1, v1beta1] | v1      |
        | [v1beta1, v1] | v1beta1 |
        | [v2, v1beta1] | v1beta1 |

  Rule: A response in the other version is invalid
    Scenario Outline: A response to <version> in the other version is rejected
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        admissionReviewVersions: [<version>]
        """
      And "policy" returns the bad response "wrong-version"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is rejected with 500 InternalError
      And the message contains "unknown conversion"

      Examples:
        | version |
        | v1      |
        | v1beta1 |

  Rule: Only v1 requires the uid of the review
    Scenario Outline: A response with another uid is <counted> in <version>
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        admissionReviewVersions: [<version>]
        """
      And "policy" returns the bad response "wrong-uid"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is <decided>

      Examples:
        | counted  | version | decided                         |
        | invalid  | v1      | rejected with 500 InternalError |
        | accepted | v1beta1 | admitted                        |

  Rule: A configuration must list a version that the server supports
    Source: KEP-492, "AdmissionReview v1", "Validations"; Dynamic admission control, "Request"

    Scenario Outline: A configuration with the versions <versions> is rejected
      When this object is created:
        """yaml
        apiVersion: admissionregistration.k8s.io/v1
        kind: ValidatingWebhookConfiguration
        metadata: {name: versions.admit.example.com}
        webhooks:
        - name: policy.admit.example.com
          clientConfig: {url: "https://127.0.0.1:9443/"}
          rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
          namespaceSelector: {matchLabels: {admit.example.com/nowhere: ""}}
          sideEffects: None
          admissionReviewVersions: <versions>
        """
      Then the request is rejected with 422 Invalid
      And the message contains "<because>"

      Examples:
        | versions | because                                                                  |
        | []       | admissionReviewVersions: Required value: must specify one of v1, v1beta1 |
        | [v2, v3] | must include at least one of v1, v1beta1                                 |
        | [v1, v1] | admissionReviewVersions[1]: Invalid value                                |
