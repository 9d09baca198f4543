//! Prints the catalog of faults: `admit fakes list` and `fake-webhooks list`.

use std::io::{self, ErrorKind, Write as _};

use serde_json::json;

use crate::{Class, Family, Fault, catalog};

/// The version of the JSON document. It increases with incompatible changes.
const VERSION: u8 = 1;

/// List the faults that a webhook can have, and how kube-apiserver treats each.
///
/// In a fakes file, `fault: ID` gives a webhook a fault by its ID or name; `behavior: {fault: ID}` does the same for
/// faults of a response.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Show only faults of these families
    #[arg(value_name = "FAMILY", value_enum)]
    families: Vec<Family>,
    /// Show only faults of this class
    #[arg(long, value_enum)]
    class: Option<Class>,
    /// Print the faults in this format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

/// The output format of faults.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum Output {
    /// One line per fault
    #[default]
    Table,
    /// Every detail: `{"version": 1, "faults": […]}`
    Json,
}

impl List {
    /// Prints the catalog to standard output.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written; a closed pipe is not an error.
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
