//! Prompts, resources, completions and skills of the suite.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::RpcError;
use toolyard_mcp_server::{ContentCapabilities, ContentEvent, ContentKind, ContentRequest, ContentService};

use crate::{content_results, skills};

/// The resource with subscriptions.
pub(crate) const WATCHED_URI: &str = "test://watched-resource";

#[derive(Debug)]
pub(crate) struct FixtureContent {
    events: broadcast::Sender<ContentEvent>,
    /// Whether the prompt that is added and removed at run time is listed.
    has_extra_prompt: AtomicBool,
}

impl Default for FixtureContent {
    fn default() -> Self {
        Self { events: broadcast::Sender::new(64), has_extra_prompt: AtomicBool::new(false) }
    }
}

impl FixtureContent {
    /// Adds or removes a prompt.
    pub(crate) fn change_prompts(&self) {
        self.has_extra_prompt.fetch_xor(true, Ordering::AcqRel);
        self.send_event(ContentEvent::PromptsChanged);
    }

    pub(crate) fn send_event(&self, event: ContentEvent) {
        // There may be no listener.
        let _ = self.events.send(event);
    }

    fn entries(&self, kind: ContentKind) -> Vec<Value> {
        match kind {
            ContentKind::Prompts => prompts(self.has_extra_prompt.load(Ordering::Acquire)),
            ContentKind::Resources => resources(),
            ContentKind::ResourceTemplates => vec![json!({
                "uriTemplate": "test://template/{id}/data",
                "name": "template",
                "description": "Data by id",
                "mimeType": "application/json"
            })],
            ContentKind::Skills => skills::entries(),
        }
    }
}

impl ContentService for FixtureContent {
    fn capabilities(&self) -> ContentCapabilities {
        ContentCapabilities {
            prompts: true,
            resources: true,
            subscriptions: true,
            completions: true,
            skills: true,
            logging: true,
        }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        let entries = self.entries(kind).iter().map(RawJson::from_value).collect();
        Box::pin(std::future::ready(entries))
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move {
            let response = content_results::respond(&request).await?;
            Some(response.map(|value| RawJson::from_value(&value)))
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        Some(self.events.subscribe())
    }
}

fn prompts(with_extra_prompt: bool) -> Vec<Value> {
    let argument =
        |name: &str, description: &str| json!({"name": name, "description": description, "required": true});
    let mut all = vec![
        json!({"name": "test_input_required_result_prompt", "description": "Asks for a context first"}),
        json!({"name": "test_prompt_with_arguments", "description": "Takes two arguments", "arguments": [
            argument("arg1", "First test argument"), argument("arg2", "Second test argument")
        ]}),
        json!({"name": "test_prompt_with_embedded_resource", "description": "Sends a resource along", "arguments": [
            argument("resourceUri", "URI of the resource to embed")
        ]}),
        json!({"name": "test_prompt_with_image", "description": "Sends a picture along"}),
        json!({"name": "test_simple_prompt", "description": "Takes no arguments"}),
    ];
    if with_extra_prompt {
        all.push(json!({"name": "test_guest_prompt", "description": "Comes and goes"}));
    }
    all
}

fn resources() -> Vec<Value> {
    let resource = |uri: &str, name: &str, description: &str, kind: &str| json!({"uri": uri, "name": name, "description": description, "mimeType": kind});
    let mut all = vec![
        resource("test://static-text", "static-text", "A text", "text/plain"),
        resource("test://static-binary", "static-binary", "A picture", "image/png"),
        resource(WATCHED_URI, "watched-resource", "A resource that changes", "text/plain"),
    ];
    all.extend(skills::resources());
    all
}
