//! Reads requests. What cannot be read is refused in the form of the API.

use std::{convert::Infallible, sync::Arc};

use axum::extract::{
    FromRequest, FromRequestParts, Path, Query, RawPathParams, Request,
    path::ErrorKind as PathError,
    rejection::{BytesRejection, PathRejection},
};
use bytes::Bytes;
use http::{StatusCode, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};
use serde_path_to_error::Segment;
use toolyard_core::{CallerIdentity, RESERVED_CALLER_NAMES};
use toolyard_mcp_server::RouteRequest;

use super::{ApiState, error_code::ErrorCode};
use crate::{
    admin::{AdminProvider, SettingsProvider},
    agents::{AgentApi, ApiError},
};

/// Who sent a request: an extension of the request, set by whoever authenticates it. Runs, conversations and idempotency keys
/// belong to a caller.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthenticatedCaller(pub Arc<CallerIdentity>);

impl<S: Sync> FromRequestParts<S> for AuthenticatedCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// Marks a request of the operator: an extension of the request, set in process by the application for a session that was opened
/// with the operator's secret, such as by a one-time link. No header or token of the API leads to it, so that the access token
/// alone, which a model may have, never makes an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorAccess;

/// The role of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestRole {
    /// A client of the HTTP API, which may be a model.
    Client,
    /// The operator, by [`OperatorAccess`].
    Operator,
}

/// Who sends a request: decides what it may do, and is recorded with what it does.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    role: RequestRole,
    pub(crate) identity: Arc<CallerIdentity>,
}

impl Requester {
    pub(crate) fn is_operator(&self) -> bool {
        self.role == RequestRole::Operator
    }

    /// The name in the audit log: that of an authenticated caller, or else `http`; `operator` is the operator's only.
    pub(crate) fn audit_name(&self) -> Arc<str> {
        let [operator, client] = RESERVED_CALLER_NAMES;
        match (self.role, self.identity.is_distinguished()) {
            (RequestRole::Operator, true) => format!("{operator} ({})", self.identity.audit_name()).into(),
            (RequestRole::Operator, false) => operator.into(),
            (RequestRole::Client, true) => self.identity.audit_name(),
            (RequestRole::Client, false) => client.into(),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Requester {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let AuthenticatedCaller(identity) = AuthenticatedCaller::from_request_parts(parts, state).await?;
        let is_operator = parts.extensions.get::<OperatorAccess>().is_some();
        Ok(Self { role: if is_operator { RequestRole::Operator } else { RequestRole::Client }, identity })
    }
}

/// The operator; other requests are refused.
#[derive(Debug, Clone)]
pub(crate) struct OperatorOnly(pub(crate) Requester);

impl FromRequestParts<ApiState> for OperatorOnly {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let Ok(requester) = Requester::from_request_parts(parts, state).await;
        if requester.is_operator() {
            return Ok(Self(requester));
        }
        // A model may read this, so it does not say how the operator does it.
        let error = ApiError::bad_request("this operation is reserved for the operator of this gateway");
        Err(ApiError { status: StatusCode::FORBIDDEN, code: Some(ErrorCode::OperatorOnly), ..error })
    }
}

/// The whole request, with its body as text.
impl FromRequest<ApiState> for RouteRequest {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let caller = parts.extensions.get::<AuthenticatedCaller>().cloned().unwrap_or_default();
        let head = Self {
            method: parts.method.clone(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            headers: parts.headers.clone(),
            identity: caller.0,
            body: String::new(),
        };
        let body = read_text(Request::from_parts(parts, body), state).await?;
        Ok(Self { body, ..head })
    }
}

async fn read_text(request: Request, state: &ApiState) -> Result<String, ApiError> {
    let bytes = Bytes::from_request(request, state).await.map_err(|rejection: BytesRejection| {
        let message = match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => "the body is too long",
            _ => "the body cannot be read",
        };
        ApiError::refused(rejection.status(), message)
    })?;
    String::from_utf8(bytes.into())
        .map_err(|_| ApiError::refused(StatusCode::BAD_REQUEST, "the body cannot be read as UTF-8 text"))
}

/// A body in JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<ApiState> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &ApiState) -> Result<Self, ApiError> {
        let text = read_text(request, state).await?;
        parse_body(&text).map(Self)
    }
}

