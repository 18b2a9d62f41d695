//! Families of verbs with the same meaning, in English, in Chinese, and in the names of tools.

use std::sync::LazyLock;

use super::text::is_chinese;

/// Verbs that claim or request the same change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Base form, past forms, and what the imperative asks for.
    pub(super) english: Vec<(&'static str, Vec<String>, Imperative)>,
    pub(super) chinese: Vec<(&'static str, Imperative)>,
    /// Words in names of tools, and stems in commands.
    pub(super) tool_words: Vec<&'static str>,
}

/// How exactly a step must match a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// "Done": any change.
    Any,
    /// Any change of content: write, create, update.
    Generic,
    /// A tool with another name may do it: assign, move.
    Specific,
    /// Only a tool that says so does it: send, delete, push, pay.
    Strict,
}

/// What a verb in the imperative asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Imperative {
    /// A change, whatever its object is: "delete it".
    Change,
    /// A change if the object is something that is stored: "create a file", not "create a poem".
    Stored,
    /// Perhaps only a text: "translate the first line".
    Ambiguous,
}

use Kind::{Any, Generic, Specific, Strict};

type Entry = (&'static str, Kind, &'static str, &'static str, &'static str);

/// Name, kind, English verbs (`base/past/participle`, two words joined with `_`; regular forms are derived), Chinese verbs,
/// and words in names of tools. `?` marks verbs that need a stored object, `~` ambiguous ones.
const TABLE: &[Entry] = &[
    (
        "do",
        Any,
        "do~/done process~ handle~ perform~ complete~ finish~ carry_out~/carried_out take_care~/taken_care accomplish~",
        "完成~ 处理~ 搞定~ 弄好~ 办好~ 办妥~",
        "",
    ),
    (
        "save",
        Generic,
        "save store remember record note overwrite/overwrote/overwritten write?/wrote/written put/put export? log/logged jot enter?",
        "保存 存为 存到 存入 存进 另存 写入 写到 写在 写进 写回 填入 填写 填到 记住 记下 记到 记录到 存储 写一个? 写个? 写一份? 录入 登记 导出?",
        "save write store put record export remember upsert log",
    ),
    (
        "create",
        Generic,
        "create? make?/made add? insert append build?/built generate~ produce~ draw~/drew/drawn set_up/set_up start? open? import establish",
        "插入 追加 添加 新建 新增 建立 创建 加入 加到 加上 加一 建一 建个 设立 制作? 做一个? 生成~ 建好",
        "create add insert make new init append generate import build post",
    ),
    (
        "update",
        Generic,
        "update change edit modify set/set fill fix? correct? replace adjust format?/formatted clean? improve~ rewrite~/rewrote/rewritten translate~ convert~ sort~ split~/split round~ normalize~ combine~ highlight capitalize~ apply~/applied bump increase decrease raise? lower? extend? shorten? swap?/swapped tidy?/tidied",
        "覆盖 更新 改为 改成 改到 改好 设为 设成 设置 换成 替换 修改 更改 调整 修复 纠正 改掉 调到 调高 调低 提高到 降到 格式化? 排序? 修正? 整理? 补全? 补上 翻译~ 译成~ 转换~ 转成~ 改一下",
        "update set edit modify change format replace fill translate sort patch convert fix apply",
    ),
    (
        "mark",
        Specific,
        "mark tick check_off/checked_off flag/flagged label tag/tagged star/starred pin/pinned",
        "标为 标记 标成 勾选 勾掉 打勾 置顶 打标签 标注",
        "mark tick label tag star pin flag",
    ),
    ("hide", Specific, "hide/hid/hidden unhide/unhid/unhidden", "隐藏", "hide"),
    ("archive", Specific, "archive", "归档 存档", "archive"),
    ("assign", Specific, "assign unassign delegate", "分配 指派 指定给", "assign"),
    ("close", Specific, "close resolve? reopen", "关闭 关掉 重新打开", "close resolve reopen"),
    (
        "switch",
        Specific,
        "enable disable activate deactivate turn_on/turned_on turn_off/turned_off turn/turned switch lock unlock toggle mute unmute dim/dimmed",
        "启用 停用 禁用 开启 打开~ 锁定 解锁 关灯 开灯",
        "enable disable turn switch toggle lock",
    ),
    ("rename", Specific, "rename", "重命名 改名 更名 改好名 改了名", "rename move mv"),
    (
        "move",
        Specific,
        "move relocate transfer?/transferred",
        "移动 移到 移至 挪到 搬到 移入 转移",
        "move mv transition transfer rename",
    ),
    (
        "copy",
        Specific,
        "copy?/copied duplicate? clone? back_up/backed_up backup/backed_up",
        "复制? 拷贝? 克隆? 备份",
        "copy cp duplicate clone fork backup",
    ),
    (
        "reschedule",
        Specific,
        "reschedule postpone delay? shift?",
        "推迟 延后 提前到 改期",
        "reschedule postpone",
    ),
    (
        "schedule",
        Specific,
        "schedule book reserve arrange",
        "预约 帮我约 约一下 约个 约了 约在 约好 安排 预订 订一 订个 订间 订张 订好 订了 预定 排上",
        "schedule book reserve event reservation appointment meeting calendar",
    ),
    ("remind", Specific, "remind", "提醒", "remind reminder"),
    (
        "register",
        Specific,
        "register subscribe sign_up/signed_up enroll",
        "报名 订阅 注册",
        "register subscribe signup enroll",
    ),
    ("play", Specific, "play pause resume", "播放 暂停", "play pause resume"),
    (
        "scale",
        Specific,
        "scale~ resize crop/cropped rotate compress zip/zipped",
        "缩放 裁剪 压缩 扩容",
        "scale resize crop rotate compress zip",
    ),
    (
        "delete",
        Strict,
        "delete remove erase get_rid/got_rid/gotten_rid wipe purge trash discard clear? drop?/dropped empty?/emptied strip?/stripped",
        "删除 移除 清空 删掉 删去 去掉 清除 清理掉 清理~ 丢弃 撤掉 删了",
        "delete remove drop clear erase purge unlink trash rm",
    ),
    ("cancel", Strict, "cancel/cancelled/canceled", "取消 退掉 退票 退订单", "cancel delete remove refund"),
    ("uninstall", Strict, "uninstall", "卸载", "uninstall remove"),
    ("unsubscribe", Strict, "unsubscribe", "退订 取消订阅", "unsubscribe"),
    (
        "send",
        Strict,
        "send/sent email mail message post notify announce inform alert text tell/told publish deliver ping/pinged nudge cross-post broadcast relay dm/dm'd contact go_out~/went_out/gone_out/on_its_way/on_their_way",
        "发送 发给 发布 发到 发封 发一封 发个 发一条 发邮件 发短信 发通知 发消息 群发 通知 告知 公布 寄给 发出 发了 告诉~",
        "send post email mail message notify publish announce tweet sms",
    ),
    ("forward", Strict, "forward", "转发", "forward"),
    ("cc", Strict, "cc/cc'd", "抄送", "cc"),
    (
        "reply",
        Strict,
        "reply/replied respond~ answer~",
        "回复",
        "reply respond comment send email mail message post",
    ),
    ("comment", Strict, "comment~", "评论 留言", "comment reply post"),
    ("share", Strict, "share", "分享 共享", "share permission"),
    (
        "invite",
        Strict,
        "invite",
        "邀请",
        "invite attendee attendees guest guests participant participants member",
    ),
    ("commit", Strict, "commit/committed", "提交代码", "commit"),
    ("stage", Strict, "stage", "暂存", "stage"),
    ("push", Strict, "push", "推送", "push"),
    ("upload", Strict, "upload", "上传", "upload put"),
    ("deploy", Strict, "deploy release", "部署 上线", "deploy release rollout"),
    ("sync", Strict, "sync", "同步", "sync"),
    ("merge", Specific, "merge rebase~ land~", "合并~ 并入", "merge rebase"),
    ("checkout", Specific, "check_out/checked_out", "切换到 检出", "checkout switch"),
    (
        "submit",
        Strict,
        "submit/submitted file~ request~ apply_for/applied_for file_for/filed_for",
        "递交 申请 提交~",
        "submit request apply click press form order commit issue ticket expense leave",
    ),
    (
        "restore",
        Strict,
        "restore undo/undid/undone revert recover roll_back/rolled_back",
        "恢复 还原 撤销 回滚",
        "restore undo revert rollback recover checkout",
    ),
    (
        "order",
        Strict,
        "order buy/bought purchase go_through~/went_through/gone_through",
        "下单 购买 订购 买一 买了 买好",
        "order buy purchase checkout",
    ),
    ("pay", Strict, "pay/paid", "付款 支付 转账 充值 付了", "pay payment transfer charge"),
    ("install", Strict, "install upgrade", "安装 升级", "install upgrade"),
    ("restart", Strict, "restart reboot", "重启", "restart reboot rollout"),
    (
        "start",
        Specific,
        "launch run~/ran execute~ trigger",
        "启动 运行~ 执行~ 开始~",
        "start launch run execute trigger exec",
    ),
    ("stop", Specific, "stop/stopped shut_down/shut_down kill", "停止 停掉", "stop kill shutdown"),
    ("approve", Strict, "approve", "批准 同意", "approve accept agree"),
    ("reject", Strict, "reject decline", "驳回 拒绝", "reject decline"),
    (
        "style",
        Strict,
        "embolden italicize underline",
        "加粗 居中 斜体 标红 加边框",
        "format style bold align italic",
    ),
    ("split", Specific, "", "拆成 拆分 拆好 拆出 拆为", "split extract"),
    ("draft", Generic, "draft~", "起草~ 草拟~", "draft"),
];

