//! What each scenario does with the library.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolyard_core::{CallContext, RawJson, ToolCallRequest, ToolOutput};
use toolyard_mcp::{JsonObject, WireLimits};
use toolyard_mcp_client::{
    Host, McpManager, ServerCache, Session, ToolApprovals,
    config::{HttpKind, McpServerConfig, TransportConfig},
};

use crate::{
    Failure,
    accepting_user::AcceptingUser,
    auth,
    test_environment::{RegisteredTools, TestEnvironment},
};

/// The name of the server under test.
const SERVER: &str = "conformance";
/// Less than the half minute that the suite waits.
const TIMEOUT: Duration = Duration::from_secs(25);

/// A scenario, and the server under test.
pub(crate) struct Scenario {
    name: String,
    context: Value,
    manager: McpManager,
    tools: Arc<RegisteredTools>,
    session: Arc<Session>,
}

impl Scenario {
    /// Connects, which includes reading the list of tools.
    pub(crate) async fn open(url: &str, name: String, context: Value) -> Result<Self, Failure> {
        let tools = Arc::new(RegisteredTools::default());
        let needs_authorization = name.starts_with("auth/");
        let authorizer =
            needs_authorization.then(|| auth::authorizer(SERVER, url, &name, &context)).transpose()?;
        let manager = McpManager::new(Host {
            environment: Vec::new(),
            working_directory: PathBuf::from("."),
            guard: None,
            cache: ServerCache::in_memory(),
            registrar: Arc::clone(&tools) as _,
            host_environment: Arc::new(TestEnvironment { authorizer }),
            limits: WireLimits::default(),
            http: OnceLock::new(),
            telemetry: None,
        });
        let transport =
            TransportConfig::Http { url: url.to_owned(), headers: [].into(), kind: HttpKind::Auto };
        manager.apply(vec![McpServerConfig::new(SERVER, transport)]).await?;
        let session = manager.connect(SERVER).await?;
        Ok(Self { name, context, manager, tools, session })
    }

    pub(crate) async fn close(&self) {
        self.manager.close().await;
    }

    pub(crate) async fn run(&self) -> Result<(), Failure> {
        match self.name.as_str() {
            // These scenarios only connect.
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Ok(()),
            "tools_call" => self.call("add_numbers", json!({"a": 5, "b": 3})).await.map(drop),
            "elicitation-sep1034-client-defaults" => {
                self.call("test_client_elicitation_defaults", json!({})).await.map(drop)
            }
            "sse-retry" => self.call("test_reconnection", json!({})).await.map(drop),
            "sep-2322-client-request-state" => self.call_with_input().await,
            "http-standard-headers" => self.use_everything().await,
            "http-custom-headers" => self.make_requested_calls().await,
            "http-invalid-tool-headers" => self.call_all_tools().await,
            "json-schema-2020-12-preservation" => self.echo_schema().await,
            "sep-2640-client-no-prefetch" => {
                self.session.list_skills(TIMEOUT).await.map(drop).map_err(Into::into)
            }
            name if name.starts_with("sep-2640-client-verify-") => self.use_skills().await,
            name if name.starts_with("auth/") => self.call("test-tool", json!({})).await.map(drop),
            name => Err(format!("unknown scenario {name}").into()),
        }
    }

    async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, Failure> {
        let found = self.tools.get(tool).ok_or_else(|| format!("the server has no tool {tool}"))?;
        let mut context = CallContext::until(Instant::now() + TIMEOUT);
        context.caller = Some(Arc::new(AcceptingUser));
        Ok(found.call(&ToolCallRequest::new(tool, arguments), &context).await?)
    }

    /// Makes a request; `target` is the parameter that names what it is about, and its value.
    async fn request(&self, method: &'static str, target: Option<(&str, &str)>) -> Result<Value, Failure> {
        let fields =
            target.map_or_else(JsonObject::new, |(key, name)| JsonObject::new().with_text(key, name));
        let name = target.map(|(_, name)| name);
        Ok(self.session.request(method, name, fields, Some(TIMEOUT)).await?.to_value())
    }

    fn approvals(&self) -> Result<Arc<ToolApprovals>, Failure> {
        Ok(self.manager.server(SERVER).ok_or("the server is not configured")?.tool_approvals())
    }

    async fn call_with_input(&self) -> Result<(), Failure> {
        for tool in ["echo_state", "no_state", "unrelated", "no_result_type"] {
            self.call(&format!("test_mrtr_{tool}"), json!({})).await?;
        }
        Ok(())
    }

    /// Uses every tool, resource and prompt once.
    async fn use_everything(&self) -> Result<(), Failure> {
        for tool in self.tools.names() {
            self.call(&tool, json!({})).await?;
        }
        for (list, method, field, key) in [
            ("resources/list", "resources/read", "resources", "uri"),
            ("prompts/list", "prompts/get", "prompts", "name"),
        ] {
            let listed = self.request(list, None).await?;
            for entry in listed.get(field).and_then(Value::as_array).into_iter().flatten() {
                let name = entry.get(key).and_then(Value::as_str).ok_or("a listed entry has no name")?;
                self.request(method, Some((key, name))).await?;
            }
        }
        Ok(())
    }

    /// Makes the calls that the suite requests.
    async fn make_requested_calls(&self) -> Result<(), Failure> {
        let calls =
            self.context.get("toolCalls").and_then(Value::as_array).ok_or("the suite requests no calls")?;
        for call in calls {
            let name = call.get("name").and_then(Value::as_str).ok_or("a requested call has no name")?;
            let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
            self.call(name, arguments).await?;
        }
        Ok(())
    }

    /// Calls every tool that is not quarantined.
    async fn call_all_tools(&self) -> Result<(), Failure> {
        for tool in self.tools.names() {
            self.call(&tool, json!({"region": "here"})).await?;
        }
        Ok(())
    }

    async fn echo_schema(&self) -> Result<(), Failure> {
        let approvals = self.approvals()?;
        let tool = approvals.approved().iter().find(|tool| *tool.spec.name == *"json_schema_2020_12_tool");
        let schema = &tool.ok_or("the tool with the schema is missing")?.spec.input_schema;
        let arguments = RawJson::parse(JsonObject::new().with_raw("schema", schema).to_string())?;
        self.call("json_schema_echo", arguments).await.map(drop)
    }

    /// Loads every skill with all its files.
    async fn use_skills(&self) -> Result<(), Failure> {
        for entry in self.session.list_skills(TIMEOUT).await?.skills {
            let skill = self.session.load_skill(&entry, TIMEOUT).await?;
            for file in &entry.files {
                self.session.read_skill_file(&skill, &file.uri, TIMEOUT).await?;
            }
        }
        Ok(())
    }
}
