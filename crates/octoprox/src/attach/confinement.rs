//! Restrictions of a process. Only processes with the same ones share a hub: a command in a sandbox must not call the
//! tools of a hub outside of it.

use std::io::{self, BufRead};

/// Lines of the status file about privileges and system call filters.
const STATUS_LINES: [&str; 5] = ["NoNewPrivs:", "Seccomp:", "Seccomp_filters:", "CapEff:", "CapBnd:"];
const PID_NAMESPACES_LINE: &str = "NStgid:";
const NAMESPACES: [&str; 4] = ["mnt", "net", "pid", "user"];

#[derive(Debug)]
pub struct Confinement {
    /// What every process may see of the others.
    visible: String,
    /// Namespaces and root directory, which a process without privileges sees of itself only: octoprox's processes
    /// cannot be inspected, so that they leave no core dumps.
    namespaces: Option<String>,
}

impl Confinement {
    /// Returns that of this process.
    pub fn own() -> io::Result<Self> {
        Self::of("self")
    }

    /// Returns that of another process.
    pub fn of_process(pid: i32) -> io::Result<Self> {
        Self::of(&pid.to_string())
    }

    /// Whether another process is confined like this one, as far as can be seen.
    pub fn is_same_for(&self, other: &Self) -> bool {
        let are_same_namespaces = other.namespaces.is_none() || other.namespaces == self.namespaces;
        self.visible == other.visible && are_same_namespaces
    }

    fn of(process: &str) -> io::Result<Self> {
        let open =
            |name: &str| std::fs::File::open(format!("/proc/{process}/{name}")).map(io::BufReader::new);
        let mut visible = String::new();
        for line in open("status")?.lines() {
            let line = line?;
            if STATUS_LINES.iter().any(|name| line.starts_with(name)) {
                visible.push_str(&format!("{line}\n"));
            } else if line.starts_with(PID_NAMESPACES_LINE) {
                // The number of nested namespaces.
                visible.push_str(&format!("{}\n", line.split_whitespace().count()));
            }
        }
        for name in ["uid_map", "gid_map"] {
            io::Read::read_to_string(&mut open(name)?, &mut visible)?;
        }
        // Each mount namespace has numbers of its own for its mounts.
        open("mountinfo")?.read_line(&mut visible)?;
        Ok(Self { visible, namespaces: namespaces(process).ok() })
    }
}

fn namespaces(process: &str) -> io::Result<String> {
    let mut found = std::fs::read_link(format!("/proc/{process}/root"))?.display().to_string();
    for name in NAMESPACES {
        let link = std::fs::read_link(format!("/proc/{process}/ns/{name}"))?;
        found.push_str(&format!("\n{}", link.display()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_confined_like_itself() {
        let (own, pid) = (Confinement::own().unwrap(), i32::try_from(std::process::id()).unwrap());
        let seen = Confinement::of_process(pid).unwrap();
        assert!(own.is_same_for(&seen), "{own:?} {seen:?}");
        assert!(own.visible.contains("NoNewPrivs:") && own.namespaces.is_some());
        let unseen = Confinement { namespaces: None, ..seen };
        assert!(own.is_same_for(&unseen));
        let other = Confinement { visible: String::new(), ..unseen };
        assert!(!own.is_same_for(&other));
    }
}
