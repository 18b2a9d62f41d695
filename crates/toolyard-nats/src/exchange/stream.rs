//! [`NatsExchange`]: one side of an exchange.

use std::sync::Arc;

use tokio::sync::mpsc;
use toolyard_core::{BoxFuture, Exchange, PeerError};

use crate::exchange::{
    frame::FrameKind,
    incoming::Received,
    table::{Arrival, ExchangeTable, Link},
};

/// One side of an exchange on NATS.
#[derive(Debug)]
pub(crate) struct NatsExchange {
    table: Arc<ExchangeTable>,
    link: Arc<Link>,
    arrivals: mpsc::Receiver<Arrival>,
    /// What `receive` returns from now on.
    over: Option<Result<(), PeerError>>,
    /// Whether this side has ended the exchange.
    is_ended: bool,
}

impl NatsExchange {
    pub(super) fn new(table: Arc<ExchangeTable>, link: Arc<Link>, arrivals: mpsc::Receiver<Arrival>) -> Self {
        Self { table, link, arrivals, over: None, is_ended: false }
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
        let _ = self.table.send(&self.link, reason.as_bytes(), FrameKind::Refused).await;
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, PeerError> {
        if let Some(over) = &self.over {
            return over.clone().map(|()| None);
        }
        let lost = || Arrival::Lost("messages came faster than they were read".to_owned());
        let (message, over) = match self.arrivals.recv().await.unwrap_or_else(lost) {
            // The table keeps frames that are no message yet.
            Arrival::Received(Received::Nothing) => {
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
        Box::pin(async move { self.table.send(&self.link, &message, FrameKind::Message).await })
    }

    fn send_last(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.is_ended = true;
        Box::pin(async move { self.table.send(&self.link, &message, FrameKind::LastMessage).await })
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        Box::pin(self.next())
    }
}

impl Drop for NatsExchange {
    fn drop(&mut self) {
        self.table.remove(&self.link, !self.is_ended && self.over.is_none());
    }
}
