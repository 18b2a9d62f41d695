//! Tells the callers of a gateway apart: API keys, OAuth access tokens, and identities that a trusted proxy asserts.
//!
//! [`CallerAuthenticator`] combines them and implements the port [`Authenticator`](toolyard_core::Authenticator) that the
//! MCP server asks for every request without the local token.
//!
//! ```
//! use std::{net::IpAddr, sync::Arc};
//!
//! use toolyard_core::{Authenticator as _, CallerStore as _, Credentials, MemoryCallerStore};
//! use toolyard_identity::{ApiKey, CallerAuthenticator, NewCaller};
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(async {
//! let store = Arc::new(MemoryCallerStore::default());
//! let key = ApiKey::generate()?;
//! store.add_caller(&NewCaller::new("ci").with_key(&key), "operator").await.unwrap();
//!
//! let authenticator = CallerAuthenticator::new().with_api_keys(store);
//! let credentials = Credentials {
//!     bearer: Some(key.text()),
//!     header: &|_| Ok(None),
//!     client_address: IpAddr::from([127, 0, 0, 1]),
//! };
//! assert_eq!(&*authenticator.authenticate(credentials).await.unwrap().name, "ci");
//! # Ok::<(), toolyard_identity::RandomnessError>(())
//! # }).unwrap();
//! ```
//!
//! # Tour
//!
//! | module | contents |
//! |---|---|
//! | `api_key` | the format of keys, and looking them up in a store |
//! | `oauth` | the resource server of OAuth 2.1: discovery, signing keys, validation of access tokens, metadata, challenges |
//! | `proxy` | identities in headers of a trusted proxy |
//! | `group_access` | which profiles and agents the groups of a caller may use |
//! | `authenticator` | combines them |

mod api_key;
mod authenticator;
mod group_access;
mod oauth;
mod proxy;

pub use api_key::{
    key::{ApiKey, RandomnessError},
    new_caller::{InvalidCallerName, NewCaller},
};
pub use authenticator::CallerAuthenticator;
pub use group_access::{GroupAccess, GroupLimits};
pub use oauth::{
    config::{OAuthConfig, OAuthConfigError},
    discovery::DiscoveryError,
    fetch::{FetchError, HttpMetadataSource, MetadataSource},
    key_set::{KeySet, KeySetError},
    person_sign_in::OidcSignIn,
    token::{TokenError, ValidToken, validate_token},
    verifier::OAuthVerifier,
};
pub use proxy::{
    address_range::{AddressRange, InvalidAddressRange},
    identity::ProxyIdentity,
};
