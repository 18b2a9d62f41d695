//! [`WorkerGroups`]: which processes of which groups were heard of, and what they serve. Pure: the time is an argument.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use toolyard_core::{ContentHash, RawJson, matches_wildcards};

use super::message::Announcement;

/// A process that was silent for so long is gone. It announces itself three times in this time.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(30);
/// More groups, and more processes of a group, are ignored.
const MAX_GROUPS: usize = 256;
const MAX_PROCESSES_PER_GROUP: usize = 1_024;
/// How long a process that stopped announcing itself is remembered, for people.
const REMEMBER_LOST_FOR: Duration = Duration::from_mins(10);
/// More lost processes are not remembered.
const MAX_LOST_PROCESSES: usize = 1_024;
/// Names of processes are cut to this length.
const MAX_NAME_CHARS: usize = 64;

/// A process of a group, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerProcessStatus {
    /// Its number.
    pub process: u64,
    /// What it calls itself. Text from outside.
    pub name: Option<Arc<str>>,
    /// Whether it stopped announcing itself without leaving.
    pub is_lost: bool,
    /// How long ago it was heard of.
    pub silent_for: Duration,
    /// The number of its tools; `None` until it was asked.
    pub tools: Option<usize>,
    /// How many calls it executes at the same time at most.
    pub concurrency: Option<u32>,
    /// How many calls it was executing when it was heard of.
    pub running_calls: Option<u32>,
}

/// The processes of all groups that this gateway uses.
#[derive(Debug)]
pub(super) struct WorkerGroups {
    /// The names of the groups that it uses, with `*` as wildcard.
    patterns: Vec<String>,
    groups: BTreeMap<Arc<str>, BTreeMap<u64, WorkerProcess>>,
    /// Processes that stopped announcing themselves, by group and number.
    lost: BTreeMap<(Arc<str>, u64), LostProcess>,
}

#[derive(Debug)]
struct WorkerProcess {
    last_heard: Instant,
    name: Option<Arc<str>>,
    concurrency: Option<u32>,
    running_calls: Option<u32>,
    /// What the process announced last.
    announced: ContentHash,
    /// What it serves, with its hash; none until it was asked.
    catalogue: Option<(ContentHash, Arc<[RawJson]>)>,
    is_being_asked: bool,
    /// Whether it announced something else while it was asked.
    has_changed_since: bool,
}

/// A process that stopped announcing itself, without its catalogue, which may be large.
#[derive(Debug)]
struct LostProcess {
    last_heard: Instant,
    /// As it was when it was lost.
    status: WorkerProcessStatus,
}

/// What is to be done after an announcement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnnouncementEffect {
    /// Nothing new.
    Nothing,
    /// The process serves something unknown and must be asked.
    Ask(Arc<str>, u64),
    /// The processes of the group changed.
    Changed(Arc<str>),
}

impl WorkerProcess {
    /// Takes over what the process says of itself for people.
    fn describe(&mut self, announcement: &Announcement) {
        let name = announcement.name.as_deref().unwrap_or_default();
        // Most announcements repeat the same name.
        if self.name.as_deref().unwrap_or_default() != name {
            let name: String = name.chars().take(MAX_NAME_CHARS).collect();
            self.name = (!name.is_empty()).then(|| name.into());
        }
        self.concurrency = announcement.concurrency;
        self.running_calls = announcement.running_calls;
    }

    fn status(&self, process: u64, is_lost: bool, now: Instant) -> WorkerProcessStatus {
        WorkerProcessStatus {
            process,
            name: self.name.clone(),
            is_lost,
            silent_for: now.duration_since(self.last_heard),
            tools: self.catalogue.as_ref().map(|(_, tools)| tools.len()),
            concurrency: self.concurrency,
            running_calls: self.running_calls,
        }
    }
}

impl WorkerGroups {
    pub(super) fn new(patterns: Vec<String>) -> Self {
        Self { patterns, groups: BTreeMap::new(), lost: BTreeMap::new() }
    }

