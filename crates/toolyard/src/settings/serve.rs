//! `[serve]` as plain data.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_hub::{Budget, CLIENT_IDLE_TIMEOUT, CLIENT_OUTPUT_BUDGET_CHARS, Profile, Surface};

use super::{
    CallSettings, CallerGroupSettings, CallerOAuthSettings, DrainPeriod, DurationSetting,
    ProxyIdentitySettings, SettingsError, error::resolve_token,
};

const DEFAULT_MAX_RUNS: u32 = 100;
const DEFAULT_RUN_LEASE: Duration = Duration::from_secs(30);
/// A shorter lease expires when the machine or the store is busy for a moment.
const MIN_RUN_LEASE: Duration = Duration::from_secs(1);
/// Commands wait this long for the lease of a process that died.
const MAX_RUN_LEASE: Duration = Duration::from_mins(1);

/// What `toolyard serve` offers to clients, and how they authenticate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServeSettings {
    /// How tools are offered, unless a profile says otherwise.
    pub surface: SurfaceSetting,
    /// The bearer token of HTTP clients, as a reference to an environment variable: `${TOOLYARD_TOKEN}`. By default, one is
    /// generated and stored in a file that only you can read.
    pub token: Option<String>,
    /// Maximum characters of a tool's output that clients get; `read_result` returns the rest. 0: unlimited.
    pub output_budget: Option<usize>,
    /// Whether clients may use agents: through the tool `ask_agent`, and over HTTP at `/v1` and `/api/v1/runs`. By default, if a
    /// model is configured. Agents may use every tool of the main endpoint, so profiles never offer them.
    pub agents: Option<bool>,
    /// Whether HTTP clients with the token may approve tool calls of agents, and add and change agents, at `/api/v1`. By
    /// default they may only deny calls; approval is given on this machine: `toolyard runs approve`.
    pub remote_approval: bool,
    /// How long connections are still accepted after SIGTERM, while `/readyz` fails, so that load balancers send requests
    /// elsewhere before they are refused. By default `15s` if the store is PostgreSQL, so that there may be other replicas;
    /// otherwise, and on a terminal, `0s`. nginx needs more than its `fail_timeout`, which is 10 s by default.
    pub drain: Option<DrainPeriod>,
    /// Servers without which `/readyz` fails. By default none: a failed server affects its own tools only.
    pub required_servers: Vec<String>,
    /// How long a run of an agent stays with a gateway that gives no sign of life, from `1s` to `1m`. Afterwards another gateway
    /// with the same store takes it over. By default `30s`.
    pub run_lease: Option<DurationSetting>,
    /// How many runs of agents this gateway executes at once, 100 by default. Further background runs (`POST /api/v1/runs`) wait until
    /// one of them ends, or until another gateway of the cluster has room for them. Runs that a client waits for (`/v1`,
    /// `ask_agent`) start at once, and count. 0 leaves all background runs to other gateways.
    pub max_runs: Option<u32>,
    /// Host names by which clients may reach this machine, besides its addresses.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may connect, such as `https://example.com`.
    pub allowed_origins: Vec<String>,
    /// The URL at which browsers reach this gateway, such as `https://tools.example.com`. Links to sign in to servers begin with
    /// it. By default the origin of `[serve.oauth] resource`, or the address of a gateway that only this machine can reach.
    pub public_url: Option<String>,
    /// Callers present access tokens of an OAuth 2.1 or OpenID Connect issuer, besides the gateway's own token and API keys of
    /// `toolyard callers`.
    pub oauth: Option<CallerOAuthSettings>,
    /// A proxy in front of the gateway authenticates callers and names them in a header.
    pub proxy_identity: Option<ProxyIdentitySettings>,
    /// What members of a group may use: groups that access tokens or the proxy name. If no group is listed, every caller may use
    /// all profiles and agents. Otherwise a caller may use what one of its groups may use, and a caller in none of them nothing.
    pub groups: BTreeMap<String, CallerGroupSettings>,
    /// Subsets of the tools, each at its own endpoint `/mcp/NAME`.
    pub profiles: BTreeMap<String, ProfileSettings>,
    /// `[call] timeout`, as far as [`with_call_timeout`](Self::with_call_timeout) was told; no key of this table.
    #[serde(skip)]
    pub call_timeout: Option<DurationSetting>,
}

