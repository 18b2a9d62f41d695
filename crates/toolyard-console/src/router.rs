//! [`Console`]: the router of all pages, and one-time sign-in links.

use std::{fmt, sync::Arc};

use axum::{Router, middleware::from_fn_with_state};

use crate::{
    SIGN_IN_PATH,
    api::ApiClient,
    config::{ConsoleAccess, ConsoleConfig},
    pages, request_context,
    session::{CodeError, SessionKeys, SignInCodes},
};

/// The web console.
pub struct Console {
    state: ConsoleState,
}

/// State that all handlers share.
#[derive(Clone)]
pub(crate) struct ConsoleState(Arc<SharedState>);

pub(crate) struct SharedState {
    pub(crate) api: ApiClient,
    pub(crate) access: Arc<dyn ConsoleAccess>,
    pub(crate) sessions: SessionKeys,
    pub(crate) codes: SignInCodes,
    pub(crate) operator_secret: Option<String>,
    pub(crate) version: &'static str,
}

impl std::ops::Deref for ConsoleState {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.0
    }
}

impl Console {
    /// Builds the pages.
    pub fn new(config: ConsoleConfig) -> Self {
        let ConsoleConfig { api, access, authorize, session_key, operator_secret, version } = config;
        let state = SharedState {
            api: ApiClient::new(api, authorize),
            access,
            sessions: SessionKeys::new(session_key),
            codes: SignInCodes::default(),
            operator_secret,
            version,
        };
        Self { state: ConsoleState(Arc::new(state)) }
    }

    /// The routes `/` and `/console/…`. They authenticate visitors themselves.
    pub fn router(&self) -> Router {
        pages::routes()
            .layer(from_fn_with_state(self.state.clone(), request_context::prepare))
            .with_state(self.state.clone())
    }

    /// Path and query of a link that signs its first visitor in as operator, within ten minutes.
    ///
    /// # Errors
    ///
    /// If the system has no random numbers or too many links are unused.
    pub fn sign_in_path(&self) -> Result<String, CodeError> {
        Ok(format!("{SIGN_IN_PATH}?code={}", self.state.codes.create()?))
    }
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}
