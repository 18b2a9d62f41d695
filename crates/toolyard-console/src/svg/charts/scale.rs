//! Scales with round numbers.

/// A value as it is drawn: charts show no negative numbers, and numbers that are none count as zero.
pub(super) fn drawable(value: f64) -> f64 {
    if value.is_finite() { value.clamp(0.0, 1e15) } else { 0.0 }
}

/// The smallest of 1, 2, 5, 10, 20, 50 … that is at least `rough`.
pub(crate) fn nice_step(rough: f64) -> f64 {
    let mut power = 1.0;
    while power * 10.0 < rough && power < 1e15 {
        power *= 10.0;
    }
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(power)
}

/// A number for an axis: `950`, `12 k`, `3.5 M`.
pub(super) fn short_number(value: f64) -> String {
    let (scaled, suffix) = match value {
        v if v >= 1e9 => (v / 1e9, " G"),
        v if v >= 1e6 => (v / 1e6, " M"),
        v if v >= 1e4 => (v / 1e3, " k"),
        v => (v, ""),
    };
    let text = format!("{scaled:.1}");
    format!("{}{suffix}", text.strip_suffix(".0").unwrap_or(&text))
}