    pub(super) fn record_announcement(
        &mut self,
        group: &str,
        announcement: &Announcement,
        now: Instant,
    ) -> AnnouncementEffect {
        if !self.patterns.iter().any(|pattern| matches_wildcards(pattern, group)) {
            return AnnouncementEffect::Nothing;
        }
        let number = announcement.process;
        self.lost.remove(&(Arc::<str>::from(group), number));
        if announcement.is_leaving {
            let processes = self.groups.get_mut(group);
            let was_there = processes.is_some_and(|processes| processes.remove(&number).is_some());
            return if was_there {
                AnnouncementEffect::Changed(group.into())
            } else {
                AnnouncementEffect::Nothing
            };
        }
        if !self.groups.contains_key(group) && self.groups.len() >= MAX_GROUPS {
            return AnnouncementEffect::Nothing;
        }
        let name: Arc<str> = group.into();
        let processes = self.groups.entry(Arc::clone(&name)).or_default();
        if !processes.contains_key(&number) && processes.len() >= MAX_PROCESSES_PER_GROUP {
            return AnnouncementEffect::Nothing;
        }
        let known = processes.values().filter_map(|process| process.catalogue.as_ref());
        let known = known.clone().find(|(hash, _)| *hash == announcement.catalogue).cloned();
        let process = processes.entry(number).or_insert_with(|| WorkerProcess {
            last_heard: now,
            name: None,
            concurrency: None,
            running_calls: None,
            announced: announcement.catalogue,
            catalogue: None,
            is_being_asked: false,
            has_changed_since: false,
        });
        process.last_heard = now;
        process.describe(announcement);
        process.has_changed_since |= process.is_being_asked && process.announced != announcement.catalogue;
        process.announced = announcement.catalogue;
        let current = process.catalogue.as_ref().map(|(hash, _)| *hash);
        match known {
            _ if current == Some(announcement.catalogue) => AnnouncementEffect::Nothing,
            // Another process of the group serves the same.
            Some(catalogue) => {
                process.catalogue = Some(catalogue);
                AnnouncementEffect::Changed(name)
            }
            None if process.is_being_asked => AnnouncementEffect::Nothing,
            None => {
                process.is_being_asked = true;
                AnnouncementEffect::Ask(name, number)
            }
        }
    }

    /// Records the answer of a process, or that there was none. Returns whether the process is to be asked again, because it
    /// announced something else meanwhile.
    pub(super) fn record_answer(
        &mut self,
        group: &str,
        number: u64,
        answer: Option<(ContentHash, Arc<[RawJson]>)>,
    ) -> bool {
        let process = self.groups.get_mut(group).and_then(|processes| processes.get_mut(&number));
        let Some(process) = process else { return false };
        process.is_being_asked = false;
        let has_changed = std::mem::take(&mut process.has_changed_since);
        let Some((hash, tools)) = answer else { return false };
        process.catalogue = Some((hash, tools));
        // At most once per announcement, whatever the process answers.
        process.is_being_asked = has_changed && hash != process.announced;
        process.is_being_asked
    }

    /// Moves processes that were silent too long to the lost ones. Returns the groups that they belonged to.
    pub(super) fn move_silent_to_lost(&mut self, now: Instant) -> Vec<Arc<str>> {
        let is_silent = |process: &WorkerProcess| now.duration_since(process.last_heard) >= SILENT_AFTER;
        self.lost.retain(|_, process| now.duration_since(process.last_heard) < REMEMBER_LOST_FOR);
        let mut changed = Vec::new();
        for (name, processes) in &mut self.groups {
            let silent: Vec<u64> = processes
                .iter()
                .filter(|(_, process)| is_silent(process))
                .map(|(number, _)| *number)
                .collect();
            if !silent.is_empty() {
                changed.push(Arc::clone(name));
            }
            for number in silent {
                if let Some(process) = processes.remove(&number)
                    && self.lost.len() < MAX_LOST_PROCESSES
                {
                    let status = process.status(number, true, now);
                    let lost = LostProcess { last_heard: process.last_heard, status };
                    self.lost.insert((Arc::clone(name), number), lost);
                }
            }
        }
        self.groups.retain(|_, processes| !processes.is_empty());
        changed
    }

