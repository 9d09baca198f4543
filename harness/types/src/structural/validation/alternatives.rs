//! Validates `anyOf`, `oneOf`, `allOf`, and `not`.
//!
//! Source: kube-openapi `pkg/validation/validate/schema_props.go`.

use serde_json::Value;

use super::super::node::{Schema, ValueValidation};
use super::Validator;
use super::report::{Failure, Report};
use crate::path::Path;
use crate::quoting::quote;

impl Validator {
    pub(super) fn alternatives(
        &mut self,
        values: &ValueValidation,
        value: &Value,
        path: &Path<'_>,
        report: &mut Report,
    ) {
        let alternatives = [&values.any_of, &values.one_of, &values.all_of];
        if values.not.is_none() && alternatives.iter().all(|schemas| schemas.is_empty()) {
            report.matches += 1;
            return;
        }
        // All alternatives together count as one check.
        let mut found = Report::default();
        self.any_of(&values.any_of, value, path, &mut found);
        self.one_of(&values.one_of, value, path, &mut found);
        self.all_of(&values.all_of, value, path, &mut found);
        if let Some(not) = &values.not
            && self.validate(not, value, path, None).failures.is_empty()
        {
            let why = format!("{} must not validate the schema (not)", quote(&path.to_string()));
            found.add(self, Failure::message(why));
        }
        found.matches += 1;
        report.merge(found);
    }

    fn any_of(&mut self, schemas: &[Schema], value: &Value, path: &Path<'_>, found: &mut Report) {
        if schemas.is_empty() {
            return;
        }
        let mut best: Option<Report> = None;
        for schema in schemas {
            let report = self.validate(schema, value, path, None);
            if report.failures.is_empty() {
                found.merge(report);
                return;
            }
            if best.as_ref().is_none_or(|best| report.matches > best.matches) {
                best = Some(report);
            }
        }
        let why = format!("{} must validate at least one schema (anyOf)", quote(&path.to_string()));
        found.add(self, Failure::message(why));
        if let Some(best) = best {
            found.merge(best);
        }
    }

    fn one_of(&mut self, schemas: &[Schema], value: &Value, path: &Path<'_>, found: &mut Report) {
        if schemas.is_empty() {
            return;
        }
        let mut best: Option<Report> = None;
        let mut first: Option<Report> = None;
        let mut valid = 0_usize;
        for schema in schemas {
            let report = self.validate(schema, value, path, None);
            if report.failures.is_empty() {
                valid += 1;
                best = None;
                first.get_or_insert(report);
            } else if valid == 0 && best.as_ref().is_none_or(|best| report.matches > best.matches) {
                best = Some(report);
            }
        }
        if valid == 1 {
            if let Some(first) = first {
                found.merge(first);
            }
            return;
        }
        let why = if valid == 0 {
            "Found none valid".to_owned()
        } else {
            format!("Found {valid} valid alternatives")
        };
        let why =
            format!("{} must validate one and only one schema (oneOf). {why}", quote(&path.to_string()));
        found.add(self, Failure::message(why));
        if let Some(best) = best {
            found.merge(best);
        }
    }

    fn all_of(&mut self, schemas: &[Schema], value: &Value, path: &Path<'_>, found: &mut Report) {
        let mut valid = 0;
        for schema in schemas {
            let report = self.validate(schema, value, path, None);
            if report.failures.is_empty() {
                valid += 1;
            }
            found.merge(report);
        }
        if valid != schemas.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            let why = format!("{} must validate all the schemas (allOf){none}", quote(&path.to_string()));
            found.add(self, Failure::message(why));
        }
    }
}
