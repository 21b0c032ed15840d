//! Lenient parser of unified diffs.

use super::patch_paths;
use octo_toolkit::ToolError;

/// Changes of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// `None` if the file is new, or the patch does not name it.
    pub old: Option<String>,
    /// `None` if the file is deleted, or the patch does not name it.
    pub new: Option<String>,
    pub creates: bool,
    pub deletes: bool,
    /// The content of a deleted or replaced file is not compared, and every added line has an ending.
    pub ignores_old_content: bool,
    pub renames: bool,
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    pub hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Start line in the old file, if stated.
    pub old_start: Option<usize>,
    pub new_start: Option<usize>,
    /// Lines of the file that the hunk follows, in order, in place of line numbers.
    pub anchors: Vec<String>,
    /// Its last line is the last of the file.
    pub at_end: bool,
    pub lines: Vec<PatchLine>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Keep,
    Remove,
    Add,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: LineKind,
    /// Without its line ending, but with a carriage return before it.
    pub text: String,
    /// Followed by "No newline at end of file".
    pub no_newline: bool,
}

impl Hunk {
    pub fn lines_except(&self, not: LineKind) -> impl Iterator<Item = &PatchLine> {
        self.lines.iter().filter(move |line| line.kind != not)
    }

    fn reversed(self) -> Self {
        let swap = |mut line: PatchLine| {
            line.kind = match line.kind {
                LineKind::Keep => LineKind::Keep,
                LineKind::Remove => LineKind::Add,
                LineKind::Add => LineKind::Remove,
            };
            line
        };
        Self {
            old_start: self.new_start,
            new_start: self.old_start,
            lines: self.lines.into_iter().map(swap).collect(),
            ..self
        }
    }
}

impl FilePatch {
    /// The reverse patch.
    #[must_use]
    pub fn reversed(self) -> Self {
        Self {
            old: self.new,
            new: self.old,
            creates: self.deletes,
            deletes: self.creates,
            ignores_old_content: false,
            renames: self.renames,
            old_mode: self.new_mode,
            new_mode: self.old_mode,
            hunks: self.hunks.into_iter().map(Hunk::reversed).collect(),
        }
    }

    fn says_something(&self) -> bool {
        !self.hunks.is_empty()
            || self.renames
            || self.creates
            || self.deletes
            || (self.new_mode.is_some() && self.new_mode != self.old_mode)
    }
}

pub fn parse(patch: &str) -> Result<Vec<FilePatch>, ToolError> {
    let lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    // A patch that was converted to CRLF has a carriage return on every line, including headers.
    let sent = lines.iter().all(|line| line.ends_with('\r'));
    let lines: Vec<&str> = match sent {
        true => lines.into_iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect(),
        false => lines,
    };
    let mut reader = PatchReader { lines: &lines, at: 0 };
    let mut files: Vec<FilePatch> = Vec::new();
    while let Some(line) = reader.peek() {
        if line.starts_with("@@") {
            let hunk = reader.hunk()?;
            if files.is_empty() {
                files.push(FilePatch::default());
            }
            files.last_mut().into_iter().for_each(|file| file.hunks.push(hunk.clone()));
        } else if line.starts_with("diff --git ") || reader.at_names() {
            files.push(reader.header()?);
        } else {
            refuse_binary(line)?;
            reader.at += 1;
        }
    }
    files.retain(FilePatch::says_something);
    if files.is_empty() {
        return Err(ToolError::invalid("The patch has no hunks.").hint(
            "Use a unified diff: lines --- a/file and +++ b/file, then hunks that start with @@ -1,3 +1,4 @@ and \
             whose lines start with a space, + or -.",
        ));
    }
    Ok(files)
}

fn refuse_binary(line: &str) -> Result<(), ToolError> {
    if line.starts_with("GIT binary patch") || (line.starts_with("Binary files ") && line.contains(" differ"))
    {
        return Err(ToolError::invalid("The patch changes a binary file, which this tool cannot do.")
            .hint("Omit that file from the patch; in a repository use git_apply_patch."));
    }
    Ok(())
}

