//! Validates the names of pools, attributes, and capacities.

use kubernetes_types::names;
use kubernetes_types::quoting::quote;
use kubernetes_types::status::FieldError;

use crate::kinds::common::fields::{Errors, Path};
use crate::kinds::common::formats;

const POOL_NAME_MAX_LENGTH: usize = 253;

const DEVICE_MAX_ID_LENGTH: usize = 32;

const DEVICE_MAX_DOMAIN_LENGTH: usize = 63;

const INVALID_C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric \
                     characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is \
                     '[A-Za-z_][A-Za-z0-9_]*')";

/// Validates the name of a pool.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validatePoolName`.
pub(crate) fn pool(errors: &mut Errors, path: &Path<'_>, name: &str) {
    if name.is_empty() {
        errors.required(path, "");
        return;
    }
    if name.len() > POOL_NAME_MAX_LENGTH {
        errors.too_long(path, POOL_NAME_MAX_LENGTH);
    }
    for part in name.split('/') {
        formats::dns_subdomain(errors, path, part);
    }
}

/// Validates the name of a pool as upstream's generated validation does.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `ResourcePoolName`.
pub(crate) fn pool_by_type(errors: &mut Errors, path: &Path<'_>, name: &str) {
    if name.is_empty() {
        errors.required_by_type(path);
        return;
    }
    if name.len() > POOL_NAME_MAX_LENGTH {
        errors.generated(FieldError::too_long(path.to_string(), POOL_NAME_MAX_LENGTH));
    }
    for (index, part) in name.split('/').enumerate() {
        if part.is_empty() {
            errors.invalid_by_type(path, &quote(name), format!("segment {index}: must not be empty"));
            continue;
        }
        for why in names::dns1123_subdomain(part) {
            errors.invalid_by_type(
                path,
                &quote(part),
                format!("segment {index}: {}", formats::in_bytes(&why)),
            );
        }
    }
}

/// Validates the name of an attribute or a capacity. The name may be qualified with a domain.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateQualifiedName`.
pub(crate) fn qualified(errors: &mut Errors, path: &Path<'_>, name: &str) {
    match name.split('/').collect::<Vec<&str>>().as_slice() {
        [id] => identifier(errors, path, id),
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid_text(path, "", "the domain must not be empty");
            } else {
                formats::driver_name(errors, path, domain);
            }
            if id.is_empty() {
                errors.invalid_text(path, "", "the name must not be empty");
            } else {
                identifier(errors, path, id);
            }
        }
        _ => {}
    }
}

/// Validates a C identifier.
///
/// Source: kubernetes pkg/apis/resource/validation/validation.go, `validateCIdentifier`.
fn identifier(errors: &mut Errors, path: &Path<'_>, id: &str) {
    if id.len() > DEVICE_MAX_ID_LENGTH {
        errors.too_long(path, DEVICE_MAX_ID_LENGTH);
    }
    if !is_identifier(id) {
        errors.invalid_text(path, id, INVALID_C_IDENTIFIER);
    }
}

fn is_identifier(id: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    id.bytes().next().is_some_and(|first| is_word(first) && !first.is_ascii_digit())
        && id.bytes().all(is_word)
}

/// Validates a qualified attribute name as upstream's generated validation does.
///
/// Source: apimachinery pkg/api/validate/strfmt.go, `ResourceFullyQualifiedName`.
pub(crate) fn full_by_type(errors: &mut Errors, path: &Path<'_>, name: &str) {
    let of_id = |errors: &mut Errors, id: &str| {
        if id.len() > DEVICE_MAX_ID_LENGTH {
            errors.generated(FieldError::too_long(path.to_string(), DEVICE_MAX_ID_LENGTH));
        }
        if !is_identifier(id) {
            errors.invalid_by_type(path, &quote(id), INVALID_C_IDENTIFIER);
        }
    };
    match name.split('/').collect::<Vec<&str>>().as_slice() {
        [id] => {
            of_id(errors, id);
            let why = "a fully qualified name must be a domain and a name separated by a slash";
            errors.invalid_by_type(path, &quote(name), why);
        }
        [domain, id] => {
            if domain.is_empty() {
                errors.invalid_by_type(path, "\"\"", "prefix must not be empty");
            } else {
                if domain.len() > DEVICE_MAX_DOMAIN_LENGTH {
                    errors.generated(FieldError::too_long(path.to_string(), DEVICE_MAX_DOMAIN_LENGTH));
                }
                for why in names::dns1123_subdomain(domain) {
                    errors.invalid_by_type(
                        path,
                        &quote(domain),
                        format!("prefix: {}", formats::in_bytes(&why)),
                    );
                }
            }
            if id.is_empty() {
                errors.invalid_by_type(path, "\"\"", "name must not be empty");
            } else {
                of_id(errors, id);
            }
        }
        _ => {}
    }
}