/// A subset of the tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileSettings {
    /// How the profile's tools are offered.
    pub surface: Option<SurfaceSetting>,
    /// Only tools of these servers; `*` matches any text. Empty: all servers.
    pub servers: Vec<String>,
    /// Only these tools: names, patterns such as `read_*`, or either with a source, such as `*@excel`. Empty: all.
    pub tools: Vec<String>,
    /// Tools that are never offered.
    pub deny: Vec<String>,
}

/// How tools are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum SurfaceSetting {
    /// Every tool by itself.
    Full,
    /// Three tools that search, describe and call the others.
    Search,
    /// `search` if there are many tools and the client cannot search them itself, otherwise `full`.
    #[default]
    Auto,
}

impl From<SurfaceSetting> for Surface {
    fn from(setting: SurfaceSetting) -> Self {
        match setting {
            SurfaceSetting::Full => Self::Full,
            SurfaceSetting::Search => Self::Search,
            SurfaceSetting::Auto => Self::Auto,
        }
    }
}

impl ServeSettings {
    /// These settings with the timeout of `[call]`, which calls of clients have, too.
    #[must_use]
    pub fn with_call_timeout(mut self, call: &CallSettings) -> Self {
        self.call_timeout = call.timeout;
        self
    }

    /// The profile of the main endpoint.
    pub fn main_profile(&self) -> Profile {
        self.build_profile("", &ProfileSettings::default())
    }

    /// How long a run stays with a gateway that gives no sign of life.
    pub fn run_lease(&self) -> Result<Duration, SettingsError> {
        let lease = self.run_lease.map_or(DEFAULT_RUN_LEASE, |lease| lease.0);
        if (MIN_RUN_LEASE..=MAX_RUN_LEASE).contains(&lease) {
            Ok(lease)
        } else {
            Err(SettingsError::InvalidRunLease { min: MIN_RUN_LEASE, max: MAX_RUN_LEASE })
        }
    }

    /// How many runs this gateway executes before further background runs wait.
    pub fn max_runs(&self) -> usize {
        usize::try_from(self.max_runs.unwrap_or(DEFAULT_MAX_RUNS)).unwrap_or(usize::MAX)
    }

    /// A profile by its name.
    pub fn profile(&self, name: &str) -> Result<Profile, SettingsError> {
        let Some(settings) = self.profiles.get(name) else {
            let known = self.profiles.keys().cloned().collect();
            return Err(SettingsError::UnknownProfile { name: name.to_owned(), known });
        };
        Ok(self.build_profile(name, settings))
    }

    /// All profiles. A name that cannot be part of a URL is an error.
    pub fn profiles(&self) -> Result<Vec<Profile>, SettingsError> {
        let is_plain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if let Some(name) = self.profiles.keys().find(|name| !is_plain(name)) {
            return Err(SettingsError::InvalidProfileName { name: name.clone() });
        }
        Ok(self.profiles.iter().map(|(name, settings)| self.build_profile(name, settings)).collect())
    }

    fn build_profile(&self, name: &str, settings: &ProfileSettings) -> Profile {
        let budget = match self.output_budget {
            Some(0) => Budget::Unlimited,
            Some(characters) => Budget::Characters(characters),
            None => Budget::Characters(CLIENT_OUTPUT_BUDGET_CHARS),
        };
        Profile {
            name: Arc::from(name),
            surface: settings.surface.unwrap_or(self.surface).into(),
            servers: settings.servers.clone(),
            tools: settings.tools.clone(),
            deny: settings.deny.clone(),
            budget,
            timeout: self.call_timeout.map_or(CLIENT_IDLE_TIMEOUT, |timeout| timeout.0),
            within: None,
        }
    }

    /// The token, looked up by `variable`; `None` if not set.
    pub fn token(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, SettingsError> {
        resolve_token("[serve] token", self.token.as_deref(), "TOOLYARD_TOKEN", variable)
    }
}
