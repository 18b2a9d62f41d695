//! Texts of the settings page.

use crate::api::SettingOrigin;

texts! { SettingsText {
    title: "Settings", "设置";
    lead: "The settings in effect, and where each value comes from. Edit them in the file; a running gateway reloads it.", "当前生效的设置及每个值的来源。请在文件中修改，运行中的网关会自动重新加载。";
    files: "Files", "文件";
    no_files: "No settings file: everything has its default.", "没有设置文件：全部采用默认值。";
    key: "Setting", "设置项";
    value: "Value", "取值";
    origin: "Origin", "来源";
    origin_default: "default", "默认值";
    origin_file: "file", "文件";
    origin_command_line: "command line", "命令行";
    secret: "hidden", "已隐藏";
    changed_only: "Only changed values", "仅显示已修改的值";
    none_changed: "Every setting has its default.", "所有设置均为默认值。";
    not_offered: "This gateway does not show its settings.", "此网关不显示其设置。";
    not_offered_hint: "In a terminal, toolyard doctor checks them.", "可在终端运行 toolyard doctor 进行检查。";
    session: "Your session", "您的会话";
    session_help: "It ends after twelve hours, when you sign out, or when the access token changes. The gateway forgets a sign-out when it restarts: to end all sessions for good, change the access token.", "会话在 12 小时后、退出登录或访问令牌更换时结束。网关重启后不再记得退出操作：如需彻底结束所有会话，请更换访问令牌。";
    role: "Role", "角色";
} }

impl SettingsText {
    /// The name of where a value comes from.
    pub(crate) fn origin_name(&self, origin: SettingOrigin) -> &'static str {
        match origin {
            SettingOrigin::Default => self.origin_default,
            SettingOrigin::File => self.origin_file,
            SettingOrigin::CommandLine => self.origin_command_line,
        }
    }
}
