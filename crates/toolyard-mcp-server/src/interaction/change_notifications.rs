//! Notifies clients of changed tools, prompts and resources: once per change, and only of what they subscribed to.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{BoxStream, SelectAll, unfold},
};
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::{JsonObject, RequestId, RpcError, jsonrpc::notification, raw_field};

use crate::{
    content_service::{ContentEvent, ContentRequest},
    dispatch::{incoming_request::IncomingRequest, outcome::Outcome, served_endpoint::ServedEndpoint},
    interaction::{request_channel::RequestChannel, request_task::RequestTask},
    json_fields::each_field,
    server::McpServer,
};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ChangeFilter {
    tools: bool,
    prompts: bool,
    resources: bool,
    /// The resources to watch; none for those in the client's subscriptions.
    updates: Option<BTreeSet<String>>,
}

/// The `_meta` key for the id of a subscription.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";
/// Resources that one request may subscribe to.
const MAX_RESOURCE_SUBSCRIPTIONS: usize = 1_000;

enum Change {
    Tools,
    Content(ContentEvent),
    /// Events were lost: any content may have changed.
    Missed,
}

impl ChangeFilter {
    /// All changes, and updates of the resources that the client subscribed to.
    pub(crate) fn everything() -> Self {
        Self { tools: true, prompts: true, resources: true, updates: None }
    }

    /// The filter of a `subscriptions/listen` request.
    fn read(params: &RawJson) -> Self {
        let mut filter = Self { updates: Some(BTreeSet::new()), ..Self::default() };
        let Some(notifications) = raw_field(params, "notifications") else { return filter };
        // Fields before a syntax error count.
        let _ = each_field(notifications.get(), |key, value| {
            let is_requested = value.boolean() == Some(true);
            match key {
                "toolsListChanged" => filter.tools = is_requested,
                "promptsListChanged" => filter.prompts = is_requested,
                "resourcesListChanged" => filter.resources = is_requested,
                "resourceSubscriptions" => {
                    let uris: Vec<String> = serde_json::from_str(value.get()).unwrap_or_default();
                    filter.updates = Some(uris.into_iter().take(MAX_RESOURCE_SUBSCRIPTIONS).collect());
                }
                _ => {}
            }
            Ok(())
        });
        filter
    }

    /// Drops changes that cannot happen on the endpoint.
    fn limited_to(mut self, endpoint: &ServedEndpoint) -> Self {
        let (capabilities, changes) = (endpoint.content_capabilities(), endpoint.has_content_changes());
        self.prompts &= capabilities.prompts && changes;
        self.resources &= (capabilities.resources || capabilities.skills) && changes;
        if !capabilities.subscriptions {
            self.updates = Some(BTreeSet::new());
        }
        self
    }

    fn to_json(&self) -> serde_json::Value {
        let mut fields = serde_json::Map::new();
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (key, _) in flags.iter().filter(|(_, is_requested)| *is_requested) {
            fields.insert((*key).to_owned(), true.into());
        }
        if let Some(updates) = self.updates.as_ref().filter(|updates| !updates.is_empty()) {
            fields.insert("resourceSubscriptions".to_owned(), json!(updates));
        }
        fields.into()
    }
}

