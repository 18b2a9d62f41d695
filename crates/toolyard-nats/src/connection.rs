//! [`NatsConnection`]: one connection to NATS, which reconnects by itself.

use std::{sync::Arc, time::Duration};

use async_nats::{Client, ClientError, ConnectErrorKind, ConnectOptions, Event, connection::State};
use futures_util::StreamExt as _;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::settings::{InvalidNatsSettings, NatsCredentials, NatsSettings, without_user};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that is cut while it begins is tried again: one failure must not keep a process from starting.
const CONNECT_ATTEMPTS: usize = 3;
const CONNECT_RETRY_DELAY: Duration = Duration::from_millis(300);
/// A connection that broke without being closed is noticed after two of these.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// Messages that wait for one subscription. More are dropped, which exchanges notice.
const SUBSCRIPTION_CAPACITY: usize = 64 << 10;
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(2);

/// A connection to NATS.
#[derive(Debug, Clone)]
pub struct NatsConnection {
    client: Client,
    name: Arc<str>,
    prefix: Arc<str>,
    addresses: Arc<str>,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NatsConnectError {
    /// The settings cannot be used.
    #[error(transparent)]
    Settings(#[from] InvalidNatsSettings),
    /// The file of `[cluster] creds` does not exist or cannot be read.
    ///
    /// Remedy: correct the path, which is relative to the settings file, and let this user read the file.
    #[error("cannot read the NATS credentials {path}: {reason}")]
    Credentials {
        /// The file.
        path: String,
        /// Why.
        reason: String,
    },
    /// The NATS server does not accept the credentials in `[cluster]`.
    ///
    /// Remedy: check `creds`, or the user and password or the token in `nats`, of `[cluster]`, and the users in the
    /// configuration of NATS.
    #[error("NATS at {servers} refused the credentials")]
    Unauthorized {
        /// The servers that were tried.
        servers: String,
    },
    /// No NATS server of `[cluster] nats` can be reached.
    ///
    /// Remedy: check that NATS runs, its addresses in `[cluster] nats`, the firewall (port 4222) and, with `tls://`,
    /// `ca_file`.
    #[error("cannot reach NATS at {servers}: {reason}")]
    Unreachable {
        /// The servers that were tried.
        servers: String,
        /// Why.
        reason: String,
    },
}

impl NatsConnection {
    /// Connects. Fails if no server can be reached now; later failures are repaired by reconnecting. `name` is for people, such
    /// as the name of the machine: other processes of the cluster and the operator of NATS see it.
    ///
    /// # Errors
    /// See [`NatsConnectError`].
    pub async fn connect(settings: &NatsSettings, name: &str) -> Result<Self, NatsConnectError> {
        let addresses = settings.addresses()?;
        let servers: Vec<String> = settings.servers.iter().map(|server| without_user(server)).collect();
        let servers = servers.join(", ");
        let mut attempts = CONNECT_ATTEMPTS;
        let client = loop {
            attempts -= 1;
            let error = match options(settings, name, &servers).await?.connect(addresses.clone()).await {
                Ok(client) => break client,
                Err(error) => error,
            };
            match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    return Err(NatsConnectError::Unauthorized { servers });
                }
                _ if attempts == 0 => {
                    return Err(NatsConnectError::Unreachable { servers, reason: error.to_string() });
                }
                _ => tokio::time::sleep(CONNECT_RETRY_DELAY).await,
            }
        };
        let prefix = settings.prefix.as_str().into();
        Ok(Self { client, name: name.into(), prefix, addresses: servers.into() })
    }

    /// The version of the server, and the longest message that it accepts.
    pub fn server(&self) -> (String, usize) {
        let info = self.client.server_info();
        (info.version, info.max_payload)
    }

    /// Whether the connection works at the moment.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The addresses of the settings, without passwords.
    pub fn addresses(&self) -> &str {
        &self.addresses
    }

    /// Waits until the server has processed everything that was sent so far: flushing only hands it to the network.
    ///
    /// # Errors
    /// If the server does not respond.
    pub async fn round_trip(&self) -> Result<(), NatsConnectError> {
        let failed =
            |reason: String| NatsConnectError::Unreachable { servers: self.addresses.to_string(), reason };
        let inbox = self.client.new_inbox();
        let mut echo =
            self.client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
        let sent = self.client.publish(inbox, Vec::new().into()).await;
        sent.map_err(|error| failed(error.to_string()))?;
        match tokio::time::timeout(CONNECT_TIMEOUT, echo.next()).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) | Err(_) => Err(failed("the server does not respond".to_owned())),
        }
    }

    /// Sends what waits and closes the connection.
    pub async fn close(&self) {
        // An error means that it is closed already.
        let _ = self.client.drain().await;
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn prefix(&self) -> &Arc<str> {
        &self.prefix
    }
}

