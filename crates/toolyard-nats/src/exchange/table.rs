//! [`ExchangeTable`]: the open exchanges of this process. Delivers frames to them, sends heartbeats for them, and ends those
//! whose other side is silent.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_nats::{Message, StatusCode, Subject, connection::State};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};
use toolyard_core::{Exchange as _, PeerError};

use crate::{
    connection::NatsConnection,
    exchange::{
        frame::{Frame, FrameKind, HEADER_LENGTH, READS_OBJECTS},
        incoming::{Incoming, Received},
        stream::NatsExchange,
    },
    objects::{ObjectRoute, ObjectStore, StoredObject},
    subjects::{exchange_id, exchange_subject},
};

/// How often exchanges are looked at.
const TICK: Duration = Duration::from_millis(500);
/// Ticks between two heartbeats of an exchange.
const TICKS_PER_HEARTBEAT: u64 = 4;
/// An exchange whose other side was not heard for so long is lost.
const LOST_AFTER: Duration = Duration::from_secs(6);
/// Messages of one exchange that wait to be read. An exchange that has more is lost.
const MAX_WAITING_MESSAGES: usize = 1_024;

/// The open exchanges of a process.
#[derive(Debug)]
pub(crate) struct ExchangeTable {
    connection: NatsConnection,
    /// Messages for the exchanges of this process go to subjects that begin with this.
    own_subjects: String,
    links: Mutex<HashMap<u64, Arc<Link>>>,
    objects: Arc<ObjectStore>,
    /// For exchanges that others open.
    own_route: ObjectRoute,
    /// Frames of exchanges that were dropped, which cannot wait for their sending.
    outbox: mpsc::UnboundedSender<(Subject, Bytes)>,
}

/// What the table and the two halves of an exchange share.
#[derive(Debug)]
pub(crate) struct Link {
    id: u64,
    own_subject: Subject,
    route: ObjectRoute,
    state: Mutex<LinkState>,
    /// Notified when the address of the other side becomes known, and when the exchange is lost.
    changed: Notify,
}

#[derive(Debug)]
struct LinkState {
    /// Where the other side listens.
    remote: Option<Subject>,
    /// The number of the next frame to send; counted after it was sent, so that no heartbeat overtakes it.
    next_sequence: u32,
    incoming: Incoming,
    /// Whether the other side reads messages from the object store.
    remote_reads_objects: bool,
    /// Objects that the other side reads but cannot delete.
    sent_objects: Vec<StoredObject>,
    last_heard: Instant,
    /// None when the exchange is lost or over.
    sender: Option<mpsc::Sender<Arrival>>,
    ticks: u64,
}

/// The operating system provides no random numbers, which the id of an exchange needs.
///
/// Remedy: check that the system call `getrandom` is permitted to the process (sandboxes may forbid it).
#[derive(Debug, thiserror::Error)]
#[error("the operating system provides no random numbers")]
struct NoRandomness;

/// What arrived for the reader of an exchange.
#[derive(Debug)]
pub(crate) enum Arrival {
    Received(Received),
    /// Nobody listens at the address of the request.
    NoResponders,
    Lost(String),
}

impl ExchangeTable {
    /// An empty table, and what it must send for exchanges that were dropped. Messages for its exchanges must be delivered
    /// that are sent to subjects with one more part than `own_subjects`.
    pub(crate) fn new(
        connection: NatsConnection,
        own_subjects: String,
        objects: ObjectStore,
        own_route: ObjectRoute,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<(Subject, Bytes)>) {
        let (outbox, dropped) = mpsc::unbounded_channel();
        let table = Self {
            connection,
            own_subjects,
            links: Mutex::default(),
            objects: Arc::new(objects),
            own_route,
            outbox,
        };
        (Arc::new(table), dropped)
    }

    /// The route of objects in exchanges that others open. Gateways use it among each other in both directions.
    pub(crate) fn own_route(&self) -> &ObjectRoute {
        &self.own_route
    }

