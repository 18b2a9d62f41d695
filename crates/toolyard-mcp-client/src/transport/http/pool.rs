//! Connections for plain HTTP/1.1 to one server. The task that awaits a response does the I/O itself, without messages to
//! another task.

use std::{
    fmt, io,
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::BytesMut;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpStream, lookup_host},
    time::{Instant, sleep, timeout},
};
use url::{Host, Url};

use crate::{
    sanitize::sanitize_line,
    transport::{
        error::TransportError,
        http::http1::{
            BodyFraming, DecodeStep, HeadProgress, Http1Error, ResponseHead, encode_head, parse_head,
        },
    },
};

pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Node and uvicorn close a connection after 5 s without a request; reusing it at that moment fails a call.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The bytes of one read: at first, and after a read that filled the buffer. An idle connection keeps at most the smaller
/// buffer.
const READ_BYTES: usize = 8 << 10;
const LARGE_READ_BYTES: usize = 64 << 10;
/// A body up to this size is written together with its head.
const MAX_COMBINED_WRITE_BYTES: usize = 32 << 10;
/// How long one address of a host is tried before the next one is tried as well.
const NEXT_ADDRESS_DELAY: Duration = Duration::from_millis(300);
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// How long a stream may take to end after the response it was read for. Then its connection can be reused.
pub(super) const STREAM_END_GRACE: Duration = Duration::from_millis(200);
/// How much a stream may send after that response.
pub(super) const MAX_TRAILING_BYTES: usize = 64 << 10;

#[derive(Default)]
pub(super) struct ConnectionPool {
    idle: Mutex<IdleConnections>,
}

#[derive(Default)]
struct IdleConnections {
    /// The last one is reused first.
    connections: Vec<IdleConnection>,
    /// Whether a task closes them when they are too old.
    has_sweeper: bool,
}

struct IdleConnection {
    connection: HttpConnection,
    /// The rest of the previous body, if its reader did not wait for the end.
    rest: Option<BodyFraming>,
    since: Instant,
}

pub(super) struct PooledResponse {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: PooledBody,
}

struct PooledBody {
    framing: BodyFraming,
    /// Bytes at the front of the buffer that the reader borrowed.
    borrowed: usize,
    /// None after the end of the body or an error.
    connection: Option<HttpConnection>,
    is_reusable: bool,
    pool: Weak<ConnectionPool>,
}

struct HttpConnection {
    stream: TcpStream,
    /// Received bytes that are not consumed yet.
    buffer: BytesMut,
    read_bytes: usize,
}

