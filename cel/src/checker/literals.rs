//! Checks list, map, and message literals.
//!
//! Source: cel-go checker/checker.go, `checkCreateList`, `checkCreateMap`, `checkCreateStruct`.

use std::sync::Arc;

use super::Checker;
use super::unify::{is_dynamic, unwrap_optional};
use crate::ast::{Entry, NodeId};
use crate::declarations::well_known;
use crate::types::Type;

impl Checker<'_, '_> {
    pub(super) fn list(&mut self, elements: &[NodeId], optional: &[usize]) -> Type {
        let mut joined = None;
        for (index, element) in elements.iter().enumerate() {
            self.check(*element);
            let of = if optional.contains(&index) {
                self.unwrapped(*element)
            } else {
                self.type_of(*element).clone()
            };
            joined = Some(self.join(joined, of));
        }
        Type::list(joined.unwrap_or_else(|| self.substitutions.fresh()))
    }

    pub(super) fn map(&mut self, entries: &[Entry<NodeId>]) -> Type {
        let mut joined = None;
        for entry in entries {
            let (keys, values) = match joined {
                Some((keys, values)) => (Some(keys), Some(values)),
                None => (None, None),
            };
            self.check(entry.key);
            let of = self.type_of(entry.key).clone();
            let keys = self.join(keys, of);
            self.check(entry.value);
            let of =
                if entry.optional { self.unwrapped(entry.value) } else { self.type_of(entry.value).clone() };
            let values = self.join(values, of);
            joined = Some((keys, values));
        }
        let (keys, values) =
            joined.unwrap_or_else(|| (self.substitutions.fresh(), self.substitutions.fresh()));
        Type::map(keys, values)
    }

    pub(super) fn message(&mut self, node: NodeId, name: &mut String, fields: &[Entry<String>]) -> Type {
        let Some((full, of)) = self.declarations.struct_type(name) else {
            let name = name.clone();
            return self.undeclared(node, &name);
        };
        full.as_ref().clone_into(name);
        let mut message: Arc<str> = full;
        let mut result = of;
        if let Some(known) = well_known::message_of(&result) {
            message = known.into();
        } else if let Type::Object(object) = &result {
            message = Arc::clone(object);
        } else {
            self.report(node, format!("'{}' is not a message type", result.declared_name()));
            result = Type::Error;
        }
        for field in fields {
            self.check(field.value);
            let expected = self.field_of(&message, &field.key).unwrap_or_else(|text| {
                self.issues.add(self.source, field.offset, text);
                Type::Error
            });
            let mut found = self.type_of(field.value).clone();
            if field.optional {
                let inner = unwrap_optional(&found).cloned();
                match inner {
                    Some(inner) => found = inner,
                    None if is_dynamic(&found) => {}
                    None => self.mismatch(field.value, &Type::optional(found.clone()), &found),
                }
            }
            // In cel-go, the field exists but does not have a type.
            if self.declarations.is_unknown_in_operation(&message, &field.key) && !is_dynamic(&found) {
                let text =
                    format!("expected type of field '{}' is '' but provided type is '{found}'", field.key);
                self.issues.add(self.source, field.offset, text);
            } else if !self.substitutions.fits(&expected, &found) {
                let text = format!(
                    "expected type of field '{}' is '{expected}' but provided type is '{found}'",
                    field.key
                );
                self.issues.add(self.source, field.offset, text);
            }
        }
        result
    }
}
