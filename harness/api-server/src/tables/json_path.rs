//! The `JSONPath` of printer columns: the dialect of client-go, which is not that of RFC 9535.
//!
//! Source: client-go util/jsonpath/{parser,jsonpath}.go.

use std::cmp::Ordering;

use serde_json::Value;

/// A path that was parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Path(Vec<Node>);

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Field(String),
    Wildcard,
    /// `..`
    Recursive,
    /// `[START:END:STEP]`; of one index the end is derived.
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        is_index: bool,
        step: Option<i64>,
    },
    /// `[?(LEFT OPERATOR RIGHT)]`
    Filter {
        left: Vec<Self>,
        operator: Operator,
        right: Vec<Self>,
    },
    Union(Vec<Vec<Self>>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// How deep filters may be nested in each other.
const DEPTH: usize = 8;

impl Path {
    /// Parses a path; none if admit cannot read it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        parse(text, DEPTH).map(Self)
    }

    /// The first value that the path leads to; none if there is none, or the path does not fit the object.
    pub(super) fn first<'a>(&'a self, object: &'a Value) -> Option<&'a Value> {
        walk(vec![object], &self.0, &mut Budget(MOST_VALUES)).ok()?.into_iter().next()
    }
}

fn parse(text: &str, depth: usize) -> Option<Vec<Node>> {
    let depth = depth.checked_sub(1)?;
    let mut nodes = Vec::new();
    let mut rest = text;
    loop {
        if let Some(filter) = rest.strip_prefix("[?(") {
            let (inside, after) = filter_end(filter)?;
            nodes.push(filter_node(inside, depth)?);
            rest = after;
        } else if let Some(after) = rest.strip_prefix("..") {
            if nodes.last() == Some(&Node::Recursive) {
                return None;
            }
            nodes.push(Node::Recursive);
            rest = after;
            if after.starts_with(|next: char| next == '_' || next.is_alphanumeric()) {
                let (node, after) = field(after);
                nodes.push(node);
                rest = after;
            }
        } else {
            let mut characters = rest.chars();
            let Some(first) = characters.next() else { return Some(nodes) };
            let after = characters.as_str();
            match first {
                ' ' | '@' | '$' => rest = after,
                '[' => {
                    let (inside, after) = after.split_once(']')?;
                    bracket(inside, depth, &mut nodes)?;
                    rest = after;
                }
                '"' | '\'' => {
                    let (inside, after) = after.split_once(first)?;
                    if inside.contains('\\') {
                        return None;
                    }
                    nodes.push(Node::Literal(inside.into()));
                    rest = after;
                }
                '.' => {
                    let (node, after) = field(after);
                    nodes.push(node);
                    rest = after;
                }
                '+' | '-' | '0'..='9' => {
                    let is_part = |(at, it): &(usize, char)| (*at > 0 && *it == '.') || it.is_ascii_digit();
                    let end =
                        rest.char_indices().skip(1).find(|it| !is_part(it)).map_or(rest.len(), |(at, _)| at);
                    let (number, after) = rest.split_at_checked(end)?;
                    let integer = number.parse::<i64>().ok().map(Value::from);
                    nodes.push(Node::Literal(
                        integer.or_else(|| number.parse::<f64>().ok().map(Value::from))?,
                    ));
                    rest = after;
                }
                _ => {
                    let end = rest.find(is_terminator).unwrap_or(rest.len());
                    let (word, after) = rest.split_at_checked(end)?;
                    let truth = word.parse::<bool>().ok()?;
                    nodes.push(Node::Literal(truth.into()));
                    rest = after;
                }
            }
        }
    }
}

fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

/// A field and what follows it. A backslash makes the next character one of the name.
fn field(text: &str) -> (Node, &str) {
    let mut name = String::new();
    let mut characters = text.chars();
    loop {
        let rest = characters.as_str();
        match characters.next() {
            Some('\\') => name.extend(characters.next()),
            Some(next) if !is_terminator(next) => name.push(next),
            Some(_) | None => {
                let node = if name == "*" { Node::Wildcard } else { Node::Field(name) };
                return (node, rest);
            }
        }
    }
}

/// What is in a filter, and what follows it.
fn filter_end(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut is_closed = false;
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        match character {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            '"' | '\'' if quote == Some(character) && before != '\\' => is_closed = true,
            ')' if quote.is_some() == is_closed => {
                let (inside, after) = text.split_at_checked(at)?;
                return Some((inside, after.strip_prefix(")]")?));
            }
            _ => {}
        }
        before = character;
    }
    None
}

