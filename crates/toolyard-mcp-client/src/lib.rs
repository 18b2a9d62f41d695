//! Connections to MCP servers, in every protocol revision and over every transport.
//!
//! [`connect`] opens one [`Session`]:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use toolyard_core::RawJson;
//! use toolyard_mcp_client::{ConnectOptions, ConnectTarget, HttpTarget, ToolCall, config::HttpKind, connect};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let target = HttpTarget::new("https://example.org/mcp", [])?;
//! let session = connect(ConnectTarget::Http(target, HttpKind::Auto), &ConnectOptions::new("example")).await?;
//! let tools = session.list_tools(Duration::from_secs(30)).await?;
//! let arguments = RawJson::parse(r#"{"text":"hello"}"#.to_owned())?;
//! let result = session.call_tool(ToolCall::new("echo", &arguments)).await?;
//! session.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! [`McpManager`] keeps all configured servers: it registers their cached tools without connecting, starts a server at its
//! first call, and restarts one that failed. A call passes through [`McpTool`] → [`ManagedServer`] (starts the server, once
//! for all callers) → [`Session`] (request, response, input requests) → [`PendingRequests`] (matches responses) → a
//! [`Transport`].
//!
//! | module | contents |
//! |---|---|
//! | [`config`] | server configurations, mcp.json and the formats of other clients |
//! | [`oauth`] | authorization of HTTP servers |

pub mod config;
mod content;
mod encryption;
mod instance_owner;
mod lifecycle;
pub mod oauth;
mod pinning;
mod process_guard;
mod sanitize;
mod server_secrets;
mod session;
mod transport;

pub use crate::{
    content::{
        frontmatter::{FrontmatterError, parse_frontmatter},
        server_content::ServerContent,
        skills::{
            LoadedSkill, MAX_SKILL_BYTES, MAX_SKILL_FILES, SKILLS_EXTENSION, SkillEntry, SkillError,
            SkillFile, SkillListing, is_skill_name,
        },
    },
    encryption::{EncryptionError, EncryptionKey},
    instance_owner::InstanceOwner,
    lifecycle::{
        catalogue_sharing::{CatalogueSharing, DiscoveryTurn},
        connect::{ConnectOptions, ConnectTarget, connect},
        connect_error::ConnectError,
        content_request::{ContentRequest, ServerRequestError},
        host::{Host, HostEnvironment, ToolRegistrar},
        isolation::pool::{InstanceLimit, IsolationLimits},
        manager::{ConfigChanges, McpManager},
        server::ManagedServer,
        shared::ServerEvent,
        state::ServerState,
        tool::{McpTool, ToolOffer},
    },
    pinning::{
        ApprovedTool, CacheError, MemoryServerStore, NameUser, NameUsers, PinnedSource, QuarantinedTool,
        RejectedTool, ServerCache, ServerPins, ToolApprovals,
    },
    process_guard::guard::{GuardProgram, run_guard},
    server_secrets::ServerSecrets,
    session::{
        elicitation::{ElicitationForm, FormError, FormField, declined_elicitation},
        error::RequestError,
        handle::Session,
        server_messages::SessionStatus,
        tool_call::ToolCall,
    },
    transport::{
        error::TransportError,
        http::target::{Authorizer, ChallengeError, HttpTarget, SecretHeader},
        message::{OutgoingMessage, SendOutcome, Transport},
        requests::pending::{PendingRequest, PendingRequests, ServerMessage},
        stdio::{
            connection::StdioTransport,
            environment::{INHERITED_VARIABLES, SERVER_VARIABLE, server_environment},
            launch::StdioLaunch,
            stderr_tail::StderrTail,
        },
    },
};
pub use toolyard_core::SecretText;
