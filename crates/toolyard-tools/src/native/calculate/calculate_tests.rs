//! Exact results, expensive expressions, and deep recursion.

use super::*;

async fn calculate(expression: &str) -> Result<ToolOutput, ToolError> {
    let context = CallContext::until(Instant::now() + Duration::from_secs(30));
    Calculate::new()
        .call(&ToolCallRequest::new("calculate", json!({"expression": expression})), &context)
        .await
}

async fn result_text(expression: &str) -> String {
    calculate(expression).await.unwrap().to_text()
}

#[tokio::test]
async fn fractions_are_exact() {
    assert_eq!(result_text("(3+4)*12/7").await, "12");
    assert_eq!(result_text("0.1+0.2").await, "0.3");
    assert_eq!(result_text("2^64").await, "18446744073709551616");
    assert_eq!(result_text("5 km to m").await, "5000 m");
    assert_eq!(calculate("1+1").await.unwrap().to_json(), json!({"result": 2, "exact": true}));
    assert_eq!(calculate("0.1+0.2").await.unwrap().to_json(), json!({"result": 0.3, "exact": true}));
    assert_eq!(
        calculate("2^64").await.unwrap().to_json()["result"],
        json!("18446744073709551616"),
        "no digit is lost"
    );
    assert_eq!(calculate("5 km to m").await.unwrap().to_json()["result"], json!("5000 m"));
}

#[tokio::test]
async fn inexact_results_are_marked() {
    assert!(result_text("sqrt(2)").await.starts_with("approx. 1.414"));
    let output = calculate("1/3").await.unwrap();
    assert_eq!(output.to_json()["exact"], json!(false), "{}", output.to_text());
    assert!(output.to_json()["result"].as_f64().is_some_and(|third| (third - 1.0 / 3.0).abs() < 1e-6));
}

async fn calculate_with(arguments: Value) -> Result<ToolOutput, ToolError> {
    let context = CallContext::until(Instant::now() + Duration::from_secs(30));
    Calculate::new().call(&ToolCallRequest::new("calculate", arguments), &context).await
}

#[tokio::test]
async fn a_list_is_summed() {
    let column = json!(["Sales", 10, 20.5, null, "18,420"]);
    let output = calculate_with(json!({"expression": "sum(values)", "values": column})).await.unwrap();
    assert_eq!(output.to_json(), json!({"result": 18450.5, "exact": true, "counted": 3, "ignored": 2}));
    assert_eq!(output.to_text(), "18450.5\n(2 of 5 values are not numbers and were left out)");
    let output =
        calculate_with(json!({"expression": "average(values) * 2", "values": [1, 2]})).await.unwrap();
    assert_eq!(output.to_text(), "3");
    assert_eq!(calculate_with(json!({"expression": "sum([1, 2, 3])"})).await.unwrap().to_text(), "6");
    assert_eq!(calculate_with(json!({"expression": "1+1", "values": null})).await.unwrap().to_text(), "2");
    let third = calculate_with(json!({"expression": "average(values)", "values": [1, 0, 0]}))
        .await
        .unwrap()
        .to_json();
    assert!(third["exact"] == json!(false) && third["result"].is_number(), "{third}");
    let many: Vec<u32> = (0..100_000).collect();
    let output = calculate_with(json!({"expression": "sum(values)", "values": many})).await.unwrap();
    assert_eq!(output.to_text(), "4999950000");
}

#[tokio::test]
async fn invalid_expressions_fail_with_a_reason() {
    for nonsense in [
        "",
        "  ",
        "1/0",
        "2 +",
        "hello there",
        "10 EUR to USD",
        "roll d20",
        "\u{0}",
        "🦀 * 2",
        "(2+3",
        "sum(1,234, 5,678)",
        "1,5 * 2",
    ] {
        let error = calculate(nonsense).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Failed, "{nonsense}");
        assert!(!error.message().is_empty());
    }
    let long = "1+".repeat(3_000) + "1";
    assert!(calculate(&long).await.unwrap_err().message().contains("longer than 4096"));
}

#[tokio::test]
async fn expensive_expressions_are_stopped() {
    for bomb in ["9^9^9^9", "(10^6)!", "2^(10^8)", "1000000000!", "10^(10^9) mod 7", "9^9^9", "2^(10^7)"] {
        let start = Instant::now();
        let result = calculate(bomb).await;
        assert!(start.elapsed() < Duration::from_secs(3), "{bomb} took {:?}", start.elapsed());
        assert!(result.is_err(), "{bomb}: {result:?}");
    }
}

#[tokio::test]
async fn recursion_is_an_error_and_never_a_crash() {
    let deep = [
        "(x: x x) (x: x x)".to_owned(),
        "f = x: f x; f 1".to_owned(),
        "(".repeat(4_096),
        "-".repeat(4_095) + "1",
        format!("{}1{}", "(".repeat(2_047), ")".repeat(2_047)),
        "2^".repeat(2_047) + "1",
        "x:".repeat(2_047) + "1",
        "sqrt ".repeat(800) + "1",
        "1".to_owned() + &"!".repeat(4_000),
        "1 ".repeat(2_000),
        "1+".repeat(2_000) + "1",
        "-1".repeat(2_000),
        "\\x.".repeat(1_300) + "x",
    ];
    for expression in deep {
        // The result does not matter, only that the call returns in time.
        let start = Instant::now();
        let _ = calculate(&expression).await;
        assert!(start.elapsed() < Duration::from_secs(3), "took {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn a_dropped_call_stops_the_calculation() {
    let stop = Arc::new(AtomicBool::new(false));
    drop(StopGuard(Arc::clone(&stop)));
    let deadline = Instant::now() + Duration::from_secs(60);
    let limits = Limits { stop, deadline, stack_top: stack_address() };
    assert!(limits.should_interrupt());
}

#[tokio::test]
async fn the_callers_deadline_applies_too() {
    let context = CallContext::until(Instant::now() + Duration::from_millis(50));
    let request = ToolCallRequest::new("calculate", json!({"expression": "9^9^9^9"}));
    let error = Calculate::new().call(&request, &context).await.unwrap_err();
    assert_eq!(error.message(), "the calculation takes too long");
}

#[tokio::test(start_paused = true)]
async fn a_paused_clock_does_not_end_a_calculation() {
    assert_eq!(result_text("2+2").await, "4");
}

#[tokio::test]
async fn an_empty_list_that_nothing_refers_to_is_no_list() {
    let text = |expression| async move {
        let arguments = json!({"expression": expression, "values": []});
        calculate_with(arguments).await.map(|output| output.to_text())
    };
    assert_eq!(text("2+3").await.unwrap(), "5");
    assert!(text("sum(values)").await.is_err());
}
