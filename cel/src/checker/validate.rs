//! Validates a tree after type checking.
//!
//! Source: cel-go cel/validator.go, ext/formatting.go (`stringFormatValidator`).

use super::unify::{is_equivalent, unwrap_optional};
use crate::ast::{Entry, Expression, NodeId};
use crate::checked::{Checked, Reference};
use crate::declarations::{Declarations, Validator};
use crate::function::Call;
use crate::library::format;
use crate::parser::Refused;
use crate::regexp::{Regexp, RegexpError};
use crate::source::{Issues, Source};
use crate::types::Type;
use crate::value::{Text, Value};

/// Runs all validators and adds errors to `issues`.
pub(crate) fn validate(
    checked: &Checked,
    source: &Source<'_>,
    declarations: &Declarations,
    issues: &mut Issues,
) -> Result<(), Refused> {
    if declarations.validators.is_empty() {
        return Ok(());
    }
    let formats = declarations.validators.contains(&Validator::StringFormat);
    let found = collect(checked, formats);
    let mut run = Run { checked, source, issues };
    for validator in &declarations.validators {
        match validator {
            Validator::Duration => run.constant_times("duration", &found.calls),
            Validator::Timestamp => run.constant_times("timestamp", &found.calls),
            Validator::Matches => run.expressions(&found.calls),
            Validator::HomogeneousLiterals => run.homogeneous(found.lists.iter().chain(&found.maps))?,
            Validator::StringFormat => run.formats(&found.calls),
        }
    }
    if run.issues.is_empty() { Ok(()) } else { Err(Refused::Issues) }
}

/// The nodes that validators examine, children before their parents.
#[derive(Default)]
struct ValidatedNodes {
    calls: Vec<NodeId>,
    /// The list literals whose elements must have the same type.
    lists: Vec<NodeId>,
    maps: Vec<NodeId>,
}

fn collect(checked: &Checked, formats: bool) -> ValidatedNodes {
    let mut found = ValidatedNodes::default();
    let mut open = vec![(checked.ast.root, false)];
    while let Some((node, exempt)) = open.pop() {
        let expression = checked.ast.expression(node);
        let mut below = exempt;
        match expression {
            Expression::Call { function, .. } => {
                found.calls.push(node);
                below |= formats && function == "format";
            }
            Expression::List { .. } if !exempt => found.lists.push(node),
            Expression::Map(_) if !exempt => found.maps.push(node),
            _ => {}
        }
        expression.children(|child| open.push((child, below)));
    }
    // The nodes were pushed in reverse: now children come before their parents, from left to right.
    found.calls.reverse();
    found.lists.reverse();
    found.maps.reverse();
    found
}

struct Run<'c, 'r, 's> {
    checked: &'c Checked,
    source: &'r Source<'s>,
    issues: &'r mut Issues,
}

impl<'c> Run<'c, '_, '_> {
    fn report(&mut self, node: NodeId, message: String) {
        self.issues.add(self.source, self.checked.ast.offset(node), message);
    }

