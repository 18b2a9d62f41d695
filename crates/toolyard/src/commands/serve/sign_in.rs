//! The pages at which callers sign in to servers, and where browsers reach them.

use std::{net::SocketAddr, sync::Arc};

use toolyard::settings::ServeSettings;
use toolyard_gateway::{HttpApi, PublicUrl, SignIns, is_sign_in_path};
use toolyard_mcp_client::SecretText;
use toolyard_mcp_server::{AccessRules, McpServer, SharedAccessRules};

use crate::{
    config::{CliContext, ServerCredentials},
    error::CliError,
};

/// The sign-ins of a gateway at this address; `None` if it is not known where browsers reach it.
pub(super) fn sign_ins(
    serve: &ServeSettings,
    address: SocketAddr,
    access: &SharedAccessRules,
) -> Result<Option<Arc<SignIns>>, CliError> {
    let public_url = match configured_url(serve)? {
        None if address.ip().is_loopback() => PublicUrl::parse(&format!("http://{address}")).ok(),
        configured => configured,
    };
    Ok(public_url.map(|url| Arc::new(SignIns::new(url, access.clone()))))
}

/// What servers may use, with secrets of the gateway that are redacted in what servers send: they are in files that a server may
/// read.
pub(super) fn credentials(
    context: &CliContext,
    gateway_secrets: [&str; 2],
    sign_ins: Option<Arc<SignIns>>,
) -> Arc<ServerCredentials> {
    let gateway_secrets = gateway_secrets.map(SecretText::new).into();
    let credentials = ServerCredentials::new(context).with_gateway_secrets(gateway_secrets);
    Arc::new(credentials.with_sign_ins(sign_ins))
}

/// Adds the pages to the API, and tells the clients of a server when a sign-in is done.
pub(super) fn attach(api: HttpApi, sign_ins: Option<&Arc<SignIns>>, server: &Arc<McpServer>) -> HttpApi {
    let Some(sign_ins) = sign_ins else { return api };
    sign_ins.notify_clients_of(server);
    api.with_pages(sign_ins.router(), is_sign_in_path)
}

/// Lets browsers open the pages, at the host that the links name.
pub(super) fn allow_pages(rules: &mut AccessRules, serve: &ServeSettings) {
    if let Ok(Some(url)) = configured_url(serve) {
        rules.hosts.push(url.host().to_owned());
        rules.origins.push(url.origin().to_owned());
    }
}

fn configured_url(serve: &ServeSettings) -> Result<Option<PublicUrl>, CliError> {
    if let Some(url) = &serve.public_url {
        let url = PublicUrl::parse(url).map_err(|error| {
            CliError::usage(format!("[serve] public_url `{url}`: {error}"))
                .with_hint("such as https://tools.example.com")
        })?;
        return Ok(Some(url));
    }
    let resource = serve.oauth.as_ref().and_then(|oauth| oauth.resource.parse::<http::Uri>().ok());
    let origin = resource.and_then(|uri| Some(format!("{}://{}", uri.scheme_str()?, uri.authority()?)));
    Ok(origin.and_then(|origin| PublicUrl::parse(&origin).ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<Option<String>, ()> {
        let settings =
            toolyard::settings::Settings::parse(text, std::path::Path::new("toolyard.toml")).unwrap();
        let url = configured_url(&settings.serve).map_err(drop)?;
        Ok(url.map(|url| url.origin().to_owned()))
    }

    #[test]
    fn links_begin_with_the_configured_url_or_that_of_the_resource() {
        let oauth = "[serve.oauth]\nissuer = 'https://id.example'\nresource = 'https://tools.example/mcp'\n";
        assert_eq!(url(""), Ok(None));
        assert_eq!(url(oauth), Ok(Some("https://tools.example".to_owned())));
        let own = format!("[serve]\npublic_url = 'https://yard.example/'\n{oauth}");
        assert_eq!(url(&own), Ok(Some("https://yard.example".to_owned())));
        assert_eq!(url("[serve]\npublic_url = 'http://yard.example'"), Err(()));
    }
}