/// Reads a body in JSON. The error names the field that is unknown or has the wrong type.
pub(crate) fn parse_body<'a, T: Deserialize<'a>>(body: &'a str) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_str(body);
    let parsed = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let has_field = matches!(error.path().iter().next(), Some(Segment::Map { .. }));
        let field = error.path().to_string();
        let error = error.into_inner();
        let param = (has_field && error.is_data()).then(|| field.into());
        ApiError { param, ..ApiError::bad_request(format!("invalid body: {error}")) }
    })?;
    reader.end().map_err(|error| ApiError::bad_request(format!("invalid body: {error}")))?;
    Ok(parsed)
}

/// Parameters in the path.
pub(crate) struct ApiPath<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<ApiState> for ApiPath<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let rejection = match Path::from_request_parts(parts, state).await {
            Ok(Path(path)) => return Ok(Self(path)),
            Err(rejection) => rejection,
        };
        let params = RawPathParams::from_request_parts(parts, state).await.ok();
        Err(invalid_path(rejection, params.as_ref()))
    }
}

/// The error for a path. The library does not name a parameter that is the only one of its path.
fn invalid_path(rejection: PathRejection, params: Option<&RawPathParams>) -> ApiError {
    let unreadable = || ApiError::bad_request("the path cannot be read");
    let PathRejection::FailedToDeserializePathParams(failed) = rejection else { return unreadable() };
    let (name, value) = match failed.into_kind() {
        PathError::ParseErrorAtKey { key, value, .. } | PathError::DeserializeError { key, value, .. } => {
            (Some(key), value)
        }
        PathError::ParseError { value, .. } | PathError::ParseErrorAtIndex { value, .. } => {
            let param = params.and_then(|params| params.iter().find(|(_, found)| *found == value));
            (param.map(|(name, _)| name.to_owned()), value)
        }
        _ => return unreadable(),
    };
    let name = name.map(|name| format!(" of `{name}`")).unwrap_or_default();
    ApiError::bad_request(format!("`{value}` is not a valid value{name} in the path"))
}

/// Parameters in the query.
pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<ApiState> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &ApiState) -> Result<Self, ApiError> {
        let query = Query::try_from_uri(&parts.uri);
        query.map(|Query(query)| Self(query)).map_err(|rejection| {
            let text = rejection.body_text();
            let reason = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            ApiError::bad_request(format!("invalid query: {reason}"))
        })
    }
}

/// The agents; an error if the gateway offers none.
pub(crate) struct Agents(pub(crate) Arc<AgentApi>);

impl FromRequestParts<ApiState> for Agents {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let agents = state.agents.clone();
        if let Some(agents) = &agents {
            agents.refresh().await;
        }
        agents.map(Self).ok_or_else(|| {
            ApiError::not_found(
                ErrorCode::AgentsNotOffered,
                "this gateway offers no agents: it had no model when it started, or its operator turned them off",
            )
        })
    }
}

/// The statistics, audit log and agent definitions; an error if the gateway does not have them.
pub(crate) struct Admin(pub(crate) Arc<dyn AdminProvider>);

impl FromRequestParts<ApiState> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let admin = state.admin.clone().map(Self);
        admin.ok_or_else(|| {
            ApiError::not_found(
                ErrorCode::NotOffered,
                "this gateway offers neither statistics, the audit log nor definitions of agents",
            )
        })
    }
}

/// The settings in effect; an error if the gateway does not show them.
pub(crate) struct Settings(pub(crate) Arc<dyn SettingsProvider>);

impl FromRequestParts<ApiState> for Settings {
    type Rejection = ApiError;

    async fn from_request_parts(_: &mut Parts, state: &ApiState) -> Result<Self, ApiError> {
        let settings = state.settings.clone().map(Self);
        settings.ok_or_else(|| {
            ApiError::not_found(ErrorCode::NotOffered, "this gateway does not show its settings")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_log_tells_the_operator_from_clients_and_these_from_each_other() {
        let name = |role, identity| Requester { role, identity: Arc::new(identity) }.audit_name().to_string();
        let local = || CallerIdentity::local_token([7; 32]);
        let caller = |name: &str| CallerIdentity::principal("https://issuer.example", name);
        assert_eq!(name(RequestRole::Client, CallerIdentity::anonymous()), "http");
        assert_eq!(name(RequestRole::Client, local()), "http");
        assert_eq!(name(RequestRole::Client, caller("ada")), "ada (https://issuer.example)");
        assert_eq!(name(RequestRole::Operator, local()), "operator");
        assert_eq!(name(RequestRole::Operator, caller("ada")), "operator (ada (https://issuer.example))");
        for imitation in ["operator", "operator (ada)"] {
            assert!(name(RequestRole::Client, caller(imitation)).starts_with("caller "), "{imitation}");
        }
    }
}
