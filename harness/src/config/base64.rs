//! Base64 as Go's `encoding/json` reads it.

use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{DecodeError, Engine as _};

/// Padded, whatever the bits that the padding cuts off.
const GO: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The bytes of `text`, which may be broken into lines.
///
/// Source: Go encoding/base64/base64.go, `Decode`.
///
/// # Errors
/// Go's text, with the place.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let joined = text.replace(['\r', '\n'], "");
    GO.decode(&joined).map_err(|error| {
        let offset = match error {
            DecodeError::InvalidByte(offset, _) | DecodeError::InvalidLastSymbol(offset, _) => offset,
            DecodeError::InvalidLength(_) | DecodeError::InvalidPadding => joined.len() / 4 * 4,
        };
        let breaks = |character: &char| !matches!(character, '\r' | '\n');
        let place = text.char_indices().filter(|(_, character)| breaks(character)).nth(offset);
        format!("illegal base64 data at input byte {}", place.map_or(text.len(), |(place, _)| place))
    })
}
