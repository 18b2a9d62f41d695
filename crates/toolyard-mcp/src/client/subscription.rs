//! Asks a server of the modern era to tell when something changes, for as long as the session lives.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    RequestError, TransportError,
    session::{Ask, Parts, SUBSCRIPTION},
};
use crate::wire::{Capabilities, JsonObject, Message};

/// Between two subscriptions that end at once.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Interest {
    /// Changes of these lists.
    Lists { tools: bool, prompts: bool, resources: bool },
    /// Changes of these resources.
    Resources(Vec<String>),
}

impl Interest {
    /// All lists whose changes a server says it tells of; none where there are none.
    pub(super) fn in_lists(can: &Capabilities) -> Option<Self> {
        let (tools, prompts, resources) = (can.tools_changed, can.prompts_changed, can.resources_changed);
        (tools || prompts || resources).then_some(Self::Lists { tools, prompts, resources })
    }

    fn filter(&self) -> Value {
        match self {
            Self::Lists { tools, prompts, resources } => {
                let wanted = [
                    ("toolsListChanged", *tools),
                    ("promptsListChanged", *prompts),
                    ("resourcesListChanged", *resources),
                ];
                wanted.into_iter().filter(|(_, wanted)| *wanted).map(|(key, _)| (key, true)).collect()
            }
            Self::Resources(addresses) => json!({ "resourceSubscriptions": addresses }),
        }
    }

    /// The news that all of it may have changed.
    fn all_of_it(&self) -> Vec<Message> {
        let told = |method: &str, params: Option<Value>| Message::Notification {
            method: method.to_owned(),
            params: params.map(Into::into),
        };
        match self {
            Self::Lists { tools, prompts, resources } => {
                let lists = [("tools", *tools), ("prompts", *prompts), ("resources", *resources)];
                let wanted = lists.into_iter().filter(|(_, wanted)| *wanted);
                wanted.map(|(list, _)| told(&format!("notifications/{list}/list_changed"), None)).collect()
            }
            Self::Resources(addresses) => addresses
                .iter()
                .map(|address| told("notifications/resources/updated", Some(json!({ "uri": address }))))
                .collect(),
        }
    }
}

/// Subscribes, and again whenever the subscription ends. Notifications reach the listener like all others.
pub(super) async fn follow(parts: Arc<Parts>, interest: Interest) {
    let mut pause = FIRST_PAUSE;
    let mut first = true;
    while parts.exchange.closed().is_none() {
        if !first {
            // What changed while nobody listened was not told.
            interest.all_of_it().into_iter().for_each(|message| parts.exchange.deliver(message));
        }
        first = false;
        let started = Instant::now();
        let wanted = JsonObject::new().with_value("notifications", &interest.filter());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_tells_of_is_asked_for() {
        let can = Capabilities { prompts_changed: true, tools_changed: true, ..Capabilities::default() };
        let interest = Interest::in_lists(&can).unwrap();
        assert_eq!(interest.filter(), json!({"toolsListChanged": true, "promptsListChanged": true}));
        assert_eq!(interest.all_of_it().len(), 2);
        assert_eq!(Interest::in_lists(&Capabilities::default()), None);
        let resources = Interest::Resources(vec!["note://a".to_owned()]);
        assert_eq!(resources.filter(), json!({"resourceSubscriptions": ["note://a"]}));
    }
}
