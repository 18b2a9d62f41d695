use serde_json::json;

use super::*;
use crate::client::{NobodyToAsk, http_test_server::*};

fn options(era: Option<ProtocolEra>) -> ConnectOptions {
    ConnectOptions {
        server: "a".into(),
        era,
        startup_timeout: Duration::from_secs(10),
        limits: WireLimits::default(),
        input: Arc::new(NobodyToAsk),
        client: None,
    }
}

/// A server that knows nothing of the legacy era.
async fn modern() -> TestServer {
    TestServer::start(|seen, mut reply| async move {
        if seen.json()["method"] == "server/discover" {
            let about = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
            reply.json(seen.answer(&about)).await;
        } else {
            let data = json!({"supported": ["2026-07-28"]});
            let error = json!({"code": -32022, "message": "unsupported version", "data": data});
            let body = json!({"jsonrpc": "2.0", "id": seen.id(), "error": error}).to_string();
            reply.full(400, &[("Content-Type", "application/json")], body).await;
        }
        Some(reply)
    })
    .await
}

#[tokio::test]
async fn a_server_at_an_address_may_leave_the_legacy_era() {
    let server = modern().await;
    for era in [None, Some(ProtocolEra::Modern), Some(ProtocolEra::Legacy)] {
        let target = HttpTarget::new(&server.url, []).unwrap();
        let session = connect(Link::Http(target, HttpKind::Auto), &options(era)).await.unwrap();
        assert_eq!((session.era(), session.version()), (ProtocolEra::Modern, "2026-07-28"));
        session.close().await;
    }
}
