//! Masks the values of Secrets in a report.

use kubernetes_types::secrets::{self, Masker};

use super::report::{Finding, Report};

impl Report {
    /// Masks the values of Secrets in objects, differences, reviews, replies, and patches of all findings.
    ///
    /// The denial messages of webhooks are not changed.
    pub fn mask_secrets(&mut self) {
        for finding in self.checks.iter_mut().flat_map(|check| &mut check.findings) {
            finding.mask_secrets();
        }
    }
}

impl Finding {
    fn mask_secrets(&mut self) {
        let is_of_secret = self.object.as_ref().is_some_and(secrets::is_secret)
            || self.steps.iter().any(|step| secrets::is_of_secret(&step.review));
        let mut masker = Masker::default();
        if let Some(object) = &mut self.object {
            masker.document(object);
        }
        for step in &mut self.steps {
            masker.exchange(&mut step.review, &mut step.reply);
        }
        for difference in &mut self.differences {
            let (expected, found) = (&mut difference.expected, &mut difference.found);
            if is_of_secret {
                masker.difference(&difference.path, expected, found);
            }
            for value in [expected, found].into_iter().flatten() {
                masker.document(value);
                masker.texts(value);
            }
        }
        for request in &mut self.requests {
            request.mask(&mut masker);
        }
        masker.text(&mut self.message);
        self.masked |= masker.has_masked();
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn finding_about_a_secret_has_none_of_its_values() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"token": "open sesame"}});
        let patch = json!([{"op": "replace", "path": "/data/password", "value": "aHVudGVyMg=="}]).to_string();
        let review = json!({"request": {"kind": {"group": "", "kind": "Secret"}, "object": secret}});
        let report = json!({"version": 2, "objects": 1, "calls": 1, "leftOut": {}, "checks": [{
            "id": "V16", "title": "t", "severity": "error", "why": "w", "source": "s", "results": [],
            "findings": [{
                "kind": "test", "severity": "error", "webhooks": {"c/w": 1}, "examples": ["Secret n/s"],
                "message": "what stands there is \"aHVudGVyMg==\", or hunter2", "object": secret,
                "differences": [{"path": "data.password", "expected": "aHVudGVyMg==", "found": "b3BlbiBzZXNhbWU="}],
                "steps": [
                    {"webhook": "c/w", "foreign": false, "review": review, "status": 200,
                        "reply": {"response": {"patch": STANDARD.encode(patch)}}},
                    {"webhook": "c/w", "foreign": false, "review": secret.to_string().split_at(90).0, "reply": "hunter2"},
                ],
            }],
        }]});
        let mut report: Report = serde_json::from_value(report).unwrap();
        report.mask_secrets();
        let finding = &report.checks[0].findings[0];
        assert!(finding.masked);
        assert_eq!(finding.message, "what stands there is \"***\", or ***");
        let text = serde_json::to_string(&report).unwrap();
        let patch = finding.steps[0].reply["response"]["patch"].as_str().unwrap();
        let patch: Value = serde_json::from_slice(&STANDARD.decode(patch).unwrap()).unwrap();
        assert_eq!(patch, json!([{"op": "replace", "path": "/data/password", "value": "Kioq"}]));
        for value in ["hunter2", "aHVudGVyMg", "open sesame", "b3BlbiBzZXNhbWU"] {
            assert!(!text.contains(value), "{value} in {text}");
        }
        // Masks again, as when reports are merged.
        let once = report.clone();
        report.mask_secrets();
        assert_eq!(report, once);
    }
}