fn filter_node(text: &str, depth: usize) -> Option<Node> {
    const SIGNS: [char; 4] = ['!', '<', '>', '='];
    let exists = || {
        let (operator, right) = (Operator::Exists, Vec::new());
        Some(Node::Filter { left: parse(text, depth)?, operator, right })
    };
    let Some(start) = text.find(SIGNS).filter(|start| *start > 0) else { return exists() };
    let (left, rest) = text.split_at_checked(start)?;
    let right = rest.trim_start_matches(SIGNS);
    let operator = match rest.strip_suffix(right)? {
        _ if right.is_empty() => return None,
        "==" => Operator::Equal,
        "!=" => Operator::NotEqual,
        "<" => Operator::Less,
        "<=" => Operator::LessOrEqual,
        ">" => Operator::Greater,
        ">=" => Operator::GreaterOrEqual,
        _ => return None,
    };
    Some(Node::Filter { left: parse(left, depth)?, operator, right: parse(right, depth)? })
}

fn bracket(inside: &str, depth: usize, nodes: &mut Vec<Node>) -> Option<()> {
    if inside.contains(',') {
        let parts = inside.split(',').map(|part| parse(&format!("[{}]", part.trim_matches(' ')), depth));
        nodes.push(Node::Union(parts.collect::<Option<Vec<_>>>()?));
        return Some(());
    }
    let key = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
    if let Some(key) = key.filter(|key| !key.contains('\'')) {
        nodes.extend(parse(&format!(".{key}"), depth)?);
        return Some(());
    }
    let inside = if inside == "*" { ":" } else { inside };
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse::<i64>().ok().map(Some) };
    let mut parts = inside.split(':');
    let start = number(parts.next()?)?;
    let (end, is_index) = match parts.next() {
        Some(end) => (number(end)?, false),
        None => (Some(start.unwrap_or_default() + 1), true),
    };
    let step = parts.next().map_or(Some(None), number)?;
    if parts.next().is_some() {
        return None;
    }
    nodes.push(Node::Slice { start, end, is_index, step });
    Some(())
}

/// The path does not fit the object, or leads to too many values.
#[derive(Debug)]
struct Unfit;

/// How many values of an object one path may look at: what follows several `..`, or lists in brackets, multiplies them.
const MOST_VALUES: usize = 100_000;

/// The values that may still be looked at.
struct Budget(usize);

impl Budget {
    fn take(&mut self, values: usize) -> Result<(), Unfit> {
        self.0 = self.0.checked_sub(values).ok_or(Unfit)?;
        Ok(())
    }
}

fn walk<'a>(
    mut values: Vec<&'a Value>,
    nodes: &'a [Node],
    budget: &mut Budget,
) -> Result<Vec<&'a Value>, Unfit> {
    for node in nodes {
        budget.take(values.len())?;
        values = match node {
            Node::Field(name) => values.into_iter().filter_map(|value| value.get(name)).collect(),
            Node::Wildcard => {
                let mut found = Vec::new();
                for value in values {
                    found.extend(children(value, budget)?);
                }
                found
            }
            Node::Recursive => {
                let mut found = Vec::new();
                for value in values {
                    descend(value, &mut found, budget)?;
                }
                found
            }
            Node::Slice { start, end, is_index, step } => {
                let mut found = Vec::new();
                for value in values.into_iter().filter(|value| !value.is_null()) {
                    let list = value.as_array().ok_or(Unfit)?;
                    let chosen = slice(list, *start, *end, *is_index, *step)?;
                    budget.take(chosen.len())?;
                    found.extend(chosen);
                }
                found
            }
            Node::Filter { left, operator, right } => {
                let mut found = Vec::new();
                for value in values {
                    for item in value.as_array().ok_or(Unfit)? {
                        if passes(item, left, *operator, right, budget)? {
                            found.push(item);
                        }
                    }
                }
                found
            }
            Node::Union(parts) => {
                let mut found = Vec::new();
                for part in parts {
                    found.extend(walk(values.clone(), part, budget)?);
                }
                found
            }
            Node::Literal(literal) => values.iter().map(|_| literal).collect(),
        };
    }
    Ok(values)
}

fn children<'a>(value: &'a Value, budget: &mut Budget) -> Result<Vec<&'a Value>, Unfit> {
    let count = value.as_array().map_or(0, Vec::len) + value.as_object().map_or(0, serde_json::Map::len);
    budget.take(count)?;
    Ok(match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    })
}

/// Objects are as deep as JSON may be.
fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>, budget: &mut Budget) -> Result<(), Unfit> {
    let children = children(value, budget)?;
    if !children.is_empty() || value.as_str().is_some_and(|text| !text.is_empty()) {
        found.push(value);
    }
    for child in children {
        descend(child, found, budget)?;
    }
    Ok(())
}

