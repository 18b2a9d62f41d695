//! What each scenario wants done. How it is done is the library's business.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolyard_core::{CallContext, RawJson, ToolCallRequest, ToolOutput};
use toolyard_mcp::{
    cache::ServerCache,
    client::{Host, McpManager, Session, Shelf},
    config::{HttpKind, McpServerConfig, TransportConfig},
    wire::{JsonObject, WireLimits},
};

use crate::{
    Failure, auth,
    house::{House, Tools},
    person::Agreeable,
};

/// The name of the server under test.
const SERVER: &str = "conformance";
/// The suite itself waits half a minute.
const PATIENCE: Duration = Duration::from_secs(25);

/// A scenario, and the server that plays it.
pub(crate) struct Scenario {
    name: String,
    context: Value,
    manager: McpManager,
    tools: Arc<Tools>,
    session: Arc<Session>,
}

impl Scenario {
    /// Connects, which reads the list of tools too.
    pub(crate) async fn open(url: &str, name: String, context: Value) -> Result<Self, Failure> {
        let tools = Arc::new(Tools::default());
        let asks_for_tokens = name.starts_with("auth/");
        let authorizer =
            asks_for_tokens.then(|| auth::authorizer(SERVER, url, &name, &context)).transpose()?;
        let manager = McpManager::new(Host {
            environment: Vec::new(),
            working_directory: PathBuf::from("."),
            guard: None,
            cache: ServerCache::in_memory(),
            registrar: Arc::clone(&tools) as _,
            input: Arc::new(Agreeable),
            surroundings: Arc::new(House { authorizer }),
            limits: WireLimits::default(),
            http: OnceLock::new(),
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

    /// Does what the scenario wants.
    pub(crate) async fn play(&self) -> Result<(), Failure> {
        match self.name.as_str() {
            // Connecting was all.
            "initialize" | "request-metadata" | "json-schema-ref-no-deref" => Ok(()),
            "tools_call" => self.call("add_numbers", json!({"a": 5, "b": 3})).await.map(drop),
            "elicitation-sep1034-client-defaults" => {
                self.call("test_client_elicitation_defaults", json!({})).await.map(drop)
            }
            "sse-retry" => self.call("test_reconnection", json!({})).await.map(drop),
            "sep-2322-client-request-state" => self.ask_back().await,
            "http-standard-headers" => self.everything().await,
            "http-custom-headers" => self.listed_calls().await,
            "http-invalid-tool-headers" => self.every_tool().await,
            "json-schema-2020-12-preservation" => self.echo_schema().await,
            "sep-2640-client-no-prefetch" => {
                self.session.list_skills(PATIENCE).await.map(drop).map_err(Into::into)
            }
            name if name.starts_with("sep-2640-client-verify-") => self.use_skills().await,
            name if name.starts_with("auth/") => self.call("test-tool", json!({})).await.map(drop),
            name => Err(format!("nothing is known about the scenario {name}").into()),
        }
    }

    async fn call(&self, tool: &str, arguments: impl Into<RawJson>) -> Result<ToolOutput, Failure> {
        let found = self.tools.get(tool).ok_or_else(|| format!("the server has no tool {tool}"))?;
        let context = CallContext::until(Instant::now() + PATIENCE);
        Ok(found.call(&ToolCallRequest::new(tool, arguments), &context).await?)
    }

    async fn request(&self, method: &'static str, about: Option<(&str, &str)>) -> Result<Value, Failure> {
        let fields = about.map_or_else(JsonObject::new, |(key, name)| JsonObject::new().with_text(key, name));
        let about = about.map(|(_, name)| name);
        Ok(self.session.request(method, about, fields, Some(PATIENCE)).await?.to_value())
    }

    fn shelf(&self) -> Result<Arc<Shelf>, Failure> {
        Ok(self.manager.server(SERVER).ok_or("the server is gone")?.shelf())
    }

    async fn ask_back(&self) -> Result<(), Failure> {
        for tool in ["echo_state", "no_state", "unrelated", "no_result_type"] {
            self.call(&format!("test_mrtr_{tool}"), json!({})).await?;
        }
        Ok(())
    }

    /// Uses everything that is listed once.
    async fn everything(&self) -> Result<(), Failure> {
        for tool in self.tools.names() {
            self.call(&tool, json!({})).await?;
        }
        for (list, method, field, key) in [
            ("resources/list", "resources/read", "resources", "uri"),
            ("prompts/list", "prompts/get", "prompts", "name"),
        ] {
            let listed = self.request(list, None).await?;
            for one in listed.get(field).and_then(Value::as_array).into_iter().flatten() {
                let name = one.get(key).and_then(Value::as_str).ok_or("something listed has no name")?;
                self.request(method, Some((key, name))).await?;
            }
        }
        Ok(())
    }

    /// Makes the calls that the suite asks for.
    async fn listed_calls(&self) -> Result<(), Failure> {
        let calls =
            self.context.get("toolCalls").and_then(Value::as_array).ok_or("no calls are asked for")?;
        for call in calls {
            let name = call.get("name").and_then(Value::as_str).ok_or("a call without a name")?;
            let arguments = call.get("arguments").cloned().unwrap_or_else(|| json!({}));
            self.call(name, arguments).await?;
        }
        Ok(())
    }

    /// Calls whatever was not quarantined.
    async fn every_tool(&self) -> Result<(), Failure> {
        for tool in self.tools.names() {
            self.call(&tool, json!({"region": "here"})).await?;
        }
        Ok(())
    }

    async fn echo_schema(&self) -> Result<(), Failure> {
        let shelf = self.shelf()?;
        let tool = shelf.in_service.iter().find(|tool| *tool.spec.name == *"json_schema_2020_12_tool");
        let schema = &tool.ok_or("the tool with the schema is missing")?.spec.input_schema;
        let arguments = RawJson::parse(JsonObject::new().with_raw("schema", schema).to_string())?;
        self.call("json_schema_echo", arguments).await.map(drop)
    }

    /// Loads every skill, and then every file of it.
    async fn use_skills(&self) -> Result<(), Failure> {
        for entry in self.session.list_skills(PATIENCE).await?.skills {
            let skill = self.session.load_skill(&entry, PATIENCE).await?;
            for file in &entry.files {
                self.session.read_skill_file(&skill, &file.uri, PATIENCE).await?;
            }
        }
        Ok(())
    }
}
