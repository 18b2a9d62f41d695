//! The tools of the suite.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::watch, time::sleep};
use toolyard_core::{
    BoxFuture, CallInputRequest, CallProgress, Caller, Catalogue, ClientInfo, ContentBlock, ErrorKind,
    RawJson, ServiceCall, ToolError, ToolOutput, ToolService,
};
use toolyard_mcp_server::ContentEvent;

use crate::{
    content::{FixtureContent, WATCHED_URI},
    definitions::{PIXEL, SILENCE, tools},
    input_requests::{choices, defaults, form, person, roots, sampling},
};

#[derive(Debug)]
pub(crate) struct FixtureTools {
    catalogue: Mutex<Arc<Catalogue>>,
    version: watch::Sender<u64>,
    content: Arc<FixtureContent>,
}

impl FixtureTools {
    pub(crate) fn new(content: Arc<FixtureContent>) -> Self {
        let catalogue = Arc::new(Catalogue { version: 1, tools: tools(false) });
        Self { catalogue: Mutex::new(catalogue), version: watch::Sender::new(1), content }
    }

    /// Adds or removes the dynamic tool.
    fn toggle_extra_tool(&self) {
        let mut catalogue = self.catalogue.lock();
        let version = catalogue.version + 1;
        *catalogue = Arc::new(Catalogue { version, tools: tools(version.is_multiple_of(2)) });
        self.version.send_replace(version);
    }

    async fn execute(&self, call: &ServiceCall) -> Result<ToolOutput, ToolError> {
        let name = call.request.tool_name.as_str();
        let arguments = call.request.arguments.to_value();
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let interaction = Interaction { caller: call.caller.as_deref() };
        Ok(match name {
            "test_simple_text" => ToolOutput::text("This is a simple text response for testing."),
            "test_image_content" => blocks([image()]),
            "test_audio_content" => {
                blocks([ContentBlock::Audio { data: SILENCE.to_owned(), mime_type: "audio/wav".to_owned() }])
            }
            "test_embedded_resource" => {
                let content = "This is an embedded resource content.";
                blocks([resource("test://embedded-resource", "text/plain", content)])
            }
            "test_multiple_content_types" => blocks([
                ContentBlock::text("Multiple content types test:"),
                image(),
                resource(
                    "test://mixed-content-resource",
                    "application/json",
                    r#"{"test":"data","value":123}"#,
                ),
            ]),
            "test_error_handling" => {
                return Err(ToolError::failed("This tool intentionally returns an error for testing"));
            }
            "test_tool_with_logging" | "test_logging_tool" => interaction.log().await,
            "test_tool_with_progress" => interaction.progress().await,
            "test_sampling" => interaction.sample(&sampling("sampling", &text("prompt"), 100)).await?,
            "test_elicitation" => interaction.elicit("User response", &person(&text("message"))).await?,
            "test_elicitation_sep1034_defaults" => {
                interaction.elicit("Elicitation completed", &defaults()).await?
            }
            "test_elicitation_sep1330_enums" => {
                interaction.elicit("Elicitation completed", &choices()).await?
            }
            "test_trigger_tool_change" => {
                self.toggle_extra_tool();
                ToolOutput::text("the list of tools has changed")
            }
            "test_trigger_prompt_change" => {
                self.content.change_prompts();
                ToolOutput::text("the list of prompts has changed")
            }
            "test_trigger_resource_update" => {
                self.content.send_event(ContentEvent::ResourceUpdated(WATCHED_URI.to_owned()));
                ToolOutput::text("the resource has changed")
            }
            "test_x_mcp_header" => ToolOutput::text(format!("region: {}", text("region"))),
            "json_schema_2020_12_tool" | "test_guest" => ToolOutput::text(arguments.to_string()),
            _ => return interaction.execute_input_tool(name).await,
        })
    }
}

impl ToolService for FixtureTools {
    fn catalogue(&self, _client: &ClientInfo) -> Arc<Catalogue> {
        Arc::clone(&self.catalogue.lock())
    }

    fn changed(&self, seen_version: u64) -> BoxFuture<'_, u64> {
        let mut version = self.version.subscribe();
        Box::pin(async move {
            let changed =
                version.wait_for(|version| *version != seen_version).await.map(|version| *version).ok();
            match changed {
                Some(version) => version,
                None => std::future::pending().await,
            }
        })
    }

    fn describe(&self, name: &str, _client: &ClientInfo) -> Option<RawJson> {
        let catalogue = self.catalogue(&ClientInfo::default());
        catalogue.tools.iter().find(|tool| tool.name.as_ref() == name).map(|tool| tool.definition.clone())
    }

    fn call<'a>(&'a self, call: &'a ServiceCall) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.execute(call))
    }
}

fn blocks<const N: usize>(content: [ContentBlock; N]) -> ToolOutput {
    ToolOutput { content: content.into(), ..ToolOutput::default() }
}

fn image() -> ContentBlock {
    ContentBlock::Image { data: PIXEL.to_owned(), mime_type: "image/png".to_owned() }
}

