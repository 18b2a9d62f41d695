//! `toolyard open`: opens the console of the running gateway in a browser, signed in as operator.

use std::time::Duration;

use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::json;
use toolyard_console::{OPERATOR_HEADER, SIGN_IN_CODE_PATH, SIGN_IN_PATH};
use toolyard_core::SecretText;

use super::local_gateway::{LocalGateway, gateways_of_operator, http_client, origin, usual_gateways};
use crate::{
    cli::OpenArgs,
    config::CliContext,
    error::CliError,
    terminal::{Output, browser::open_browser},
};

/// A gateway on this machine answers at once.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, Deserialize)]
struct SignInCode {
    code: String,
}

pub(super) async fn run(arguments: &OpenArgs, context: &CliContext, output: &Output) -> Result<(), CliError> {
    let gateways = match &arguments.url {
        Some(_) => gateways_of_operator(context),
        None => usual_gateways(context),
    };
    let gateway = select(&gateways, arguments.url.as_deref())?;
    let Some(secret) = &gateway.operator_secret else { return Err(not_running()) };
    let origin = gateway.origin();
    let code = request_code(origin, secret).await?;
    let link = format!("{origin}{SIGN_IN_PATH}?code={code}");
    let is_opened = !arguments.no_browser && open_browser(&link).await;
    if output.is_json() {
        output.json(&json!({ "url": link, "browser_started": is_opened }));
        return Ok(());
    }
    output.line(&link);
    if is_opened {
        output.message("asked your browser to open the console; if nothing opens, use this link");
    } else {
        output.message("open this link in a browser");
    }
    output.message("  it works once, within 10 minutes");
    Ok(())
}

/// The gateway at an address, or the only one.
fn select<'g>(gateways: &'g [LocalGateway], url: Option<&str>) -> Result<&'g LocalGateway, CliError> {
    let addresses = || gateways.iter().map(LocalGateway::origin).collect::<Vec<_>>().join(", ");
    match (url, gateways) {
        (_, []) => Err(not_running()),
        (None, [gateway]) => Ok(gateway),
        (None, several) => {
            let message = format!("{} gateways of yours run: {}", several.len(), addresses());
            Err(CliError::usage(message).with_hint("choose one: toolyard open --url URL"))
        }
        (Some(url), gateways) => {
            let found = gateways.iter().find(|gateway| gateway.origin() == origin(url));
            found.ok_or_else(|| {
                CliError::usage(format!("no gateway of yours runs at {url}"))
                    .with_hint(format!("these run: {}", addresses()))
            })
        }
    }
}

fn not_running() -> CliError {
    CliError::unreachable("no gateway of yours runs on this machine over HTTP")
        .with_hint("start it with toolyard serve --http")
}

async fn request_code(origin: &str, secret: &SecretText) -> Result<String, CliError> {
    let failed = |reason: &dyn std::fmt::Display| {
        CliError::unreachable(format!("failed to get a sign-in link from {origin}: {reason}"))
            .with_hint("is the gateway stopping? start it again with toolyard serve --http")
    };
    let url = Url::parse(&format!("{origin}{SIGN_IN_CODE_PATH}")).map_err(|error| failed(&error))?;
    let client = http_client(&url, REQUEST_TIMEOUT)?;
    let request = client.post(url).header(OPERATOR_HEADER, secret.expose());
    let response = request.send().await.and_then(Response::error_for_status);
    let response = response.map_err(|error| failed(&error.without_url()))?;
    if !response.status().is_success() {
        return Err(failed(&format!("status {}", response.status())));
    }
    let body = response.json::<SignInCode>().await;
    Ok(body.map_err(|error| failed(&error.without_url()))?.code)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    fn gateway(port: u16) -> LocalGateway {
        LocalGateway {
            mcp_url: format!("http://127.0.0.1:{port}/mcp"),
            needs_token: true,
            operator_secret: Some(SecretText::new("secret")),
        }
    }

    #[tokio::test]
    async fn a_redirect_does_not_get_the_secret() {
        let listen = || tokio::net::TcpListener::bind("127.0.0.1:0");
        let (gateway, other) = (listen().await.unwrap(), listen().await.unwrap());
        let elsewhere = format!("http://{}", other.local_addr().unwrap());
        let origin = format!("http://{}", gateway.local_addr().unwrap());
        let redirect = async {
            let (mut connection, _) = gateway.accept().await.unwrap();
            let mut head = [0; 1024];
            let length = connection.read(&mut head).await.unwrap();
            let redirect = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"
            );
            connection.write_all(redirect.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        };
        let secret = SecretText::new("s3cret");
        let (code, head) = tokio::join!(request_code(&origin, &secret), redirect);
        assert!(head.contains("s3cret"), "the gateway itself gets it: {head}");
        assert!(code.unwrap_err().message().contains("status 307"));
        let contacted = tokio::time::timeout(Duration::from_millis(50), other.accept()).await;
        assert!(contacted.is_err(), "another address was contacted");
    }

    #[test]
    fn of_several_gateways_one_must_be_chosen() {
        let (one, two) = ([gateway(1)], [gateway(1), gateway(2)]);
        assert_eq!(select(&one, None).unwrap().origin(), "http://127.0.0.1:1");
        let refused = select(&two, None).unwrap_err();
        assert_eq!(refused.message(), "2 gateways of yours run: http://127.0.0.1:1, http://127.0.0.1:2");
        assert_eq!(select(&two, Some("http://127.0.0.1:2/")).unwrap().origin(), "http://127.0.0.1:2");
        assert!(select(&two, Some("http://127.0.0.1:3")).is_err() && select(&[], None).is_err());
    }
}