    /// The object store that exchanges use for long messages.
    pub(crate) fn objects(&self) -> &Arc<ObjectStore> {
        &self.objects
    }

    /// Opens an exchange at a subject.
    pub(crate) async fn open(
        self: &Arc<Self>,
        subject: String,
        request: Vec<u8>,
        route: ObjectRoute,
    ) -> Result<NatsExchange, PeerError> {
        let client = self.connection.client();
        if client.connection_state() != State::Connected {
            // NATS would deliver the request when it is back, long after its caller gave up.
            return Err(PeerError::NotReached("not connected to NATS".to_owned()));
        }
        self.objects.begin_check(&route.bucket);
        let flags = self.flags(&route);
        let mut exchange = self
            .exchange(None, route, false)
            .map_err(|NoRandomness| PeerError::NotReached(NoRandomness.to_string()))?;
        let is_long = request.len() + HEADER_LENGTH > client.max_payload();
        let frame = if is_long {
            Frame::encode(FrameKind::OpenLong, flags.into(), &[])
        } else {
            Frame::encode(FrameKind::Open, flags.into(), &request)
        };
        let sent = client.publish_with_reply(subject, exchange.link().own_subject.clone(), frame).await;
        sent.map_err(|error| PeerError::NotReached(error.to_string()))?;
        if is_long && exchange.send(request).await.is_err() {
            // Without the whole request, nothing was done.
            let reason = match exchange.receive().await {
                Err(PeerError::NotReached(reason) | PeerError::Lost(reason)) => reason,
                Ok(_) => "the other process ended the exchange".to_owned(),
            };
            return Err(PeerError::NotReached(reason));
        }
        Ok(exchange)
    }

    /// The exchange of a request that arrived; none without an address to respond to, or if no exchange can be made.
    pub(crate) fn accept(self: &Arc<Self>, request: &Message) -> Option<NatsExchange> {
        let reads_objects = Frame::decode(&request.payload).and_then(|frame| frame.reads_objects());
        let (remote, route) = (request.reply.clone()?, self.own_route.clone());
        match self.exchange(Some(remote.clone()), route, reads_objects.unwrap_or(false)) {
            Ok(exchange) => Some(exchange),
            Err(NoRandomness) => {
                // The other side learns at once that nothing was done. Sending fails only while the process ends.
                let refusal = Frame::encode(FrameKind::Refused, 0, NoRandomness.to_string().as_bytes());
                let _ = self.outbox.send((remote, refusal));
                None
            }
        }
    }

    fn exchange(
        self: &Arc<Self>,
        remote: Option<Subject>,
        route: ObjectRoute,
        remote_reads_objects: bool,
    ) -> Result<NatsExchange, NoRandomness> {
        let id = random_id()?;
        let (sender, arrivals) = mpsc::channel(MAX_WAITING_MESSAGES);
        let link = Arc::new(Link {
            id,
            own_subject: exchange_subject(&self.own_subjects, id).into(),
            route,
            state: Mutex::new(LinkState {
                remote,
                next_sequence: 0,
                incoming: Incoming::default(),
                remote_reads_objects,
                sent_objects: Vec::new(),
                last_heard: Instant::now(),
                sender: Some(sender),
                ticks: 0,
            }),
            changed: Notify::new(),
        });
        self.links.lock().insert(id, Arc::clone(&link));
        Ok(NatsExchange::new(Arc::clone(self), link, arrivals))
    }

    /// Delivers a message for one of the exchanges.
    pub(crate) fn deliver(&self, message: Message) {
        let Some(id) = exchange_id(&message.subject) else { return };
        let link = self.links.lock().get(&id).cloned();
        match (link, message.reply) {
            (Some(link), reply) => link.deliver(message.status, &message.payload, reply),
            // The other side goes on with an exchange that was dropped here.
            (None, Some(reply)) if !is_over(&message.payload) => self.end(reply, 0),
            (None, _) => {}
        }
    }