fn resource(uri: &str, kind: &str, text: &str) -> ContentBlock {
    ContentBlock::Resource { resource: json!({"uri": uri, "mimeType": kind, "text": text}) }
}

/// A call that sends notifications and requests input.
struct Interaction<'a> {
    caller: Option<&'a dyn Caller>,
}

impl Interaction<'_> {
    async fn log(&self) -> ToolOutput {
        for (index, message) in
            ["Tool execution started", "Tool processing data", "Tool execution completed"].iter().enumerate()
        {
            if index > 0 {
                sleep(Duration::from_millis(50)).await;
            }
            if let Some(caller) = self.caller {
                caller.log(&RawJson::from(json!({"level": "info", "logger": "fixtures", "data": message})));
            }
        }
        ToolOutput::text("Tool execution completed")
    }

    async fn progress(&self) -> ToolOutput {
        for progress in [0.0, 50.0, 100.0] {
            if progress > 0.0 {
                sleep(Duration::from_millis(50)).await;
            }
            if let Some(caller) = self.caller {
                caller.progress(&CallProgress { progress, total: Some(100.0), message: None });
            }
        }
        ToolOutput::text("Tool execution completed")
    }

    async fn request_inputs(&self, requests: &[CallInputRequest]) -> Result<Vec<Value>, ToolError> {
        let caller = self.caller.ok_or_else(|| ToolError::failed("no client can be asked"))?;
        let responses = caller.request_input(requests).await;
        let responses = responses.map_err(|error| ToolError::failed(error.to_string()))?;
        Ok(responses.iter().map(RawJson::to_value).collect())
    }

    async fn request_input(&self, request: &CallInputRequest) -> Result<Value, ToolError> {
        Ok(self.request_inputs(std::slice::from_ref(request)).await?.pop().unwrap_or_default())
    }

    async fn sample(&self, request: &CallInputRequest) -> Result<ToolOutput, ToolError> {
        let response = self.request_input(request).await?;
        let text = response.pointer("/content/text").and_then(Value::as_str).unwrap_or_default();
        Ok(ToolOutput::text(format!("LLM response: {text}")))
    }

    async fn elicit(&self, label: &str, request: &CallInputRequest) -> Result<ToolOutput, ToolError> {
        let response = self.request_input(request).await?;
        let action = response.get("action").and_then(Value::as_str).unwrap_or_default();
        let content = response.get("content").cloned().unwrap_or_default();
        Ok(ToolOutput::text(format!("{label}: action={action}, content={content}")))
    }

    /// Executes the tools that are named after input requests.
    async fn execute_input_tool(&self, name: &str) -> Result<ToolOutput, ToolError> {
        let confirmation_form = || form("confirm", "Please confirm", "ok", "boolean");
        let name_form = || form("user_name", "What is your name?", "name", "string");
        Ok(match name {
            "test_input_required_result_elicitation" => {
                let response = self.request_input(&name_form()).await?;
                let name = response.pointer("/content/name").and_then(Value::as_str).unwrap_or("stranger");
                ToolOutput::text(format!("Hello, {name}!"))
            }
            "test_streaming_elicitation" => self.elicit("User response", &name_form()).await?,
            "test_input_required_result_sampling" => {
                self.sample(&sampling("capital_question", "What is the capital of France?", 100)).await?
            }
            "test_missing_capability" => self.sample(&sampling("needed", "Say something", 10)).await?,
            "test_input_required_result_list_roots" => {
                let response = self.request_input(&roots()).await?;
                ToolOutput::text(format!("Roots: {}", response.get("roots").cloned().unwrap_or_default()))
            }
            "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => {
                self.request_input(&confirmation_form()).await?;
                ToolOutput::text("state-ok")
            }
            "test_input_required_result_multiple_inputs" => {
                let greeting = sampling("greeting", "Generate a greeting", 50);
                let responses = self.request_inputs(&[name_form(), greeting, roots()]).await?;
                ToolOutput::text(format!("All answered: {}", Value::from(responses)))
            }
            "test_input_required_result_multi_round" => {
                self.request_input(&form("step1", "Step 1: What is your name?", "name", "string")).await?;
                let response = self
                    .request_input(&form("step2", "Step 2: What is your favorite color?", "color", "string"))
                    .await?;
                ToolOutput::text(format!("Both answered: {response}"))
            }
            "test_input_required_result_capabilities" => {
                let capabilities =
                    self.caller.map(|caller| caller.capabilities().to_value()).unwrap_or_default();
                let mut requests = Vec::new();
                if capabilities.get("elicitation").is_some() {
                    requests.push(name_form());
                }
                if capabilities.get("sampling").is_some() {
                    requests.push(sampling("greeting", "Generate a greeting", 50));
                }
                ToolOutput::text(format!("Answered: {}", Value::from(self.request_inputs(&requests).await?)))
            }
            _ => {
                let error = ToolError::new(ErrorKind::UnknownTool, format!("tool `{name}` does not exist"));
                return Err(error.with_hint("tools/list names those that do"));
            }
        })
    }
}
