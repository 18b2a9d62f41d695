//! [`ReplayedExchange`]: an exchange whose first message was read to find out whether the call was refused.

use toolyard_core::{BoxFuture, Exchange, PeerError};

/// An exchange whose first message was read already.
pub(crate) struct ReplayedExchange {
    first: Option<Vec<u8>>,
    rest: Box<dyn Exchange>,
}

impl ReplayedExchange {
    /// Returns the message first, then those of the exchange.
    pub(crate) fn new(first: Vec<u8>, rest: Box<dyn Exchange>) -> Self {
        Self { first: Some(first), rest }
    }
}

impl Exchange for ReplayedExchange {
    fn send(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.rest.send(message)
    }

    fn send_last(&mut self, message: Vec<u8>) -> BoxFuture<'_, Result<(), PeerError>> {
        self.rest.send_last(message)
    }

    fn receive(&mut self) -> BoxFuture<'_, Result<Option<Vec<u8>>, PeerError>> {
        match self.first.take() {
            Some(first) => Box::pin(std::future::ready(Ok(Some(first)))),
            None => self.rest.receive(),
        }
    }
}
