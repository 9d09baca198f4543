//! Describes a built-in kind: what the server does with its objects.

use std::fmt;
use std::sync::Arc;

use kubernetes_admission::attributes::UserInfo;
use kubernetes_types::names;
use kubernetes_types::schema::Type;
use kubernetes_types::status::{FieldError, Status};
use serde_json::Value;

use crate::kinds::common::cells::Cells;
use crate::kinds::common::change::Change;
use crate::kinds::common::fields::Errors;
use crate::kinds::common::warnings::Warnings;

/// The path of a field: its name and the names of the fields above it.
pub(crate) type FieldPath = &'static [&'static str];

/// A function for writes of one subresource.
pub(crate) type OnSubresource<F> = &'static [(&'static str, F)];

/// A function that converts an object into an existing internal object.
pub(crate) type IntoInternal = fn(&mut Value, &Value);

/// A function that returns the name of the default object of a list.
pub(crate) type DefaultInList = fn(&[Arc<Value>]) -> String;

/// A function that rejects admin access to devices.
pub(crate) type AdminAccess =
    fn(&Value, Option<&Value>, &str, &dyn Fn(&str) -> Option<Arc<Value>>) -> Option<FieldError>;

/// The behavior of a built-in kind. Each kind has a constant that lists what differs from [`Kind::PLAIN`].
///
/// Source: `strategy.go` and `storage.go` in kubernetes `pkg/registry/GROUP/KIND`.
#[expect(clippy::struct_excessive_bools, reason = "upstream's strategies have these methods")]
#[expect(clippy::struct_field_names, reason = "the name of a kind is its kind in the API")]
pub(crate) struct Kind {
    pub(crate) group: &'static str,
    /// The name of the resource in URLs; empty for a kind that only a subresource has.
    pub(crate) resource: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) versions: &'static [&'static str],

    /// Sets the defaults of the kind's version; `None` if the kind does not have defaults.
    pub(crate) set_defaults: Option<fn(&mut Value)>,
    /// Converts an object to the internal type and back; `None` if that does not change it.
    pub(crate) through_internal: Option<fn(&mut Value)>,
    /// Converts an object into an existing internal object, for versions of which the internal object preserves fields.
    pub(crate) into_internal: Option<(&'static str, IntoInternal)>,

    /// Returns the reasons why the name of an object is invalid.
    pub(crate) validate_name: fn(&str, &Value) -> Vec<String>,
    /// Whether upstream validates the name only in its generated validation.
    pub(crate) has_name_by_type: bool,
    /// Whether finalizers without a domain must be standard Kubernetes finalizers.
    ///
    /// This is the case for kinds whose metadata upstream validates according to the rules of the core group.
    ///
    /// Source: kubernetes pkg/apis/core/validation/validation.go, `validateKubeFinalizerName`.
    /// Rule: VLO-25.
    pub(crate) has_core_finalizers: bool,

    /// Changes the annotations of a new object into fields. Returns the warnings.
    pub(crate) apply_annotations: fn(&mut Value) -> Vec<String>,
    /// Stores the user who creates an object in the object.
    pub(crate) set_requester: fn(&mut Value, &UserInfo),
    /// Sets what only the server sets in a new object.
    pub(crate) prepare_create: fn(&mut Value),
    /// Whether a new object keeps the status that the client sets.
    pub(crate) keeps_status: bool,
    /// Returns whether a new object without labels shares the labels of its template.
    pub(crate) shares_labels: fn(&Value) -> bool,
    /// Returns whether a field of a new object gets its default only when the object is read from the storage.
    pub(crate) lacks_late_default: fn(&Value) -> bool,
    /// Removes the fields of disabled feature gates.
    pub(crate) drop_disabled_fields: fn(&mut Value),

    /// Discards and completes changes in an update of the object.
    pub(crate) prepare_update: fn(&mut Value, &Value),
    /// Completes changes in an update of the status.
    pub(crate) prepare_status: fn(&mut Value, &Value),
    /// Discards the changes that an update of a subresource cannot make.
    pub(crate) prepare_subresources: OnSubresource<fn(&mut Value, &Value)>,
    /// Changes an updated object after its generation is set.
    pub(crate) finish_update: fn(&mut Value, &Value, Type),
    /// The metadata that an update of the status does not change.
    pub(crate) status_keeps: StatusKeeps,
    /// The fields whose ownership a write does not change, by subresource, if they differ from those of other kinds.
    ///
    /// Source: `GetResetFields` in kubernetes `pkg/registry/*/*/strategy.go`.
    pub(crate) reset_fields: OnSubresource<&'static [FieldPath]>,
    /// Whether new objects have the generation 1.
    pub(crate) starts_generation: bool,
    /// The changes that increment the generation.
    pub(crate) next_generation: Changes,
    /// Whether an update must contain a resource version: the inverse of `AllowUnconditionalUpdate`.
    pub(crate) requires_resource_version: bool,
    /// Whether an update creates a missing object: `AllowCreateOnUpdate`.
    pub(crate) is_created_by_update: bool,

    /// Validates an object except for its metadata.
    pub(crate) validate: fn(&mut Errors, &Value, Option<Change<'_>>),
    /// Validates an object in an update of a subresource.
    pub(crate) validate_subresources: OnSubresource<fn(&mut Errors, &Value, Change<'_>)>,
    /// Validates an object in an update of a subresource if it does not have other errors.
    pub(crate) validate_after: fn(&Value, &Value, &str) -> Vec<FieldError>,
    /// Whether the metadata of a new object is validated only if there are no other errors.
    ///
    /// Source: kubernetes pkg/apis/policy/validation/validation.go, `ValidatePodDisruptionBudget`, which leaves it to
    /// apiserver pkg/registry/rest/create.go, `ValidateCreate`; pkg/apis/core/validation/events.go, `ValidateEventCreate`.
    /// Rule: VLO-22.
    pub(crate) validates_metadata_last: bool,
    /// Changes a valid object as its validation upstream does.
    pub(crate) canonicalize: fn(&mut Value) -> Result<(), Box<Status>>,

    /// Adds the warnings about an object.
    ///
    /// Source: `WarningsOnCreate` and `WarningsOnUpdate` in kubernetes `pkg/registry/*/*/strategy.go`.
    /// Rule: VLO-26, VLO-27, VLO-28.
    pub(crate) warn: fn(&mut Warnings, &Value, Option<&Value>),
    /// Adds the warnings about an update of the status.
    pub(crate) warn_status: fn(&mut Warnings, &Value),

    /// Whether a DELETE returns the deleted object instead of a Status.
    ///
    /// Source: `ReturnDeletedObject` in kubernetes `pkg/registry/*/*/storage/storage.go`.
    pub(crate) returns_deleted_object: bool,
    /// Rejects admin access that the namespace does not allow. The arguments are the object, the old object, the
    /// subresource, and a function that returns a namespace.
    pub(crate) admin_access: AdminAccess,
    /// Returns the reason why the object with this name cannot be deleted.
    pub(crate) forbids_deletion: fn(&str) -> Option<&'static str>,
    /// The warning for a DELETE without a propagation policy.
    pub(crate) deletion_warning: Option<&'static str>,
    /// Whether a DELETE orphans the dependents by default.
    pub(crate) orphans_dependents: bool,
    /// Whether a DELETE ignores the propagation policy.
    pub(crate) ignores_propagation_policy: bool,
    /// Returns the grace period for a DELETE with these options, in seconds; `None` if the DELETE has no effect.
    pub(crate) grace_period: Option<fn(&Value, &Value) -> Option<i64>>,
    /// Returns the effect of a DELETE with these options, for a kind with a deletion of its own.
    ///
    /// The last argument is false for the deletion of a collection.
    pub(crate) delete: fn(&Value, &Value, bool) -> Option<DeleteEffect>,
    /// Returns whether an object without finalizers in its metadata is kept.
    pub(crate) waits_for_controllers: fn(&Value) -> bool,
    /// The message for a failed precondition of a kind that checks preconditions itself.
    ///
    /// The second message is for the deletion of a collection.
    pub(crate) failed_precondition: [Option<&'static str>; 2],
    /// Whether admission receives the UID as a precondition: of a DELETE by name and of a collection.
    pub(crate) has_uid_precondition: [bool; 2],
    /// Changes an empty object into what the server encodes from an empty internal object.
    pub(crate) fill_empty: fn(&mut Value),

    /// Returns the cells of a table row; `None` if the kind has only the default columns or no Table.
    ///
    /// Source: kubernetes pkg/printers/internalversion/printers.go, `AddHandlers`.
    /// Rule: TBL-06.
    pub(crate) cells: Option<Cells>,
    /// Whether the kind has only the default columns.
    pub(crate) has_default_columns: bool,
    /// Returns the columns, if they are not in `columns.json`.
    pub(crate) columns: Option<fn() -> &'static Value>,
    /// Returns the name of the default object of a list.
    pub(crate) default_in_list: Option<DefaultInList>,
    /// Returns the conditions of a table row.
    pub(crate) row_conditions: fn(&Value) -> Option<Value>,
    /// Whether the `status` subresource has a Table.
    pub(crate) has_status_table: bool,
    /// The annotations that are fields of the internal type.
    pub(crate) internal_annotations: &'static [(&'static str, &'static [&'static str])],

    /// The fields that a field selector can select; `None` if only the name and the namespace can be selected.
    ///
    /// Source: kubernetes pkg/apis/{core,batch,certificates,events,resource}/v1/conversion.go,
    /// `AddFieldLabelConversionFunc`.
    pub(crate) selectable_fields: Option<&'static [&'static str]>,
    /// Returns the path of a selectable field in stored objects, if it differs.
    pub(crate) stored_field: fn(&str) -> Option<String>,

    /// Whether the objects are webhook configurations.
    pub(crate) is_webhook_configuration: bool,
    /// Whether the objects define custom resources.
    pub(crate) is_definition: bool,
}

