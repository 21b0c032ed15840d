//! What a program executes, as far as its command line and its environment tell.

use std::path::{Path, PathBuf};
use url::Url;

/// File names and extensions of what programs execute.
const SCRIPT_EXTENSIONS: [&str; 45] = [
    "bash", "bat", "cjs", "class", "csproj", "csx", "cts", "dll", "dylib", "ex", "exe", "exs", "fish",
    "fsproj", "fsx", "go", "gradle", "groovy", "jar", "java", "jl", "js", "jsx", "kts", "lua", "mjs", "mts",
    "node", "phar", "php", "pl", "ps1", "py", "pyc", "pyz", "r", "rb", "sh", "so", "tcl", "ts", "tsx",
    "wasm", "whl", "zsh",
];
const BUILD_FILES: [&str; 18] = [
    "Cargo.toml",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "Justfile",
    "Makefile",
    "Rakefile",
    "compose.yaml",
    "compose.yml",
    "deno.json",
    "deno.jsonc",
    "docker-compose.yaml",
    "docker-compose.yml",
    "justfile",
    "makefile",
    "package.json",
    "pom.xml",
    "pyproject.toml",
];
const SHELLS: [&str; 6] = ["bash", "dash", "fish", "ksh", "sh", "zsh"];
/// Programs that run a file or a directory of their arguments, whatever its name, with their options whose values are
/// separate arguments.
const INTERPRETERS: [(&str, &[&str]); 20] = [
    ("Rscript", &[]),
    ("bash", &["--init-file", "--rcfile", "-O", "-o"]),
    ("bun", &["--config", "--env-file", "--preload", "--require", "--tsconfig-override", "-r"]),
    ("dash", &["-o"]),
    ("deno", &["--config", "--import-map", "--preload"]),
    ("fish", &[]),
    ("julia", &["--load", "--sysimage", "-J", "-L"]),
    ("ksh", &["-o"]),
    ("lua", &["-l"]),
    ("node", &NODE_OPTIONS),
    ("nodejs", &NODE_OPTIONS),
    ("perl", &["-I"]),
    ("php", &["-c", "-d", "-z"]),
    ("pypy", &["-W", "-X"]),
    ("python", &["-W", "-X"]),
    ("ruby", &["-I", "-r"]),
    ("sh", &["-o"]),
    ("ts-node", &NODE_OPTIONS),
    ("tsx", &NODE_OPTIONS),
    ("zsh", &["-o"]),
];
const NODE_OPTIONS: [&str; 10] = [
    "--conditions",
    "--env-file",
    "--experimental-loader",
    "--import",
    "--input-type",
    "--loader",
    "--require",
    "--tsconfig",
    "-C",
    "-r",
];
/// Programs that run their first argument after one of these words: a package, or a path.
const RUNNERS: [(&str, &[&str]); 15] = [
    ("bundle", &["exec"]),
    ("bunx", &[]),
    ("dotnet", &["exec"]),
    ("go", &["run"]),
    ("npm", &["exec", "x"]),
    ("npx", &[]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("pnpx", &[]),
    ("poetry", &["run"]),
    ("uv", &["run", "tool"]),
    ("uvx", &[]),
    ("yarn", &["dlx", "exec"]),
];
/// Of these, those whose first argument is a program with its own command line.
const COMMAND_RUNNERS: [&str; 5] = ["bundle", "pdm", "pipenv", "poetry", "uv"];
/// Options of runners whose values are separate arguments.
const RUNNER_OPTIONS: [&str; 24] = [
    "--cache",
    "--call",
    "--config-file",
    "--cwd",
    "--default-index",
    "--dir",
    "--directory",
    "--env-file",
    "--extra-index-url",
    "--from",
    "--index",
    "--index-url",
    "--package",
    "--prefix",
    "--project",
    "--python",
    "--registry",
    "--spec",
    "--userconfig",
    "--with",
    "--with-editable",
    "-C",
    "-c",
    "-p",
];
/// Programs that run another one, and their options whose values are separate arguments.
const WRAPPERS: [(&str, &[&str]); 8] = [
    ("env", &["--chdir", "--split-string", "--unset", "-C", "-P", "-S", "-u"]),
    ("exec", &["-a"]),
    ("nice", &["--adjustment", "-n"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("stdbuf", &["--error", "--input", "--output", "-e", "-i", "-o"]),
    ("time", &["--format", "--output", "-f", "-o"]),
    ("timeout", &["--kill-after", "--signal", "-k", "-s"]),
];
/// Options that name a directory or a file from which the program takes what it runs.
const PROJECT_OPTIONS: [(&str, &[&str]); 17] = [
    ("bun", &["--cwd"]),
    ("bunx", &["--cwd"]),
    ("cargo", &["-C"]),
    ("dotnet", &["--project"]),
    ("go", &["-C"]),
    ("gradle", &["--build-file", "--include-build", "--init-script", "--project-dir", "-I", "-b", "-p"]),
    ("java", &["--class-path", "--module-path", "-classpath", "-cp"]),
    ("make", &["--directory", "--file", "--makefile", "-C", "-f"]),
    ("mvn", &["--file", "-f"]),
    ("npm", &["-C", "--prefix"]),
    ("npx", &["-C", "--prefix"]),
    ("pnpm", &["-C", "--dir"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("uv", &["--directory", "--project", "--with-editable", "--from"]),
    ("uvx", &["--directory", "--project", "--with-editable", "--from"]),
    ("yarn", &["--cwd"]),
    ("pipx", &["--spec"]),
];
/// Variables that name directories or files from which a program takes code.
const PATH_VARIABLES: [&str; 15] = [
    "BASH_ENV",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "ENV",
    "GEM_HOME",
    "GEM_PATH",
    "LD_AUDIT",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NODE_PATH",
    "PERL5LIB",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "RUBYLIB",
];
/// Variables with options of a program that can name code.
const OPTION_VARIABLES: [&str; 6] =
    ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "NODE_OPTIONS", "PERL5OPT", "RUBYOPT", "_JAVA_OPTIONS"];
const VALUE_SIGNS: [char; 6] = ['=', ':', ',', ';', '"', '\''];

/// The variables that can name code.
pub fn code_variables() -> impl Iterator<Item = &'static str> {
    PATH_VARIABLES.into_iter().chain(OPTION_VARIABLES)
}

/// Collects paths of what a program executes. They are relative to its directory.
pub struct NamedCode<'a> {
    from: &'a Path,
    paths: Vec<PathBuf>,
}

impl<'a> NamedCode<'a> {
    pub fn new(from: &'a Path) -> Self {
        Self { from, paths: Vec::new() }
    }

    pub fn into_paths(self) -> Vec<PathBuf> {
        self.paths
    }

    /// A program and its arguments.
    pub fn line(&mut self, program: &str, args: &[&str]) {
        // Other programs are looked up in directories that no tool can write.
        if program.contains('/') {
            self.name(PathBuf::from(program));
        }
        let base = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        self.options(plain, args);
        if let Some((_, valued)) = WRAPPERS.iter().find(|(name, _)| *name == plain) {
            self.wrapped(plain, valued, args);
        } else if let (true, Some((&"x", rest))) = (plain == "bun", args.split_first()) {
            self.runner("bunx", &[], rest);
        } else if let Some((_, valued)) = INTERPRETERS.iter().find(|(name, _)| *name == plain) {
            self.interpreter(plain, valued, args);
        } else if let Some((_, words)) = RUNNERS.iter().find(|(name, _)| *name == plain) {
            self.runner(plain, words, args);
        }
    }

    /// A variable and its value.
    pub fn variable(&mut self, name: &str, value: &str) {
        if PATH_VARIABLES.contains(&name) {
            self.name(local_path(value));
            for path in std::env::split_paths(value) {
                self.name(path);
            }
        } else if OPTION_VARIABLES.contains(&name) {
            for word in value.split_whitespace().chain(value.split(['"', '\''])) {
                if let Some((_, value)) = word.split_once('=') {
                    self.name(local_path(value.trim_matches(['"', '\''])));
                }
                self.name(local_path(word));
                for piece in word.split(VALUE_SIGNS) {
                    self.name(PathBuf::from(piece));
                    self.attached(piece);
                }
            }
        }
    }

    fn name(&mut self, path: PathBuf) {
        if !path.as_os_str().is_empty() {
            self.paths.push(path);
        }
    }

    /// The value in an option such as `-I/path`.
    fn attached(&mut self, option: &str) {
        if option.starts_with('-') && !option.starts_with("--") {
            self.name(PathBuf::from(option.get(2..).unwrap_or_default()));
        }
    }

    /// Files that look like programs, and values of options that name a project.
    fn options(&mut self, plain: &str, args: &[&str]) {
        let entry = PROJECT_OPTIONS.iter().find(|(program, _)| *program == plain);
        let options = entry.map(|(_, options)| *options).unwrap_or_default();
        let mut is_project = false;
        for &arg in args {
            let (option, value) = option_value(arg);
            let names_project = options.contains(&option);
            let path = local_path(value.unwrap_or(arg));
            if is_project || (names_project && value.is_some()) {
                for part in std::env::split_paths(value.unwrap_or(arg)) {
                    self.name(part);
                }
                self.name(path);
            } else if is_script(&path) {
                self.name(path);
            }
            for option in options.iter().filter(|option| option.len() == 2) {
                self.name(PathBuf::from(arg.strip_prefix(*option).unwrap_or_default()));
            }
            if let Some((_, agent)) = option.split_once(':').filter(|_| option.starts_with("-javaagent")) {
                self.name(PathBuf::from(agent));
            }
            is_project = names_project && value.is_none();
        }
    }

    /// Arguments up to the first that is a path. Those after it are for the script.
    fn interpreter(&mut self, plain: &str, valued: &[&str], args: &[&str]) {
        let (mut is_value, mut rest) = (false, args);
        while let Some((&arg, after)) = rest.split_first() {
            rest = after;
            if !arg.starts_with('-') {
                let path = local_path(arg);
                let is_file = self.from.join(&path).is_file();
                self.name(path);
                if !is_value && (is_file || arg.contains(['/', ':'])) {
                    return;
                }
                is_value = false;
                continue;
            }
            let is_short = !arg.starts_with("--");
            if SHELLS.contains(&plain) && is_short && arg.ends_with('c') {
                return self.shell_text(rest);
            }
            let is_python = plain == "python" || plain == "pypy";
            // Code or the name of a module; the other arguments are for it.
            if is_python
                && is_short
                && arg.ends_with(['c', 'm'])
                && !arg.starts_with("-W")
                && !arg.starts_with("-X")
            {
                return;
            }
            let (option, value) = option_value(arg);
            is_value = valued.contains(&option) && value.is_none();
            match value {
                Some(value) if valued.contains(&option) => self.name(local_path(value)),
                _ => self.attached(arg),
            }
        }
    }

    /// The commands of `sh -c`.
    fn shell_text(&mut self, args: &[&str]) {
        let Some(text) = args.first() else { return };
        self.name(PathBuf::from(*text));
        for command in text.split([';', '&', '|', '(', ')', '\n']) {
            self.words(command, &[]);
        }
    }

    fn words(&mut self, text: &str, rest: &[&str]) {
        let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let words: Vec<&str> = words.chain(rest.iter().copied()).collect();
        self.wrapped("env", &[], &words);
    }

    /// Packages of options, and the first argument. Those after it are for the package.
    fn runner(&mut self, plain: &str, words: &[&str], args: &[&str]) {
        let (mut is_value, mut rest) = (false, args);
        while let Some((&arg, after)) = rest.split_first() {
            rest = after;
            let (option, value) = option_value(arg);
            if arg.starts_with('-') {
                is_value = RUNNER_OPTIONS.contains(&option) && value.is_none();
                if let Some(value) = value.filter(|_| RUNNER_OPTIONS.contains(&option)) {
                    self.name(package_path(value));
                }
                continue;
            }
            if words.contains(&arg) && !is_value {
                continue;
            }
            self.name(package_path(arg));
            if !std::mem::take(&mut is_value) {
                if COMMAND_RUNNERS.contains(&plain) {
                    self.line(arg, rest);
                }
                return;
            }
        }
    }

    /// The command line after the options and variables of a program such as `env`.
    fn wrapped(&mut self, plain: &str, valued: &[&str], args: &[&str]) {
        let mut has_duration = plain == "timeout";
        let mut rest = args;
        while let Some((&word, after)) = rest.split_first() {
            rest = after;
            if word.starts_with('-') {
                let (option, value) = option_value(word);
                let attached = word.strip_prefix("-S").filter(|text| plain == "env" && !text.is_empty());
                if let Some(text) = attached.or(value.filter(|_| option == "--split-string")) {
                    return self.words(text, rest);
                }
                if option == "--chdir" {
                    self.name(PathBuf::from(value.unwrap_or_default()));
                }
                if !valued.contains(&option) || value.is_some() {
                    continue;
                }
                let Some((&value, after)) = rest.split_first() else { return };
                rest = after;
                match option {
                    "-S" | "--split-string" => return self.words(value, rest),
                    "-C" | "--chdir" => self.name(PathBuf::from(value)),
                    _ => {}
                }
            } else if let Some((name, value)) = word.split_once('=').filter(|_| plain == "env") {
                self.variable(name, value);
            } else if has_duration {
                has_duration = false;
            } else {
                return self.line(word, rest);
            }
        }
    }
}

fn option_value(arg: &str) -> (&str, Option<&str>) {
    match arg.split_once('=').filter(|_| arg.starts_with('-')) {
        Some((option, value)) => (option, Some(value)),
        None => (arg, None),
    }
}

/// The path that a word means, also if it is a `file:` URL.
fn local_path(word: &str) -> PathBuf {
    let (scheme, rest) = word.split_once(':').unwrap_or_default();
    if !scheme.eq_ignore_ascii_case("file") {
        return PathBuf::from(word);
    }
    if !rest.starts_with('/') {
        return PathBuf::from(rest);
    }
    let path = Url::parse(word).ok().and_then(|url| url.to_file_path().ok());
    path.unwrap_or_else(|| PathBuf::from(format!("/{}", rest.trim_start_matches('/'))))
}

/// The path that the name of a package means: `name@file:path` and `path[extra]`, too.
fn package_path(word: &str) -> PathBuf {
    match word.split_once("file:") {
        Some((_, path)) => local_path(&format!("file:{path}")),
        None => PathBuf::from(word.split('[').next().unwrap_or(word)),
    }
}

/// Whether a file is one that programs execute, by its name or its first bytes.
fn is_script(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    SCRIPT_EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str())
        || BUILD_FILES.contains(&name)
        || (path.is_absolute() && has_interpreter(path))
}

fn has_interpreter(path: &Path) -> bool {
    let mut start = [0; 2];
    // A pipe would block.
    path.is_file()
        && std::fs::File::open(path)
            .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut start))
            .is_ok_and(|()| &start == b"#!")
}