    /// Returns the calls to a function, each with its first argument.
    fn calls_of<'n>(
        &self,
        name: &'static str,
        calls: &'n [NodeId],
    ) -> impl Iterator<Item = (NodeId, NodeId)> + use<'c, 'n> {
        let checked = self.checked;
        calls.iter().filter_map(move |call| match checked.ast.expression(*call) {
            Expression::Call { function, arguments, .. } if function == name => {
                Some((*call, *arguments.first()?))
            }
            _ => None,
        })
    }

    /// Reports constant arguments of `function` that are not valid durations or timestamps.
    fn constant_times(&mut self, function: &'static str, calls: &[NodeId]) {
        let wrong: Vec<_> = self
            .calls_of(function, calls)
            .filter(|(call, argument)| !self.is_time(*call, *argument))
            .map(|(_, argument)| argument)
            .collect();
        for argument in wrong {
            self.report(argument, format!("invalid {function} argument"));
        }
    }

    /// Returns `false` if a constant argument of a call is not a valid duration or timestamp, and `true` otherwise.
    fn is_time(&self, call: NodeId, argument: NodeId) -> bool {
        let value = match self.checked.ast.expression(argument) {
            Expression::String(text) => Value::String(Text::Borrowed(text)),
            Expression::Int(value) => Value::Int(*value),
            Expression::Null
            | Expression::Bool(_)
            | Expression::Uint(_)
            | Expression::Double(_)
            | Expression::Bytes(_) => return false,
            _ => return true,
        };
        let Some(Reference::Overloads(overloads)) = self.checked.reference(call) else { return true };
        overloads.iter().any(|overload| {
            let arguments = std::slice::from_ref(&value);
            (overload.implementation)(&Call { arguments, regex: None }).is_ok()
        })
    }

    /// Reports calls to `matches` whose constant first argument is not a valid regular expression.
    ///
    /// As in cel-go, the first argument of `matches(text, expression)` is the text.
    fn expressions(&mut self, calls: &[NodeId]) {
        let wrong: Vec<_> = self
            .calls_of("matches", calls)
            .filter(|(_, argument)| match self.checked.ast.expression(*argument) {
                Expression::String(text) => matches!(Regexp::new(text), Err(RegexpError::Invalid(_))),
                _ => false,
            })
            .map(|(_, argument)| argument)
            .collect();
        for argument in wrong {
            self.report(argument, "invalid matches argument".to_owned());
        }
    }

    fn homogeneous<'n>(&mut self, literals: impl Iterator<Item = &'n NodeId>) -> Result<(), Refused> {
        for literal in literals {
            match self.checked.ast.expression(*literal) {
                Expression::List { elements, optional } => self.list(elements, optional)?,
                Expression::Map(entries) => self.map(entries)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn list(&mut self, elements: &[NodeId], optional: &[usize]) -> Result<(), Refused> {
        let mut first: Option<&Type> = None;
        for (index, element) in elements.iter().enumerate() {
            let of = self.element(*element, optional.contains(&index))?;
            match first {
                None => first = Some(of),
                Some(first) if !is_equivalent(first, of) => {
                    self.mismatch(*element, first, of);
                    break;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn map(&mut self, entries: &[Entry<NodeId>]) -> Result<(), Refused> {
        let mut first: Option<(&Type, &Type)> = None;
        for entry in entries {
            let key = self.element(entry.key, false)?;
            let value = self.element(entry.value, entry.optional)?;
            let Some((keys, values)) = first else {
                first = Some((key, value));
                continue;
            };
            if !is_equivalent(keys, key) {
                self.mismatch(entry.key, keys, key);
            }
            if !is_equivalent(values, value) {
                self.mismatch(entry.value, values, value);
            }
        }
        Ok(())
    }

    fn element(&self, node: NodeId, optional: bool) -> Result<&'c Type, Refused> {
        let of = self.checked.type_of(node);
        if !optional {
            return Ok(of);
        }
        // kube-apiserver panics here, because it reads the type parameter of a dynamic type.
        unwrap_optional(of).ok_or(Refused::Unsupported("an optional element or entry whose value is dynamic"))
    }

    fn mismatch(&mut self, node: NodeId, expected: &Type, found: &Type) {
        self.report(node, format!("expected type '{expected}' but found '{found}'"));
    }

    fn formats(&mut self, calls: &[NodeId]) {
        for call in calls {
            let Expression::Call { function, target: Some(target), arguments } =
                self.checked.ast.expression(*call)
            else {
                continue;
            };
            let [argument] = arguments.as_slice() else { continue };
            if function != "format" {
                continue;
            }
            let (Expression::String(text), Expression::List { elements, .. }) =
                (self.checked.ast.expression(*target), self.checked.ast.expression(*argument))
            else {
                continue;
            };
            if let Err((node, message)) = format::check(self.checked, text, elements) {
                self.report(node.unwrap_or(*call), message);
            }
        }
    }
}