impl ConnectionPool {
    /// Sends one request and waits for the head of its response. The request is never sent twice: if it is unknown whether
    /// the server got it, that is an error.
    pub(super) async fn send(
        self: &Arc<Self>,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<PooledResponse, TransportError> {
        let mut head = encode_head(method, url, headers, body.map(<[u8]>::len));
        let mut rest = body.unwrap_or_default();
        if rest.len() <= MAX_COMBINED_WRITE_BYTES {
            head.extend_from_slice(rest);
            rest = &[];
        }
        let mut write_progress = WriteProgress::Nothing;
        let mut connection = self.take();
        if let Some(connection) = &mut connection {
            write_progress = connection.write(&head, rest).await;
        }
        // If the idle connection took no byte at all, the request can be sent on a new one.
        let mut connection = match (connection, write_progress) {
            (Some(connection), WriteProgress::Part | WriteProgress::All) => connection,
            _ => {
                let mut new_connection = connect(url).await?;
                write_progress = new_connection.write(&head, rest).await;
                new_connection
            }
        };
        let ResponseHead { status, headers, body, is_reusable } =
            connection.read_head().await.map_err(|error| connection_lost(&error))?;
        let body = PooledBody {
            framing: body,
            borrowed: 0,
            connection: Some(connection),
            is_reusable: is_reusable && write_progress == WriteProgress::All,
            pool: Arc::downgrade(self),
        };
        Ok(PooledResponse { status, headers, body })
    }

    fn take(&self) -> Option<HttpConnection> {
        let (mut draining, now) = (Vec::new(), Instant::now());
        let mut idle = self.idle.lock();
        let found = loop {
            let Some(mut idle_connection) = idle.connections.pop() else { break None };
            match idle_connection.state(now) {
                IdleConnectionState::Ready => break Some(idle_connection.connection),
                IdleConnectionState::Draining => draining.push(idle_connection),
                IdleConnectionState::Unusable => {}
            }
        };
        idle.connections.extend(draining.into_iter().rev());
        found
    }

    fn put(self: &Arc<Self>, connection: HttpConnection, rest: Option<BodyFraming>) {
        let mut idle = self.idle.lock();
        idle.connections.push(IdleConnection {
            connection: connection.shrunk(),
            rest,
            since: Instant::now(),
        });
        if !std::mem::replace(&mut idle.has_sweeper, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Closes connections that are idle for too long, until there are none.
async fn sweep(pool: Weak<ConnectionPool>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = pool.idle.lock();
        let now = Instant::now();
        idle.connections
            .retain_mut(|idle_connection| idle_connection.state(now) != IdleConnectionState::Unusable);
        if idle.connections.is_empty() {
            idle.connections.shrink_to_fit();
            idle.has_sweeper = false;
            return;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IdleConnectionState {
    Ready,
    /// The rest of the previous body has not arrived yet.
    Draining,
    Unusable,
}

impl IdleConnection {
    fn state(&mut self, now: Instant) -> IdleConnectionState {
        let age = now.saturating_duration_since(self.since);
        if age > IDLE_TIMEOUT {
            return IdleConnectionState::Unusable;
        }
        let Some(rest) = &mut self.rest else {
            // Anything that arrives now belongs to no request; usually it is the end of the connection.
            return self.quiet_state();
        };
        match self.connection.drain(rest) {
            Ok(true) => {
                self.rest = None;
                self.quiet_state()
            }
            Ok(false) if age <= STREAM_END_GRACE => IdleConnectionState::Draining,
            Ok(false) | Err(_) => IdleConnectionState::Unusable,
        }
    }

    fn quiet_state(&mut self) -> IdleConnectionState {
        if self.connection.is_quiet() { IdleConnectionState::Ready } else { IdleConnectionState::Unusable }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteProgress {
    Nothing,
    Part,
    All,
}

impl HttpConnection {
    /// Writes a request in two pieces, until it is sent or a response arrives early.
    async fn write(&mut self, head: &[u8], body: &[u8]) -> WriteProgress {
        let mut sent = 0;
        for piece in [head, body] {
            let mut left = piece;
            while !left.is_empty() {
                match self.stream.try_write(left) {
                    Ok(0) => return progress(sent),
                    Ok(bytes) => {
                        sent += bytes;
                        left = left.get(bytes..).unwrap_or_default();
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::select! {
                            biased;
                            ready = self.stream.writable() => if ready.is_err() { return progress(sent) },
                            // An early response to a partial request, or the end of the connection.
                            _ready = self.stream.readable(), if sent > 0 => return progress(sent),
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return progress(sent),
                }
            }
        }
        WriteProgress::All
    }

    async fn read_head(&mut self) -> Result<ResponseHead, ReadError> {
        let mut progress = HeadProgress::default();
        loop {
            if self.read().await? == 0 {
                return Err(Http1Error::Disconnected.into());
            }
            if let Some(head) = parse_head(&mut self.buffer, &mut progress)? {
                return Ok(head);
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.buffer.reserve(self.read_bytes);
        let bytes = self.stream.read_buf(&mut self.buffer).await?;
        if bytes >= self.read_bytes {
            self.read_bytes = LARGE_READ_BYTES;
        }
        Ok(bytes)
    }

    /// Frees the buffer that a large response needed.
    fn shrunk(mut self) -> Self {
        if self.buffer.is_empty() && self.buffer.capacity() > READ_BYTES {
            self.buffer = BytesMut::new();
        }
        self.read_bytes = READ_BYTES;
        self
    }

    /// Whether nothing has arrived, not even the end of the connection.
    fn is_quiet(&self) -> bool {
        let is_empty = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.buffer.is_empty() && self.stream.try_read(&mut [0]).is_err_and(is_empty)
    }

    /// Discards what has arrived of the rest of a body. Returns whether that was its end.
    fn drain(&mut self, rest: &mut BodyFraming) -> Result<bool, ReadError> {
        let mut skipped = 0;
        loop {
            match rest.step(&mut self.buffer)? {
                DecodeStep::End => return Ok(true),
                DecodeStep::Data(bytes) => {
                    skipped += bytes;
                    rest.consume(&mut self.buffer, bytes);
                }
                DecodeStep::NeedMore => {
                    self.buffer.reserve(READ_BYTES);
                    match self.stream.try_read_buf(&mut self.buffer) {
                        Ok(0) => return Err(Http1Error::Disconnected.into()),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            if skipped > MAX_TRAILING_BYTES {
                return Err(Http1Error::InvalidLength.into());
            }
        }
    }
}

fn progress(bytes: usize) -> WriteProgress {
    if bytes == 0 { WriteProgress::Nothing } else { WriteProgress::Part }
}

impl PooledResponse {
    /// The length of the body, if the head announced it.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.body.framing.content_length
    }

    pub(super) async fn chunk(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let bytes = match self.body.next().await {
            Ok(bytes) => bytes,
            Err(error) => {
                self.body.connection = None;
                return Err(connection_lost(&error));
            }
        };
        let buffer = self.body.connection.as_ref().map(|connection| connection.buffer.as_ref());
        Ok(bytes.and_then(|bytes| buffer.and_then(|buffer| buffer.get(..bytes))))
    }

    /// Abandons the rest of the body. The connection is reused if the rest arrives soon.
    pub(super) fn release(mut self) {
        self.body.release();
    }
}

impl PooledBody {
    async fn next(&mut self) -> Result<Option<usize>, ReadError> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(None) };
            self.framing.consume(&mut connection.buffer, std::mem::take(&mut self.borrowed));
            match self.framing.step(&mut connection.buffer)? {
                DecodeStep::Data(bytes) => {
                    self.borrowed = bytes;
                    return Ok(Some(bytes));
                }
                DecodeStep::End => {
                    self.recycle();
                    return Ok(None);
                }
                DecodeStep::NeedMore => {
                    if connection.read().await? == 0 {
                        self.framing.end_of_stream()?;
                    }
                }
            }
        }
    }

    /// Returns the connection to the pool after the end of the body.
    fn recycle(&mut self) {
        let pool = self.pool.upgrade().filter(|_| self.is_reusable);
        if let (Some(connection), Some(pool)) = (self.connection.take(), pool)
            && connection.buffer.is_empty()
        {
            pool.put(connection, None);
        }
    }

    fn release(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        self.framing.consume(&mut connection.buffer, std::mem::take(&mut self.borrowed));
        let Some(pool) = self.pool.upgrade().filter(|_| self.is_reusable) else { return };
        match connection.drain(&mut self.framing) {
            Ok(true) if connection.buffer.is_empty() => pool.put(connection, None),
            Ok(false) => pool.put(connection, Some(self.framing.clone())),
            Ok(true) | Err(_) => {}
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Http1(#[from] Http1Error),
}

fn connection_lost(error: &ReadError) -> TransportError {
    TransportError::ConnectionLost(sanitize_line(&error.to_string()))
}

async fn connect(url: &Url) -> Result<HttpConnection, TransportError> {
    let unreachable = |error: io::Error| TransportError::Unreachable(sanitize_line(&error.to_string()));
    let timed_out = |_elapsed| TransportError::Unreachable("connecting timed out".to_owned());
    let stream =
        timeout(CONNECT_TIMEOUT, connect_to_host(url)).await.map_err(timed_out)?.map_err(unreachable)?;
    // Requests are written at once. Without the option the socket is only slower.
    let _ = stream.set_nodelay(true);
    Ok(HttpConnection { stream, buffer: BytesMut::new(), read_bytes: READ_BYTES })
}

/// Connects to the first address of the host that accepts, trying the next one beside slow ones.
async fn connect_to_host(url: &Url) -> io::Result<TcpStream> {
    let port = url.port_or_known_default().unwrap_or(80);
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return TcpStream::connect((address, port)).await,
        Some(Host::Ipv6(address)) => return TcpStream::connect((address, port)).await,
        Some(Host::Domain(name)) => name,
        None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "the URL has no host")),
    };
    let mut addresses = lookup_host((name, port)).await?;
    let mut last_error = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    let mut attempts = FuturesUnordered::new();
    loop {
        match addresses.next() {
            Some(address) => attempts.push(TcpStream::connect(address)),
            None if attempts.is_empty() => return Err(last_error),
            None => {}
        }
        match timeout(NEXT_ADDRESS_DELAY, attempts.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => last_error = error,
            Ok(None) | Err(_) => {}
        }
    }
}

impl fmt::Debug for ConnectionPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ConnectionPool").field("idle", &self.idle.lock().connections.len()).finish()
    }
}

impl fmt::Debug for PooledResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PooledResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
