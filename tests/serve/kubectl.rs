//! Runs kubectl against `admit serve`.

use super::*;

fn run_kubectl(kubectl: &Path, server: &Server, arguments: &[&str], input: &Value) -> Output {
    let mut process = Command::new(kubectl)
        .args(arguments)
        .env("KUBECONFIG", server.kubeconfig())
        // kubectl caches discovery in its home directory.
        .env("HOME", server.folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
    process.wait_with_output().unwrap()
}

// The fake responds on the other thread while this one waits for kubectl.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_creates_objects_and_shows_a_denial_as_with_a_real_server() {
    let Some(kubectl) = machine::kubectl() else { return };
    let server = Server::start();
    let fake = denying().await;
    let apply = |object: Value| run_kubectl(&kubectl, &server, &["create", "-f", "-"], &object);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "denied"}});
    let config_map = |namespace: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "x", "namespace": namespace}, "data": {"a": "b"},
        })
    };
    for (object, shown) in [
        (namespace, "namespace/denied created\n"),
        (configuration(&fake), "validatingwebhookconfiguration.admissionregistration.k8s.io/deny created\n"),
        (config_map("default"), "configmap/x created\n"),
    ] {
        let output = apply(object);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_eq!(String::from_utf8_lossy(&output.stdout), shown);
    }
    let output = apply(config_map("denied"));
    let shown = format!("Error from server: error when creating \"STDIN\": {DENIAL}\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), shown);
    assert_eq!(output.status.code(), Some(1));
}

// kubectl sends protobuf for objects that it builds itself, and JSON for those from a file or from the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_makes_changes_and_shows_objects_by_itself() {
    let Some(kubectl) = machine::kubectl() else { return };
    let server = Server::start();
    let fake = denying().await;
    Api::<ValidatingWebhookConfiguration>::all(server.client().await)
        .create(&PostParams::default(), &object(configuration(&fake)))
        .await
        .unwrap();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run_kubectl(&kubectl, &server, &arguments, &Value::Null);
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8(text).unwrap(), output.status.code())
    };
    for (line, shown) in [
        ("create namespace demo", "namespace/demo created"),
        ("create configmap -n demo x --from-literal=a=b", "configmap/x created"),
        ("create secret generic -n demo key --from-literal=password=s3cret", "secret/key created"),
        ("create deployment -n demo web --image=nginx --port=80", "deployment.apps/web created"),
        ("create service clusterip -n demo web --tcp=80:8080", "service/web created"),
        (
            "create pdb -n demo web --selector=app=web --min-available=50%",
            "poddisruptionbudget.policy/web created",
        ),
        ("create quota -n demo q --hard=cpu=1", "resourcequota/q created"),
        (
            "autoscale deployment -n demo web --max=4 --cpu=80%",
            "horizontalpodautoscaler.autoscaling/web autoscaled",
        ),
        ("scale deployment -n demo web --replicas=3", "deployment.apps/web scaled"),
        ("label configmap -n demo x c=d", "configmap/x labeled"),
        ("annotate configmap -n demo x e=f", "configmap/x annotated"),
        ("run -n demo p --image=nginx", "pod/p created"),
        ("expose deployment -n demo web --name=other --port=80", "service/other exposed"),
        ("auth can-i create pods", "yes"),
        ("get secret -n demo key -o jsonpath={.data.password}", "czNjcmV0"),
        (
            "get deployment -n demo web -o jsonpath={.spec.replicas},{.spec.template.spec.containers[*]['image']}",
            "3,nginx",
        ),
        ("get pdb -n demo web -o jsonpath={.spec.minAvailable}", "50%"),
        ("wait -n demo configmap x --for=jsonpath={.data.a}=b", "configmap/x condition met"),
        ("delete pod -n demo p", "pod \"p\" deleted from demo namespace"),
        ("create namespace denied", "namespace/denied created"),
    ] {
        let (text, code) = run(line);
        assert_eq!((text.trim_end(), code), (shown, Some(0)), "kubectl {line}");
    }

    let (text, _) = run("get configmap -n demo x -o yaml");
    let shown: Value = serde_saphyr::from_str(&text).unwrap();
    assert_eq!(
        (&shown["data"], &shown["metadata"]["labels"], &shown["metadata"]["annotations"]),
        (&json!({"a": "b"}), &json!({"c": "d"}), &json!({"e": "f"})),
        "{text}"
    );
    let (text, code) = run("create configmap -n denied x --from-literal=a=b");
    assert_eq!((text, code), (format!("error: failed to create configmap: {DENIAL}\n"), Some(1)));
    // Without the namespace controller, the namespace stays until it is finalized.
    let (text, code) = run("delete namespace demo --wait=false");
    assert_eq!((text.as_str(), code), ("namespace \"demo\" deleted\n", Some(0)));
    let (text, _) = run("get namespace demo -o jsonpath={.status.phase}");
    assert_eq!(text, "Terminating");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_prints_the_columns_of_objects() {
    let Some(kubectl) = machine::kubectl() else { return };
    let server = Server::start();
    let run = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        let output = run_kubectl(&kubectl, &server, &arguments, &Value::Null);
        assert!(output.status.success(), "kubectl {line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run("create deployment web --image=nginx --replicas=2");
    run("create configmap x --from-literal=a=b");
    for (line, expected) in [
        (
            "get deployment web -o wide",
            "NAME READY UP-TO-DATE AVAILABLE AGE CONTAINERS IMAGES SELECTOR web 0/2 0 0 <age> nginx nginx app=web",
        ),
        ("get configmap x", "NAME DATA AGE x 1 <age>"),
        ("get service kubernetes --no-headers", "kubernetes ClusterIP 10.0.0.1 <none> 443/TCP <age>"),
    ] {
        let text = run(line);
        let is_age = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<u32>().is_ok());
        let words: Vec<&str> =
            text.split_whitespace().map(|word| if is_age(word) { "<age>" } else { word }).collect();
        assert_eq!(words.join(" "), expected, "kubectl {line}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_explains_fields_and_rejects_unknown_ones() {
    let Some(kubectl) = machine::kubectl() else { return };
    let server = Server::start();
    let output = run_kubectl(&kubectl, &server, &["explain", "deployment.spec.replicas"], &Value::Null);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("FIELD: replicas <integer>") && text.contains("Number of desired pods."), "{text}");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "datum": {}});
    let output = run_kubectl(&kubectl, &server, &["apply", "-f", "-"], &object);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("unknown field \"datum\""), "{text}");
    assert_eq!(output.status.code(), Some(1));
}
