//! The command that prints the catalog of faults: `admit fakes list` and `fake-webhooks list`.

use std::io::{self, ErrorKind, Write as _};

use serde_json::json;

use crate::{Class, Family, Fault, catalog};

/// The version of the JSON document: another one where a reader of this one would not understand it.
const VERSION: u8 = 1;

/// Prints the catalog of faults: what can be wrong with a webhook, and how kube-apiserver responds.
///
/// In a file of fakes an entry has a fault by `fault: ID`, with its id or its name; a behavior has one by
/// `{fault: ID}`, where the fault is one of an answer.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only faults of these families
    #[arg(value_name = "FAMILY", value_enum)]
    families: Vec<Family>,
    /// Only faults of this class
    #[arg(long, value_enum)]
    class: Option<Class>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// How faults are printed.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Output {
    /// One line per fault
    #[default]
    Table,
    /// Every detail: `{"version": 1, "faults": […]}`
    Json,
}

impl List {
    /// Prints to standard output.
    ///
    /// # Errors
    /// It cannot be written to. That nobody reads on is no error.
    pub fn run(&self) -> io::Result<()> {
        let chosen: Vec<&Fault> = catalog().iter().filter(|fault| self.has(fault)).collect();
        let text = match self.output {
            Output::Table => table(&chosen),
            Output::Json => format!("{:#}\n", json!({"version": VERSION, "faults": chosen})),
        };
        match io::stdout().lock().write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn has(&self, fault: &Fault) -> bool {
        (self.families.is_empty() || self.families.contains(&fault.family))
            && self.class.is_none_or(|class| fault.class == class)
    }
}

fn table(faults: &[&Fault]) -> String {
    let head = ["ID", "NAME", "CLASS", "HELP"];
    let rows = faults.iter().map(|fault| [&*fault.id, &*fault.name, fault.class.as_str(), &*fault.help]);
    let rows: Vec<[&str; 4]> = std::iter::once(head).chain(rows).collect();
    let mut widths = [0; 4];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.len().max(*width);
        }
    }
    let [id_width, name_width, class_width, _] = widths;
    let line = |[id, name, class, help]: &[&str; 4]| {
        format!("{id:id_width$}  {name:name_width$}  {class:class_width$}  {help}\n")
    };
    rows.iter().map(line).collect()
}
