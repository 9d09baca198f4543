//! Represents a field of a configuration, with its path for error messages.

use serde_json::Value;

static ABSENT: Value = Value::Null;

/// A field's path and value; the value is null if the field is missing.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    path: String,
    value: &'a Value,
}

/// An error in a field: the path of the field, and a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InvalidField {
    pub(super) field: String,
    pub(super) what: String,
}

impl<'a> Field<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { path: String::new(), value }
    }

    pub(super) fn child(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { path, value: self.value.get(name).unwrap_or(&ABSENT) }
    }

    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    pub(super) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    pub(super) fn wrong(&self, what: impl Into<String>) -> InvalidField {
        InvalidField { field: self.path.clone(), what: what.into() }
    }

    pub(super) fn object(self) -> Result<Self, InvalidField> {
        if self.value.is_object() { Ok(self) } else { Err(self.wrong(self.expected("an object"))) }
    }

    /// Returns the elements of a list; empty if the field is missing.
    pub(super) fn items(&self) -> Result<Vec<Self>, InvalidField> {
        let values = self.optional("a list", Value::as_array)?.map_or(&[][..], Vec::as_slice);
        let item = |(index, value)| Self { path: format!("{}[{index}]", self.path), value };
        Ok(values.iter().enumerate().map(item).collect())
    }

    /// Returns the elements of a list that must not be empty.
    pub(super) fn non_empty_items(&self) -> Result<Vec<Self>, InvalidField> {
        let items = self.items()?;
        if items.is_empty() { Err(self.wrong("must have at least one element")) } else { Ok(items) }
    }

    pub(super) fn text(&self) -> Result<Option<&'a str>, InvalidField> {
        self.optional("a string", Value::as_str)
    }

    /// Returns a string that must not be missing or empty.
    pub(super) fn non_empty_text(&self) -> Result<&'a str, InvalidField> {
        self.text()?.filter(|text| !text.is_empty()).ok_or_else(|| self.wrong("is required"))
    }

    pub(super) fn integer(&self) -> Result<Option<i64>, InvalidField> {
        self.optional("an integer", Value::as_i64)
    }

    /// Returns the value that `words` assigns to the field's string; `None` if the field is missing.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<Option<T>, InvalidField> {
        let Some(text) = self.text()? else {
            return Ok(None);
        };
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
        found.map(Some).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.wrong(format!("must be one of {}, found \"{text}\"", known.join(", ")))
        })
    }

    fn optional<T>(
        &self,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, InvalidField> {
        if self.is_absent() {
            return Ok(None);
        }
        read(self.value).map(Some).ok_or_else(|| self.wrong(self.expected(expected)))
    }

    fn expected(&self, expected: &str) -> String {
        let found = match self.value {
            Value::Null => return "is required".to_owned(),
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        format!("must be {expected}, found {found}")
    }
}
