//! Tests of the charts.

use super::{scale::short_number, *};

#[test]
fn steps_of_an_axis_are_round_numbers() {
    let steps: Vec<f64> = [0.0, 0.3, 1.5, 3.0, 9.0, 11.0, 230.0].into_iter().map(nice_step).collect();
    assert_eq!(steps, [1.0, 1.0, 2.0, 5.0, 10.0, 20.0, 500.0]);
    assert_eq!(nice_step(f64::INFINITY), 1e15);
    assert_eq!([950.0, 12_000.0, 3_500_000.0].map(short_number), ["950", "12 k", "3.5 M"]);
}

#[test]
fn a_time_series_names_its_numbers_and_escapes_all_texts() {
    let calls: Vec<f64> = (0..60).map(f64::from).collect();
    let chart = TimeSeries {
        title: "Calls <per> minute",
        series: &[
            Series { name: "calls", class: "calls", values: &calls },
            Series { name: "failures", class: "failures", values: &[1.0, f64::NAN, -3.0] },
        ],
        time_labels: &["-60 min", "now"],
        point_title: &|index| format!("<{index}>"),
    };
    let svg = draw_time_series(&chart);
    assert!(svg.contains(r#"aria-label="Calls &lt;per&gt; minute""#), "{svg}");
    assert!(svg.contains("<title>&lt;59&gt;</title>"));
    assert!(svg.contains(">60</text>") && svg.contains(">0</text>"), "the axis has round numbers: {svg}");
    assert!(!svg.contains("NaN") && !svg.contains("style="));
}

#[test]
fn empty_and_broken_numbers_are_drawn() {
    let values = [f64::NAN, f64::INFINITY, -1.0, f64::MAX];
    for values in [&values[..], &[], &[1.0], &[0.0, 0.0]] {
        let svg = draw_sparkline(values, "calls", "calls");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let series = [Series { name: "calls", class: "calls", values }];
        let chart =
            TimeSeries { title: "", series: &series, time_labels: &[], point_title: &|_| String::new() };
        let svg = draw_time_series(&chart);
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