fn slice(
    list: &[Value],
    start: Option<i64>,
    end: Option<i64>,
    is_index: bool,
    step: Option<i64>,
) -> Result<Vec<&Value>, Unfit> {
    let length = i64::try_from(list.len()).map_err(|_too_long| Unfit)?;
    let from_end = |place: i64| if place < 0 { place.saturating_add(length) } else { place };
    let start = from_end(start.unwrap_or(0));
    let end = match end.unwrap_or(length) {
        0 if is_index => length,
        end => from_end(end),
    };
    if start == end {
        return Ok(Vec::new());
    }
    let place = |place: i64| usize::try_from(place).map_err(|_negative| Unfit);
    if start >= length || start > end {
        return Err(Unfit);
    }
    let chosen = list.get(place(start)?..place(end)?).ok_or(Unfit)?;
    let step = usize::try_from(step.unwrap_or(1)).ok().filter(|step| *step > 0).ok_or(Unfit)?;
    Ok(chosen.iter().step_by(step).collect())
}

fn passes(
    item: &Value,
    left: &[Node],
    operator: Operator,
    right: &[Node],
    budget: &mut Budget,
) -> Result<bool, Unfit> {
    budget.take(1)?;
    let lefts = walk(vec![item], left, budget);
    if operator == Operator::Exists {
        // What does not fit counts as there.
        return Ok(lefts.map_or(true, |lefts| !lefts.is_empty()));
    }
    let (lefts, rights) = (lefts?, walk(vec![item], right, budget)?);
    match (lefts.as_slice(), rights.as_slice()) {
        ([], _) | ([_], []) => Ok(false),
        ([left], [right]) => compare(left, operator, right),
        _ => Err(Unfit),
    }
}

/// Source: client-go `third_party/forked/golang/template/funcs.go`: values of different types cannot be compared.
fn compare(left: &Value, operator: Operator, right: &Value) -> Result<bool, Unfit> {
    let order = match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => {
            return match operator {
                Operator::Equal => Ok(left == right),
                Operator::NotEqual => Ok(left != right),
                Operator::Exists
                | Operator::Less
                | Operator::LessOrEqual
                | Operator::Greater
                | Operator::GreaterOrEqual => Err(Unfit),
            };
        }
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            (None, None) => left.as_f64().and_then(|left| left.partial_cmp(&right.as_f64()?)),
            _ => return Err(Unfit),
        },
        _ => return Err(Unfit),
    };
    Ok(match operator {
        Operator::Exists => true,
        Operator::Equal => order == Some(Ordering::Equal),
        Operator::NotEqual => order != Some(Ordering::Equal),
        Operator::Less => order == Some(Ordering::Less),
        Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_to_its_first_value() {
        let object = json!({
            "spec": {"a": 1, "list": ["x", "y", "z"], "n": null},
            "metadata": {"annotations": {"example.com/b": "c"}},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "n": 2}, {"type": "Other", "status": "False"},
            ]},
        });
        for (path, expected) in [
            (".spec.a", Some(json!(1))),
            (".spec.b", None),
            (".spec.n", Some(json!(null))),
            (".spec.n.x", None),
            (".spec.a.x", None),
            (".spec.list[0]", Some(json!("x"))),
            (".spec.list[-1]", Some(json!("z"))),
            (".spec.list[3]", None),
            (".spec.list[1:]", Some(json!("y"))),
            (".spec.list[*]", Some(json!("x"))),
            (".spec.list[2,0]", Some(json!("z"))),
            (".spec['a']", Some(json!(1))),
            (".spec[0]", None),
            (r".metadata.annotations.example\.com/b", Some(json!("c"))),
            (r#".status.conditions[?(@.type=="Other")].status"#, Some(json!("False"))),
            (".status.conditions[?(@.type=='Ready')].status", Some(json!("True"))),
            (".status.conditions[?(@.n>1)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.n)].type", Some(json!("Ready"))),
            (".status.conditions[?(@.type==1)].status", None),
            ("..annotations", Some(json!({"example.com/b": "c"}))),
            (".spec.*", Some(json!(1))),
        ] {
            let parsed = Path::parse(path).unwrap();
            assert_eq!(parsed.first(&object).cloned(), expected, "{path}");
        }
    }

    #[test]
    fn values_that_are_multiplied_without_end_are_given_up() {
        let deep = (0..60).fold(json!([1, 2]), |inner, _| json!([inner, 1]));
        for path in ["..[0:]".repeat(20), "[0,0]".repeat(60), "[0:,0:]".repeat(60)] {
            assert_eq!(Path::parse(&path).unwrap().first(&deep), None, "{path}");
        }
        assert_eq!(Path::parse("..[0:]").unwrap().first(&json!([[1]])), Some(&json!([1])));
    }

    #[test]
    fn what_is_no_path_is_not_read() {
        for path in [".a[", ".a[?(@.b", ".a[x]", ".a}{", ".a]", "range", ".a[?(@.b=1)]"] {
            assert_eq!(Path::parse(path), None, "{path}");
        }
        let nested = ".a[?(".repeat(100);
        assert_eq!(Path::parse(&nested), None);
    }
}
