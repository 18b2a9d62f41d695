//! Serves a [`Toolyard`] to MCP clients, over stdio or HTTP.

mod content;

use std::{future::Future, pin::Pin, sync::Arc};

use tokio::net::TcpListener;
use toolyard_gateway::HttpApi;
use toolyard_mcp_server::{
    Access, HttpConfig, McpServer, ServerConfig, SessionKeys, serve_http, serve_stdio,
};

pub(crate) use content::{FunctionContent, PromptFunction, ResourceFunction};
pub use content::{PromptMessage, PromptText, ResourceContent};

use crate::{Error, RemoteApproval, Toolyard};

impl Toolyard {
    /// Serves all tools, prompts, resources and servers to MCP clients. Name and version are what clients are told.
    ///
    /// ```no_run
    /// # async fn example(toolyard: toolyard::Toolyard) -> Result<(), toolyard::Error> {
    /// toolyard.serve("my-tools", "1.0.0").stdio().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn serve(&self, name: impl Into<String>, version: impl Into<String>) -> McpEndpoint<'_> {
        McpEndpoint {
            toolyard: self,
            name: name.into(),
            version: version.into(),
            instructions: None,
            agents: None,
            stop: Box::pin(std::future::pending()),
        }
    }
}

/// An MCP endpoint that is about to be served; made by [`Toolyard::serve`].
#[must_use]
pub struct McpEndpoint<'a> {
    toolyard: &'a Toolyard,
    name: String,
    version: String,
    instructions: Option<String>,
    agents: Option<RemoteApproval>,
    stop: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl std::fmt::Debug for McpEndpoint<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpEndpoint").field("name", &self.name).finish_non_exhaustive()
    }
}

impl McpEndpoint<'_> {
    /// Tells models how to use the tools.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Also offers the agents: as the tool `ask_agent`, and over HTTP with the whole HTTP API (`/api/v1`, `/v1`, `/runs`).
    pub fn agents(mut self, approval: RemoteApproval) -> Self {
        self.agents = Some(approval);
        self
    }

    /// Stops serving when this future completes. Calls in flight may end first.
    pub fn until(mut self, stop: impl Future<Output = ()> + Send + 'static) -> Self {
        self.stop = Box::pin(stop);
        self
    }

    /// Serves one client on stdin and stdout until it closes its side. Print nothing to stdout meanwhile.
    pub async fn stdio(self) -> Result<(), Error> {
        let (server, _) = self.build()?;
        Ok(serve_stdio(server, tokio::io::stdin(), tokio::io::stdout(), self.stop).await?)
    }

    /// Serves clients at `/mcp` of a listener. Without a token ([`Access::Open`]) every program on the machine can use the
    /// tools.
    pub async fn http(self, listener: TcpListener, access: Access) -> Result<(), Error> {
        let (server, api) = self.build()?;
        let mut config = HttpConfig::new(access);
        config.routes = api.map(|api| Arc::new(api) as _);
        Ok(serve_http(server, listener, config, self.stop).await?)
    }

    /// The server, and the HTTP API if agents are offered.
    fn build(&self) -> Result<(Arc<McpServer>, Option<HttpApi>), Error> {
        let mut config = ServerConfig::new(self.name.as_str(), self.version.as_str(), SessionKeys::random()?);
        config.instructions.clone_from(&self.instructions);
        let mut gateway = self.toolyard.gateway_config();
        let api = self.agents.map(|approval| {
            gateway.agents = Some(self.toolyard.agents_of_gateway(approval));
            self.toolyard.http_api_of(&gateway, approval)
        });
        Ok((Arc::new(gateway.build(config)), api))
    }
}
