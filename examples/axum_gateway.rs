//! The HTTP API of Toolyard in an axum application of your own: `cargo run --example axum_gateway -- 127.0.0.1:7412`, then
//! `curl -H 'Authorization: Bearer secret' http://127.0.0.1:7412/toolyard/api/v1/tools`.
#![expect(clippy::print_stdout, reason = "an example shows its result")]
use axum::{
    Router,
    extract::Request,
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{Next, from_fn},
    response::{IntoResponse as _, Response},
    routing::get,
};
use tokio::net::TcpListener;
use toolyard::{RemoteApproval, prelude::*};

#[derive(Deserialize, JsonSchema)]
struct Greet {
    name: String,
}

/// The router of Toolyard authenticates nobody: that is up to the application.
async fn authenticate(request: Request, next: Next) -> Response {
    let token = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    match token {
        Some("Bearer secret") => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolyard = Toolyard::builder()
        .function("greet", "Greets a person", |g: Greet| async move { format!("Hello, {}!", g.name) })
        .build()
        .await?;
    let api = toolyard.http_api().agents(RemoteApproval::Denied).build();
    let application = Router::new()
        .nest("/toolyard", api.router().layer(from_fn(authenticate)))
        .route("/", get(|| async { "the rest of the application" }));
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7412".to_owned());
    let listener = TcpListener::bind(address).await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, application).await?;
    Ok(())
}
