Feature: Review versions
  There are two versions of the AdmissionReview, v1 and v1beta1. A webhook says which it understands, the one that it likes
  best first; it is sent the first that the API server knows, and answers in the same.

  Source: Dynamic admission control, "Request", "Response"; KEP-492, "AdmissionReview v1"; apiserver
  pkg/admission/plugin/webhook/request/admissionreview.go

  Rule: The first version that the server knows is sent
    Scenario Outline: Of <versions> the review is in <sent>
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
      And the first review of "policy" contains:
        """yaml
        apiVersion: admission.k8s.io/<sent>
        kind: AdmissionReview
        """

      Examples:
        | versions          | sent    |
        | [v1]              | v1      |
        | [v1beta1]         | v1beta1 |
        | [v1, v1beta1]     | v1      |
        | [v1beta1, v1]     | v1beta1 |
        | [v2, v1beta1]     | v1beta1 |

  Rule: A response in the other version is none
    Scenario Outline: A webhook that is asked in <version> and answers in the other
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        admissionReviewVersions: [<version>]
        """
      And "policy" gives the bad response "wrong-version"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is refused with 500 InternalError
      And the message contains "unknown conversion"

      Examples:
        | version |
        | v1      |
        | v1beta1 |

  Rule: Only v1 asks for the uid of the review
    Scenario Outline: A response with another uid is <counted> in <version>
      Given a validating webhook "policy" for configmaps
      And "policy" is configured with:
        """yaml
        admissionReviewVersions: [<version>]
        """
      And "policy" gives the bad response "wrong-uid"
      When this object is created:
        """yaml
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings}
        """
      Then the request is <decided>

      Examples:
        | counted     | version | decided                       |
        | no response | v1      | refused with 500 InternalError |
        | accepted    | v1beta1 | admitted                      |

  Rule: A configuration must name a version that the server knows
    Source: KEP-492, "AdmissionReview v1", "Validations"; Dynamic admission control, "Request"

    Scenario Outline: A configuration with <versions> is refused
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
      Then the request is refused with 422 Invalid
      And the message contains "<because>"

      Examples:
        | versions   | because                                                                         |
        | []         | admissionReviewVersions: Required value: must specify one of v1, v1beta1        |
        | [v2, v3]   | must include at least one of v1, v1beta1                                        |
        | [v1, v1]   | admissionReviewVersions[1]: Invalid value                                       |
