use super::*;

fn report(key: &str, points: Vec<Vec<Point>>) -> Report {
    let engines = vec!["ours".to_owned(), "baseline".to_owned()];
    let points = engines.iter().cloned().zip(points).collect();
    let curve = Curve { key: key.to_owned(), catalogue_tokens: 120_000, points };
    Report {
        split: Split::Test,
        tokens: "estimated".to_owned(),
        engines,
        rows: Vec::new(),
        curves: vec![curve],
    }
}

#[test]
fn names_are_escaped() {
    let picture = svg(&report("</text><script>&\"\u{1}", vec![]));
    assert!(!picture.contains("<script"));
    assert!(picture.contains("&lt;/text&gt;&lt;script&gt;&amp;&quot;<"));
}

#[test]
fn every_engine_has_a_curve() {
    let line = |recall| (1..=50).map(|at| Point { tokens: f64::from(at) * 90.0, recall }).collect();
    let picture = svg(&report("set", vec![line(80.0), line(50.0)]));
    assert_eq!(picture.matches("<polyline").count(), 2);
    assert!(picture.contains(">1M<") && picture.contains(">100k<") && picture.contains(">10<"));
    assert!(svg(&Report { curves: vec![], ..report("", vec![]) }).ends_with("</svg>\n"));
}

#[test]
fn the_scale_is_logarithmic() {
    let scale = Scale { first: 1, last: 6 };
    assert!((scale.x(10.0) - 0.0).abs() < 1e-9);
    assert!((scale.x(1_000_000.0) - PANEL.0).abs() < 1e-9);
    assert!((scale.x(1_000.0) - PANEL.0 * 0.4).abs() < 1e-9);
    assert!((scale.x(0.0) - 0.0).abs() < 1e-9);
}
