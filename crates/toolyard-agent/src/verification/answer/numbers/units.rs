//! Units that a model converts: durations and sizes.

use super::scan::Number;

/// Names of units with what one of them is in smaller units.
const UNITS: &[(&str, &[f64])] = &[
    ("second seconds sec secs s 秒 秒钟", &[0.001]),
    ("minute minutes min mins 分钟 分", &[60.0, 60_000.0]),
    ("hour hours hr hrs h 小时 个小时 钟头 个钟头", &[60.0, 3_600.0, 3_600_000.0]),
    ("day days d 天", &[24.0, 1_440.0, 86_400.0, 86_400_000.0]),
    ("week weeks 周 个星期 星期", &[7.0, 168.0]),
    ("year years 年", &[12.0]),
    ("kb kib k", &[1e3, 1024.0]),
    ("mb mib 兆", &[1e3, 1024.0, 1e6, 1_048_576.0]),
    ("gb gib g", &[1e3, 1024.0, 1e6, 1_048_576.0, 1e9, 1_073_741_824.0]),
    ("tb tib t", &[1e3, 1024.0, 1e6, 1_048_576.0, 1e9, 1_073_741_824.0, 1e12]),
    ("km kilometers kilometres 公里 千米", &[1e3]),
    ("mile miles mi 英里", &[1.609_344, 1_609.344]),
    ("lb lbs pound pounds 磅", &[0.453_592, 453.592]),
    ("inch inches 英寸", &[2.54]),
    ("foot feet ft 英尺", &[0.304_8]),
    ("m meters metres 米", &[0.001, 100.0]),
    ("kg 公斤 千克", &[1e3]),
    ("euro euros eur dollar dollars usd yuan 元 块", &[100.0, 0.01]),
];

/// What a number may be multiplied by so that it is in the unit of a result: 31 minutes are 1,860 s. The first is one.
pub(super) fn factors(text: &str, number: &Number) -> Vec<f64> {
    let rest = text.get(number.end..).unwrap_or_default().trim_start_matches([' ', '-', '\u{a0}']);
    let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
    let is_unit = |name: &str| {
        if name.is_ascii() { word.eq_ignore_ascii_case(name) } else { rest.starts_with(name) }
    };
    let unit = UNITS.iter().find(|(names, _)| names.split(' ').any(is_unit));
    std::iter::once(1.0).chain(unit.into_iter().flat_map(|(_, factors)| factors.iter().copied())).collect()
}

/// The durations of a text in minutes: "1 hour 34 mins" is 94, "1小时52分" 112.
pub(super) fn minutes(text: &str, numbers: &[Number]) -> Vec<f64> {
    let unit = |number: &Number| {
        let rest = text.get(number.end..).unwrap_or_default().trim_start();
        let starts = |names: &[&str]| names.iter().any(|name| rest.starts_with(name));
        match () {
            () if starts(&["hour", "hr", "h ", "h,", "小时", "个小时"]) || rest == "h" => 60.0,
            () if starts(&["min", "分", "m "]) || rest == "m" => 1.0,
            () => 0.0,
        }
    };
    let value = |number: &Number| number.values.first().copied().unwrap_or_default() * unit(number);
    let mut found = Vec::new();
    for pair in numbers.windows(2) {
        if let [hours, rest] = pair
            && unit(hours) == 60.0
            && unit(rest) == 1.0
        {
            found.push(value(hours) + value(rest));
        }
    }
    found
}

/// Degrees of one scale in the other one: 70 °F are 21.1 °C.
pub(super) fn other_degrees(text: &str, number: &Number) -> Option<f64> {
    let rest = text.get(number.end..).unwrap_or_default().trim_start_matches([' ', '-', '°', 'º']);
    let starts = |names: &[&str]| names.iter().any(|name| rest.starts_with(name));
    let value = number.values.first().copied()?;
    match () {
        () if starts(&["F", "degrees F", "degrees f", "℉", "华氏"]) => Some((value - 32.0) / 1.8),
        () if starts(&["C", "degrees C", "degrees c", "℃", "摄氏"]) => Some(value * 1.8 + 32.0),
        () => None,
    }
}

/// Durations of two units with the numbers that they consist of, in seconds: "1分35秒" is 95, "5 h 50 min" 21,000.
pub(super) fn composite_seconds(text: &str, numbers: &[Number]) -> Vec<([usize; 2], f64)> {
    let seconds = |number: &Number| {
        let rest = text.get(number.end..).unwrap_or_default().trim_start();
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let is = |ascii: &[&str], chinese: &[&str]| {
            ascii.contains(&word.as_str()) || chinese.iter().any(|name| rest.starts_with(name))
        };
        match () {
            () if is(&["h", "hr", "hrs", "hour", "hours"], &["小时", "个小时"]) => Some(3_600.0),
            () if is(&["m", "min", "mins", "minute", "minutes"], &["分"]) => Some(60.0),
            () if is(&["s", "sec", "secs", "second", "seconds"], &["秒"]) => Some(1.0),
            () => None,
        }
    };
    let mut found = Vec::new();
    for pair in numbers.windows(2) {
        let [first, second] = pair else { continue };
        let (Some(large), Some(small)) = (seconds(first), seconds(second)) else { continue };
        let (Some(one), Some(other)) = (first.values.first(), second.values.first()) else { continue };
        if large > small && second.start.saturating_sub(first.end) < 16 {
            found.push(([first.start, second.start], one * large + other * small));
        }
    }
    found
}

/// A number of minutes or hours in minutes.
pub(super) fn in_minutes(text: &str, number: &Number) -> Option<f64> {
    let rest = text.get(number.end..).unwrap_or_default().trim_start_matches([' ', '-']);
    let starts = |names: &[&str]| names.iter().any(|name| rest.starts_with(name));
    let factor = match () {
        () if starts(&["min", "分钟"]) => 1.0,
        () if starts(&["hour", "hr", "h ", "小时", "个小时"]) => 60.0,
        () => return None,
    };
    number.values.first().map(|value| value * factor)
}
