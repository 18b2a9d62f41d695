//! Listens for changes of a modern server (`subscriptions/listen`) for as long as the session lives.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use toolyard_mcp::{JsonObject, Message, ServerCapabilities};

use crate::{
    session::{
        error::RequestError,
        inner::{LISTEN_METHOD, OutgoingRequest, SessionInner},
    },
    transport::error::TransportError,
};

/// The delay before listening again, doubled each time that a subscription ends early.
const MIN_RESUBSCRIBE_DELAY: Duration = Duration::from_secs(1);
const MAX_RESUBSCRIBE_DELAY: Duration = Duration::from_secs(60);

/// The changes that a subscription announces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChangeFilter {
    Lists { tools: bool, prompts: bool, resources: bool },
    Resources(Vec<String>),
}

impl ChangeFilter {
    /// All lists whose changes the server can announce; none if there are none.
    pub(crate) fn lists_of(capabilities: &ServerCapabilities) -> Option<Self> {
        let ServerCapabilities { tools_changed, prompts_changed, resources_changed, .. } = *capabilities;
        (tools_changed || prompts_changed || resources_changed).then_some(Self::Lists {
            tools: tools_changed,
            prompts: prompts_changed,
            resources: resources_changed,
        })
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Lists { tools, prompts, resources } => {
                let lists = [
                    ("toolsListChanged", *tools),
                    ("promptsListChanged", *prompts),
                    ("resourcesListChanged", *resources),
                ];
                lists.into_iter().filter(|(_, included)| *included).collect()
            }
            Self::Resources(uris) => json!({ "resourceSubscriptions": uris }),
        }
    }

    /// The notifications as if everything in the filter had changed.
    fn all_changed(&self) -> Vec<Message> {
        let notification = |method: &str, params: Option<Value>| Message::Notification {
            method: method.to_owned(),
            params: params.map(Into::into),
        };
        match self {
            Self::Lists { tools, prompts, resources } => {
                let lists = [("tools", *tools), ("prompts", *prompts), ("resources", *resources)];
                let included = lists.into_iter().filter(|(_, included)| *included);
                included
                    .map(|(list, _)| notification(&format!("notifications/{list}/list_changed"), None))
                    .collect()
            }
            Self::Resources(uris) => uris
                .iter()
                .map(|uri| notification("notifications/resources/updated", Some(json!({ "uri": uri }))))
                .collect(),
        }
    }
}

/// Subscribes, and again whenever the subscription ends. The notifications are delivered like all others.
pub(crate) async fn listen_for_changes(session: Arc<SessionInner>, filter: ChangeFilter) {
    let mut delay = MIN_RESUBSCRIBE_DELAY;
    let mut is_first = true;
    while session.requests.closed().is_none() {
        if !is_first {
            // Changes between two subscriptions were not announced.
            filter.all_changed().into_iter().for_each(|message| session.requests.deliver(message));
        }
        is_first = false;
        let started = Instant::now();
        let fields = JsonObject::new().with_value("notifications", &filter.to_json());
        let outcome = session.request(OutgoingRequest::new(LISTEN_METHOD, fields)).await;
        tracing::debug!(server = %session.server, is_ok = outcome.is_ok(), "subscription ended");
        // A server that does not support the method will not do so later. Over HTTP the error may come with a status.
        if let Err(
            RequestError::Rpc(_) | RequestError::Transport(TransportError::Status { error: Some(_), .. }),
        ) = outcome
        {
            return;
        }
        delay = if started.elapsed() > MAX_RESUBSCRIBE_DELAY {
            MIN_RESUBSCRIBE_DELAY
        } else {
            (delay * 2).min(MAX_RESUBSCRIBE_DELAY)
        };
        sleep(delay).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_only_changes_that_the_server_announces() {
        let capabilities = ServerCapabilities {
            prompts_changed: true,
            tools_changed: true,
            ..ServerCapabilities::default()
        };
        let filter = ChangeFilter::lists_of(&capabilities).unwrap();
        assert_eq!(filter.to_json(), json!({"toolsListChanged": true, "promptsListChanged": true}));
        assert_eq!(filter.all_changed().len(), 2);
        assert_eq!(ChangeFilter::lists_of(&ServerCapabilities::default()), None);
        let resources = ChangeFilter::Resources(vec!["note://a".to_owned()]);
        assert_eq!(resources.to_json(), json!({"resourceSubscriptions": ["note://a"]}));
    }
}
