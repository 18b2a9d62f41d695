//! [`NatsExchange`]: one side of an exchange.

use std::sync::Arc;

use tokio::{sync::mpsc, task::JoinSet};
use toolyard_core::{BoxFuture, Exchange, PeerError};

use crate::{
    exchange::{
        frame::FrameKind,
        incoming::Received,
        table::{Arrival, ExchangeTable, Link},
    },
    objects::ObjectReference,
};

/// One side of an exchange on NATS.
#[derive(Debug)]
pub(crate) struct NatsExchange {
    table: Arc<ExchangeTable>,
    link: Arc<Link>,
    arrivals: mpsc::Receiver<Arrival>,
    /// The object that is being read, which is the next message.
    fetch: Option<ObjectFetch>,
    /// What `receive` returns from now on.
    over: Option<Result<(), PeerError>>,
    /// Whether this side has ended the exchange.
    is_ended: bool,
}

/// Reads an object in a task of its own, so that `receive` can be dropped. Ends with this value.
#[derive(Debug)]
struct ObjectFetch {
    task: JoinSet<Arrival>,
}

impl ObjectFetch {
    fn start(table: &ExchangeTable, link: &Link, reference: &ObjectReference, is_last: bool) -> Self {
        let (objects, bucket) = (Arc::clone(table.objects()), link.route().bucket.clone());
        // Owned before the task starts, so that the object is deleted even if the task is aborted before it runs.
        let object = objects.own(&bucket, reference);
        let mut task = JoinSet::new();
        task.spawn(async move {
            match objects.get(&bucket, object).await {
                Ok(message) if is_last => Arrival::Received(Received::LastMessage(message)),
                Ok(message) => Arrival::Received(Received::Message(message)),
                Err(error) => Arrival::Lost(error.to_string()),
            }
        });
        Self { task }
    }

    async fn wait(&mut self) -> Arrival {
        match self.task.join_next().await {
            Some(Ok(arrival)) => arrival,
            Some(Err(_)) | None => Arrival::Lost("reading an object was interrupted".to_owned()),
        }
    }
}

impl NatsExchange {
    pub(super) fn new(table: Arc<ExchangeTable>, link: Arc<Link>, arrivals: mpsc::Receiver<Arrival>) -> Self {
        Self { table, link, arrivals, fetch: None, over: None, is_ended: false }
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Tells the side that opened the exchange where to send messages.
    pub(crate) async fn greet(&self) -> Result<(), PeerError> {
        self.table.greet(&self.link).await
    }

    /// Ends the exchange before anything was done.
    pub(crate) async fn refuse(mut self, reason: &str) {
        self.is_ended = true;
        // A failure shows as silence.
        let _ = self.table.send(&self.link, reason.to_owned().into(), FrameKind::Refused).await;
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, PeerError> {
        if let Some(over) = &self.over {
            return over.clone().map(|()| None);
        }
        let lost = || Arrival::Lost("messages came faster than they were read".to_owned());
        if self.fetch.is_none() {
            let (reference, is_last) = match self.arrivals.recv().await.unwrap_or_else(lost) {
                Arrival::Received(Received::Object(reference)) => (reference, false),
                Arrival::Received(Received::LastObject(reference)) => (reference, true),
                arrival => return self.conclude(arrival),
            };
            self.fetch = Some(ObjectFetch::start(&self.table, &self.link, &reference, is_last));
        }
        let arrival = match &mut self.fetch {
            Some(fetch) => fetch.wait().await,
            None => lost(),
        };
        self.fetch = None;
        self.conclude(arrival)
    }

    fn conclude(&mut self, arrival: Arrival) -> Result<Option<Vec<u8>>, PeerError> {
        let (message, over) = match arrival {
            // The table keeps frames that are no message yet, and objects are read before.
            Arrival::Received(Received::Nothing | Received::Object(_) | Received::LastObject(_)) => {
                (None, Err(PeerError::Lost("a message is incomplete".to_owned())))
            }
            Arrival::Received(Received::Message(message)) => return Ok(Some(message)),
            Arrival::Received(Received::LastMessage(message)) => (Some(message), Ok(())),
            Arrival::Received(Received::End) => (None, Ok(())),
            Arrival::Received(Received::Refused(reason)) => (None, Err(PeerError::NotReached(reason))),
            Arrival::NoResponders => (None, Err(PeerError::NotReached("the process is gone".to_owned()))),
            Arrival::Lost(reason) => (None, Err(PeerError::Lost(reason))),
        };
        self.over = Some(over.clone());
        match message {
            Some(message) => Ok(Some(message)),
            None => over.map(|()| None),
        }
    }
}

impl Exchange for NatsExchange {
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        Box::pin(async move { self.table.send(&self.link, message.into(), FrameKind::Message).await })
    }

    fn send_last(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.is_ended = true;
        Box::pin(async move { self.table.send(&self.link, message.into(), FrameKind::LastMessage).await })
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        Box::pin(self.next())
    }
}

impl Drop for NatsExchange {
    fn drop(&mut self) {
        while let Ok(arrival) = self.arrivals.try_recv() {
            if let Arrival::Received(Received::Object(unread) | Received::LastObject(unread)) = arrival {
                // Dropping an owned object deletes it.
                drop(self.table.objects().own(&self.link.route().bucket, &unread));
            }
        }
        self.table.remove(&self.link, !self.is_ended && self.over.is_none());
    }
}
