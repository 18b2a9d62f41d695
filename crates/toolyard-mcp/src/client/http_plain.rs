//! Plain HTTP/1.1 to one server, carried out by whoever waits for the answer: no task of its own, no word between tasks.

use std::{
    fmt, io,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use bytes::BytesMut;
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use http::{HeaderMap, Method, StatusCode};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpStream, lookup_host},
    time::{Instant, sleep, timeout},
};
use url::{Host, Url};

use super::{
    TransportError,
    http::lock,
    http_caller::{CONNECT_LIMIT, IDLE_LIMIT},
    http_target::harmless,
    http1::{AnswerHead, Framing, HttpFault, Step, request_head, take_head},
};

/// Bytes read at once at first, and once so many came. A connection that waits for its next request keeps no more than the
/// former.
const READ: usize = 8 << 10;
const READ_LONG: usize = 64 << 10;
/// A body up to this length is written together with its head.
const TOGETHER: usize = 32 << 10;
/// How long another address of the same host is waited for before the next one is tried beside it.
const NEXT_ADDRESS: Duration = Duration::from_millis(300);
/// How often connections that nobody uses are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// How long after its answer a stream may take to end. A connection whose stream has ended can be used again.
const LAST_MOMENT: Duration = Duration::from_millis(200);
/// What a stream may still say after its answer.
const MOST_AFTERWARDS: usize = 64 << 10;

/// The connections to one server that nobody uses at the moment.
#[derive(Default)]
pub(super) struct PlainPool {
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    /// The one that was used last is used first.
    connections: Vec<Resting>,
    /// Whether someone looks after them.
    minded: bool,
}

/// A connection that nobody uses.
struct Resting {
    connection: Connection,
    /// What is left of the answer before, if its reader did not wait for the end.
    rest: Option<Framing>,
    since: Instant,
}

/// An answer whose body can be read.
pub(super) struct PlainAnswer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    body: PlainBody,
}

struct PlainBody {
    framing: Framing,
    /// Bytes at the front of what came that were lent out.
    lent: usize,
    /// None once the body has ended or broken off.
    connection: Option<Connection>,
    reusable: bool,
    pool: Weak<PlainPool>,
}

struct Connection {
    stream: TcpStream,
    /// What came and was not taken yet.
    came: BytesMut,
    /// How much is read at once.
    room: usize,
}

