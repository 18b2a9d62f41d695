//! Prompts and resources made from async functions.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolyard_core::{BoxFuture, RawJson, params};
use toolyard_mcp::{RpcError, error_code};
use toolyard_mcp_server::{ContentCapabilities, ContentKind, ContentRequest, ContentService};

/// What a prompt returns: a text, which becomes the message of the user, or several messages.
pub trait PromptText {
    /// The messages.
    fn into_messages(self) -> Vec<PromptMessage>;
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptMessage {
    role: &'static str,
    text: String,
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: "user", text: text.into() }
    }

    /// A message of the assistant.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: "assistant", text: text.into() }
    }
}

impl PromptText for String {
    fn into_messages(self) -> Vec<PromptMessage> {
        vec![PromptMessage::user(self)]
    }
}

impl PromptText for &str {
    fn into_messages(self) -> Vec<PromptMessage> {
        vec![PromptMessage::user(self)]
    }
}

impl PromptText for Vec<PromptMessage> {
    fn into_messages(self) -> Self {
        self
    }
}

/// The content of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResourceContent {
    /// Text.
    Text(String),
    /// Binary data.
    Bytes(Vec<u8>),
}

impl From<String> for ResourceContent {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ResourceContent {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<u8>> for ResourceContent {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

type BoxedPrompt = dyn Fn(Value) -> BoxFuture<'static, Result<Vec<PromptMessage>, RpcError>> + Send + Sync;
type BoxedResource = dyn Fn() -> BoxFuture<'static, Result<ResourceContent, RpcError>> + Send + Sync;

/// A prompt made from a function.
#[derive(Clone)]
pub(crate) struct PromptFunction {
    name: String,
    entry: RawJson,
    get: Arc<BoxedPrompt>,
}

impl PromptFunction {
    pub(crate) fn new<A, F, Fut, T, E>(name: &str, description: &str, f: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: PromptText,
        E: fmt::Display,
    {
        let schema = schemars::schema_for!(A).to_value();
        let arguments: Vec<Value> = params(&schema)
            .into_iter()
            .map(|param| {
                json!({"name": param.name, "description": param.description, "required": param.required})
            })
            .collect();
        let entry = json!({"name": name, "description": description, "arguments": arguments});
        let get = move |arguments: Value| -> BoxFuture<'static, Result<Vec<PromptMessage>, RpcError>> {
            match serde_json::from_value::<A>(arguments) {
                Ok(arguments) => {
                    let prompt = f(arguments);
                    Box::pin(async move {
                        let messages = prompt.await.map(PromptText::into_messages);
                        messages.map_err(|error| rpc_error(error_code::INTERNAL_ERROR, &error))
                    })
                }
                Err(error) => {
                    Box::pin(std::future::ready(Err(rpc_error(error_code::INVALID_PARAMS, &error))))
                }
            }
        };
        Self { name: name.to_owned(), entry: entry.into(), get: Arc::new(get) }
    }
}

/// A resource made from a function.
#[derive(Clone)]
pub(crate) struct ResourceFunction {
    uri: String,
    mime_type: String,
    entry: RawJson,
    read: Arc<BoxedResource>,
}

impl ResourceFunction {
    pub(crate) fn new<F, Fut, T, E>(uri: &str, name: &str, mime_type: &str, f: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
        T: Into<ResourceContent>,
        E: fmt::Display,
    {
        let entry = json!({"uri": uri, "name": name, "mimeType": mime_type});
        let read = move || -> BoxFuture<'static, Result<ResourceContent, RpcError>> {
            let content = f();
            Box::pin(async move {
                let content = content.await.map(Into::into);
                content.map_err(|error| rpc_error(error_code::INTERNAL_ERROR, &error))
            })
        };
        Self {
            uri: uri.to_owned(),
            mime_type: mime_type.to_owned(),
            entry: entry.into(),
            read: Arc::new(read),
        }
    }
}

/// The prompts and resources of the embedding program.
#[derive(Clone, Default)]
pub(crate) struct FunctionContent {
    pub(crate) prompts: Vec<PromptFunction>,
    pub(crate) resources: Vec<ResourceFunction>,
}

impl FunctionContent {
    pub(crate) fn is_empty(&self) -> bool {
        self.prompts.is_empty() && self.resources.is_empty()
    }

    async fn prompt(&self, params: &RawJson) -> Option<Result<RawJson, RpcError>> {
        let params = params.to_value();
        let name = params.get("name").and_then(Value::as_str)?;
        let prompt = self.prompts.iter().find(|prompt| prompt.name == name)?;
        let arguments = params.get("arguments").cloned().unwrap_or_else(|| json!({}));
        let messages = (prompt.get)(arguments).await;
        let message = |message: &PromptMessage| json!({"role": message.role, "content": {"type": "text", "text": message.text}});
        Some(
            messages
                .map(|messages| json!({"messages": messages.iter().map(message).collect::<Vec<_>>()}).into()),
        )
    }

    async fn resource(&self, params: &RawJson) -> Option<Result<RawJson, RpcError>> {
        let params = params.to_value();
        let uri = params.get("uri").and_then(Value::as_str)?;
        let resource = self.resources.iter().find(|resource| resource.uri == uri)?;
        let content = match (resource.read)().await {
            Ok(ResourceContent::Text(text)) => {
                json!({"uri": uri, "mimeType": resource.mime_type, "text": text})
            }
            Ok(ResourceContent::Bytes(bytes)) => {
                json!({"uri": uri, "mimeType": resource.mime_type, "blob": STANDARD.encode(bytes)})
            }
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(json!({"contents": [content]}).into()))
    }
}

impl ContentService for FunctionContent {
    fn capabilities(&self) -> ContentCapabilities {
        ContentCapabilities {
            prompts: !self.prompts.is_empty(),
            resources: !self.resources.is_empty(),
            ..ContentCapabilities::default()
        }
    }

    fn list(&self, kind: ContentKind) -> BoxFuture<'_, Vec<RawJson>> {
        let entries = match kind {
            ContentKind::Prompts => self.prompts.iter().map(|prompt| prompt.entry.clone()).collect(),
            ContentKind::Resources => self.resources.iter().map(|resource| resource.entry.clone()).collect(),
            ContentKind::ResourceTemplates | ContentKind::Skills => Vec::new(),
        };
        Box::pin(std::future::ready(entries))
    }

    fn request<'a>(
        &'a self,
        request: ContentRequest<'a>,
    ) -> BoxFuture<'a, Option<Result<RawJson, RpcError>>> {
        Box::pin(async move {
            match request.method {
                "prompts/get" => self.prompt(request.params).await,
                "resources/read" => self.resource(request.params).await,
                _ => None,
            }
        })
    }
}

impl fmt::Debug for FunctionContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prompts: Vec<&str> = self.prompts.iter().map(|prompt| prompt.name.as_str()).collect();
        let resources: Vec<&str> = self.resources.iter().map(|resource| resource.uri.as_str()).collect();
        f.debug_struct("FunctionContent").field("prompts", &prompts).field("resources", &resources).finish()
    }
}

fn rpc_error(code: i64, error: &impl fmt::Display) -> RpcError {
    RpcError { code, message: error.to_string(), data: None }
}