struct PatchReader<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl<'a> PatchReader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    fn ahead(&self, by: usize) -> &'a str {
        self.lines.get(self.at + by).copied().unwrap_or_default()
    }

    fn at_names(&self) -> bool {
        self.ahead(0).starts_with("--- ") && self.ahead(1).starts_with("+++ ")
    }

    /// All lines before the first hunk of a file.
    fn header(&mut self) -> Result<FilePatch, ToolError> {
        let mut file = FilePatch::default();
        let git = self.ahead(0).strip_prefix("diff --git ");
        if let Some(both) = git {
            (file.old, file.new) = patch_paths::from_git_header(both);
            self.at += 1;
        }
        while let Some(line) = self.peek() {
            if self.at_names() {
                let new = self.ahead(1);
                self.at += 2;
                let (old, new) = (patch_paths::from_header(line)?, patch_paths::from_header(new)?);
                file.creates |= old.is_none();
                file.deletes |= new.is_none();
                (file.old, file.new) = patch_paths::strip_prefixes(old, new, git.is_some());
                break;
            }
            if git.is_none() || line.starts_with("@@") || line.starts_with("diff --git ") {
                break;
            }
            refuse_binary(line)?;
            extended(&mut file, line)?;
            self.at += 1;
        }
        if file.creates {
            file.old = None;
        }
        if file.deletes {
            file.new = None;
        }
        Ok(file)
    }

    fn hunk(&mut self) -> Result<Hunk, ToolError> {
        let (mut hunk, mut left) = hunk_header(self.ahead(0));
        self.at += 1;
        while let Some(line) = self.peek() {
            if self.ends_hunk(line, left, &hunk) {
                break;
            }
            self.at += 1;
            if line.starts_with('\\') {
                hunk.lines.last_mut().into_iter().for_each(|line| line.no_newline = true);
                continue;
            }
            let line = body_line(line)?;
            if let Some((old, new)) = &mut left {
                *old -= i64::from(line.kind != LineKind::Add);
                *new -= i64::from(line.kind != LineKind::Remove);
            }
            hunk.lines.push(line);
        }
        if hunk.lines.is_empty() {
            return Err(ToolError::invalid("A hunk of the patch is empty.")
                .hint("Add its lines after @@, each prefixed with a space, + or -."));
        }
        Ok(hunk)
    }

    /// The counts of the header decide if they are right; otherwise the next line does.
    fn ends_hunk(&self, line: &str, left: Option<(i64, i64)>, hunk: &Hunk) -> bool {
        if line.starts_with("@@") || line.starts_with("diff --git ") {
            return true;
        }
        let within = left.is_some_and(|(old, new)| old > 0 || new > 0);
        let next_file = self.at_names() && self.ahead(2).starts_with("@@");
        match line.chars().next() {
            _ if next_file && left != Some((1, 1)) => true,
            Some('\\') => hunk.lines.is_empty(),
            Some(' ' | '+') => false,
            // The signature of a mailed patch.
            Some('-') => !within && (line == "-- " || line == "--" || self.at_names()),
            // An empty line is an empty context line whose space was lost, or the end of the patch.
            None if within => self.is_surplus(left),
            None => left.is_some() || self.only_blank_ahead(),
            Some(_) => line != "\r" || !within,
        }
    }

    /// Whether only empty lines follow that the counts do not include.
    fn is_surplus(&self, left: Option<(i64, i64)>) -> bool {
        let rest = self.lines.get(self.at..).unwrap_or_default();
        let known =
            left.is_some_and(|(old, new)| old == new && usize::try_from(old).is_ok_and(|n| n <= rest.len()));
        rest.iter().all(|line| line.trim().is_empty()) && !known
    }

    fn only_blank_ahead(&self) -> bool {
        let rest = self.lines.get(self.at..).unwrap_or_default();
        let next = rest.iter().find(|line| !line.trim().is_empty());
        next.is_none_or(|next| {
            next.starts_with("@@") || next.starts_with("diff ") || next.starts_with("--- ")
        })
    }
}

fn extended(file: &mut FilePatch, line: &str) -> Result<(), ToolError> {
    let mode = |digits: &str| u32::from_str_radix(digits.trim(), 8).ok().map(|mode| mode & 0o7777);
    let link = |digits: &str| digits.trim() == "120000" || digits.trim() == "160000";
    for (prefix, wants_old) in
        [("old mode ", true), ("new mode ", false), ("new file mode ", false), ("deleted file mode ", true)]
    {
        let Some(digits) = line.strip_prefix(prefix) else { continue };
        if link(digits) {
            return Err(ToolError::invalid("The patch changes a symbolic link or a submodule.")
                .hint("Omit that file from the patch."));
        }
        if wants_old {
            file.old_mode = mode(digits);
        } else {
            file.new_mode = mode(digits);
        }
        file.creates |= prefix == "new file mode ";
        file.deletes |= prefix == "deleted file mode ";
    }
    if let Some(name) = line.strip_prefix("rename from ") {
        file.old = Some(patch_paths::unquote(name));
        file.renames = true;
    }
    if let Some(name) = line.strip_prefix("rename to ") {
        file.new = Some(patch_paths::unquote(name));
        file.renames = true;
    }
    if line.starts_with("copy from ") {
        return Err(ToolError::invalid("The patch copies a file.").hint("Copy it with fs_copy first."));
    }
    Ok(())
}

/// `@@ -1,3 +1,4 @@`; without numbers only the lines determine the position.
fn hunk_header(line: &str) -> (Hunk, Option<(i64, i64)>) {
    let mut words = line.trim_start_matches('@').split_whitespace();
    let range = |word: Option<&str>, sign: char| {
        let (start, count) = match word?.strip_prefix(sign)?.split_once(',') {
            Some((start, count)) => (start.parse().ok()?, count.parse().ok()?),
            None => (word?.strip_prefix(sign)?.parse().ok()?, 1),
        };
        Some((start, count))
    };
    let old: Option<(usize, i64)> = range(words.next(), '-');
    let new: Option<(usize, i64)> = range(words.next(), '+');
    match (old, new) {
        (Some(old), Some(new)) => {
            (Hunk { old_start: Some(old.0), new_start: Some(new.0), ..Hunk::default() }, Some((old.1, new.1)))
        }
        _ => (Hunk::default(), None),
    }
}

fn body_line(line: &str) -> Result<PatchLine, ToolError> {
    let mut chars = line.chars();
    let mark = match chars.next() {
        Some(' ') | None => LineKind::Keep,
        Some('+') => LineKind::Add,
        Some('-') => LineKind::Remove,
        Some('\r') => {
            return Ok(PatchLine { kind: LineKind::Keep, text: line.to_owned(), no_newline: false });
        }
        Some(_) => return Err(ToolError::invalid("A line of a hunk starts with neither space, + nor -.")),
    };
    Ok(PatchLine { kind: mark, text: chars.as_str().to_owned(), no_newline: false })
}