/// The effect of a DELETE on an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DeleteEffect {
    /// The object is already being deleted, and this DELETE does not shorten its grace period. Admission does not run.
    Pending,
    /// The DELETE marks the object as being deleted or removes it.
    Changed {
        object: Value,
        /// Whether the object is removed immediately because it has neither finalizers nor a grace period.
        gone: bool,
    },
}

/// The metadata that an update of the status does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatusKeeps {
    Fields(&'static [&'static str]),
    /// Labels, annotations, finalizers, and owner references.
    ///
    /// Source: `ResetObjectMetaForStatus` in kubernetes `pkg/registry/*/*/strategy.go`.
    Metadata,
    /// All metadata, including the UID.
    ///
    /// Source: `PrepareForUpdate` in kubernetes `pkg/registry/flowcontrol/*/strategy.go`.
    AllMetadata,
}

/// The changes that increment the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changes {
    /// A semantic change of one of these fields.
    Of(&'static [FieldPath]),
    /// A semantic change of any field except metadata and status, or of these fields of the metadata.
    OfIntentOr(&'static [FieldPath]),
    /// A change of any field except metadata and status. An empty list or map differs from an absent one.
    ///
    /// Source: `reflect.DeepEqual` in `PrepareForUpdate` in kubernetes
    /// `pkg/registry/admissionregistration/*webhookconfiguration/strategy.go` and
    /// pkg/registry/networking/networkpolicy/strategy.go.
    OfIntentOrEmptyFields,
}

impl Kind {
    /// A kind whose objects are stored as clients send them.
    pub(crate) const PLAIN: Self = Self {
        group: "",
        resource: "",
        kind: "",
        versions: &["v1"],
        set_defaults: None,
        through_internal: None,
        into_internal: None,
        validate_name: |name, _| names::dns1123_subdomain(name),
        has_name_by_type: false,
        has_core_finalizers: true,
        apply_annotations: |_| Vec::new(),
        set_requester: |_, _| {},
        prepare_create: |_| {},
        keeps_status: false,
        shares_labels: |_| false,
        lacks_late_default: |_| false,
        drop_disabled_fields: |_| {},
        prepare_update: |_, _| {},
        prepare_status: |_, _| {},
        prepare_subresources: &[],
        finish_update: |_, _, _| {},
        status_keeps: StatusKeeps::Fields(&[]),
        reset_fields: &[],
        starts_generation: false,
        next_generation: Changes::Of(&[]),
        requires_resource_version: false,
        is_created_by_update: false,
        validate: |_, _, _| {},
        validate_subresources: &[],
        validate_after: |_, _, _| Vec::new(),
        validates_metadata_last: false,
        canonicalize: |_| Ok(()),
        warn: |_, _, _| {},
        warn_status: |_, _| {},
        returns_deleted_object: false,
        admin_access: |_, _, _, _| None,
        forbids_deletion: |_| None,
        deletion_warning: None,
        orphans_dependents: false,
        ignores_propagation_policy: false,
        grace_period: None,
        delete: |_, _, _| None,
        waits_for_controllers: |_| false,
        failed_precondition: [None, None],
        has_uid_precondition: [false, false],
        fill_empty: |_| {},
        cells: None,
        has_default_columns: false,
        columns: None,
        default_in_list: None,
        row_conditions: |_| None,
        has_status_table: true,
        internal_annotations: &[],
        selectable_fields: None,
        stored_field: |_| None,
        is_webhook_configuration: false,
        is_definition: false,
    };

    /// A kind whose generation counts the changes of its intent: of all fields except metadata and status.
    pub(crate) const COUNTED: Self =
        Self { starts_generation: true, next_generation: Changes::OfIntentOr(&[]), ..Self::PLAIN };

    /// A custom resource.
    pub(crate) const CUSTOM: Self = Self { has_core_finalizers: false, ..Self::PLAIN };

    /// Returns what the kind does for a subresource.
    pub(crate) fn on<F: Copy>(functions: OnSubresource<F>, subresource: &str) -> Option<F> {
        functions.iter().find(|(name, _)| *name == subresource).map(|(_, function)| *function)
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kind({}.{})", self.resource, self.group)
    }
}
