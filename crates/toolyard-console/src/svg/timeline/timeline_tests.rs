//! Tests of the timeline.

use super::*;

fn row(id: &str, started_at: i64, duration_ms: Option<u64>) -> TimelineRow {
    let state = if duration_ms.is_some() { StepState::Done } else { StepState::Running };
    let period = Period { started_at, duration_ms };
    TimelineRow { id: id.to_owned(), page: String::new(), state, period, attempts: Vec::new() }
}

#[test]
fn bars_are_placed_by_time_and_name_their_duration() {
    let rows = [row("a", 1_000, Some(1_000)), row("b", 2_000, Some(3_000)), row("c", 3_000, None)];
    let svg = draw_timeline(&rows, 4_500, 176 + 70 + 400, &DrawingWords::ENGLISH);
    assert!(svg.contains(r#"<rect class="tl-bar" x="176.0" y="32" width="100.0""#), "{svg}");
    assert!(svg.contains(r#"<rect class="tl-bar" x="276.0" y="58" width="300.0""#), "{svg}");
    assert!(svg.contains("<title>Running: c · 1.5 s</title>"), "{svg}");
    assert!(svg.contains(">2 s</text>"), "the axis has round times: {svg}");
}

#[test]
fn attempts_are_parts_of_a_row() {
    let attempts = vec![
        Period { started_at: 0, duration_ms: Some(10) },
        Period { started_at: 50, duration_ms: Some(50) },
    ];
    let rows = [TimelineRow { attempts, ..row("a", 0, Some(100)) }];
    let svg = draw_timeline(&rows, 100, 800, &DrawingWords::ENGLISH);
    assert_eq!(svg.matches("tl-retried").count(), 1);
    assert!(svg.contains("<title>attempt 2</title>"));
}

#[test]
fn an_attempt_without_an_end_ends_with_its_step() {
    let attempts =
        vec![Period { started_at: 0, duration_ms: None }, Period { started_at: 50, duration_ms: Some(50) }];
    let rows = [TimelineRow { attempts, ..row("a", 0, Some(100)) }, row("b", 100, Some(300))];
    let svg = draw_timeline(&rows, 1_000_000, 176 + 70 + 400, &DrawingWords::ENGLISH);
    assert!(svg.contains(r#"<rect class="tl-bar tl-retried" x="176.0" y="32" width="100.0""#), "{svg}");
}

#[test]
fn rows_link_to_the_page_of_their_step() {
    let linked = TimelineRow { page: "?view=timeline&from=10".to_owned(), ..row("a", 0, Some(1)) };
    let svg = draw_timeline(&[linked], 1, 800, &DrawingWords::ENGLISH);
    assert!(svg.contains(r#"href="?view=timeline&amp;from=10#step-a""#), "{svg}");
}

#[test]
fn hostile_rows_are_bounded_and_escaped() {
    let rows: Vec<TimelineRow> = (0..500)
        .map(|number| {
            row("<script>\"'\u{202e}", if number % 2 == 0 { i64::MIN } else { i64::MAX }, Some(u64::MAX))
        })
        .collect();
    let svg = draw_timeline(&rows, i64::MAX, i32::MAX, &DrawingWords::CHINESE);
    assert!(!svg.contains("<script") && !svg.contains('\u{202e}') && !svg.contains("NaN"));
    assert_eq!(svg.matches("tl-row").count(), MAX_TIMELINE_ROWS);
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
    draw_timeline(&[], 0, -1, &DrawingWords::ENGLISH);
}
