//! `admit fakes journal`: prints the calls that deployed fakes received.

use harness::json::at;
use harness::secrets::Masker;
use serde_json::{Value, json};

use super::admin::Admin;
use super::api::Api;
use super::names::{FakesNamespace, NAME};
use crate::cluster_client::ClusterArguments;
use crate::{ExitCode, Failure, screen};

/// Print the calls that deployed fakes received, oldest first.
#[derive(Debug, clap::Args)]
pub(crate) struct Journal {
    /// Print only calls of the webhook with this name
    name: Option<String>,
    /// Use the fakes in this namespace
    #[arg(short, long, default_value = NAME)]
    namespace: FakesNamespace,
    /// Wait for at least COUNT calls; after the timeout, print the calls so far and exit with status 1
    #[arg(long, value_name = "COUNT")]
    wait: Option<usize>,
    /// Wait up to this many seconds for the calls of --wait
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "wait")]
    timeout: u64,
    /// Keep printing calls as they arrive, until SIGINT
    #[arg(long, conflicts_with = "wait")]
    follow: bool,
    /// Print one line per call, or all details as JSON
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Show the values of Secrets and headers with credentials instead of masking them
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
}

/// The output format of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    /// One line per call
    #[default]
    Text,
    /// One JSON document; with --follow one document per call
    Json,
}

/// The number of seconds that each request of `--follow` waits for a new call.
const FOLLOW_WAIT_SECONDS: u64 = 20;

impl Journal {
    pub(crate) async fn run(self) -> Result<ExitCode, Failure> {
        let api = Api::new(self.cluster.connect().await?);
        let admin = Admin::find_deployed(&api, &self.namespace).await?;
        if self.follow {
            return self.follow(&admin).await;
        }
        let journal = self.read(&admin, 0, self.wait, self.timeout).await?;
        match self.output {
            Output::Text => self.print_lines(&journal)?,
            Output::Json => screen::print_document(&format!("{journal:#}\n"))?,
        }
        let enough = self.wait.is_none_or(|count| entries(&journal).len() >= count);
        Ok(if enough { ExitCode::Ok } else { ExitCode::Failed })
    }

    async fn follow(&self, admin: &Admin) -> Result<ExitCode, Failure> {
        let mut after = 0;
        loop {
            let journal = self.read(admin, after, Some(1), FOLLOW_WAIT_SECONDS).await?;
            match self.output {
                Output::Text => self.print_lines(&journal)?,
                Output::Json => {
                    for entry in entries(&journal) {
                        screen::print_document(&format!("{entry}\n"))?;
                    }
                }
            }
            after = entries(&journal).last().and_then(|entry| entry["number"].as_u64()).unwrap_or(after);
        }
    }

    async fn read(
        &self,
        admin: &Admin,
        after: u64,
        wait: Option<usize>,
        timeout: u64,
    ) -> Result<Value, Failure> {
        let mut journal = admin.journal(&self.query(after, wait, timeout)).await?;
        if !self.show_secrets {
            mask_secrets(&mut journal);
        }
        Ok(journal)
    }

    fn query(&self, after: u64, wait: Option<usize>, timeout: u64) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        if let Some(name) = &self.name {
            query.append_pair("fake", name);
        }
        query.append_pair("after", &after.to_string());
        if self.show_secrets {
            query.append_pair("showSecrets", "true");
        }
        if let Some(count) = wait {
            query.append_pair("wait", &count.to_string()).append_pair("timeout", &timeout.to_string());
        }
        query.finish()
    }

    fn print_lines(&self, journal: &Value) -> Result<(), Failure> {
        if journal["dropped"].as_u64().unwrap_or_default() > 0 && !self.follow {
            screen::status!("{} earlier calls were dropped", journal["dropped"]);
        }
        for entry in entries(journal) {
            screen::print(&format!("{}\n", line(entry)))?;
        }
        Ok(())
    }
}

