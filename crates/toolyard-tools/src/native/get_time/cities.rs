//! Time zones of cities that no IANA zone is named after, and of cities by their Chinese names.

/// Lowercase city names and their zones. Chinese names omit 市.
const CITIES: &[(&str, &str)] = &[
    ("北京", "Asia/Shanghai"),
    ("上海", "Asia/Shanghai"),
    ("广州", "Asia/Shanghai"),
    ("深圳", "Asia/Shanghai"),
    ("杭州", "Asia/Shanghai"),
    ("成都", "Asia/Shanghai"),
    ("重庆", "Asia/Shanghai"),
    ("武汉", "Asia/Shanghai"),
    ("西安", "Asia/Shanghai"),
    ("南京", "Asia/Shanghai"),
    ("天津", "Asia/Shanghai"),
    ("中国", "Asia/Shanghai"),
    ("乌鲁木齐", "Asia/Urumqi"),
    ("香港", "Asia/Hong_Kong"),
    ("澳门", "Asia/Macau"),
    ("台北", "Asia/Taipei"),
    ("臺北", "Asia/Taipei"),
    ("东京", "Asia/Tokyo"),
    ("東京", "Asia/Tokyo"),
    ("大阪", "Asia/Tokyo"),
    ("首尔", "Asia/Seoul"),
    ("新加坡", "Asia/Singapore"),
    ("曼谷", "Asia/Bangkok"),
    ("吉隆坡", "Asia/Kuala_Lumpur"),
    ("雅加达", "Asia/Jakarta"),
    ("马尼拉", "Asia/Manila"),
    ("河内", "Asia/Ho_Chi_Minh"),
    ("胡志明", "Asia/Ho_Chi_Minh"),
    ("孟买", "Asia/Kolkata"),
    ("新德里", "Asia/Kolkata"),
    ("迪拜", "Asia/Dubai"),
    ("伊斯坦布尔", "Europe/Istanbul"),
    ("莫斯科", "Europe/Moscow"),
    ("伦敦", "Europe/London"),
    ("巴黎", "Europe/Paris"),
    ("柏林", "Europe/Berlin"),
    ("法兰克福", "Europe/Berlin"),
    ("慕尼黑", "Europe/Berlin"),
    ("马德里", "Europe/Madrid"),
    ("罗马", "Europe/Rome"),
    ("米兰", "Europe/Rome"),
    ("阿姆斯特丹", "Europe/Amsterdam"),
    ("苏黎世", "Europe/Zurich"),
    ("日内瓦", "Europe/Zurich"),
    ("维也纳", "Europe/Vienna"),
    ("开罗", "Africa/Cairo"),
    ("纽约", "America/New_York"),
    ("华盛顿", "America/New_York"),
    ("波士顿", "America/New_York"),
    ("芝加哥", "America/Chicago"),
    ("洛杉矶", "America/Los_Angeles"),
    ("旧金山", "America/Los_Angeles"),
    ("西雅图", "America/Los_Angeles"),
    ("多伦多", "America/Toronto"),
    ("温哥华", "America/Vancouver"),
    ("墨西哥城", "America/Mexico_City"),
    ("圣保罗", "America/Sao_Paulo"),
    ("悉尼", "Australia/Sydney"),
    ("墨尔本", "Australia/Melbourne"),
    ("奥克兰", "Pacific/Auckland"),
    ("beijing", "Asia/Shanghai"),
    ("peking", "Asia/Shanghai"),
    ("shenzhen", "Asia/Shanghai"),
    ("guangzhou", "Asia/Shanghai"),
    ("hangzhou", "Asia/Shanghai"),
    ("osaka", "Asia/Tokyo"),
    ("mumbai", "Asia/Kolkata"),
    ("delhi", "Asia/Kolkata"),
    ("new delhi", "Asia/Kolkata"),
    ("bangalore", "Asia/Kolkata"),
    ("hanoi", "Asia/Ho_Chi_Minh"),
    ("munich", "Europe/Berlin"),
    ("frankfurt", "Europe/Berlin"),
    ("hamburg", "Europe/Berlin"),
    ("geneva", "Europe/Zurich"),
    ("milan", "Europe/Rome"),
    ("barcelona", "Europe/Madrid"),
    ("washington", "America/New_York"),
    ("boston", "America/New_York"),
    ("miami", "America/New_York"),
    ("dallas", "America/Chicago"),
    ("houston", "America/Chicago"),
    ("san francisco", "America/Los_Angeles"),
    ("seattle", "America/Los_Angeles"),
    ("las vegas", "America/Los_Angeles"),
];

/// The zone of a city, with or without a region before it and 市 or 时间 after it.
pub(super) fn zone_of_city(name: &str) -> Option<&'static str> {
    let city = name.rsplit('/').next().unwrap_or(name).trim().replace('_', " ").to_lowercase();
    let city = city.strip_suffix("时间").unwrap_or(&city);
    let plain = city.strip_suffix('市').unwrap_or(city);
    CITIES.iter().find(|(name, _)| *name == plain).map(|(_, zone)| *zone)
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
        for (name, zone) in CITIES {
            assert!(zones.get(zone).is_ok(), "{zone}");
            assert!(names.insert(name), "{name}");
            assert_eq!(zone_of_city(name), Some(*zone));
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
