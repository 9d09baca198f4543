//! Checks `proves.yaml`: the statements that the situations prove, for `just coverage`.

use std::collections::{BTreeMap, BTreeSet};

use super::{SITUATIONS, configurations, exec};

const PROVES: &str = include_str!("proves.yaml");
const STATEMENTS: &str = include_str!("../behaviors.md");

#[test]
fn each_statement_and_each_situation_that_proves_it_is_there() {
    let proves: BTreeMap<String, BTreeSet<String>> =
        serde_saphyr::from_str(PROVES).expect("the file can be read");
    let mut situations: BTreeSet<String> =
        SITUATIONS.iter().map(|situation| situation.name.to_owned()).collect();
    // Scenarios outside the table, which are also checked.
    situations.extend(["redirecting", "validating"].map(str::to_owned));
    situations.extend(exec::names());
    situations.extend(configurations::all().into_iter().map(|refused| refused.name));
    for (statement, named) in proves {
        assert!(STATEMENTS.contains(&format!("- **{statement}** ")), "{statement} is no statement");
        assert!(!named.is_empty(), "nothing proves {statement}");
        let missing: Vec<_> = named.difference(&situations).collect();
        assert!(missing.is_empty(), "{statement}: there are no situations {missing:?}");
    }
}
