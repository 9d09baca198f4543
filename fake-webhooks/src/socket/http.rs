//! Serves HTTP over the connections of a listener.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::response::Response;
use futures::FutureExt as _;
use http::header::{CONNECTION, HeaderValue};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::extensions::{CallPermit, CloseConnection};
use super::slots::Activity;
use crate::{ByteScript, End};

/// The timeout for request headers and idle connections.
const HEADER_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum size of request headers and of the read buffer of an HTTP/1.1 connection, in bytes.
const HEAD_BYTES: u32 = 64 << 10;
const STREAMS_PER_CONNECTION: u32 = 100;

/// The raw bytes to write for a call, and the permit for the call. It is held until the bytes are written.
type RawWrite = (ByteScript, Option<CallPermit>);

/// The parameters of HTTP connections: the router, and the signal that stops the connections.
#[derive(Clone)]
pub(crate) struct Http {
    pub(crate) router: Router,
    pub(crate) stop: CancellationToken,
}

impl Http {
    /// Serves HTTP/1.1. A call can take over the connection to write raw bytes.
    pub(crate) async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send>(
        self,
        stream: S,
        activity: &Arc<Activity>,
    ) {
        let taken: Arc<Mutex<Option<RawWrite>>> = Arc::default();
        let (router, take, calls) = (self.router, Arc::clone(&taken), Arc::clone(activity));
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (router, take, calls) = (router.clone(), Arc::clone(&take), Arc::clone(&calls));
            let answer = async move {
                let _call = calls.begin();
                let mut response = router.oneshot(request).await.map_err(never)?;
                if let Some(script) = response.extensions_mut().remove::<ByteScript>() {
                    let permit = response.extensions_mut().remove::<CallPermit>();
                    *take.lock().unwrap_or_else(PoisonError::into_inner) = Some((script, permit));
                    return Err(Closed);
                }
                unless_closed(response)
            };
            answer.boxed()
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(HEAD_BYTES as usize);
        let mut connection = builder.serve_connection(TokioIo::new(stream), service);
        let ended = tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(ended),
            () = self.stop.cancelled() => None,
        };
        let ended = if let Some(ended) = ended {
            ended
        } else {
            Pin::new(&mut connection).graceful_shutdown();
            poll_fn(|cx| connection.poll_without_shutdown(cx)).await
        };
        let mut stream = connection.into_parts().io.into_inner();
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The caller sees how the connection ends.
        let _: io::Result<()> = match (taken, ended) {
            (Some((script, _permit)), _) => {
                let _call = activity.begin();
                tokio::select! {
                    written = write(&mut stream, script) => written,
                    () = self.stop.cancelled() => Ok(()),
                }
            }
            (None, Ok(())) => stream.shutdown().await,
            (None, Err(_)) => Ok(()),
        };
    }

    /// Serves HTTP/2. After a response with `Connection: close`, the server sends GOAWAY.
    pub(crate) async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        self,
        stream: S,
        activity: &Arc<Activity>,
    ) {
        let last = Arc::new(Notify::new());
        let (router, tell, calls) = (self.router, Arc::clone(&last), Arc::clone(activity));
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (router, tell, calls) = (router.clone(), Arc::clone(&tell), Arc::clone(&calls));
            async move {
                let _call = calls.begin();
                let mut response = router.oneshot(request).await.map_err(never)?;
                if response.extensions().get::<ByteScript>().is_some() {
                    return Err(Closed);
                }
                if response
                    .headers()
                    .get(CONNECTION)
                    .is_some_and(|value| value == HeaderValue::from_static("close"))
                {
                    response.headers_mut().remove(CONNECTION);
                    tell.notify_one();
                }
                unless_closed(response)
            }
        });
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_header_list_size(HEAD_BYTES);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.stop.cancelled() => {}
            () = last.notified() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

/// Writes the bytes, then ends the connection as the script specifies.
async fn write<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, script: ByteScript) -> io::Result<()> {
    stream.write_all(&script.head).await?;
    stream.flush().await?;
    match script.every {
        None => stream.write_all(&script.bytes).await?,
        Some(time) => {
            for byte in &script.bytes {
                stream.write_u8(*byte).await?;
                stream.flush().await?;
                tokio::time::sleep(time).await;
            }
        }
    }
    stream.flush().await?;
    match script.then {
        End::Close => stream.shutdown().await,
        // No TLS close_notify.
        End::Cut => Ok(()),
        End::Hang => {
            let mut ignored = [0; 1024];
            while stream.read(&mut ignored).await? > 0 {}
            Ok(())
        }
    }
}

/// Returns an error if the response must not be sent. The error makes hyper close the connection.
fn unless_closed(response: Response) -> Result<Response, Closed> {
    match response.extensions().get::<CloseConnection>() {
        Some(CloseConnection) => Err(Closed),
        None => Ok(response),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("closed on purpose")]
struct Closed;

fn never(error: Infallible) -> Closed {
    match error {}
}
