//! Time zones of cities that no IANA zone is named after, and of cities by their Chinese names.

/// Zones, and lowercase names of their cities. Chinese names omit 市.
const CITIES: &[(&str, &[&str])] = &[
    ("Asia/Shanghai", &["北京", "上海", "广州", "深圳", "杭州", "成都", "重庆"]),
    ("Asia/Shanghai", &["武汉", "西安", "南京", "天津", "中国"]),
    ("Asia/Shanghai", &["beijing", "peking", "shenzhen", "guangzhou", "hangzhou"]),
    ("Asia/Urumqi", &["乌鲁木齐"]),
    ("Asia/Hong_Kong", &["香港"]),
    ("Asia/Macau", &["澳门"]),
    ("Asia/Taipei", &["台北", "臺北"]),
    ("Asia/Tokyo", &["东京", "東京", "大阪", "osaka"]),
    ("Asia/Seoul", &["首尔"]),
    ("Asia/Singapore", &["新加坡"]),
    ("Asia/Bangkok", &["曼谷"]),
    ("Asia/Kuala_Lumpur", &["吉隆坡"]),
    ("Asia/Jakarta", &["雅加达"]),
    ("Asia/Manila", &["马尼拉"]),
    ("Asia/Ho_Chi_Minh", &["河内", "胡志明", "hanoi"]),
    ("Asia/Kolkata", &["孟买", "新德里", "mumbai", "delhi", "new delhi", "bangalore"]),
    ("Asia/Dubai", &["迪拜"]),
    ("Europe/Istanbul", &["伊斯坦布尔"]),
    ("Europe/Moscow", &["莫斯科"]),
    ("Europe/London", &["伦敦"]),
    ("Europe/Paris", &["巴黎"]),
    ("Europe/Berlin", &["柏林", "法兰克福", "慕尼黑", "munich", "frankfurt", "hamburg"]),
    ("Europe/Madrid", &["马德里", "barcelona"]),
    ("Europe/Rome", &["罗马", "米兰", "milan"]),
    ("Europe/Amsterdam", &["阿姆斯特丹"]),
    ("Europe/Zurich", &["苏黎世", "日内瓦", "geneva"]),
    ("Europe/Vienna", &["维也纳"]),
    ("Africa/Cairo", &["开罗"]),
    ("America/New_York", &["纽约", "华盛顿", "波士顿", "washington", "boston", "miami"]),
    ("America/Chicago", &["芝加哥", "dallas", "houston"]),
    ("America/Los_Angeles", &["洛杉矶", "旧金山", "西雅图", "san francisco", "seattle", "las vegas"]),
    ("America/Toronto", &["多伦多"]),
    ("America/Vancouver", &["温哥华"]),
    ("America/Mexico_City", &["墨西哥城"]),
    ("America/Sao_Paulo", &["圣保罗"]),
    ("Australia/Sydney", &["悉尼"]),
    ("Australia/Melbourne", &["墨尔本"]),
    ("Pacific/Auckland", &["奥克兰"]),
];

/// The zone of a city, with or without a region before it and 市 or 时间 after it.
pub(super) fn zone_of_city(name: &str) -> Option<&'static str> {
    let city = name.rsplit('/').next().unwrap_or(name).trim().replace('_', " ").to_lowercase();
    let city = city.strip_suffix("时间").unwrap_or(&city);
    let plain = city.strip_suffix('市').unwrap_or(city);
    CITIES.iter().find(|(_, cities)| cities.contains(&plain)).map(|(zone, _)| *zone)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::tz::TimeZoneDatabase;

    use super::*;

    #[test]
    fn every_zone_exists_and_every_name_is_unique() {
        let zones = TimeZoneDatabase::bundled();
        let mut names = HashSet::new();
        for (zone, cities) in CITIES {
            assert!(zones.get(zone).is_ok(), "{zone}");
            for name in *cities {
                assert!(names.insert(name), "{name}");
                assert_eq!(zone_of_city(name), Some(*zone));
            }
        }
    }

    #[test]
    fn regions_and_suffixes_are_ignored() {
        assert_eq!(zone_of_city("Asia/Beijing"), Some("Asia/Shanghai"));
        assert_eq!(zone_of_city("America/San_Francisco"), Some("America/Los_Angeles"));
        assert_eq!(zone_of_city(" 上海市 "), Some("Asia/Shanghai"));
        assert_eq!(zone_of_city("火星"), None);
    }
}
