//! Prompts, resources, completions and skills of the suite.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tokio::sync::broadcast;
use toolyard_core::{BoxFuture, RawJson};
use toolyard_mcp::RpcError;
use toolyard_mcp_server::{ContentEvent, ContentKind, ContentKinds, ContentRequest, ContentService};

use crate::{content_answers, skills};

/// The resource with subscriptions.
pub(crate) const WATCHED: &str = "test://watched-resource";

/// All content.
#[derive(Debug)]
pub(crate) struct FixtureContent {
    events: broadcast::Sender<ContentEvent>,
    has_guest: AtomicBool,
}

impl Default for FixtureContent {
    fn default() -> Self {
        Self { events: broadcast::Sender::new(64), has_guest: AtomicBool::new(false) }
    }
}

impl FixtureContent {
    /// Adds or removes a prompt.
    pub(crate) fn change_prompts(&self) {
        self.has_guest.fetch_xor(true, Ordering::AcqRel);
        self.tell(ContentEvent::PromptsChanged);
    }

    pub(crate) fn tell(&self, event: ContentEvent) {
        // There may be no listener.
        let _ = self.events.send(event);
    }

    fn entries(&self, kind: ContentKind) -> Vec<Value> {
        match kind {
            ContentKind::Prompts => prompts(self.has_guest.load(Ordering::Acquire)),
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
    fn kinds(&self) -> ContentKinds {
        ContentKinds {
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
            let answer = content_answers::answer(&request).await?;
            Some(answer.map(|value| RawJson::from_value(&value)))
        })
    }

    fn events(&self) -> Option<broadcast::Receiver<ContentEvent>> {
        Some(self.events.subscribe())
    }
}

fn prompts(with_guest: bool) -> Vec<Value> {
    let argument = |name: &str, about: &str| json!({"name": name, "description": about, "required": true});
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
    if with_guest {
        all.push(json!({"name": "test_guest_prompt", "description": "Comes and goes"}));
    }
    all
}

fn resources() -> Vec<Value> {
    let resource = |uri: &str, name: &str, about: &str, kind: &str| json!({"uri": uri, "name": name, "description": about, "mimeType": kind});
    let mut all = vec![
        resource("test://static-text", "static-text", "A text", "text/plain"),
        resource("test://static-binary", "static-binary", "A picture", "image/png"),
        resource(WATCHED, "watched-resource", "A resource that changes", "text/plain"),
    ];
    all.extend(skills::resources());
    all
}