async fn options(
    settings: &NatsSettings,
    name: &str,
    servers: &str,
) -> Result<ConnectOptions, NatsConnectError> {
    let log = Arc::new(ConnectionLog { servers: servers.to_owned(), lost_at: Mutex::default() });
    let mut options = ConnectOptions::new()
        .name(format!("toolyard {name}"))
        .connection_timeout(CONNECT_TIMEOUT)
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(SUBSCRIPTION_CAPACITY)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            let log = Arc::clone(&log);
            async move { log.note(&event) }
        });
    options = match &settings.credentials {
        None => options,
        Some(NatsCredentials::File(path)) => options.credentials_file(path).await.map_err(|error| {
            NatsConnectError::Credentials { path: path.display().to_string(), reason: error.to_string() }
        })?,
        Some(NatsCredentials::Password { user, password }) => {
            options.user_and_password(user.clone(), password.clone())
        }
        Some(NatsCredentials::Token(token)) => options.token(token.clone()),
    };
    if let Some(file) = &settings.ca_file {
        options = options.add_root_certificates(file.clone());
    }
    if let Some((certificate, key)) = &settings.client_certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone());
    }
    Ok(options)
}

/// Waits longer after each failure, and not in step with other processes.
fn reconnect_delay(attempts: usize) -> Duration {
    let exponent = u32::try_from(attempts.min(6)).unwrap_or(6);
    let longest = Duration::from_millis(50).saturating_mul(2_u32.saturating_pow(exponent));
    longest.min(MAX_RECONNECT_DELAY).mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// Logs what happens to a connection: one line when it is lost, and one when it is back.
struct ConnectionLog {
    servers: String,
    lost_at: Mutex<Option<Instant>>,
}

impl ConnectionLog {
    fn note(&self, event: &Event) {
        let mut lost_at = self.lost_at.lock();
        match event {
            Event::Connected => match lost_at.take() {
                None => tracing::info!("connected to NATS"),
                Some(lost_at) => {
                    let outage_seconds = lost_at.elapsed().as_secs();
                    tracing::warn!(servers = self.servers, outage_seconds, "reconnected to NATS");
                }
            },
            Event::Disconnected => {
                if lost_at.is_none() {
                    *lost_at = Some(Instant::now());
                    tracing::warn!(servers = self.servers, "connection to NATS lost; reconnecting");
                }
            }
            Event::SlowConsumer(subscription) => {
                tracing::warn!(
                    subscription,
                    "messages from NATS were dropped because this process is too slow"
                );
            }
            Event::ClientError(ClientError::Other(reason)) if lost_at.is_some() && is_no_answer(reason) => {
                tracing::debug!(reason, "reconnection to NATS failed; retrying");
            }
            Event::ServerError(_) | Event::ClientError(_) => tracing::warn!(%event, "NATS reported an error"),
            Event::LameDuckMode | Event::Draining | Event::Closed => {
                tracing::info!(%event, "NATS connection");
            }
        }
    }
}

/// Whether an attempt to connect failed because nothing answered. Other failures, such as refused credentials, do not end by
/// themselves.
fn is_no_answer(reason: &str) -> bool {
    let kinds = [ConnectErrorKind::Io, ConnectErrorKind::TimedOut, ConnectErrorKind::Dns];
    kinds.iter().any(|kind| kind.to_string() == reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_lost_until_it_is_back_and_refusals_are_not_failures_to_connect() {
        let log = ConnectionLog { servers: "nats://a:4222".to_owned(), lost_at: Mutex::default() };
        let is_lost = || log.lost_at.lock().is_some();
        for (event, expected) in [
            (Event::Connected, false),
            (Event::Disconnected, true),
            (Event::Disconnected, true),
            (Event::ClientError(ClientError::Other(ConnectErrorKind::Io.to_string())), true),
            (Event::Connected, false),
        ] {
            log.note(&event);
            assert_eq!(is_lost(), expected, "{event}");
        }
        assert!(is_no_answer(&ConnectErrorKind::TimedOut.to_string()));
        assert!(!is_no_answer(&ConnectErrorKind::AuthorizationViolation.to_string()));
    }
}