/// Masks the values of Secrets in the bodies of the calls.
fn mask_secrets(journal: &mut Value) {
    let mut masker = Masker::default();
    for entry in journal.get_mut("entries").and_then(Value::as_array_mut).into_iter().flatten() {
        for body in ["review", "body"] {
            if let Some(body) = entry.get_mut(body) {
                masker.exchange(body, &mut Value::Null);
            }
        }
    }
}

fn entries(journal: &Value) -> &[Value] {
    journal["entries"].as_array().map_or(&[], Vec::as_slice)
}

/// Formats a call on one line: time, webhook, operation, kind, object, response.
fn line(entry: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let request = at(entry, &["review", "request"]);
    let what = if request["operation"].is_string() {
        let or_empty = |field: &str, before: &str, after: &str| match request[field].as_str() {
            Some(text) if !text.is_empty() => format!("{before}{text}{after}"),
            _ => String::new(),
        };
        let name = [&request["name"], at(request, &["object", "metadata", "name"])];
        let name = name.into_iter().filter_map(Value::as_str).find(|name| !name.is_empty());
        let generated = at(request, &["object", "metadata", "generateName"]);
        let generated = generated.as_str().map(|prefix| format!("{prefix}*"));
        format!(
            "{} {}{} {}{}{}",
            text(&request["operation"]),
            text(at(request, &["kind", "kind"])),
            or_empty("subResource", "/", ""),
            or_empty("namespace", "", "/"),
            name.map(str::to_owned).or(generated).unwrap_or_else(|| "-".to_owned()),
            if request["dryRun"] == json!(true) { " (dry run)" } else { "" }
        )
    } else {
        format!("{} {} without a review", text(&entry["method"]), text(&entry["path"]))
    };
    let answered = &entry["answered"];
    let answer = match answered["outcome"].as_str() {
        Some("sent") => text(&answered["summary"]),
        Some("abandoned") => "the caller disconnected".to_owned(),
        Some("closed") => "closed the connection".to_owned(),
        _ => "no response yet".to_owned(),
    };
    let time = text(&entry["time"]);
    // In the format of the fakes' log.
    let time = time.parse::<jiff::Timestamp>().map_or(time, |time| format!("{time:.3}"));
    let line = format!("{time} {} {what}: {answer}", text(&entry["fake"]));
    // Callers control these strings, so line breaks and escape sequences are escaped.
    output::one_line(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(entry: &Value, expected: &str) {
        assert_eq!(line(entry), format!("2026-11-21T00:00:00.123Z a.b.c {expected}"));
    }

    #[test]
    fn secret_values_are_masked() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "aHVudGVyMg=="}});
        let review = json!({"request": {"object": secret}});
        let mut journal =
            json!({"entries": [{"review": review}, {"body": secret.to_string().split_at(60).0}, {}]});
        mask_secrets(&mut journal);
        assert_eq!(journal["entries"][0]["review"]["request"]["object"]["data"]["a"], "Kioq");
        assert!(!journal.to_string().contains("aHVudGVyMg"), "{journal}");
    }

    #[test]
    fn a_call_is_one_line() {
        let entry = |request: Value, answered: Value| {
            json!({
                "time": "2026-11-21T00:00:00.123456789Z", "fake": "a.b.c", "method": "POST", "path": "/a",
                "review": {"request": request}, "answered": answered,
            })
        };
        let pod = json!({"operation": "CREATE", "kind": {"kind": "Pod"}, "namespace": "demo", "name": "web"});
        check(
            &entry(pod, json!({"outcome": "sent", "summary": "denied: two\nlines"})),
            "CREATE Pod demo/web: denied: two\\nlines",
        );
        let scale = json!({
            "operation": "UPDATE", "kind": {"kind": "Scale"}, "subResource": "scale", "dryRun": true,
            "object": {"metadata": {"generateName": "web-"}},
        });
        check(
            &entry(scale, json!({"outcome": "abandoned"})),
            "UPDATE Scale/scale web-* (dry run): the caller disconnected",
        );
        check(
            &entry(Value::Null, json!({"outcome": "closed"})),
            "POST /a without a review: closed the connection",
        );
    }
}
