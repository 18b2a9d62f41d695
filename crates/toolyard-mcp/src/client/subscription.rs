//! Asks a server of the modern era to tell when its tools change, for as long as the session lives.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    RequestError, TransportError,
    session::{Ask, Parts, SUBSCRIPTION},
};
use crate::wire::{JsonObject, Message};

/// Between two subscriptions that end at once.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Subscribes, and again whenever the subscription ends. Notifications reach the listener like all others.
pub(super) async fn follow(parts: Arc<Parts>) {
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    while parts.exchange.closed().is_none() {
        if !first {
            // What changed while nobody listened was not told.
            let method = "notifications/tools/list_changed".to_owned();
            parts.exchange.deliver(Message::Notification { method, params: None });
        }
        first = false;
        let started = Instant::now();
        let wanted = JsonObject::new().with_value("notifications", &json!({"toolsListChanged": true}));
        let ended = parts.request(Ask::new(SUBSCRIPTION).with(wanted)).await;
        tracing::debug!(server = %parts.server, ended = ended.is_ok(), "subscription over");
        // A server that does not know the method will not learn it. Over HTTP it may say so with a status.
        if let Err(
            RequestError::Rpc(_) | RequestError::Transport(TransportError::Status { error: Some(_), .. }),
        ) = ended
        {
            return;
        }
        pause = if started.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause).await;
    }
}
