//! Requests about what a server offers besides tools, made on behalf of somebody.

use std::{sync::Arc, time::Duration};

use toolyard_core::{Caller, RawJson};

use super::{AskError, RequestError, Server, TransportError};
use crate::wire::JsonObject;

/// How long a server may be silent where its configuration does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request about content.
#[derive(Debug, Clone, Copy)]
pub struct ContentCall<'a> {
    /// Such as `prompts/get`.
    pub method: &'static str,
    /// The name or address it is about.
    pub about: Option<&'a str>,
    /// Its parameters but for what every request says.
    pub fields: &'a JsonObject,
    /// Who can be told and asked while it goes on.
    pub caller: Option<&'a Arc<dyn Caller>>,
}

impl Server {
    /// Makes a request in a live session, which is started if need be.
    pub async fn ask(self: &Arc<Self>, call: ContentCall<'_>) -> Result<RawJson, AskError> {
        let session = self.connect().await?;
        let ask = |session: Arc<super::Session>| async move {
            let silence = Some(self.config.call_timeout.unwrap_or(PATIENCE));
            let ContentCall { method, about, fields, caller } = call;
            let result = session.request_for(method, about, fields, silence, caller).await;
            // Over HTTP, nothing but a failed request tells that a server is gone.
            if let Err(RequestError::Transport(error @ TransportError::Unreachable(_))) = &result {
                self.unreachable(&session, error.to_string());
            }
            result
        };
        match ask(Arc::clone(&session)).await {
            // It was not looked at in a session that is gone, so it may be made in a new one.
            Err(error)
                if error.session_is_gone() || (error.had_no_effect() && session.closed().is_some()) =>
            {
                self.expired(&session);
                Ok(ask(self.connect().await?).await?)
            }
            result => Ok(result?),
        }
    }
}