impl PlainPool {
    /// Sends one request and waits for the head of its answer. It is written once: when it cannot be known whether the
    /// server got it, that is the answer.
    pub(super) async fn send(
        self: &Arc<Self>,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<PlainAnswer, TransportError> {
        let mut head = request_head(method, url, headers, body.map(<[u8]>::len));
        let mut rest = body.unwrap_or_default();
        if rest.len() <= TOGETHER {
            head.extend_from_slice(rest);
            rest = &[];
        }
        let mut written = Written::Nothing;
        let mut connection = self.take();
        if let Some(connection) = &mut connection {
            written = connection.write(&head, rest).await;
        }
        // Nothing went out on a connection that was gone: the first byte is still to be sent.
        let mut connection = match (connection, written) {
            (Some(connection), Written::Some | Written::All) => connection,
            _ => {
                let mut fresh = connect(url).await?;
                written = fresh.write(&head, rest).await;
                fresh
            }
        };
        let AnswerHead { status, headers, body, reusable } =
            connection.head().await.map_err(|error| broken(&error))?;
        let body = PlainBody {
            framing: body,
            lent: 0,
            connection: Some(connection),
            reusable: reusable && written == Written::All,
            pool: Arc::downgrade(self),
        };
        Ok(PlainAnswer { status, headers, body })
    }

    /// A connection that can be used, if there is one.
    fn take(&self) -> Option<Connection> {
        let (mut waiting, now) = (Vec::new(), Instant::now());
        let mut idle = lock(&self.idle);
        let found = loop {
            let Some(mut resting) = idle.connections.pop() else { break None };
            match resting.look(now) {
                Look::Usable => break Some(resting.connection),
                Look::NotYet => waiting.push(resting),
                Look::Gone => {}
            }
        };
        idle.connections.extend(waiting.into_iter().rev());
        found
    }

    fn put(self: &Arc<Self>, connection: Connection, rest: Option<Framing>) {
        let mut idle = lock(&self.idle);
        idle.connections.push(Resting { connection: connection.rested(), rest, since: Instant::now() });
        if !std::mem::replace(&mut idle.minded, true) {
            tokio::spawn(sweep(Arc::downgrade(self)));
        }
    }
}

/// Drops connections that nobody used for long, as long as there are any.
async fn sweep(pool: Weak<PlainPool>) {
    loop {
        sleep(SWEEP).await;
        let Some(pool) = pool.upgrade() else { return };
        let mut idle = lock(&pool.idle);
        let now = Instant::now();
        idle.connections.retain_mut(|resting| resting.look(now) != Look::Gone);
        if idle.connections.is_empty() {
            idle.connections.shrink_to_fit();
            idle.minded = false;
            return;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Usable,
    /// What is left of the answer before has not come yet.
    NotYet,
    Gone,
}

impl Resting {
    fn look(&mut self, now: Instant) -> Look {
        let age = now.saturating_duration_since(self.since);
        if age > IDLE_LIMIT {
            return Look::Gone;
        }
        let Some(rest) = &mut self.rest else {
            // Whatever comes now is no answer to anything; most often it is the end.
            return if self.connection.is_silent() { Look::Usable } else { Look::Gone };
        };
        match self.connection.skip(rest) {
            Ok(true) => {
                self.rest = None;
                if self.connection.is_silent() { Look::Usable } else { Look::Gone }
            }
            Ok(false) if age <= LAST_MOMENT => Look::NotYet,
            Ok(false) | Err(_) => Look::Gone,
        }
    }
}

/// How much of a request went out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Nothing,
    Some,
    All,
}

impl Connection {
    /// Writes a request in two pieces, until it is written or something comes back already.
    async fn write(&mut self, head: &[u8], body: &[u8]) -> Written {
        let mut gone = 0;
        for piece in [head, body] {
            let mut left = piece;
            while !left.is_empty() {
                match self.stream.try_write(left) {
                    Ok(0) => return written(gone),
                    Ok(bytes) => {
                        gone += bytes;
                        left = left.get(bytes..).unwrap_or_default();
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        tokio::select! {
                            biased;
                            ready = self.stream.writable() => if ready.is_err() { return written(gone) },
                            // An answer to half a request: a refusal, or the end.
                            _ready = self.stream.readable(), if gone > 0 => return written(gone),
                        }
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => return written(gone),
                }
            }
        }
        Written::All
    }

    async fn head(&mut self) -> Result<AnswerHead, Broken> {
        let mut seen = 0;
        loop {
            if self.read().await? == 0 {
                return Err(HttpFault::HungUp.into());
            }
            if let Some(head) = take_head(&mut self.came, &mut seen)? {
                return Ok(head);
            }
        }
    }

    async fn read(&mut self) -> io::Result<usize> {
        self.came.reserve(self.room);
        let bytes = self.stream.read_buf(&mut self.came).await?;
        if bytes >= self.room {
            self.room = READ_LONG;
        }
        Ok(bytes)
    }

    /// The same without the room that a long answer took.
    fn rested(mut self) -> Self {
        if self.came.is_empty() && self.came.capacity() > READ {
            self.came = BytesMut::new();
        }
        self.room = READ;
        self
    }

    /// Whether nothing came, not even the end.
    fn is_silent(&self) -> bool {
        let silent = |error: io::Error| error.kind() == io::ErrorKind::WouldBlock;
        self.came.is_empty() && self.stream.try_read(&mut [0]).is_err_and(silent)
    }

    /// Passes over what has come of the rest of a body. Whether that was its end.
    fn skip(&mut self, rest: &mut Framing) -> Result<bool, Broken> {
        let mut skipped = 0;
        loop {
            match rest.step(&mut self.came)? {
                Step::Ended => return Ok(true),
                Step::Data(bytes) => {
                    skipped += bytes;
                    rest.take(&mut self.came, bytes);
                }
                Step::More => {
                    self.came.reserve(READ);
                    match self.stream.try_read_buf(&mut self.came) {
                        Ok(0) => return Err(HttpFault::HungUp.into()),
                        Ok(_) => {}
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            if skipped > MOST_AFTERWARDS {
                return Err(HttpFault::Length.into());
            }
        }
    }
}

fn written(bytes: usize) -> Written {
    if bytes == 0 { Written::Nothing } else { Written::Some }
}

impl PlainAnswer {
    /// How long the body will be, if the head said so.
    pub(super) fn announced(&self) -> Option<u64> {
        self.body.framing.announced
    }

    /// The next piece of the body; none at its end.
    pub(super) async fn chunk(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let bytes = match self.body.next().await {
            Ok(bytes) => bytes,
            Err(error) => {
                self.body.connection = None;
                return Err(broken(&error));
            }
        };
        let came = self.body.connection.as_ref().map(|connection| connection.came.as_ref());
        Ok(bytes.and_then(|bytes| came.and_then(|came| came.get(..bytes))))
    }

    /// Gives up the rest of the body. The connection can be used again if that comes soon.
    pub(super) fn leave(mut self) {
        self.body.leave();
    }
}

impl PlainBody {
    async fn next(&mut self) -> Result<Option<usize>, Broken> {
        loop {
            let Some(connection) = &mut self.connection else { return Ok(None) };
            self.framing.take(&mut connection.came, std::mem::take(&mut self.lent));
            match self.framing.step(&mut connection.came)? {
                Step::Data(bytes) => {
                    self.lent = bytes;
                    return Ok(Some(bytes));
                }
                Step::Ended => {
                    self.finished();
                    return Ok(None);
                }
                Step::More => {
                    if connection.read().await? == 0 {
                        self.framing.hung_up()?;
                    }
                }
            }
        }
    }

    /// Nothing is left of the body; the connection may be used again.
    fn finished(&mut self) {
        let pool = self.pool.upgrade().filter(|_| self.reusable);
        if let (Some(connection), Some(pool)) = (self.connection.take(), pool)
            && connection.came.is_empty()
        {
            pool.put(connection, None);
        }
    }

    fn leave(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        self.framing.take(&mut connection.came, std::mem::take(&mut self.lent));
        let Some(pool) = self.pool.upgrade().filter(|_| self.reusable) else { return };
        match connection.skip(&mut self.framing) {
            Ok(true) if connection.came.is_empty() => pool.put(connection, None),
            Ok(false) => pool.put(connection, Some(self.framing.clone())),
            Ok(true) | Err(_) => {}
        }
    }
}

/// Why an answer broke off.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Fault(#[from] HttpFault),
}

fn broken(error: &Broken) -> TransportError {
    TransportError::Broken(harmless(&error.to_string()))
}

async fn connect(url: &Url) -> Result<Connection, TransportError> {
    let unreachable = |error: io::Error| TransportError::Unreachable(harmless(&error.to_string()));
    let late = |_elapsed| TransportError::Unreachable("it did not answer in time".to_owned());
    let stream = timeout(CONNECT_LIMIT, connected(url)).await.map_err(late)?.map_err(unreachable)?;
    // A request is written whole, and waits for nothing. A socket that cannot be told so is only slower.
    let _ = stream.set_nodelay(true);
    Ok(Connection { stream, came: BytesMut::new(), room: READ })
}

/// A connection to whichever address of the host answers, the next one tried beside those that are slow.
async fn connected(url: &Url) -> io::Result<TcpStream> {
    let port = url.port_or_known_default().unwrap_or(80);
    let name = match url.host() {
        Some(Host::Ipv4(address)) => return TcpStream::connect((address, port)).await,
        Some(Host::Ipv6(address)) => return TcpStream::connect((address, port)).await,
        Some(Host::Domain(name)) => name,
        None => return Err(io::Error::new(io::ErrorKind::InvalidInput, "its url names no host")),
    };
    let mut addresses = lookup_host((name, port)).await?;
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "its host has no address");
    let mut tried = FuturesUnordered::new();
    loop {
        match addresses.next() {
            Some(address) => tried.push(TcpStream::connect(address)),
            None if tried.is_empty() => return Err(failure),
            None => {}
        }
        match timeout(NEXT_ADDRESS, tried.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => failure = error,
            Ok(None) | Err(_) => {}
        }
    }
}

impl fmt::Debug for PlainPool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PlainPool").field("idle", &lock(&self.idle).connections.len()).finish()
    }
}

impl fmt::Debug for PlainAnswer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PlainAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "http_plain_tests.rs"]
mod tests;
