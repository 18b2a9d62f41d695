//! Hears what a server tells or asks unasked, and answers it.

use std::{collections::HashMap, sync::Arc};

use tokio::{
    sync::{mpsc, watch},
    task::{AbortHandle, JoinSet},
};
use toolyard_core::RawJson;

use super::{
    Heard,
    input::METHOD_NOT_FOUND,
    session::{News, Parts},
};
use crate::wire::{self, RequestId, RpcError};

/// How many questions of a server are worked on at once; a server that asks more is told to wait.
const AT_ONCE: usize = 8;
/// How many answers that need no thought may be on their way at once.
const REPLIES: usize = 32;
/// A longer address is none.
const LONGEST_ADDRESS: usize = 8 << 10;
/// JSON-RPC's code for trouble on our side.
const INTERNAL: i64 = -32603;

/// Listens until the connection is gone.
pub(super) async fn listen(parts: Arc<Parts>, mut heard: mpsc::Receiver<Heard>, news: watch::Sender<News>) {
    let mut answering: JoinSet<()> = JoinSet::new();
    let mut under_way: HashMap<String, AbortHandle> = HashMap::new();
    let mut replying: JoinSet<()> = JoinSet::new();
    loop {
        // The news of the end does not get through where too much else was told.
        if let Some(error) = parts.exchange.closed().filter(|_| heard.is_empty()) {
            news.send_modify(|news| news.closed = Some(error));
            return;
        }
        let Some(heard) = heard.recv().await else { return };
        while answering.try_join_next().is_some() || replying.try_join_next().is_some() {}
        under_way.retain(|_, task| !task.is_finished());
        match heard {
            Heard::Notification { method, params } => {
                if method == "notifications/cancelled" {
                    let stopped = cancelled(params.as_ref()).and_then(|id| under_way.remove(&id));
                    stopped.inspect(AbortHandle::abort);
                } else {
                    notified(&parts, &news, &method, params.as_ref());
                }
            }
            Heard::Request { id, method, params, related } => {
                if let Some(body) = reply(&id, &method, answering.len()) {
                    // A server that asks faster than it takes answers is not answered any more.
                    if replying.len() < REPLIES {
                        let parts = Arc::clone(&parts);
                        replying.spawn(async move { parts.respond(body).await });
                    }
                    continue;
                }
                let key = id.0.get().to_owned();
                let task = answering.spawn(answer(Arc::clone(&parts), id, method, params, related));
                under_way.insert(key, task);
            }
            Heard::Closed(error) => {
                news.send_modify(|news| news.closed = Some(error));
                return;
            }
        }
    }
}

/// The answer to what needs no thought, or gets none.
fn reply(id: &RequestId, method: &str, under_way: usize) -> Option<Vec<u8>> {
    if method == "ping" {
        return Some(wire::response(id, &RawJson::empty_object()));
    }
    (under_way >= AT_ONCE).then(|| wire::error_response(id, INTERNAL, "too many questions at once"))
}

fn notified(parts: &Parts, news: &watch::Sender<News>, method: &str, params: Option<&RawJson>) {
    match method {
        "notifications/tools/list_changed" => news.send_modify(|news| news.tools_changed += 1),
        "notifications/prompts/list_changed" => news.send_modify(|news| news.prompts_changed += 1),
        "notifications/resources/list_changed" => news.send_modify(|news| news.resources_changed += 1),
        "notifications/resources/updated" => {
            let address = params.and_then(|params| wire::text_of(params, "uri", LONGEST_ADDRESS));
            // Nobody may be interested.
            address.inspect(|address| drop(parts.updated.send(address.clone())));
        }
        _ => tracing::trace!(server = %parts.server, method, "notification"),
    }
}

fn cancelled(params: Option<&RawJson>) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: RawJson,
    }
    params?.read::<Cancelled>().ok().map(|cancelled| cancelled.request_id.get().to_owned())
}

async fn answer(
    parts: Arc<Parts>,
    id: RequestId,
    method: String,
    params: Option<RawJson>,
    related: Option<u64>,
) {
    let outcome = match method.as_str() {
        "elicitation/create" | "sampling/createMessage" | "roots/list" => {
            parts.question(method, params, related).await
        }
        _ => {
            let message = format!("{method} is not offered by this client");
            Err(RpcError { code: METHOD_NOT_FOUND, message, data: None })
        }
    };
    let body = match outcome {
        Ok(result) => wire::response(&id, &result),
        Err(error) => wire::error_response(&id, error.code, &error.message),
    };
    parts.respond(body).await;
}