impl McpServer {
    /// `subscriptions/listen`: notifies a modern client of changes until the server shuts down.
    pub(crate) fn listen(self: &Arc<Self>, incoming: IncomingRequest) -> RequestTask {
        let params = incoming.params.raw.clone().unwrap_or_else(RawJson::empty_object);
        let filter = ChangeFilter::read(&params).limited_to(&incoming.endpoint);
        let channel = Arc::new(self.open_channel(&incoming));
        let sender = Arc::clone(&channel);
        let meta = JsonObject::new().with_raw(SUBSCRIPTION_ID, &incoming.id.0);
        let result = JsonObject::new().with_text("resultType", "complete").with_object("_meta", &meta);
        let notifier = ChangeNotifier {
            server: Arc::clone(self),
            endpoint: Arc::clone(&incoming.endpoint),
            seen_version: incoming.endpoint.services.tools.catalogue(&incoming.peer.client).version,
            filter,
            subscription: Some(incoming.id),
        };
        let mut shutdown = self.shutdown_signal();
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            tokio::select! {
                () = notifier.run(&sender) => {}
                () = shutdown.wait() => {}
            }
            Outcome::result(result.to_string())
        });
        RequestTask::new(channel, future)
    }

    /// Notifies a legacy client of changes of lists and of its subscriptions.
    pub(crate) fn notify_legacy_client(
        self: &Arc<Self>,
        endpoint: &Arc<ServedEndpoint>,
        channel: RequestChannel,
    ) -> RequestTask {
        let channel = Arc::new(channel);
        let seen_version = self.clients.last_catalogue_version(channel.peer.session_number);
        let sender = Arc::clone(&channel);
        let notifier = ChangeNotifier {
            server: Arc::clone(self),
            endpoint: Arc::clone(endpoint),
            seen_version: seen_version
                .unwrap_or_else(|| endpoint.services.tools.catalogue(&channel.peer.client).version),
            filter: ChangeFilter::everything().limited_to(endpoint),
            subscription: None,
        };
        // A client that initialized with another process may have listed other catalogues.
        let initialized_elsewhere =
            seen_version.is_none() && channel.peer.initialized_at.is_some_and(|at| at < self.started_at);
        let mut shutdown = self.shutdown_signal();
        let future: BoxFuture<'static, Outcome> = Box::pin(async move {
            if initialized_elsewhere {
                notifier.notify_if(notifier.filter.tools, &sender, TOOLS_CHANGED);
                notifier.notify_content_lists(&sender);
            }
            tokio::select! {
                () = notifier.run(&sender) => {}
                () = shutdown.wait() => {}
            }
            Outcome::result("{}")
        });
        RequestTask::new(channel, future)
    }
}

struct ChangeNotifier {
    server: Arc<McpServer>,
    endpoint: Arc<ServedEndpoint>,
    /// The version of the catalogue that the client listed last.
    seen_version: u64,
    filter: ChangeFilter,
    subscription: Option<RequestId>,
}

impl ChangeNotifier {
    /// Notifies of changes until the endpoint is retired.
    async fn run(&self, channel: &RequestChannel) {
        let retired = self.endpoint.retired();
        tokio::select! {
            () = self.notify_of_changes(channel) => {}
            () = retired => {
                self.notify_if(self.filter.tools, channel, TOOLS_CHANGED);
                self.notify_content_lists(channel);
            }
        }
    }

    async fn notify_of_changes(&self, channel: &RequestChannel) {
        // Listen before acknowledging, so that no change is lost.
        let mut events = self.events();
        let _subscriptions = self.subscribe().await;
        if self.subscription.is_some() {
            let granted = JsonObject::new().with_value("notifications", &self.filter.to_json());
            self.notify(channel, "notifications/subscriptions/acknowledged", granted);
        }
        while let Some(event) = events.next().await {
            match event {
                Change::Tools => self.notify_if(self.filter.tools, channel, TOOLS_CHANGED),
                Change::Content(ContentEvent::PromptsChanged) => {
                    self.notify_if(self.filter.prompts, channel, PROMPTS_CHANGED);
                }
                Change::Content(ContentEvent::ResourcesChanged) => {
                    self.notify_if(self.filter.resources, channel, RESOURCES_CHANGED);
                }
                Change::Content(ContentEvent::ResourceUpdated(uri)) => {
                    let is_wanted = match &self.filter.updates {
                        Some(updates) => updates.contains(&uri),
                        None => self.server.clients.is_subscribed(channel.peer.session_number, &uri),
                    };
                    if is_wanted {
                        let params = JsonObject::new().with_text("uri", &uri);
                        self.notify(channel, "notifications/resources/updated", params);
                    }
                }
                Change::Missed => self.notify_content_lists(channel),
            }
        }
        // Nothing will change any more, but the stream stays open.
        std::future::pending::<()>().await;
    }

    fn notify_content_lists(&self, channel: &RequestChannel) {
        self.notify_if(self.filter.prompts, channel, PROMPTS_CHANGED);
        self.notify_if(self.filter.resources, channel, RESOURCES_CHANGED);
    }

    fn notify_if(&self, is_requested: bool, channel: &RequestChannel, method: &str) {
        if is_requested {
            self.notify(channel, method, JsonObject::new());
        }
    }

