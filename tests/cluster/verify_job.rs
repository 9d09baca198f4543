//! Tests `admit verify` as an Indexed Job, with the exact commands from the guide.
//!
//! Several pods together must report the same results as a single pod.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use serde_json::{Value, json};

use super::fixture::{Cluster, fakes, text};

const GUIDE: &str = include_str!("../../docs/guide/verify-shards.md");
const MANIFEST: &str = include_str!("../../examples/verify-job.yaml");

/// The name of the namespace and of the fakes' configuration.
const NAME: &str = "admit-test-job";
const PODS: u64 = 16;

/// The behavior of a webhook that sets a label, except on mirror pods, which are immutable.
const HEALTHY: &str = "{when: {if: {absent: /metadata/annotations/kubernetes.io~1config.mirror}, \
                       then: always-mutate, otherwise: allow}}";

/// Returns [`HEALTHY`] with a defect that affects only one object, so that only one pod of the Job detects it.
fn faulty() -> String {
    format!("{{when: {{if: {{label: {{odd: one}}}}, then: non-idempotent, otherwise: {HEALTHY}}}}}")
}

/// Returns pods and `ConfigMap`s in a namespace that does not exist. The webhooks match this namespace.
///
/// One of the `ConfigMap`s has the label for which [`faulty`] has a defect.
fn objects() -> Vec<Value> {
    let metadata = |index: u32, odd: &str| {
        let name = format!("object-{index}");
        json!({"name": name, "namespace": format!("{NAME}-target"), "labels": {"odd": odd}})
    };
    let spec = json!({"containers": [{"name": "app", "image": "example.com/app:1"}]});
    let pair = |index: u32| {
        let odd = if index == 13 { "one" } else { "none" };
        [
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(index, odd)}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata(index, "none"), "spec": spec}),
        ]
    };
    (0..20).flat_map(pair).collect()
}

/// Returns the kubectl commands in the guide's block that creates the Job.
fn commands() -> Vec<String> {
    let blocks = GUIDE.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let block = blocks.into_iter().find(|block| block.contains("verify-job.yaml")).unwrap();
    let mut commands: Vec<String> = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push(command.to_owned()),
            None => commands.last_mut().unwrap().extend(["\n", line]),
        }
    }
    commands.into_iter().filter(|command| command.starts_with("kubectl")).collect()
}

/// A directory with the files that the guide requires, and a kubeconfig that selects the namespace.
struct Kubectl<'a> {
    cluster: &'a Cluster,
    folder: &'a Path,
}

impl<'a> Kubectl<'a> {
    fn set_up(cluster: &'a Cluster) -> Self {
        let folder = cluster.folder.path();
        fs::create_dir(folder.join("examples")).unwrap();
        fs::copy(&cluster.kubeconfig, folder.join("kubeconfig")).unwrap();
        let kubectl = Self { cluster, folder };
        let namespace = kubectl.run(&format!("kubectl config set-context --current --namespace={NAME}"));
        assert!(namespace.status.success());
        let objects: Vec<String> = objects().iter().map(Value::to_string).collect();
        fs::write(folder.join("objects.yaml"), objects.join("\n---\n")).unwrap();
        kubectl
    }

    /// Runs a command in the directory, with the `admit` and the kubectl of these tests.
    fn run(&self, command: &str) -> Output {
        let started = Instant::now();
        let own = [Path::new(env!("CARGO_BIN_EXE_admit")), &self.cluster.kubectl];
        let own = own.into_iter().map(|program| program.parent().unwrap().to_owned());
        let others = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(own.chain(std::env::split_paths(&others))).unwrap();
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(self.folder).env("PATH", path);
        let output = shell.env("KUBECONFIG", self.folder.join("kubeconfig")).output().unwrap();
        print!("{}", text(&output.stderr));
        println!("{:.1} s: {command}", started.elapsed().as_secs_f64());
        output
    }

    /// Writes the example manifest with the address of the webhook and the number of pods.
    ///
    /// A test cluster may not have DNS, so the pods get a host alias for the name of the webhook.
    fn write_job(&self, pods: u64) {
        let configuration = self.cluster.get(&["mutatingwebhookconfiguration", NAME]);
        fs::write(self.folder.join("configuration.yaml"), configuration.to_string()).unwrap();
        let service = &configuration["webhooks"][0]["clientConfig"]["service"];
        let (name, port) = (service["name"].as_str().unwrap(), &service["port"]);
        let host = format!("{name}.{NAME}.svc");
        let manifest = MANIFEST
            .replace("injector/webhook=webhook.injector.svc:443", &format!("{NAME}/{name}={host}:{port}"))
            .replace("completions: 16", &format!("completions: {pods}"))
            .replace("--shard=auto/16", &format!("--shard=auto/{pods}"));
        let mut job: Value = serde_saphyr::from_str(&manifest).unwrap();
        let service = self.cluster.get(&["service", name, "-n", NAME]);
        let alias = json!({"ip": service["spec"]["clusterIP"], "hostnames": [host]});
        job["spec"]["template"]["spec"]["hostAliases"] = json!([alias]);
        // The test needs a shorter deadline than an hour.
        job["spec"]["activeDeadlineSeconds"] = json!(300);
        fs::write(self.folder.join("examples/verify-job.yaml"), job.to_string()).unwrap();
    }

