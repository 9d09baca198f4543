//! Generates random kubeconfigs for authentication to webhooks, and a webhook for every address in them.

use serde_json::{Value, json};

use super::situation::Situation;
use crate::random::Random;

/// The number of consecutive situations that share the kubeconfigs, and therefore a server.
const TOGETHER: u64 = 20;
/// The offset in the sequence of random numbers that separates the kubeconfigs from the situations.
const KUBECONFIGS: u64 = 1 << 40;
/// The host names of the webhooks.
const WEBHOOKS: [&str; 4] = ["c0.example.com", "c1.example.com", "c2.example.com", "certificate.example.com"];

impl Situation {
    /// Creates a situation about credentials for webhooks from `seed` and the situation's `number`.
    pub fn of_credentials(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed, 2 * KUBECONFIGS + number / TOGETHER);
        let plugins = plugins(&mut random);
        let mut random = Random::new(seed, KUBECONFIGS + number);
        let webhooks: Vec<Value> =
            random.some_of(&WEBHOOKS).into_iter().map(|name| webhook(&mut random, name)).collect();
        let count = random.between(1, 3);
        let requests: Vec<Value> =
            (0..count).map(|number| json!({"verb": "create", "name": format!("x{number}")})).collect();
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook", "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "127.0.0.1"},
        });
        let case = json!({
            "version": 1, "serial": true, "plugins": plugins, "cluster": [service], "webhooks": webhooks,
            "requests": requests,
        });
        Self { case, left_out: std::collections::BTreeMap::new() }
    }
}

/// Returns the plugin settings of a server, with a kubeconfig for each plugin or one for both.
fn plugins(random: &mut Random) -> Value {
    let second = random.one_of(&["<credentials>", "<credentials>", "<folder>/second", ""]);
    let entry = |name: &str, file: &str| {
        let mut configuration =
            json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "WebhookAdmissionConfiguration"});
        if !file.is_empty() {
            configuration["kubeConfigFile"] = json!(file);
        }
        json!({"name": name, "configuration": configuration})
    };
    let configuration = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": [entry("MutatingAdmissionWebhook", "<credentials>"), entry("ValidatingAdmissionWebhook", second)],
    });
    let mut plugins = json!({
        "configuration": configuration.to_string(), "credentials": kubeconfig(random).to_string(),
        "webhooks": WEBHOOKS, "files": {"token": "from-the-file\n", "certificate": "<client certificate>", "key": "<client key>"},
    });
    if second.ends_with("second") {
        plugins["files"]["second"] = json!(kubeconfig(random).to_string());
    }
    plugins
}

fn kubeconfig(random: &mut Random) -> Value {
    let count = random.between(1, 7);
    let mut names: Vec<String> = (0..count).map(|_| name(random)).collect();
    names.sort();
    names.dedup();
    let users: Vec<Value> = names.iter().map(|name| json!({"name": name, "user": user(random)})).collect();
    let mut kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users});
    if random.chance(50) {
        let user = if random.chance(85) { random.one_of(&names) } else { "nobody".to_owned() };
        kubeconfig["contexts"] = json!([
            {"name": "first", "context": {"user": user, "cluster": "c"}},
            {"name": "second", "context": {"user": random.one_of(&names)}},
        ]);
        kubeconfig["current-context"] = json!(random.one_of(&["first", "second", "third", ""]));
    }
    kubeconfig
}

/// Returns the name of a user entry: a host, a wildcard for several hosts, or the wildcard for all hosts.
fn name(random: &mut Random) -> String {
    let port = format!(":<port of {}>", random.one_of(&WEBHOOKS));
    let host = random.one_of(&[
        "127.0.0.1",
        "*.0.0.1",
        "*.0.1",
        "*.1",
        "localhost",
        "*.localhost",
        "hook.default.svc",
        "*.default.svc",
        "*.svc",
        "LOCALHOST",
        "*",
    ]);
    match random.weighted(&[(70, 0), (15, 1), (15, 2)]) {
        0 if host == "*" => host.to_owned(),
        0 => format!("{host}{port}"),
        1 => host.to_owned(),
        _ => random
            .one_of(&["*", "*:443", "127.0.0.1:443", "elsewhere.example.com", "hook.default.svc:443"])
            .to_owned(),
    }
}

fn user(random: &mut Random) -> Value {
    let mut user = match random.below(16) {
        0..=4 => json!({"token": random.one_of(&["a-token", "another", "with space", "é"])}),
        5 | 6 => json!({"username": "jane", "password": random.one_of(&["doe", "a:b", "", "é"])}),
        7 => json!({"tokenFile": random.one_of(&["token", "<folder>/token", "nowhere"])}),
        8 => json!({"token": "spare", "tokenFile": random.one_of(&["token", "nowhere"])}),
        9 => json!({"token": "a-token", "username": "jane"}),
        10 => json!({"client-certificate": "certificate", "client-key": "key"}),
        11 => json!({"client-certificate": "nowhere", "client-key": "key"}),
        12 => json!({"client-certificate": "certificate"}),
        13 => json!({"password": "doe"}),
        _ => json!({}),
    };
    if random.chance(20) {
        user["as"] = json!("robot");
        if random.chance(50) {
            user["as-groups"] = json!(["g", "h"]);
        }
        if random.chance(30) {
            user["as-uid"] = json!("7");
        }
        if random.chance(30) {
            user["as-user-extra"] = json!({"a/b": ["x", "y"]});
        }
    } else if random.chance(4) {
        user["as-groups"] = json!(["g"]);
    }
    user
}

fn webhook(random: &mut Random, name: &str) -> Value {
    let client = match random.below(8) {
        0..=2 => json!({}),
        3 => json!({"url": "https://localhost:<port>/a"}),
        4 => json!({"url": "https://localhost:<port>/"}),
        5 => json!({"url": "https://127.0.0.1:<port>"}),
        _ => {
            json!({"url": null, "service": {"namespace": "default", "name": "hook", "port": 0, "path": "/s"}})
        }
    };
    let is_mutating = random.chance(50);
    let demand = |credentials: Value| json!({"demand": {"credentials": credentials}});
    let behavior = match random.below(6) {
        0 => demand(json!({"token": "a-token"})),
        1 => demand(json!({"basic": {"username": "jane", "password": "doe"}})),
        2 => demand(json!({"certificate": "jane"})),
        _ => json!("allow"),
    };
    json!({
        "name": name, "type": if is_mutating { "mutating" } else { "validating" },
        "configuration": random.one_of(&["a", "b"]), "clientConfig": client, "behavior": behavior,
        "failurePolicy": if is_mutating { random.one_of(&["Fail", "Ignore", "Ignore"]) } else { "Ignore" },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::situation::cases;
    use super::*;

    #[test]
    fn every_situation_is_a_case_and_several_have_one_server() {
        let cases = cases(100, |number| Situation::of_credentials(1, number));
        let servers: BTreeSet<_> = cases.into_iter().map(|case| case.plugins).collect();
        assert_eq!(servers.len(), 5);
    }
}
