//! Tests service account tokens, and the flags for them.

use super::*;

impl Servers {
    /// Returns the answers to token requests, and to requests that use these tokens.
    pub(super) async fn tokens_of_service_accounts(&self) -> Vec<String> {
        const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
        const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
        let (master, root) = (json!({"token": "master"}), self.url());
        let mut answers = Vec::new();
        let mut asked = async |user: &Value, method: &str, path: &str, body: Value| {
            let body = (!body.is_null()).then_some(&body);
            let (status, text) = self.ask(&root, user, method, path, body).await.unwrap();
            let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text));
            let mut shown = answer.clone();
            settle(&mut shown, self.port);
            answers.push(format!("{method} {path}: {status} {shown}"));
            answer
        };
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
        asked(&master, "POST", ACCOUNTS, account).await;
        let mut tokens = Vec::new();
        for spec in
            [json!({}), json!({"audiences": ["other"]}), json!({"expirationSeconds": 86400}), json!({})]
        {
            let request =
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
            let answer = asked(&master, "POST", &format!("{ACCOUNTS}/robot/token"), request).await;
            tokens.push(json!({"token": answer.pointer("/status/token").unwrap()}));
        }
        let [first, other, short, last] = tokens.as_slice() else { panic!("four tokens") };
        let of_first = first.get("token").unwrap();
        let review = |spec: Value| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec});
        for spec in [
            json!({"token": "one"}),
            json!({"token": "one", "audiences": ["other", "api"]}),
            json!({"token": "one", "audiences": ["other"]}),
            json!({"token": of_first}),
            json!({"token": of_first, "audiences": ["https://former"]}),
        ] {
            asked(&master, "POST", REVIEWS, review(spec)).await;
        }
        let who = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
        for token in [first, other, short] {
            asked(token, "POST", WHO, who.clone()).await;
            asked(token, "GET", "/api/v1/pods", Value::Null).await;
            asked(token, "GET", "/.well-known/openid-configuration", Value::Null).await;
            asked(token, "GET", "/openid/v1/jwks", Value::Null).await;
        }
        asked(&master, "DELETE", &format!("{ACCOUNTS}/robot"), Value::Null).await;
        asked(&master, "GET", &format!("{ACCOUNTS}/robot"), Value::Null).await;
        asked(last, "POST", WHO, who).await;
        answers
    }
}

#[test]
fn invalid_service_account_flags_are_rejected_in_the_servers_words() {
    let folder = tempfile::tempdir().unwrap();
    let assets = stand_ins(folder.path());
    let key = folder.path().join("sa.key");
    let issuer = CertificateAuthority::new("accounts").unwrap().issue_for_client("issuer").unwrap();
    fs::write(&key, issuer.key_pem).unwrap();
    let real = machine::has_kube_apiserver()
        .then(|| PathBuf::from(std::env::var_os("KUBEBUILDER_ASSETS").unwrap()).join("kube-apiserver"));
    let required = [
        "--etcd-servers=http://127.0.0.1:1",
        "--service-account-issuer=https://x",
        "--bind-address=127.0.0.1",
    ];
    let key = key.display().to_string();
    for (more, expected) in [
        (
            &["--service-account-key-file=KEY"][..],
            "--service-account-signing-key-file, --service-account-issuer, and --api-audiences should be specified together",
        ),
        (
            &["--service-account-signing-key-file=KEY"],
            "either `--service-account-key-file` or `--service-account-signing-endpoint` must be set",
        ),
        (
            &[
                "--service-account-issuer=",
                "--service-account-key-file=KEY",
                "--service-account-signing-key-file=KEY",
            ],
            "service-account-issuer should not be an empty string",
        ),
        (
            &[
                "--service-account-key-file=KEY",
                "--service-account-signing-key-file=KEY",
                "--service-account-max-token-expiration=30m",
            ],
            "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
        ),
        (
            &[
                "--service-account-key-file=KEY",
                "--service-account-signing-key-file=KEY",
                "--service-account-jwks-uri=http://x",
            ],
            "service-account-jwks-uri requires https scheme, parsed as: http://x",
        ),
        (
            &["--service-account-key-file=KEY", "--service-account-signing-key-file=/none"],
            "failed to parse service-account-issuer-key-file: open /none: no such file or directory",
        ),
        (
            &["--service-account-key-file=/none", "--service-account-signing-key-file=KEY"],
            "open /none: no such file or directory",
        ),
        (
            &["--service-account-key-file=KEY", "--service-account-signing-key-file=/dev/null"],
            "failed to parse service-account-issuer-key-file: error reading private key file /dev/null: data does not contain a valid RSA or ECDSA private key",
        ),
        (
            &["--service-account-key-file=/dev/null", "--service-account-signing-key-file=KEY"],
            "error reading public key file /dev/null: data does not contain any valid RSA or ECDSA public keys",
        ),
    ] {
        let more: Vec<String> = more.iter().map(|flag| flag.replace("KEY", &key)).collect();
        let arguments: Vec<&str> = required.into_iter().chain(more.iter().map(String::as_str)).collect();
        let (status, text) = run(&assets.join("kube-apiserver"), &arguments);
        assert!(status == Some(1) && text.contains(expected), "{text}");
        if let Some(real) = &real {
            let (status, text) = run(real, &arguments);
            assert!(status == Some(1) && text.contains(expected), "{text}");
        }
    }
}
