//! Texts of the graph of a plan and of the timeline.

use crate::svg::step_state::StepState;

texts! { DrawingText by name {
    plan: "Plan · Steps: {}", "包含 {} 个步骤的计划";
    timeline: "Timeline of the steps", "步骤时间线";
    attempt: "attempt {}", "第 {} 次尝试";
    waiting: "Waiting", "等待中";
    needs_approval: "Needs approval", "待批准";
    running: "Running", "运行中";
    done: "Done", "已完成";
    failed: "Failed", "失败";
    unknown: "Unknown", "结果未知";
    skipped: "Skipped", "已跳过";
    short_needs_approval: "approval", "待批准";
    short_running: "running", "运行中";
    short_done: "done", "完成";
    short_failed: "failed", "失败";
    short_unknown: "unknown", "未知";
    short_skipped: "skipped", "跳过";
} }

impl DrawingText {
    /// The word for a state.
    pub(crate) fn state(&self, state: StepState) -> &'static str {
        self.named("", state.token()).unwrap_or_default()
    }

    /// A word for a state that fits into a node of the graph; empty for steps that wait.
    pub(crate) fn short_state(&self, state: StepState) -> &'static str {
        self.named("short_", state.token()).unwrap_or_default()
    }
}