    fn notify(&self, channel: &RequestChannel, method: &str, mut params: JsonObject) {
        if let Some(id) = &self.subscription {
            let meta = JsonObject::new().with_raw(SUBSCRIPTION_ID, &id.0);
            params = params.with_object("_meta", &meta);
        }
        channel.send(notification(method, &params));
    }

    fn events(&self) -> SelectAll<BoxStream<'static, Change>> {
        let mut all = SelectAll::new();
        let tools = Arc::clone(&self.endpoint.services.tools);
        if self.filter.tools {
            all.push(
                unfold((tools, self.seen_version), |(tools, seen_version)| async move {
                    let seen_version = tools.changed(seen_version).await;
                    Some((Change::Tools, (tools, seen_version)))
                })
                .boxed(),
            );
        }
        for receiver in self.endpoint.services.content.iter().filter_map(|content| content.events()) {
            all.push(
                unfold(receiver, |mut receiver| async move {
                    match receiver.recv().await {
                        Ok(event) => Some((Change::Content(event), receiver)),
                        Err(RecvError::Lagged(_)) => Some((Change::Missed, receiver)),
                        Err(RecvError::Closed) => None,
                    }
                })
                .boxed(),
            );
        }
        all
    }

    /// Subscribes to the resources that the client named.
    async fn subscribe(&self) -> SubscriptionGuard {
        let uris = self.filter.updates.clone().unwrap_or_default();
        for uri in &uris {
            // `subscriptions/listen` does not report failures of single resources.
            let _ = self.server.subscribe(&self.endpoint, uri).await;
        }
        SubscriptionGuard { server: Arc::clone(&self.server), endpoint: Arc::clone(&self.endpoint), uris }
    }
}

/// Releases subscriptions when dropped.
struct SubscriptionGuard {
    server: Arc<McpServer>,
    endpoint: Arc<ServedEndpoint>,
    uris: BTreeSet<String>,
}

impl Drop for SubscriptionGuard {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut self.uris);
        self.server.release_subscriptions(&self.endpoint, uris);
    }
}

impl McpServer {
    /// Adds a subscriber to a resource. Returns the response of the service that has it; none if no service has it.
    pub(crate) async fn subscribe(
        &self,
        endpoint: &ServedEndpoint,
        uri: &str,
    ) -> Option<Result<RawJson, RpcError>> {
        endpoint.subscribe(uri);
        forward_subscription(endpoint, "resources/subscribe", uri).await
    }

    /// Removes a subscriber from these resources.
    pub(crate) fn release_subscriptions(&self, endpoint: &Arc<ServedEndpoint>, uris: BTreeSet<String>) {
        let unused: Vec<String> = uris.into_iter().filter(|uri| endpoint.unsubscribe(uri)).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if !unused.is_empty() {
            let endpoint = Arc::clone(endpoint);
            runtime.spawn(async move {
                for uri in unused {
                    let _ = forward_subscription(&endpoint, "resources/unsubscribe", &uri).await;
                }
            });
        }
    }
}

/// Forwards a subscription to the service that has the resource. Returns its response; none if no service has it.
async fn forward_subscription(
    endpoint: &ServedEndpoint,
    method: &str,
    uri: &str,
) -> Option<Result<RawJson, RpcError>> {
    let params = RawJson::from_value(&json!({"uri": uri}));
    for content in &endpoint.services.content {
        let request = ContentRequest { method, params: &params, caller: None };
        let response = content.request(request).await;
        if response.is_some() {
            return response;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ChangeFilter {
        ChangeFilter::read(&RawJson::parse(text.to_owned()).unwrap())
    }

    #[test]
    fn only_requested_changes_are_notified() {
        assert_eq!(read("{}").to_json(), json!({}));
        assert_eq!(
            read(r#"{"notifications":{"toolsListChanged":1,"promptsListChanged":true}}"#).to_json(),
            json!({"promptsListChanged": true})
        );
        assert_eq!(
            read(r#"{"notifications":{"resourceSubscriptions":["b","a"]}}"#).to_json(),
            json!({"resourceSubscriptions": ["a", "b"]})
        );
        assert_eq!(read(r#"{"notifications":{"resourceSubscriptions":[1]}}"#).to_json(), json!({}));
    }
}