    /// Removes an exchange that is dropped. Its other side is told, if it must be and can be reached.
    pub(crate) fn remove(&self, link: &Link, must_tell: bool) {
        self.links.lock().remove(&link.id);
        let (remote, sequence) = {
            let state = link.state.lock();
            (state.remote.clone(), state.next_sequence)
        };
        if let Some(remote) = remote.filter(|_| must_tell) {
            self.end(remote, sequence);
        }
    }

    fn end(&self, remote: Subject, sequence: u32) {
        // Fails only while the process ends.
        let _ = self.outbox.send((remote, Frame::encode(FrameKind::End, sequence, &[])));
    }

    /// Sends one message of an exchange. If it is long, through the object store, or else in several frames.
    pub(crate) async fn send(&self, link: &Link, message: Bytes, kind: FrameKind) -> Result<(), PeerError> {
        let remote = link.remote().await?;
        let max_payload = self.connection.client().max_payload();
        if message.len() + HEADER_LENGTH > max_payload
            && let Some(object) = self.put(link, &message, kind).await
        {
            return self.send_object(link, &remote, object, kind).await;
        }
        for (is_last, part) in crate::exchange::incoming::split(&message, max_payload) {
            let kind = if is_last { kind } else { FrameKind::Part };
            self.send_frame(link, &remote, kind, part).await?;
        }
        Ok(())
    }

    /// Stores a message, if the other side can read it.
    async fn put(&self, link: &Link, message: &Bytes, kind: FrameKind) -> Option<StoredObject> {
        // A worker does not delete what it has read, so that the end of the exchange must not come before.
        let can_follow = match kind {
            FrameKind::Message => true,
            FrameKind::LastMessage => link.route.worker_subjects.is_none(),
            _ => false,
        };
        let is_read = can_follow && link.state.lock().remote_reads_objects;
        if is_read { self.objects.put(&link.route, message).await } else { None }
    }

    async fn send_object(
        &self,
        link: &Link,
        remote: &Subject,
        object: StoredObject,
        kind: FrameKind,
    ) -> Result<(), PeerError> {
        let kind = if kind == FrameKind::LastMessage { FrameKind::LastObject } else { FrameKind::Object };
        self.send_frame(link, remote, kind, &object.reference().encode()).await?;
        if link.route.worker_subjects.is_some() {
            link.state.lock().sent_objects.push(object);
        } else {
            object.leave_to_reader();
        }
        Ok(())
    }

    /// What this side can do, as frames say it.
    fn flags(&self, route: &ObjectRoute) -> u8 {
        if self.objects.can_read(&route.bucket) { READS_OBJECTS } else { 0 }
    }

    async fn send_heartbeat(&self, link: &Link, remote: &Subject) -> Result<(), PeerError> {
        self.send_frame(link, remote, FrameKind::Heartbeat, &[self.flags(&link.route)]).await
    }

    async fn send_frame(
        &self,
        link: &Link,
        remote: &Subject,
        kind: FrameKind,
        payload: &[u8],
    ) -> Result<(), PeerError> {
        let sequence = link.state.lock().next_sequence;
        let frame = Frame::encode(kind, sequence, payload);
        let client = self.connection.client();
        let sent = client.publish_with_reply(remote.clone(), link.own_subject.clone(), frame).await;
        sent.map_err(|error| PeerError::Lost(error.to_string()))?;
        if kind != FrameKind::Heartbeat {
            link.state.lock().next_sequence = sequence.wrapping_add(1);
        }
        Ok(())
    }

    /// Tells the other side at once that this one exists.
    pub(crate) async fn greet(&self, link: &Link) -> Result<(), PeerError> {
        let remote = link.remote().await?;
        self.send_heartbeat(link, &remote).await
    }

    /// Sends heartbeats and ends silent exchanges, for ever.
    pub(crate) async fn keep_alive(self: Arc<Self>) {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let links: Vec<Arc<Link>> = self.links.lock().values().cloned().collect();
            let now = Instant::now();
            let due: Vec<_> = links.iter().filter_map(|link| Some((link, link.tick(now)?))).collect();
            // While the connection is lost, sending would wait for it.
            for (link, remote) in due.into_iter().filter(|_| self.connection.is_connected()) {
                // A failure shows as silence.
                let _ = self.send_heartbeat(link, &remote).await;
            }
        }
    }
}

