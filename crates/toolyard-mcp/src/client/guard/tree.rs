//! Who descends from whom, read from `/proc`.

use std::{collections::HashMap, fs, io};

use rustix::process::Pid;

/// All processes below one. A process whose parents have ended counts as a child of whoever adopted it.
pub(crate) fn descendants(root: Pid) -> io::Result<Vec<Pid>> {
    let mut parents = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // It may have ended since.
        let Ok(line) = fs::read(format!("/proc/{process}/stat")) else { continue };
        if let Some(parent) = parent(&line) {
            parents.push((process, parent));
        }
    }
    Ok(below(root.as_raw_nonzero().get(), &parents).into_iter().filter_map(Pid::from_raw).collect())
}

/// The parent in `PID (NAME) STATE PARENT …`; the name may hold anything, brackets and line ends too.
fn parent(line: &[u8]) -> Option<i32> {
    let name_ends = memchr::memrchr(b')', line)?;
    let rest = std::str::from_utf8(line.get(name_ends + 1..)?).ok()?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Everyone below the root, given pairs of process and parent.
fn below(root: i32, parents: &[(i32, i32)]) -> Vec<i32> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for &(process, parent) in parents {
        children.entry(parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut next = vec![root];
    while let Some(process) = next.pop() {
        // Taken out, so that no entry, however strange, is walked through twice.
        let below = children.remove(&process).unwrap_or_default();
        found.extend(below.iter().copied().filter(|&child| child != root));
        next.extend(below);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_may_hold_anything() {
        assert_eq!(parent(b"12 (sh) S 7 12 12 0"), Some(7));
        assert_eq!(parent(b"12 (a) S 1 (\xff\n) R 9 1 1"), Some(9));
        assert_eq!(parent(b"12 sh S 7"), None);
        assert_eq!(parent(b""), None);
        assert_eq!(parent(b"12 (sh) S"), None);
    }

    #[test]
    fn a_child_of_ours_is_found() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
        assert!(descendants(rustix::process::getpid()).unwrap().contains(&id));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn everyone_below_is_found_and_nobody_else(choices in prop::collection::vec(any::<prop::sample::Index>(), 1..25)) {
            // Process n + 2 has some earlier process as its parent; 1 is the root of all.
            let parents: Vec<(i32, i32)> = choices
                .iter()
                .enumerate()
                .map(|(n, choice)| (i32::try_from(n).unwrap() + 2, i32::try_from(choice.index(n + 1)).unwrap() + 1))
                .collect();
            let is_below = |mut process: i32, root: i32| {
                while let Some(&(_, parent)) = parents.iter().find(|(id, _)| *id == process) {
                    if parent == root {
                        return true;
                    }
                    process = parent;
                }
                false
            };
            for root in 1..=i32::try_from(parents.len()).unwrap() + 1 {
                let mut found = below(root, &parents);
                found.sort_unstable();
                let expected: Vec<i32> =
                    parents.iter().map(|(id, _)| *id).filter(|&id| is_below(id, root)).collect();
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn loops_end(parents in prop::collection::vec((0_i32..8, 0_i32..8), 0..40), root in 0_i32..8) {
            prop_assert!(below(root, &parents).len() <= parents.len());
        }
    }
}
