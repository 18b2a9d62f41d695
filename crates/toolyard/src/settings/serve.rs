//! `[serve]` as plain data.

use std::{collections::BTreeMap, sync::Arc};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_core::ContentHash;
use toolyard_hub::{
    Budget,
    surface::{CLIENT_BUDGET, CLIENT_PATIENCE, Profile, Surface},
};

use super::{SettingsError, Span};

/// What `toolyard serve` offers, and to whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ServeSettings {
    /// In which form tools are offered where a profile says nothing else.
    pub surface: SurfaceSetting,
    /// The token that lets clients in over HTTP, as a reference to an environment variable: `${TOOLYARD_TOKEN}`. Without
    /// it, one is made and kept in a file that only you can read.
    pub token: Option<String>,
    /// Keys for session ids, as references to environment variables that hold 32 bytes each, as 64 hexadecimal digits or as
    /// base64: the current one and, while clients still hold sessions of it, the former one. All replicas need the same.
    /// Without them, one is made and kept in a file that only you can read.
    pub session_keys: Vec<String>,
    /// How many characters of a result clients get; the whole stays readable. 0 means all of it.
    pub result_budget: Option<usize>,
    /// How long a tool may be silent, such as `2m`.
    pub timeout: Option<Span>,
    /// Whether clients may ask agents: by the tool `ask_agent`, and over HTTP at `/v1` and `/runs`. Without a word on it they
    /// may as soon as there is a model. Agents reach whatever the main door offers, so that profiles never have them.
    pub agents: Option<bool>,
    /// Whether whoever has the token may also allow, over HTTP at `/runs/ID/approve`, what an agent asks before it changes
    /// something. Otherwise they may only deny it, and a person at this machine allows it: `toolyard runs approve`.
    pub approve: bool,
    /// Names under which clients may ask for this machine, besides its addresses.
    pub hosts: Vec<String>,
    /// Origins of web pages that may ask, such as `https://example.com`.
    pub origins: Vec<String>,
    /// Parts of the hub with limits of their own, each at `/mcp/NAME`.
    pub profiles: BTreeMap<String, ProfileSettings>,
}

/// One part of the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProfileSettings {
    /// In which form its tools are offered.
    pub surface: Option<SurfaceSetting>,
    /// Only tools of these servers; `*` stands for anything. Empty: of all.
    pub servers: Vec<String>,
    /// Only these tools: names, patterns such as `read_*`, or either with a source, such as `*@excel`. Empty: all.
    pub tools: Vec<String>,
    /// Never these tools.
    pub deny: Vec<String>,
    /// How many characters of a result clients get; 0 means all of it.
    pub budget: Option<usize>,
    /// How long a tool may be silent.
    pub timeout: Option<Span>,
}

/// In which form tools are offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SurfaceSetting {
    /// All of them, one by one.
    Full,
    /// Three tools that find, show and call the others.
    Search,
    /// Whichever costs the client's model less.
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
    /// What is offered where no profile is named.
    pub fn main_profile(&self) -> Profile {
        self.combined("", &ProfileSettings::default())
    }

    /// What is offered under a name.
    pub fn profile(&self, name: &str) -> Result<Profile, SettingsError> {
        let Some(settings) = self.profiles.get(name) else {
            let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are {}", known.join(", "))
            };
            return Err(SettingsError::Serve(format!("no profile is called `{name}`: {known}")));
        };
        Ok(self.combined(name, settings))
    }

    /// All profiles. A name that cannot stand in an address is an error.
    pub fn profiles(&self) -> Result<Vec<Profile>, SettingsError> {
        let is_plain = |name: &str| {
            !name.is_empty()
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if let Some(name) = self.profiles.keys().find(|name| !is_plain(name)) {
            let problem =
                format!("profiles.{name}: the name of a profile has letters, digits, `-` and `_` only");
            return Err(SettingsError::Serve(problem));
        }
        Ok(self.profiles.iter().map(|(name, settings)| self.combined(name, settings)).collect())
    }

    fn combined(&self, name: &str, settings: &ProfileSettings) -> Profile {
        let budget = match settings.budget.or(self.result_budget) {
            Some(0) => Budget::Whole,
            Some(characters) => Budget::Characters(characters),
            None => Budget::Characters(CLIENT_BUDGET),
        };
        Profile {
            name: Arc::from(name),
            surface: settings.surface.unwrap_or(self.surface).into(),
            servers: settings.servers.clone(),
            tools: settings.tools.clone(),
            deny: settings.deny.clone(),
            budget,
            timeout: settings.timeout.or(self.timeout).map_or(CLIENT_PATIENCE, |span| span.0),
            within: None,
        }
    }

    /// The token, looked up by the name of its variable; none where nothing was said.
    pub fn token(&self, variable: impl Fn(&str) -> Option<String>) -> Result<Option<String>, SettingsError> {
        let Some(reference) = &self.token else { return Ok(None) };
        let token = looked_up("token", reference, variable)?;
        if token.trim().len() < SHORTEST_TOKEN {
            let problem = format!("token: a token of less than {SHORTEST_TOKEN} characters can be guessed");
            return Err(SettingsError::Serve(problem));
        }
        Ok(Some(token))
    }

    /// The current and the former session key, looked up by the names of their variables; none where nothing was said.
    pub fn session_keys(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<CurrentAndFormer>, SettingsError> {
        let key = |reference: &String| {
            let text = looked_up("session_keys", reference, &variable)?;
            key_of(text.trim()).ok_or_else(|| {
                let problem = "session_keys: a key is 32 bytes, as 64 hexadecimal digits or as base64";
                SettingsError::Serve(problem.to_owned())
            })
        };
        match self.session_keys.as_slice() {
            [] => Ok(None),
            [current] => Ok(Some((key(current)?, None))),
            [current, former] => Ok(Some((key(current)?, Some(key(former)?)))),
            _ => {
                Err(SettingsError::Serve("session_keys: there is a current key and a former one".to_owned()))
            }
        }
    }
}

/// The current key, and the one before it.
pub type CurrentAndFormer = ([u8; 32], Option<[u8; 32]>);

/// 32 bytes, as `openssl rand` writes them with `-hex` or `-base64`.
fn key_of(text: &str) -> Option<[u8; 32]> {
    if let Ok(hash) = text.parse::<ContentHash>() {
        return Some(*hash.as_bytes());
    }
    let bytes = STANDARD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text.trim_end_matches('='))).ok()?;
    bytes.try_into().ok()
}

/// A shorter token can be guessed.
const SHORTEST_TOKEN: usize = 16;

fn looked_up(
    field: &str,
    reference: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, SettingsError> {
    let name = reference.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).ok_or_else(|| {
        SettingsError::Serve(format!(
            "{field} must name an environment variable, like `${{TOOLYARD_TOKEN}}`: secrets do not belong in files"
        ))
    })?;
    variable(name)
        .ok_or_else(|| SettingsError::Serve(format!("{field}: the environment variable `{name}` is not set")))
}
