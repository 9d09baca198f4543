//! Reads response bodies and decompresses them if necessary.

use std::io::{self, Read as _};

use bytes::Bytes;
use flate2::bufread::MultiGzDecoder;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use kubernetes_admission::caller::CallError;
use kubernetes_types::budget::Reservation;
use kubernetes_types::status::Unsupported;

use super::MAX_REPLY;
use super::failure::{self, reading_failed};
use super::http_client::Response;

/// The maximum initial capacity, in bytes, of the buffer for a body with a known length.
const FIRST_BYTES: usize = 64 << 10;
/// The maximum number of bytes to decompress before the memory budget is checked again.
const STEP: u64 = 1 << 20;
/// The first bytes of data that is compressed with gzip.
const MAGIC: &[u8] = &[0x1f, 0x8b, 8];

/// Reads and decompresses the body. Memory is reserved as the body arrives.
///
/// Rule: HTTP-25.
pub(super) async fn read(
    mut response: Response,
    share: &mut Option<Reservation>,
) -> Result<Bytes, CallError> {
    let status = response.head.status;
    let is_compressed = is_gzip(&response.head.headers);
    // The server can announce any length.
    let announced = response.body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(FIRST_BYTES));
    while let Some(frame) = response.body.frame().await {
        let frame = frame.map_err(|error| reading_failed(status, &failure::body(&error)))?;
        let Ok(chunk) = frame.into_data() else { continue };
        check(body.len() + chunk.len(), 0, share)?;
        body.extend_from_slice(&chunk);
        if is_compressed && !body.iter().zip(MAGIC).all(|(byte, expected)| byte == expected) {
            return Err(reading_failed(status, "gzip: invalid header"));
        }
    }
    response.finish();
    // An empty body is not gzip data, so it is not decompressed.
    if is_compressed && !body.is_empty() { decompressed(status, &body, share) } else { Ok(body.into()) }
}

fn decompressed(
    status: StatusCode,
    body: &[u8],
    share: &mut Option<Reservation>,
) -> Result<Bytes, CallError> {
    let mut decoder = MultiGzDecoder::new(body);
    let mut text = Vec::new();
    loop {
        let read = (&mut decoder).take(STEP).read_to_end(&mut text);
        let step = read.map_err(|error| reading_failed(status, &not_gzip(&error)))?;
        check(text.len(), body.len(), share)?;
        if step == 0 {
            return Ok(text.into());
        }
    }
}

/// Reserves memory for a body of this `length`, in addition to `beside` bytes for its compressed form.
fn check(length: usize, beside: usize, share: &mut Option<Reservation>) -> Result<(), CallError> {
    if length > MAX_REPLY {
        let what = format!("responses of webhooks with more than {} MiB", MAX_REPLY >> 20);
        return Err(Unsupported { what }.into());
    }
    match share {
        // A growing buffer takes up to twice its length.
        Some(share) => Ok(share.resize(2 * length + beside)?),
        None => Ok(()),
    }
}

fn is_gzip(headers: &HeaderMap) -> bool {
    let names = [header::CONTENT_ENCODING, header::TRANSFER_ENCODING];
    let is_named = names.iter().any(|name| headers.get_all(name).iter().any(|value| value == "gzip"));
    is_named && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length != "0")
}

/// Returns Go's error for a body that is not valid gzip data.
fn not_gzip(error: &io::Error) -> String {
    let text = error.to_string();
    let known = match text.as_str() {
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "unexpected EOF",
        text if text.contains("checksum") => "CRC computed does not match",
        text if text.contains("gzip") => "gzip: invalid header",
        "corrupt deflate stream" => "deflate decompression error",
        _ => return text,
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn compressed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(text: &[u8]) -> Result<Bytes, String> {
        decompressed(StatusCode::OK, text, &mut None).map_err(|error| error.to_string())
    }

    #[test]
    fn invalid_gzip_is_reported() {
        let failed = |why: &str| Err(reading_failed(StatusCode::OK, why).to_string());
        assert_eq!(read(&compressed(b"{}")), Ok("{}".into()));
        assert_eq!(read(&[compressed(b"{"), compressed(b"}")].concat()), Ok("{}".into()));
        assert_eq!(read(b"{} and more than a header"), failed("gzip: invalid header"));
        let text = compressed(b"{}");
        for end in 1..text.len() {
            assert_eq!(read(&text[..end]), failed("unexpected EOF"), "{end}");
        }
        let mut text = compressed(b"{}");
        let checksum = text.len() - 8;
        text[checksum] ^= 1;
        assert_eq!(read(&text), failed("CRC computed does not match"));
    }

    #[test]
    fn a_decompression_bomb_is_rejected() {
        let error = read(&compressed(&vec![0; MAX_REPLY + 1])).err();
        assert_eq!(error.as_deref(), Some("unsupported: responses of webhooks with more than 32 MiB"));
    }
}