    /// The processes of each group, the lost ones included.
    pub(super) fn processes(&self, now: Instant) -> BTreeMap<Arc<str>, Vec<WorkerProcessStatus>> {
        let present = self.groups.iter().flat_map(|(name, processes)| {
            processes.iter().map(move |(number, process)| (name, process.status(*number, false, now)))
        });
        let lost = self.lost.iter().map(|((name, _), process)| {
            let silent_for = now.duration_since(process.last_heard);
            (name, WorkerProcessStatus { silent_for, ..process.status.clone() })
        });
        let mut all: BTreeMap<Arc<str>, Vec<WorkerProcessStatus>> = BTreeMap::new();
        for (name, status) in present.chain(lost) {
            all.entry(Arc::clone(name)).or_default().push(status);
        }
        all
    }

    /// The number of processes of all groups, without the lost ones.
    pub(super) fn process_count(&self) -> usize {
        self.groups.values().map(BTreeMap::len).sum()
    }

    /// The definitions that the processes of a group serve, each once, and the number of processes whose definitions are known.
    pub(super) fn definitions(&self, group: &str) -> (Vec<RawJson>, usize) {
        let processes = self.groups.get(group).into_iter().flat_map(BTreeMap::values);
        let (mut definitions, mut hashes, mut texts) = (Vec::new(), HashSet::new(), HashSet::new());
        let mut count = 0;
        for (hash, tools) in processes.filter_map(|process| process.catalogue.as_ref()) {
            count += 1;
            if hashes.insert(*hash) {
                definitions.extend(tools.iter().filter(|tool| texts.insert(tool.get())).cloned());
            }
        }
        (definitions, count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(process: u64, catalogue: &str) -> Announcement {
        Announcement {
            process,
            catalogue: ContentHash::of(catalogue),
            is_leaving: false,
            name: Some(format!("host:{process}")),
            concurrency: Some(4),
            running_calls: Some(1),
        }
    }

    fn tools(names: &[&str]) -> Arc<[RawJson]> {
        names.iter().map(|name| RawJson::from_value(&serde_json::json!({"name": name}))).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_is_asked_once_for_what_is_unknown() {
        let (mut groups, now) =
            (WorkerGroups::new(vec!["office".into(), "reports-*".into()]), Instant::now());
        assert_eq!(
            groups.record_announcement("other", &announcement(1, "a"), now),
            AnnouncementEffect::Nothing,
            "not used here"
        );
        assert_eq!(
            groups.record_announcement("office", &announcement(1, "a"), now),
            AnnouncementEffect::Ask("office".into(), 1)
        );
        assert_eq!(
            groups.record_announcement("office", &announcement(1, "a"), now),
            AnnouncementEffect::Nothing,
            "is being asked"
        );
        assert!(!groups.record_answer("office", 1, Some((ContentHash::of("a"), tools(&["x"])))));
        assert_eq!(
            groups.record_announcement("office", &announcement(1, "a"), now),
            AnnouncementEffect::Nothing
        );
        let same = groups.record_announcement("office", &announcement(2, "a"), now);
        assert_eq!(same, AnnouncementEffect::Changed("office".into()), "another process serves the same");
        assert_eq!(
            groups.record_announcement("office", &announcement(2, "b"), now),
            AnnouncementEffect::Ask("office".into(), 2)
        );
        assert!(!groups.record_answer("office", 2, Some((ContentHash::of("b"), tools(&["x", "y"])))));
        let (definitions, processes) = groups.definitions("office");
        assert_eq!((definitions.len(), processes), (2, 2));
        assert_eq!(
            groups.record_announcement("reports-1", &announcement(1, "a"), now),
            AnnouncementEffect::Ask("reports-1".into(), 1)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_changes_while_it_is_asked_is_asked_again() {
        let (mut groups, now) = (WorkerGroups::new(vec!["*".into()]), Instant::now());
        groups.record_announcement("office", &announcement(1, "a"), now);
        groups.record_announcement("office", &announcement(1, "b"), now);
        assert!(groups.record_answer("office", 1, Some((ContentHash::of("a"), tools(&["x"])))));
        let lie = || Some((ContentHash::of("c"), tools(&["x"])));
        assert!(!groups.record_answer("office", 1, lie()), "not for ever");
        assert_eq!(
            groups.record_announcement("office", &announcement(1, "b"), now),
            AnnouncementEffect::Ask("office".into(), 1)
        );
        groups.record_answer("office", 1, None);
        assert_eq!(groups.definitions("office").1, 1, "a failed question changes nothing");
    }

    #[tokio::test(start_paused = true)]
    async fn processes_leave_or_are_lost() {
        let (mut groups, now) = (WorkerGroups::new(vec!["*".into()]), Instant::now());
        for process in [1, 2] {
            groups.record_announcement("office", &announcement(process, "a"), now);
            groups.record_answer("office", process, Some((ContentHash::of("a"), tools(&["x"]))));
        }
        let leaving = Announcement { is_leaving: true, ..announcement(1, "a") };
        assert_eq!(
            groups.record_announcement("office", &leaving, now),
            AnnouncementEffect::Changed("office".into())
        );
        assert_eq!(groups.record_announcement("office", &leaving, now), AnnouncementEffect::Nothing);
        assert_eq!(groups.move_silent_to_lost(now + SILENT_AFTER / 2), [] as [Arc<str>; 0]);
        assert_eq!(groups.move_silent_to_lost(now + SILENT_AFTER), ["office".into()]);
        assert_eq!(groups.definitions("office"), (Vec::new(), 0));
        assert!(!groups.record_answer("office", 2, None), "an answer that comes too late is ignored");
    }

    #[tokio::test(start_paused = true)]
    async fn people_see_who_serves_and_who_is_lost() {
        let (mut groups, now) = (WorkerGroups::new(vec!["*".into()]), Instant::now());
        for process in [1, 2, 3] {
            groups.record_announcement("office", &announcement(process, "a"), now);
        }
        groups.record_answer("office", 1, Some((ContentHash::of("a"), tools(&["x", "y"]))));
        let leaving = Announcement { is_leaving: true, ..announcement(3, "a") };
        groups.record_announcement("office", &leaving, now);
        let long = Announcement { name: Some("n".repeat(1_000)), ..announcement(1, "a") };
        let later = now + SILENT_AFTER;
        groups.record_announcement("office", &long, later);
        groups.move_silent_to_lost(later);
        let shown = groups.processes(later);
        let shown: Vec<_> = shown["office"]
            .iter()
            .map(|status| (status.process, status.is_lost, status.tools, status.silent_for))
            .collect();
        assert_eq!(shown, [(1, false, Some(2), Duration::ZERO), (2, true, None, SILENT_AFTER)], "3 has left");
        let one = &groups.processes(later)["office"][0];
        assert_eq!(one.name.as_ref().map(|name| name.len()), Some(MAX_NAME_CHARS));
        assert_eq!((one.concurrency, one.running_calls), (Some(4), Some(1)));
        assert_eq!(groups.process_count(), 1);
        groups.record_announcement("office", &announcement(2, "a"), later);
        assert!(groups.processes(later)["office"].iter().all(|status| !status.is_lost), "it is back");
        groups.move_silent_to_lost(later + SILENT_AFTER);
        groups.move_silent_to_lost(later + REMEMBER_LOST_FOR);
        assert!(groups.processes(later).is_empty(), "the lost ones are forgotten after a while");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_fills_the_memory_with_groups_or_processes() {
        let (mut groups, now) = (WorkerGroups::new(vec!["*".into()]), Instant::now());
        for number in 0..2 * u64::try_from(MAX_PROCESSES_PER_GROUP).unwrap() {
            groups.record_announcement("office", &announcement(number, "a"), now);
            groups.record_announcement(&format!("group-{number}"), &announcement(1, "a"), now);
        }
        assert_eq!(groups.groups.len(), MAX_GROUPS);
        assert_eq!(groups.groups["office"].len(), MAX_PROCESSES_PER_GROUP);
    }
}
