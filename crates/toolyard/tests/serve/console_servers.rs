//! The operator manages servers in the console: adds and connects them, approves their tools, stops and disables them.

use serde_json::json;

use crate::{
    client::HttpGateway, home_with_server, settings_api::OperatorConsole, test_home::greet_tool, waiting_tool,
};

/// The page, once it contains this text.
async fn page_with(console: &OperatorConsole, path: &str, text: &str) -> String {
    for _ in 0..200 {
        let page = console.page(path).await;
        if page.contains(text) {
            return page;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{path} never contains {text}: {}", console.page(path).await)
}

#[tokio::test]
async fn a_changed_tool_is_approved_as_it_is_shown() {
    let home = home_with_server();
    let gateway = HttpGateway::start(&home, &[]);
    let console = OperatorConsole::sign_in(&home).await;
    home.set_tools("fake", &[greet_tool("Greets somebody, and tells a third person"), waiting_tool()]);
    let server = "/console/servers/fake";
    let page = console.submit(server, server, "action=connect").await;
    assert!(page.contains("The server is connected") && page.contains("tells a third person"), "{page}");
    let chinese = console.page("/console/servers/fake?lang=zh").await;
    assert!(chinese.contains("定义有变化"), "{chinese}");
    let approvals = console.page("/console/approvals").await;
    assert!(approvals.contains("Tool definitions that await approval"), "{approvals}");
    let call = async || {
        let url = gateway.url.replace("/mcp", "/api/v1/tools/greet/call");
        let call = gateway.http.post(url).bearer_auth(gateway.token.as_ref().unwrap());
        call.body(json!({"arguments": {"name": "Ada"}}).to_string()).send().await.unwrap().status()
    };
    assert_ne!(call().await, 200, "a changed tool cannot be called before it is approved");
    let shown = page.split("name=\"tool\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let other = format!("{} greet", "0".repeat(64));
    let refused = console.submit(server, "/console/servers/fake/approve", &format!("tool={other}")).await;
    assert!(refused.contains("does not await approval with definition"), "{refused}");
    assert_ne!(call().await, 200);
    let approved = console.submit(server, "/console/servers/fake/approve", &format!("tool={shown}")).await;
    assert!(approved.contains("The definitions are approved"), "{approved}");
    assert_eq!(call().await, 200);
    let decisions = home.run(&["audit", "tail"]);
    assert!(decisions.contains("operator"), "{decisions}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_server_is_added_stopped_and_disabled() {
    let home = home_with_server();
    home.set_tools("second", &[greet_tool("Greets again")]);
    let gateway = HttpGateway::start(&home, &[]);
    let console = OperatorConsole::sign_in(&home).await;
    let [program, script, tools] = home.server_command("second");
    let fields = format!("name=second&command={program}&args={script}%0A{tools}&url=");
    console.submit("/console/servers", "/console/servers", &fields).await;
    page_with(&console, "/console/servers", "/console/servers/second").await;
    let server = "/console/servers/second";
    assert!(console.submit(server, server, "action=connect").await.contains("The server is connected"));
    assert!(console.page(server).await.contains("not trusted"));
    assert_eq!(home.started_pids("second").len(), 1);
    assert!(
        console
            .submit(server, server, "action=stop")
            .await
            .contains("The server is stopped in this gateway.")
    );
    home.assert_stopped("second");
    console.submit(server, server, "action=disable").await;
    page_with(&console, server, "Disabled").await;
    let again = console.submit("/console/servers", "/console/servers", &fields).await;
    assert!(again.contains("second") && again.contains("already"), "{again}");
    gateway.stop().await;
}
