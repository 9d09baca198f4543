//! Parses `--shard`, which selects a part of the corpus.

use harness::verify::report::Shard;

/// The environment variable with the index of a Pod in an Indexed Job, counted from 0.
///
/// Source: Kubernetes documentation, Jobs, Completion mode
const INDEX: &str = "JOB_COMPLETION_INDEX";

/// Parses a shard: `3/16`, counted from 1, or `auto/16` for the shard of a Pod in an Indexed Job.
pub(super) fn parse(text: &str) -> Result<Shard, String> {
    parse_in(text, std::env::var(INDEX).ok().as_deref())
}

fn parse_in(text: &str, job_index: Option<&str>) -> Result<Shard, String> {
    let shape = "expected INDEX/COUNT, such as 3/16, with an index from 1 to the count, or auto/COUNT";
    let (index, count) = text.split_once('/').ok_or(shape)?;
    let count: u32 = count.parse().ok().filter(|count| *count > 0).ok_or(shape)?;
    let index = if index == "auto" {
        let index = job_index.ok_or_else(|| {
            format!(
                "`auto` is for the pods of a Kubernetes Job with completionMode: Indexed; {INDEX} is not set"
            )
        })?;
        let index = index.parse().ok().and_then(|index: u32| index.checked_add(1));
        index.ok_or_else(|| format!("{INDEX} is not a number: {job_index:?}"))?
    } else {
        index.parse().ok().filter(|index: &u32| *index > 0).ok_or(shape)?
    };
    if index > count {
        return Err(format!("invalid part {index} of {count}: the count must equal completions of the Job"));
    }
    Ok(Shard { index, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, job_index: Option<&str>, expected: Option<(u32, u32)>) {
        let found = parse_in(text, job_index).ok().map(|shard| (shard.index, shard.count));
        assert_eq!(found, expected, "{text} {job_index:?}");
    }

    #[test]
    fn a_shard_counts_from_1_and_the_index_of_a_job_from_0() {
        check("1/1", None, Some((1, 1)));
        check("3/16", Some("7"), Some((3, 16)));
        check("auto/16", Some("0"), Some((1, 16)));
        check("auto/16", Some("15"), Some((16, 16)));
    }

    #[test]
    fn invalid_shard_is_rejected() {
        for text in ["", "3", "0/3", "4/3", "1/0", "/3", "a/3", "1/3/5", "-1/3"] {
            check(text, None, None);
        }
        check("auto/16", None, None);
        check("auto/16", Some("16"), None);
        check("auto/16", Some("x"), None);
        check("auto/16", Some("4294967295"), None);
    }
}