static FAMILIES: LazyLock<Vec<Family>> = LazyLock::new(|| TABLE.iter().map(family).collect());

pub(super) fn families() -> &'static [Family] {
    &FAMILIES
}

fn family((name, kind, english, chinese, tool_words): &Entry) -> Family {
    Family {
        name,
        kind: *kind,
        english: english.split_whitespace().map(english_verb).collect(),
        chinese: chinese.split_whitespace().map(|entry| (bare(entry), imperative(entry))).collect(),
        tool_words: tool_words.split_whitespace().collect(),
    }
}

fn imperative(entry: &str) -> Imperative {
    match entry.chars().find(|letter| matches!(letter, '?' | '~')) {
        Some('?') => Imperative::Stored,
        Some(_) => Imperative::Ambiguous,
        None => Imperative::Change,
    }
}

fn bare(entry: &'static str) -> &'static str {
    entry.trim_end_matches(['?', '~'])
}

/// Reads `write?/wrote/written`.
fn english_verb(entry: &'static str) -> (&'static str, Vec<String>, Imperative) {
    let mut parts = entry.split('/');
    let base = bare(parts.next().unwrap_or_default());
    let mut past: Vec<String> = parts.map(|form| form.replace('_', " ")).collect();
    if past.is_empty() {
        past.push(regular_past(base));
        // Labeled and labelled.
        if let Some(last) = base.chars().next_back().filter(|last| "lptgnmbdr".contains(*last)) {
            past.push(format!("{base}{last}ed"));
        }
    }
    (base, past, imperative(entry))
}

fn regular_past(base: &str) -> String {
    match (base.strip_suffix('y'), base.ends_with('e')) {
        (_, true) => format!("{base}d"),
        (Some(stem), _) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ied"),
        _ => format!("{base}ed"),
    }
}

impl Family {
    pub(super) fn is_named(&self, name: &str) -> bool {
        self.name == name
    }

    /// Whether words start with one of its past forms.
    pub(super) fn has_past(&self, words: &[String]) -> bool {
        self.english.iter().flat_map(|(_, past, _)| past).any(|form| starts_with(words, form))
    }

    /// What an imperative with these two words asks for.
    pub(super) fn imperative(&self, word: &str, next: &str) -> Option<(&'static str, Imperative)> {
        let both = format!("{word}_{next}");
        let found = self.english.iter().find(|(base, ..)| *base == word || *base == both);
        found.map(|(base, _, imperative)| (*base, *imperative))
    }

    /// Whether a text, in lower case, names one of its verbs.
    pub(super) fn occurs_in(&self, words: &[String], text: &str) -> bool {
        let is_form =
            |word: &String| self.english.iter().any(|(base, past, _)| base == word || past.contains(word));
        words.iter().any(is_form)
            || self.chinese.iter().any(|(verb, _)| verb.chars().all(is_chinese) && text.contains(verb))
    }
}

/// The family whose past form words start with; a form of several words is more telling than its first word alone.
pub(super) fn family_of_past(words: &[String]) -> Option<&'static Family> {
    let forms = families().iter().flat_map(|family| {
        family.english.iter().flat_map(move |(_, past, _)| past.iter().map(move |form| (family, form)))
    });
    let found = forms.filter(|(_, form)| starts_with(words, form));
    // Of several families with the same form, the first counts.
    found.fold(None, longer_form).map(|(family, _)| family)
}

type PastForm = (&'static Family, &'static String);

fn longer_form(best: Option<PastForm>, next: PastForm) -> Option<PastForm> {
    let parts = |form: &str| form.matches(' ').count();
    match best {
        Some(best) if parts(best.1) >= parts(next.1) => Some(best),
        _ => Some(next),
    }
}

fn starts_with(words: &[String], form: &str) -> bool {
    let parts = form.split(' ');
    words.len() >= parts.clone().count() && parts.zip(words).all(|(part, word)| part == word)
}

#[cfg(test)]
mod tests {
    use super::{super::text::words, *};

    #[test]
    fn forms_are_derived() {
        let name = |text| family_of_past(&words(text)).map(|family| family.name);
        assert_eq!(name("saved"), Some("save"));
        assert_eq!(name("written"), Some("save"));
        assert_eq!(name("copied it"), Some("copy"));
        assert_eq!(name("rolled back"), Some("restore"));
        assert_eq!(name("on its way"), Some("send"));
        assert_eq!(name("found"), None);
    }
}