    /// Returns the merged report of the pods, and the exit status of the last command.
    fn verify(&self, pods: u64) -> (Value, Option<i32>) {
        self.write_job(pods);
        let [create, apply, wait, merge, delete] = commands().try_into().unwrap();
        for command in [create, apply, wait] {
            assert!(self.run(&command).status.success(), "{command}");
        }
        self.check_pods(pods);
        let merged = self.run(&format!("{merge} -o json"));
        assert!(self.run(&delete).status.success());
        (serde_json::from_slice(&merged.stdout).unwrap(), merged.status.code())
    }

    /// Checks that every pod has succeeded, and has only the volume with the files.
    fn check_pods(&self, pods: u64) {
        let list = self.cluster.get(&["pods", "-n", NAME, "-l", "batch.kubernetes.io/job-name=admit-verify"]);
        let list = list["items"].as_array().unwrap();
        if list.len() as u64 != pods {
            let events = self.run("kubectl get events");
            panic!("{} pods of {pods}: {}", list.len(), text(&events.stdout));
        }
        for pod in list {
            let status = &pod["status"]["containerStatuses"][0]["state"]["terminated"];
            assert_eq!(status["exitCode"], 0, "{pod:#}");
            let volumes: Vec<&Value> = pod["spec"]["volumes"].as_array().unwrap().iter().collect();
            assert_eq!(volumes.len(), 1, "{volumes:?}");
            assert_eq!(volumes[0]["configMap"]["name"], "admit-verify");
        }
    }
}

/// Returns the results by check and webhook.
///
/// A result contains the verdict, the kinds of findings, the number of passes, and the reasons for skipped checks.
fn verdicts(report: &Value) -> BTreeMap<(&str, &str), Value> {
    let mut verdicts = BTreeMap::new();
    for check in report["checks"].as_array().unwrap() {
        for result in check["results"].as_array().unwrap() {
            let about = (check["id"].as_str().unwrap(), result["webhook"].as_str().unwrap());
            let findings = check["findings"].as_array().unwrap().iter();
            let kinds: Vec<Value> = findings
                .filter(|it| !it["webhooks"][about.1].is_null())
                .map(|it| json!([it["kind"], it["webhooks"][about.1]]))
                .collect();
            let reasons = json!([result["notChecked"], result["notApplicable"]]);
            verdicts.insert(about, json!([result["verdict"], result["held"], kinds, reasons]));
        }
    }
    verdicts
}

#[test]
fn merged_report_of_the_pods_of_a_job_equals_that_of_one_run() {
    let Some(cluster) = Cluster::of_tests(NAME) else { return };
    let deploy = |behavior: &str| {
        let webhook = format!("name: counter, type: mutating, behavior: {behavior}");
        assert!(cluster.deploy(&fakes(NAME, &[&webhook]), &[]).status.success());
    };
    deploy(&faulty());
    let kubectl = Kubectl::set_up(&cluster);

    let (many, status) = kubectl.verify(PODS);
    assert_eq!(status, Some(1));
    assert_eq!(many["objects"], objects().len());
    let (one, _) = kubectl.verify(1);
    assert_eq!(verdicts(&many), verdicts(&one));
    let of_counter = format!("{NAME}/counter.fakes.local");
    let not_idempotent = &verdicts(&many)[&("V01", of_counter.as_str())];
    assert_eq!(not_idempotent[0], "found");
    assert_eq!(not_idempotent[2][0][1], 1, "one pod has seen it: {not_idempotent}");

    deploy(HEALTHY);
    let (healthy, status) = kubectl.verify(PODS);
    let found: Vec<_> = verdicts(&healthy).into_iter().filter(|(_, verdict)| verdict[0] == "found").collect();
    assert_eq!(status, Some(0), "{found:#?}");
    assert_eq!(verdicts(&healthy)[&("V01", of_counter.as_str())][0], "passed");

    cluster.delete();
}