impl Link {
    pub(super) fn route(&self) -> &ObjectRoute {
        &self.route
    }

    /// Where the other side listens, as soon as that is known.
    async fn remote(&self) -> Result<Subject, PeerError> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            {
                let state = self.state.lock();
                if state.sender.is_none() {
                    return Err(PeerError::Lost("the exchange is over".to_owned()));
                }
                if let Some(remote) = &state.remote {
                    return Ok(remote.clone());
                }
            }
            changed.await;
        }
    }

    fn deliver(&self, status: Option<StatusCode>, payload: &Bytes, reply: Option<Subject>) {
        let mut state = self.state.lock();
        state.last_heard = Instant::now();
        if let (Some(reply), None) = (reply, &state.remote) {
            state.remote = Some(reply);
            self.changed.notify_waiters();
        }
        let frame = Frame::decode(payload);
        if let Some(reads_objects) = frame.as_ref().and_then(Frame::reads_objects) {
            state.remote_reads_objects = reads_objects;
        }
        let arrival = match frame {
            // Without an address, only the request was sent.
            _ if status == Some(StatusCode::NO_RESPONDERS) && state.remote.is_none() => Arrival::NoResponders,
            _ if status.is_some() => Arrival::Lost("the process is gone".to_owned()),
            None => Arrival::Lost("a message is malformed".to_owned()),
            Some(frame) => match state.incoming.accept(&frame) {
                Ok(Received::Nothing) => return,
                Ok(received) => Arrival::Received(received),
                Err(error) => Arrival::Lost(error.to_string()),
            },
        };
        let is_final = !matches!(
            arrival,
            Arrival::Received(
                Received::Message(_)
                    | Received::LastMessage(_)
                    | Received::Object(_)
                    | Received::LastObject(_)
            )
        );
        let is_full = state.sender.as_ref().is_some_and(|sender| sender.try_send(arrival).is_err());
        if is_final || is_full {
            state.sender = None;
            self.changed.notify_waiters();
        }
    }

    /// Where to send a heartbeat now, if one is due. A silent other side is given up.
    fn tick(&self, now: Instant) -> Option<Subject> {
        let mut state = self.state.lock();
        if now.duration_since(state.last_heard) > LOST_AFTER {
            if let Some(sender) = state.sender.take() {
                let silent = format!("not heard of for {} s", LOST_AFTER.as_secs());
                // If there is no room, the reader finds the exchange lost after what is waiting.
                let _ = sender.try_send(Arrival::Lost(silent));
                self.changed.notify_waiters();
            }
            return None;
        }
        state.sender.as_ref()?;
        let is_due = state.ticks.is_multiple_of(TICKS_PER_HEARTBEAT);
        state.ticks += 1;
        state.remote.clone().filter(|_| is_due)
    }
}

/// Whether a frame says that the exchange is over anyway.
fn is_over(payload: &Bytes) -> bool {
    Frame::decode(payload).is_none_or(|frame| {
        matches!(
            frame.kind,
            FrameKind::End | FrameKind::LastMessage | FrameKind::LastObject | FrameKind::Refused
        )
    })
}

/// The id of an exchange. Nobody can guess it: a worker that knows an exchange of its own must not hit those of others. And
/// late frames of an earlier process with the same number do not hit an exchange.
fn random_id() -> Result<u64, NoRandomness> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_unspecified| NoRandomness)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Sends the frames of exchanges that were dropped, until the table is dropped.
pub(crate) async fn send_all(
    client: async_nats::Client,
    mut outbox: mpsc::UnboundedReceiver<(Subject, Bytes)>,
) {
    while let Some((subject, frame)) = outbox.recv().await {
        // The other side notices the silence.
        let _ = client.publish(subject, frame).await;
    }
}
