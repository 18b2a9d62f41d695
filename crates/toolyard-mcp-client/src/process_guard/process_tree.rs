//! The descendants of a process, read from `/proc`.

use std::{collections::HashMap, fs, io};

use rustix::process::Pid;

/// All descendants of a process. An orphan counts as a child of the process that adopted it.
pub(crate) fn descendants(root: Pid) -> io::Result<Vec<Pid>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have exited since.
        let Ok(stat) = fs::read(format!("/proc/{process}/stat")) else { continue };
        if let Some(parent) = parse_parent(&stat) {
            parents.push((process, parent));
        }
    }
    Ok(descendants_of(root.as_raw_nonzero().get(), &parents).into_iter().filter_map(Pid::from_raw).collect())
}

/// The parent in `PID (NAME) STATE PARENT …`. The name may contain any character, parentheses and line feeds included.
fn parse_parent(stat: &[u8]) -> Option<i32> {
    let name_end = memchr::memrchr(b')', stat)?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// The descendants of `root`, given pairs of process and parent.
fn descendants_of(root: i32, parents: &[(i32, i32)]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for &(process, parent) in parents {
        children.entry(parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut unvisited = vec![root];
    while let Some(process) = unvisited.pop() {
        // Removed, so that cycles end.
        let direct_children = children.remove(&process).unwrap_or_default();
        found.extend(direct_children.iter().copied().filter(|&child| child != root));
        unvisited.extend(direct_children);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn process_names_may_contain_anything() {
        assert_eq!(parse_parent(b"12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parse_parent(b"12 (a) S 1 (\xff\n) R 9 1 1"), Some(9));
        assert_eq!(parse_parent(b"12 sh S 7"), None);
        assert_eq!(parse_parent(b""), None);
        assert_eq!(parse_parent(b"12 (sh) S"), None);
    }

    #[test]
    fn a_child_of_this_process_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        assert!(descendants(rustix::process::getpid()).unwrap().contains(&id));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn exactly_the_descendants_are_found(choices in prop::collection::vec(any::<prop::sample::Index>(), 1..25)) {
            // Process n + 2 has some earlier process as its parent; 1 is the root of all.
            let parents: Vec<(i32, i32)> = choices
                .iter()
                .enumerate()
                .map(|(n, choice)| (i32::try_from(n).unwrap() + 2, i32::try_from(choice.index(n + 1)).unwrap() + 1))
                .collect();
            let is_descendant = |mut process: i32, root: i32| {
                while let Some(&(_, parent)) = parents.iter().find(|(id, _)| *id == process) {
                    if parent == root {
                        return true;
                    }
                    process = parent;
                }
                false
            };
            for root in 1..=i32::try_from(parents.len()).unwrap() + 1 {
                let mut found = descendants_of(root, &parents);
                found.sort_unstable();
                let expected: Vec<i32> =
                    parents.iter().map(|(id, _)| *id).filter(|&id| is_descendant(id, root)).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn cycles_end(parents in prop::collection::vec((0_i32..8, 0_i32..8), 0..40), root in 0_i32..8) {
            prop_assert!(descendants_of(root, &parents).len() <= parents.len());
        }
    }
}
