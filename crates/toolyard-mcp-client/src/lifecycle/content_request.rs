//! Requests about prompts, resources and skills of a server, and subscriptions to its resources.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;
use toolyard_core::{Caller, RawJson, RevisionFamily};
use toolyard_mcp::JsonObject;

use crate::{
    lifecycle::{
        back_channel::lacks_back_channel, connect_error::ConnectError, server::ManagedServer,
        subscriptions::MAX_SUBSCRIBED_RESOURCES,
    },
    session::{error::RequestError, handle::Session},
    transport::error::TransportError,
};

/// How long a server may be idle during a request if its configuration does not say.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(60);
const SUBSCRIBE_TIMEOUT: Duration = Duration::from_secs(10);

/// A request about prompts, resources or skills.
#[derive(Debug, Clone, Copy)]
pub struct ContentRequest<'a> {
    /// Such as `prompts/get`.
    pub method: &'static str,
    /// The name or URI it is about.
    pub subject: Option<&'a str>,
    /// The parameters, without the `_meta` that every request carries.
    pub fields: &'a JsonObject,
    /// Takes progress and log messages, and answers input requests.
    pub caller: Option<&'a Arc<dyn Caller>>,
}

/// Why a request to a server has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerRequestError {
    /// There is no session.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Too many resources of the server have subscribers.
    ///
    /// Remedy: end subscriptions that are not needed (`resources/unsubscribe`).
    #[error("{MAX_SUBSCRIBED_RESOURCES} resources of the server have subscribers already")]
    TooManySubscriptions,
}

impl ManagedServer {
    /// Makes a request in the live session of the instance that serves the caller, which is started if necessary.
    pub async fn request_content(
        self: &Arc<Self>,
        request: ContentRequest<'_>,
    ) -> Result<RawJson, ServerRequestError> {
        let deadline = Instant::now() + DEFAULT_IDLE_TIMEOUT;
        let instance = self.instance_for(None, request.caller, deadline).await?;
        instance.server.request_in_instance(request).await
    }

    async fn request_in_instance(
        self: &Arc<Self>,
        request: ContentRequest<'_>,
    ) -> Result<RawJson, ServerRequestError> {
        let cause = request.caller.and_then(|caller| caller.span());
        let session = self.connect_for(cause).await?;
        let identity = request.caller.and_then(|caller| caller.identity()).map(|identity| &**identity);
        self.check_may_share(&session, identity)?;
        match self.request_in(&session, request).await {
            // The request was not processed, so it may be sent again in a new session.
            Err(error)
                if error.is_session_expired() || (error.had_no_effect() && session.closed().is_some()) =>
            {
                self.expire_session(&session);
                let session = self.connect().await?;
                self.check_may_share(&session, identity)?;
                Ok(self.request_in(&session, request).await?)
            }
            // Prompts, resources and skills are only read, so the request may be repeated.
            Err(error) if lacks_back_channel(&error) && self.gain_back_channel(&session).await => {
                let session = self.connect().await?;
                self.check_may_share(&session, identity)?;
                Ok(self.request_in(&session, request).await?)
            }
            result => Ok(result?),
        }
    }

    async fn request_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: ContentRequest<'_>,
    ) -> Result<RawJson, RequestError> {
        let idle_timeout = Some(self.config.call_timeout.unwrap_or(DEFAULT_IDLE_TIMEOUT));
        let ContentRequest { method, subject, fields, caller } = request;
        let result = session.request_for(method, subject, fields, idle_timeout, caller).await;
        self.replace_if_unreachable(session, result.as_ref().err());
        result
    }

    /// Replaces the session if the request did not reach the server: over HTTP, only that shows that a server is gone.
    pub(super) fn replace_if_unreachable(
        self: &Arc<Self>,
        session: &Arc<Session>,
        error: Option<&RequestError>,
    ) {
        if let Some(RequestError::Transport(error @ TransportError::Unreachable(_))) = error {
            self.replace_unreachable_session(session, &error.to_string());
        }
    }

    /// Subscribes to a resource for as long as the server is configured, across sessions. `subscriber` is any number that
    /// identifies the subscriber in [`Self::unsubscribe`].
    pub async fn subscribe(self: &Arc<Self>, subscriber: u64, uri: &str) -> Result<(), ServerRequestError> {
        let session = self.connect().await?;
        let added = self.state.lock().subscriptions.add(subscriber, uri);
        let is_first = added.ok_or(ServerRequestError::TooManySubscriptions)?;
        if !is_first {
            return Ok(());
        }
        let outcome = self.send_subscription(&session, "resources/subscribe", uri).await;
        if outcome.is_err() {
            self.state.lock().subscriptions.remove(subscriber, uri);
        }
        outcome.map_err(Into::into)
    }

    /// Ends a subscription.
    pub async fn unsubscribe(self: &Arc<Self>, subscriber: u64, uri: &str) -> Result<(), ServerRequestError> {
        let was_last = self.state.lock().subscriptions.remove(subscriber, uri);
        if was_last && let Some(session) = self.live_session() {
            self.send_subscription(&session, "resources/unsubscribe", uri).await?;
        }
        Ok(())
    }

    async fn send_subscription(
        &self,
        session: &Session,
        method: &'static str,
        uri: &str,
    ) -> Result<(), RequestError> {
        match session.revision_family() {
            RevisionFamily::Legacy => {
                let fields = JsonObject::new().with_text("uri", uri);
                session.request(method, Some(uri), fields, Some(SUBSCRIBE_TIMEOUT)).await.map(drop)
            }
            RevisionFamily::Modern => {
                session.listen_for_resources(self.state.lock().subscriptions.uris());
                Ok(())
            }
        }
    }

    /// Sends the log level and all subscriptions to a new session.
    pub(super) fn restore_session_settings(self: &Arc<Self>, session: &Arc<Session>) {
        let (level, uris) = (self.shared.log_level.lock().clone(), self.state.lock().subscriptions.uris());
        if level.is_none() && uris.is_empty() {
            return;
        }
        let (server, session) = (Arc::clone(self), Arc::clone(session));
        tokio::spawn(async move {
            if let Some(level) = level {
                session.set_log_level(&level).await;
            }
            for uri in uris {
                if let Err(error) = server.send_subscription(&session, "resources/subscribe", &uri).await {
                    tracing::warn!(server = %server.config.id, uri, %error, "failed to subscribe again");
                }
            }
        });
    }
}
