//! The versions of one kind, and conversions between them.

use std::rc::Rc;

use serde_json::Value;

use crate::go;
use crate::schema::{Schema, Type};
use crate::set::Set;
use crate::typed::{Duplicates, field_set, remove_items, validate};

/// Provides the types of a kind in each version, and converts between versions. The caller implements this trait.
pub trait Versions {
    /// A reference to a type of the kind.
    type Schema: Schema;

    /// Returns the type of the kind in `api_version`, such as `apps/v1`, or `None` if the version does not exist.
    ///
    /// Fields that managers own in a missing version are dropped, unless [`Self::convert`] fails for that version.
    fn root(&self, api_version: &str) -> Option<Type<Self::Schema>>;

    /// Converts `object` to another version.
    ///
    /// # Errors
    /// Returns a [`ConversionError`] if the object cannot be converted.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConversionError>;

    /// Returns the zero value of the kind as Go encodes it, with `apiVersion` and `kind`.
    ///
    /// Managers of a new object do not own the fields of the zero value.
    fn empty(&self, api_version: &str) -> Value;
}

/// The reason why an object cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(clippy::exhaustive_enums, reason = "one of them is no failure of the request")]
pub enum ConversionError {
    /// The version does not exist or no longer exists; fields owned in that version are dropped.
    #[error("{0}")]
    UnknownVersion(String),
    /// The conversion failed, so the request fails, too.
    #[error("{0}")]
    Failed(String),
}

/// An object in one of its versions.
#[derive(Clone, Debug)]
pub(crate) struct Versioned<T> {
    pub(crate) object: Rc<Value>,
    pub(crate) api_version: Rc<str>,
    pub(crate) of: Type<T>,
}

impl<T: Schema> Versioned<T> {
    /// Returns `object` with the version and type of this object.
    pub(crate) fn with(&self, object: Value) -> Self {
        Self { object: Rc::new(object), ..self.clone() }
    }
}

impl<T: Schema> Versioned<T> {
    /// Wraps an object that is in the version `api_version`; fails if that version does not exist.
    pub(crate) fn new(
        versions: &impl Versions<Schema = T>,
        object: Rc<Value>,
        api_version: &str,
    ) -> Result<Self, ConversionError> {
        let of = root(versions, api_version)?;
        Ok(Self { object, api_version: api_version.into(), of })
    }

    /// Converts the object to another version.
    ///
    /// Source: apimachinery pkg/util/managedfields/internal/versionconverter.go, `Convert`; pkg/runtime/scheme.go,
    /// `ObjectKinds`.
    pub(crate) fn convert(
        &self,
        versions: &impl Versions<Schema = T>,
        api_version: &str,
    ) -> Result<Self, ConversionError> {
        if api_version.matches('/').count() > 1 {
            return Err(failed(&format!("unexpected GroupVersion string: {api_version}")));
        }
        // The `apiVersion` can be missing: if a manager claims to own the field, an apply can remove it.
        let Some(members) = self.object.as_object() else {
            let of = go::type_name(&self.object);
            return Err(failed(&format!("failed to convert value to unstructured for type {of}")));
        };
        let text = |name: &str| members.get(name).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") == api_version {
            return Ok(self.clone());
        }
        if text("kind").is_empty() {
            return Err(failed("Object 'Kind' is missing in 'unstructured object has no kind'"));
        }
        if text("apiVersion").is_empty() {
            return Err(failed("Object 'apiVersion' is missing in 'unstructured object has no version'"));
        }
        let object = versions.convert(&self.object, api_version)?;
        let of = root(versions, api_version)?;
        validate(&object, of, Duplicates::Refused)
            .map_err(|errors| ConversionError::Failed(errors.to_string()))?;
        Ok(Self { object: Rc::new(object), api_version: api_version.into(), of })
    }

    /// Returns the fields of the object.
    pub(crate) fn field_set(&self) -> Set {
        field_set(&self.object, self.of)
    }

    /// Returns the object without `fields`.
    pub(crate) fn without(&self, fields: &Set) -> Self {
        self.with(remove_items(self.object.as_ref().clone(), fields, self.of))
    }

    /// Returns `fields`, and the declared struct fields that contain them.
    pub(crate) fn with_named_fields(&self, fields: &Set) -> Set {
        fields.with_named_fields(Some(self.of))
    }
}

fn failed(message: &str) -> ConversionError {
    ConversionError::Failed(message.to_owned())
}

fn root<V: Versions>(versions: &V, api_version: &str) -> Result<Type<V::Schema>, ConversionError> {
    let unknown = || ConversionError::UnknownVersion(format!("no corresponding type for {api_version}"));
    versions.root(api_version).ok_or_else(unknown)
}
