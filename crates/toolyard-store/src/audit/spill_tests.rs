use proptest::prelude::*;

use super::super::backlog::Backlog;
use super::*;

fn location(folder: &Path) -> SpillLocation {
    SpillLocation { folder: folder.to_owned(), prefix: "test.db.".to_owned() }
}

fn batch(number: i64, records: usize) -> AuditBatch {
    let record = AuditRecord::lost(number, 1, "a test");
    AuditBatch { id: Some(BatchId { writer: "w".to_owned(), number }), records: vec![record; records] }
}

fn numbers(batches: &[Arc<AuditBatch>]) -> Vec<i64> {
    batches.iter().map(|batch| batch.id.as_ref().unwrap().number).collect()
}

#[test]
fn the_files_of_two_stores_in_one_folder_are_told_apart() {
    let place = |location: Location| SpillLocation::of(&location, Some(Path::new("/data")));
    let postgres = |url: &str| place(Location::Postgres(url.to_owned())).unwrap();
    assert_eq!(postgres("postgres://u:old@host/a"), postgres("postgres://u:new@host/a"));
    assert_ne!(postgres("postgres://host/a"), postgres("postgres://host/b"));
    let sqlite = place(Location::Sqlite(PathBuf::from("/home/x/toolyard.db"))).unwrap();
    assert_eq!((sqlite.folder, sqlite.prefix), (PathBuf::from("/home/x"), "toolyard.db.".to_owned()));
    assert_eq!(SpillLocation::of(&Location::Postgres("postgres://host/a".to_owned()), None), None);
}

/// What a crash or a bad disk may leave: each damaged line becomes one record of the loss, under an id of its own.
#[test]
fn damaged_lines_become_recorded_losses() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = location(folder.path()).create("a").unwrap();
    for number in 1..=4 {
        file.append(&batch(number, 10), u64::MAX).unwrap();
    }
    let path = file.path.clone();
    drop(file);
    let mut bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // One line with another content, one also without a number, and one that ends too early.
    bytes[second + 200] ^= 1;
    let third = second + bytes[second..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    bytes[third..third + 3].copy_from_slice(b"xx ");
    bytes[third + 200] ^= 1;
    bytes.truncate(bytes.len() - 5);
    std::fs::write(&path, &bytes).unwrap();
    for _ in 0..2 {
        let [mut file] = location(folder.path()).take_over().unwrap().try_into().unwrap();
        let batches = file.read(u64::MAX);
        let lost: Vec<u64> = batches.iter().filter_map(|batch| batch.records[0].lost_count()).collect();
        assert_eq!(lost, [1, 10, 1, 10], "the first is the record of the test itself");
        let ids: Vec<_> = batches.iter().map(|batch| batch.id.clone().unwrap()).collect();
        assert_eq!(ids[0], BatchId { writer: "w".to_owned(), number: 1 });
        assert!(ids[1..].iter().all(|id| id.writer == "test.db.a.audit-spill"), "{ids:?}");
        assert!(ids[1..].is_sorted_by_key(|id| id.number), "the same each time, and increasing");
    }
}

#[test]
fn a_locked_file_is_left_alone_and_a_deleted_one_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = location(folder.path()).create("a").unwrap();
    file.append(&batch(1, 1), u64::MAX).unwrap();
    assert!(location(folder.path()).take_over().unwrap().is_empty());
    assert_eq!(file.acknowledge(5), 1);
    file.delete().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    assert!(location(&folder.path().join("missing")).take_over().unwrap().is_empty());
}

/// One thing that happens to a backlog.
#[derive(Debug, Clone)]
enum Step {
    Push {
        records: usize,
    },
    Spill,
    Store {
        max_records: usize,
    },
    /// The process is killed, and the next one takes its file over.
    Restart,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..6_usize).prop_map(|records| Step::Push { records }),
        3 => Just(Step::Spill),
        3 => (1..20_usize).prop_map(|max_records| Step::Store { max_records }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever happens, and however small the spill file is: batches reach the store in order, none is skipped, and only those
    /// that were in memory only are lost with their process.
    #[test]
    fn a_backlog_keeps_order_and_forgets_nothing(steps in prop::collection::vec(any_step(), 1..60), max_bytes in 0..4_000_u64) {
        let folder = tempfile::tempdir().unwrap();
        let mut backlog = Backlog::new(Some(location(folder.path())), max_bytes, "p");
        let (mut pushed, mut expected, mut processes) = (0, VecDeque::new(), 0);
        let mut on_disk = 0;
        for step in steps {
            match step {
                Step::Push { records } => {
                    pushed += 1;
                    expected.push_back(pushed);
                    backlog.push(batch(pushed, records));
                }
                Step::Spill => {
                    let before = backlog.records_in_memory();
                    let spilled = backlog.spill();
                    prop_assert_eq!(spilled.is_ok(), backlog.records_in_memory() == 0);
                    prop_assert!(backlog.records_in_memory() <= before);
                }
                Step::Store { max_records } => {
                    let stored = numbers(&backlog.front(max_records));
                    prop_assert_eq!(stored.is_empty(), expected.is_empty());
                    for number in &stored {
                        prop_assert_eq!(Some(*number), expected.pop_front());
                    }
                    backlog.acknowledge(stored.len());
                }
                Step::Restart => {
                    drop(backlog);
                    processes += 1;
                    let mut left = Vec::new();
                    for mut file in location(folder.path()).take_over().unwrap() {
                        let batches = file.read(u64::MAX);
                        left.extend(numbers(&batches));
                        file.acknowledge(batches.len());
                        file.delete().unwrap();
                    }
                    // A prefix of the batches, and perhaps some again that the store has already, which it recognizes.
                    let new: Vec<i64> = left.iter().copied().filter(|number| expected.contains(number)).collect();
                    let prefix: Vec<i64> = expected.iter().copied().take(new.len()).collect();
                    prop_assert_eq!(&new, &prefix);
                    expected.clear();
                    backlog = Backlog::new(Some(location(folder.path())), max_bytes, &format!("p{processes}"));
                }
            }
            on_disk = on_disk.max(std::fs::read_dir(folder.path()).unwrap().count());
        }
        prop_assert!(on_disk <= 1, "one file at a time");
    }
}
