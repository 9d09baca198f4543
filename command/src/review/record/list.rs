//! `admit review --record`: lists or shows recorded requests.

use std::collections::BTreeSet;
use std::path::Path;

use harness::attributes::Operation;

use super::read::Requests;
use super::row::{self, Row};
use crate::html_report::HtmlFile;
use crate::request_report::{Places, Report, json, people};
use crate::review::arguments::{Output, Review};
use crate::screen::{self, Marks};
use crate::{ExitCode, Failure};

impl Review {
    /// Lists the recorded requests, or prints the requests with the selected numbers.
    ///
    /// # Errors
    /// Returns an error if the record or a requested number does not exist, or if a line is invalid.
    pub(in crate::review) fn show_record(
        &self,
        path: &Path,
        marks: Marks,
        mut print: impl FnMut(&str) -> Result<(), Failure>,
    ) -> Result<ExitCode, Failure> {
        let html = HtmlFile::create(self.html.as_deref())?;
        let mut complete = Vec::new();
        let mut requests = Requests::open(path)?;
        let mut missing: BTreeSet<usize> = self.record.numbers.iter().copied().collect();
        let lists = missing.is_empty();
        let (mut rows, mut count, mut shown) = (Vec::new(), 0, 0);
        let mut list = json::Stream::new(lists || missing.len() > 1);
        for report in requests.by_ref() {
            let mut report = report?;
            count += 1;
            let is_asked_for = lists || missing.remove(&count);
            if !is_asked_for || !self.selects(&report) {
                continue;
            }
            shown += 1;
            if html.is_some() {
                complete.push(report.clone());
            }
            if !self.contents.explain {
                report.without_explanation();
            }
            match self.output {
                Output::Text if lists => rows.push(Row::from_report(&report)),
                Output::Text => print(&people::text(&report, self.verbose, marks, &Places::default()))?,
                Output::Json => print(&list.item(&report).map_err(Failure::environment)?)?,
                Output::Yaml => print(&json::yaml_document(&report)?)?,
            }
        }
        match self.output {
            Output::Text if lists && shown > 0 => print(&row::table(&rows))?,
            Output::Json => print(&list.end())?,
            Output::Text | Output::Yaml => {}
        }
        for place in &requests.torn {
            screen::status!("{place}: the last request is incomplete");
        }
        if let Some(number) = missing.first() {
            let message =
                format!("--record {}: no request {number}; the record contains {count}", path.display());
            return Err(Failure::usage(message));
        }
        if let Some(html) = html.filter(|_| shown > 0) {
            html.write("admit review", &json::json(&complete).map_err(Failure::environment)?)?;
        }
        if shown == 0 {
            screen::status!("no request of {count} is selected");
        }
        Ok(ExitCode::Ok)
    }

    /// Returns whether a request matches the filters.
    fn selects(&self, report: &Report) -> bool {
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        let facts = report.facts();
        let called = |name: &String| facts.webhooks.iter().any(|called| called == name);
        is(&self.namespace, &facts.namespace)
            && is(&self.user, &facts.user)
            && is(&self.subresource, &facts.subresource)
            && self.operation.is_none_or(|wanted| Operation::from(wanted) == report.operation())
            && self.record.resource.as_ref().is_none_or(|wanted| facts.is_of(wanted))
            && self.record.webhook.as_ref().is_none_or(called)
            && !(self.record.denied && facts.admitted)
    }
}
