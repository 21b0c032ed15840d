//! A server that could be added, with everything that is known about it.

use super::bundle_entry::{bundle_entry, bundle_env};
use super::registry_search::{RegistryMatch, find_in_registries};
use super::sandbox_choice::{SandboxChoice, UNKNOWN_HOSTS};
use super::server_names::{
    check_document, host_label, is_document, is_loopback, is_registry_name, reference_of, server_name,
    unknown_name,
};
use crate::app_error::AppError;
use crate::clients::{SecretExtractor, required_variables, valid_name};
use crate::gateway::server_home;
use crate::packages::{
    self, Bundle, InstallOptions, LockedPackage, PackageError, PackageId, PackageKind, ScratchFolder,
};
use crate::process::local_programs::which;
use crate::settings::{Environment, Settings};
use octo_catalogue::{
    Catalogue, CatalogueEntry, LocalAccess, LoginKind, LookAlike, PackageReference, PackageRegistry, Remote,
    ServerReference, TokenHeader, own_variable,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use url::Url;

/// What the user asked for.
pub struct CandidateOptions<'a> {
    pub server: &'a str,
    pub name: Option<&'a str>,
    pub local: bool,
    pub command: Option<&'a str>,
    pub args: &'a [String],
    pub env: &'a [String],
    pub sandbox: SandboxChoice<'a>,
    pub workspace: Option<PathBuf>,
    pub state: &'a Path,
    /// Directory of the file with the servers.
    pub folder: &'a Path,
}

pub struct ServerCandidate {
    /// Name in the settings.
    pub name: String,
    /// What the catalogue knows, if it has the server.
    pub known: Option<CatalogueEntry>,
    /// What runs or is connected to, in one line.
    pub runs: String,
    /// The package with its lock, after [`Self::resolve_package`].
    pub package: Option<(PackageId, LockedPackage)>,
    unresolved: Option<(PackageKind, PackageReference)>,
    /// Settings of the server.
    pub entry: Map<String, Value>,
    /// Environment variables that it needs.
    pub needs: Vec<String>,
    pub warnings: Vec<String>,
    /// Whether `known` was checked for the catalogue: hosts, variables and more.
    is_in_catalogue: bool,
    /// Variables whose values are never written to the settings.
    secrets: Vec<String>,
    /// Whether it runs in a container.
    pub is_container: bool,
    /// Why the name is suspicious.
    pub look_alike: Option<String>,
    pub look_alike_name: Option<&'static str>,
}

/// Resources that a sandbox does not provide.
const OUTSIDE_SANDBOX: [LocalAccess; 5] = [
    LocalAccess::Android,
    LocalAccess::Browser,
    LocalAccess::Docker,
    LocalAccess::Gcloud,
    LocalAccess::Kubernetes,
];

impl ServerCandidate {
    /// Finds the server that the user means.
    pub fn find(
        catalogue: &'static Catalogue,
        settings: &Settings,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        let reference =
            ServerReference::parse(options.server).map_err(|error| AppError::invalid(error.to_string()))?;
        if options.local && !matches!(reference, ServerReference::Name(_)) {
            return Err(AppError::invalid("--local is for names of the catalogue; leave it out."));
        }
        match reference {
            ServerReference::Name(name) => match catalogue.find(&name) {
                Some((name, entry)) => Self::from_entry(name, entry, true, options),
                None => Self::from_registries(catalogue, settings, &name, options),
            },
            ServerReference::Package(package) => Self::from_package(catalogue, package, options),
            ServerReference::Url(url) => Self::from_url(catalogue, &url, options),
            // Names of registries have the form `com.example/server`.
            ServerReference::File(path) if !path.is_file() && is_registry_name(options.server) => {
                Self::from_registries(catalogue, settings, options.server, options)
            }
            ServerReference::File(path) => Self::from_file(&path, options),
            ServerReference::Bundle(path) => Self::from_bundle(catalogue, &path, options),
        }
    }

    fn from_registries(
        catalogue: &'static Catalogue,
        settings: &Settings,
        name: &str,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        let found = find_in_registries(settings, name)
            .map_err(|error| AppError::new(format!("{} {error}", unknown_name(catalogue, name))))?;
        match found {
            Some(RegistryMatch { name, entry }) => {
                let mut candidate = Self::from_entry(&name, &entry, false, options)?;
                let package = entry.package.as_ref().map(reference_of).transpose()?;
                let url = entry.remote.as_ref().and_then(|remote| Url::parse(&remote.url).ok());
                let by_package = package.and_then(|package| catalogue.look_alike_package(&package));
                if let Some(found) = by_package.or_else(|| catalogue.look_alike_url(&url?)) {
                    candidate.set_look_alike(&name, found);
                }
                Ok(candidate)
            }
            None => Err(unknown_name(catalogue, name)),
        }
    }

    /// An entry of the catalogue, or of a registry, which does not know the hosts.
    fn from_entry(
        name: &str,
        entry: &CatalogueEntry,
        is_in_catalogue: bool,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        let mut candidate = Self::new(options.name.unwrap_or(name), Some(entry.clone()));
        candidate.is_in_catalogue = is_in_catalogue;
        match (&entry.remote, &entry.package) {
            (Some(remote), package) if !options.local || package.is_none() => {
                if options.local {
                    return Err(AppError::invalid(format!("{name} has no package; leave out --local.")));
                }
                candidate.connect_to(remote);
            }
            (_, Some(package)) => {
                candidate.start_package(reference_of(package)?, Some(entry), options)?;
            }
            (_, None) => return Err(AppError::new(format!("{name} has neither a package nor a URL."))),
        }
        candidate.finish(options)
    }

    fn from_package(
        catalogue: &'static Catalogue,
        package: PackageReference,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        let known = catalogue.find_package(package.registry, &package.name);
        let name = match (options.name, known) {
            (Some(name), _) | (None, Some((name, _))) => name.to_owned(),
            (None, None) => server_name(&package.name),
        };
        let mut candidate = Self::new(&name, known.map(|(_, entry)| entry.clone()));
        if let Some(found) = catalogue.look_alike_package(&package) {
            candidate.set_look_alike(&package.name, found);
        }
        candidate.start_package(package, known.map(|(_, entry)| entry), options)?;
        candidate.finish(options)
    }

    fn from_url(
        catalogue: &'static Catalogue,
        url: &Url,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        if url.path().ends_with(".mcpb") {
            return Err(AppError::invalid("Download the bundle, and add the file: octoprox add ./NAME.mcpb"));
        }
        let host = url.host_str().unwrap_or_default();
        let known = catalogue.find_url(url);
        let name = match (options.name, known) {
            (Some(name), _) | (None, Some((name, _))) => name.to_owned(),
            (None, None) => server_name(host_label(host)),
        };
        let mut candidate = Self::new(&name, known.map(|(_, entry)| entry.clone()));
        if let Some(found) = catalogue.look_alike_url(url) {
            candidate.set_look_alike(host, found);
        }
        match known.and_then(|(_, entry)| entry.remote.as_ref()) {
            Some(remote) => candidate.connect_to(remote),
            None if is_document(Path::new(url.path())) => candidate.describe_api(url.as_str()),
            None => {
                candidate.runs = url.to_string();
                candidate.set("url", url.as_str().into());
            }
        }
        if url.scheme() == "http" && !is_loopback(host) {
            candidate.warnings.push("The connection is not encrypted.".to_owned());
        }
        candidate.finish(options)
    }

    fn from_file(path: &Path, options: &CandidateOptions<'_>) -> Result<Self, AppError> {
        let path = std::path::absolute(path)?;
        if path.is_dir() {
            return Err(AppError::invalid(format!(
                "{} is a directory. Name a program in it.",
                path.display()
            )));
        }
        if !path.is_file() {
            return Err(AppError::invalid(format!("{}: file not found.", path.display())));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("server");
        let mut candidate = Self::new(&options.name.map_or_else(|| server_name(stem), str::to_owned), None);
        let text = path.to_string_lossy();
        if is_document(&path) {
            check_document(&path)?;
            candidate.describe_api(&text);
            return candidate.finish(options);
        }
        if path.metadata()?.permissions().mode() & 0o111 == 0 {
            let program =
                if path.extension().is_some_and(|ending| ending == "py") { "python3" } else { "node" };
            return Err(AppError::invalid(format!(
                "{text} is not executable. Run `chmod +x` on it; a script also needs a first line like \
                 `#!/usr/bin/env {program}`."
            )));
        }
        candidate.runs = text.to_string();
        candidate.set("command", text.as_ref().into());
        if !options.args.is_empty() {
            candidate.set("args", options.args.into());
        }
        if options.sandbox.enabled {
            let folder = path.parent().unwrap_or(&path).to_string_lossy().into_owned();
            candidate.set("cwd", folder.as_str().into());
            candidate.set("sandbox", json!({"read": [folder]}));
            candidate.warn_of_unknown_hosts(&options.sandbox);
        }
        candidate.finish(options)
    }

    fn warn_of_unknown_hosts(&mut self, sandbox: &SandboxChoice<'_>) {
        if sandbox.hosts.is_empty() {
            self.warnings.push(UNKNOWN_HOSTS.to_owned());
        }
    }

    /// A bundle contains everything that it needs, so it is complete without a registry.
    fn from_bundle(
        catalogue: &'static Catalogue,
        path: &Path,
        options: &CandidateOptions<'_>,
    ) -> Result<Self, AppError> {
        if options.command.is_some() {
            return Err(AppError::invalid("A bundle names its own program; leave out --command."));
        }
        let Bundle { id, manifest, locked } = Bundle::open(path, options.folder)?;
        let path_variable = std::env::var("PATH").ok();
        let is_missing = |name: &&str| which(name, path_variable.as_deref(), Path::new("/")).is_none();
        if let Some(program) = manifest.interpreter().filter(is_missing) {
            return Err(AppError::new(format!("The bundle needs `{program}`. Install it, and try again.")));
        }
        let mut candidate =
            Self::new(&options.name.map_or_else(|| server_name(&manifest.name), str::to_owned), None);
        let named = PackageReference { registry: PackageRegistry::Npm, name: id.name.clone(), version: None };
        let exact = catalogue.find(&id.name).map(|(name, entry)| LookAlike { name, entry });
        if let Some(found) = exact.or_else(|| catalogue.look_alike_package(&named)) {
            candidate.set_look_alike(&id.name, found);
        }
        candidate.runs = format!("{id} from {}: {}", path.display(), manifest.command_line());
        candidate.set("package", id.to_string().into());
        if !options.args.is_empty() {
            candidate.set("args", options.args.into());
        }
        candidate.known = Some(bundle_entry(&candidate.name, &manifest));
        let secret = manifest.variables().into_iter().filter(|variable| variable.secret);
        candidate.secrets = secret.map(|variable| variable.name).collect();
        let env = bundle_env(&candidate.name, &manifest);
        if !env.is_empty() {
            candidate.set("env", Value::Object(env));
        }
        if options.sandbox.enabled {
            candidate.set("sandbox", json!({}));
            candidate.warn_of_unknown_hosts(&options.sandbox);
        }
        candidate.package = Some((id, locked));
        candidate.finish(options)
    }

    fn new(name: &str, known: Option<CatalogueEntry>) -> Self {
        Self {
            // Native tools begin with the name of their toolbox, so `github` becomes `github-mcp`.
            name: valid_name(name, std::iter::empty()),
            runs: String::new(),
            package: None,
            unresolved: None,
            entry: Map::new(),
            needs: Vec::new(),
            warnings: Vec::new(),
            is_in_catalogue: known.is_some(),
            secrets: Vec::new(),
            is_container: false,
            look_alike: None,
            look_alike_name: None,
            known,
        }
    }

    fn set(&mut self, key: &str, value: Value) {
        self.entry.insert(key.to_owned(), value);
    }

    fn set_look_alike(&mut self, name: &str, found: LookAlike<'static>) {
        let LookAlike { name: known, entry } = found;
        self.look_alike = Some(format!(
            "{name} resembles `{known}` of the catalogue, which {} publishes, and is not the same.",
            entry.publisher.name
        ));
        self.look_alike_name = Some(known);
    }

    fn connect_to(&mut self, remote: &Remote) {
        self.runs.clone_from(&remote.url);
        self.set("url", remote.url.as_str().into());
        let own = |token: &TokenHeader| token.with_variable(own_variable(&self.name, "TOKEN"));
        let token = if self.is_in_catalogue { remote.token.clone() } else { remote.token.as_ref().map(own) };
        match (remote.login, token) {
            (LoginKind::Oauth, _) => self.set("auth", json!({"type": "oauth2-pkce"})),
            (LoginKind::Token, Some(token))
                if token.header == "Authorization" && token.value.starts_with("Bearer $") =>
            {
                self.set("auth", json!({"type": "api-key", "env": token.variable}));
            }
            (LoginKind::Token, Some(token)) => self.set("headers", json!({(token.header): token.value})),
            (LoginKind::Token | LoginKind::None, _) => self.set("auth", json!({"type": "none"})),
        }
    }

    fn describe_api(&mut self, document: &str) {
        self.runs = format!("operations of {document}");
        self.set("type", "openapi".into());
        self.set("document", document.into());
    }

    fn start_package(
        &mut self,
        package: PackageReference,
        known: Option<&CatalogueEntry>,
        options: &CandidateOptions<'_>,
    ) -> Result<(), AppError> {
        let Some(kind) = PackageKind::from_registry(package.registry) else {
            return self.start_image(&package, options);
        };
        self.unresolved = Some((kind, package));
        // Comes first in the settings; the exact version is known later.
        self.set("package", Value::Null);
        let described = known.and_then(|entry| entry.package.as_ref());
        if let Some(command) = options.command.or(described.and_then(|package| package.command.as_deref())) {
            self.set("command", command.into());
        }
        let needs_workspace = known.is_some_and(|entry| entry.access.contains(&LocalAccess::Workspace));
        let workspace = match &options.workspace {
            Some(workspace) => workspace.as_path(),
            None if needs_workspace => {
                return Err(AppError::invalid(
                    "This server works on the files of a workspace. Run the command in a project directory, or set \
                     `workspace`.",
                ));
            }
            None => Path::new(""),
        };
        let home = server_home(options.state, &self.name);
        let fill = |text: &String| {
            text.replace("${workspace}", &workspace.to_string_lossy())
                .replace("${home}", &home.to_string_lossy())
        };
        let env: Map<String, Value> = described
            .iter()
            .flat_map(|package| &package.env)
            .map(|(name, value)| (name.clone(), fill(value).into()))
            .collect();
        if !env.is_empty() {
            self.set("env", Value::Object(env));
        }
        let args: Vec<Value> = described
            .iter()
            .flat_map(|package| &package.args)
            .map(fill)
            .chain(options.args.iter().cloned())
            .map(Value::from)
            .collect();
        if !args.is_empty() {
            self.set("args", Value::Array(args));
        }
        self.set_variables(known);
        self.set_sandbox(known, workspace, &options.sandbox);
        Ok(())
    }

    /// A container is a sandbox of its own. Its digest is part of its name.
    fn start_image(
        &mut self,
        package: &PackageReference,
        options: &CandidateOptions<'_>,
    ) -> Result<(), AppError> {
        let digest = package.version.as_deref().filter(|version| crate::packages::is_digest(version));
        let Some(digest) = digest else {
            return Err(AppError::invalid(format!(
                "Name the digest of the image: oci:{}@sha256:… (`docker buildx imagetools inspect {}` prints it).",
                package.name, package.name
            )));
        };
        let path = std::env::var("PATH").ok();
        let engine = ["docker", "podman"]
            .into_iter()
            .find(|name| which(name, path.as_deref(), Path::new("/")).is_some())
            .ok_or_else(|| AppError::new("An image needs Docker or Podman, and neither is installed."))?;
        let image = format!("{}@{digest}", package.name);
        self.is_container = true;
        self.runs = format!("{engine} run {image}");
        self.set("command", engine.into());
        let mut args: Vec<Value> = ["run", "--rm", "-i", "--cap-drop=ALL"].map(Value::from).to_vec();
        for variable in options.env {
            let name = variable.split('=').next().unwrap_or(variable);
            args.extend([Value::from("-e"), Value::from(name)]);
        }
        args.push(image.into());
        args.extend(options.args.iter().cloned().map(Value::from));
        self.set("args", Value::Array(args));
        Ok(())
    }

    fn set_variables(&mut self, known: Option<&CatalogueEntry>) {
        let required = known.map(|entry| entry.variables.iter().filter(|variable| variable.required));
        let mut env = self.entry.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
        for variable in required.into_iter().flatten() {
            if !self.is_in_catalogue {
                let source = own_variable(&self.name, &variable.name);
                env.insert(variable.name.clone(), format!("${{{source}}}").into());
            } else if variable.secret && !self.entry.contains_key("auth") {
                // The first secret can also be entered with `octoprox login`.
                self.set("auth", json!({"type": "api-key", "env": variable.name}));
            } else {
                env.insert(variable.name.clone(), format!("${{{}}}", variable.name).into());
            }
        }
        if !env.is_empty() {
            self.set("env", Value::Object(env));
        }
    }

    fn set_sandbox(&mut self, known: Option<&CatalogueEntry>, workspace: &Path, choice: &SandboxChoice<'_>) {
        let access = known.map(|entry| entry.access.as_slice()).unwrap_or_default();
        let needs: Vec<&str> = access
            .iter()
            .filter(|access| OUTSIDE_SANDBOX.contains(access))
            .map(|access| access.as_str())
            .collect();
        if !choice.enabled || !needs.is_empty() {
            if !needs.is_empty() {
                self.warnings
                    .push(format!("Runs without a sandbox, because it needs: {}.", needs.join(", ")));
            }
            return;
        }
        let mut sandbox = Map::new();
        if access.contains(&LocalAccess::Workspace) {
            self.set("cwd", workspace.to_string_lossy().into());
            sandbox.insert("write".to_owned(), json!([workspace]));
        }
        match known.filter(|_| self.is_in_catalogue).map(|entry| entry.hosts.as_slice()) {
            None => self.warn_of_unknown_hosts(choice),
            Some([]) => {}
            Some(hosts) if hosts.iter().any(|host| host == "*") => {
                drop(sandbox.insert("network".to_owned(), true.into()))
            }
            Some(hosts) => drop(sandbox.insert("hosts".to_owned(), json!(hosts))),
        }
        self.set("sandbox", Value::Object(sandbox));
    }

    /// Adds the variables of the user, and moves secrets out of the settings.
    fn finish(mut self, options: &CandidateOptions<'_>) -> Result<Self, AppError> {
        let is_program = ["package", "command"].iter().any(|key| self.entry.contains_key(*key));
        let has_options =
            !options.args.is_empty() || !options.env.is_empty() || !options.sandbox.is_default();
        if has_options && !is_program {
            return Err(AppError::invalid(
                "Arguments, --env and options of the sandbox are for programs, and nothing of this server runs here.",
            ));
        }
        match self.entry.get_mut("sandbox").and_then(Value::as_object_mut) {
            Some(sandbox) => options.sandbox.apply(sandbox)?,
            None if is_program && options.sandbox.enabled && !options.sandbox.is_default() => {
                return Err(AppError::invalid(
                    "This server runs without the sandbox; leave out --allow-host, --read and --write.",
                ));
            }
            None => {}
        }
        if !options.env.is_empty() {
            let given = crate::cli::commands::servers_command::parse_pairs(options.env, '=')?;
            if let Some(name) = given.keys().find(|name| !packages::is_variable_name(name)) {
                return Err(AppError::invalid(format!("--env: `{name}` is not the name of a variable.")));
            }
            let mut env = self.entry.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
            env.extend(given);
            for name in &self.secrets {
                if let Some(Value::String(value)) =
                    env.get_mut(name).filter(|value| !value.to_string().contains("${"))
                {
                    *value = format!("${{{}}}", own_variable(&self.name, name));
                }
            }
            self.set("env", Value::Object(env));
        }
        self.warn_of_hidden_paths();
        SecretExtractor::default().extract(&self.name, &mut self.entry);
        // Without what was extracted.
        if let Some(url) = self.entry.get("url").and_then(Value::as_str) {
            self.runs = url.to_owned();
        }
        self.find_needs();
        Ok(self)
    }

    /// Keeps what the user has set in the entry of the same server that this one replaces.
    pub fn keep_settings(&mut self, old: &Map<String, Value>, given: &[String]) {
        super::replaced_entry::keep_settings(old, &mut self.entry, given);
        let has = |key: &str| self.entry.get("sandbox").is_some_and(|sandbox| sandbox.get(key).is_some());
        if has("hosts") || has("network") {
            self.warnings.retain(|warning| warning != UNKNOWN_HOSTS);
        }
        self.find_needs();
    }

    /// Finds the variables of the hub that its settings use.
    pub fn find_needs(&mut self) {
        let auth = self.entry.get("auth");
        let key = auth.and_then(|auth| auth.get("env")).and_then(Value::as_str).map(str::to_owned);
        let names = required_variables(&self.entry);
        self.needs = names.into_iter().filter(|name| Some(name) != key.as_ref()).collect();
    }

    /// Variables of the hub that are named after what a registry or a bundle says, not by a person or the catalogue.
    pub fn derived_variables(&self) -> BTreeSet<String> {
        if self.is_in_catalogue { BTreeSet::new() } else { required_variables(&self.entry) }
    }

    /// Warns of arguments and variables that name files which the sandbox hides.
    fn warn_of_hidden_paths(&mut self) {
        let Some(sandbox) = self.entry.get("sandbox").and_then(Value::as_object) else { return };
        let folders = ["read", "write"].iter().filter_map(|key| sandbox.get(*key)?.as_array()).flatten();
        let visible: Vec<&str> = folders.filter_map(Value::as_str).collect();
        let args = self.entry.get("args").and_then(Value::as_array).into_iter().flatten();
        let env = self.entry.get("env").and_then(Value::as_object).into_iter().flat_map(Map::values);
        let hidden: Vec<String> = args
            .chain(env)
            .filter_map(Value::as_str)
            .filter(|text| text.starts_with('/') && Path::new(text).exists())
            .filter(|path| !visible.iter().any(|folder| Path::new(path).starts_with(folder)))
            .map(|path| {
                format!("{path} is not visible in the sandbox. Allow its directory with --read or --write.")
            })
            .collect();
        self.warnings.extend(hidden);
    }

    /// Resolves the package to an exact version with all dependencies. Uses the network.
    pub fn resolve_package(&mut self, state: &Path, options: InstallOptions) -> Result<(), PackageError> {
        let Some((kind, reference)) = self.unresolved.take() else { return Ok(()) };
        let known = self.known.as_ref().and_then(|entry| entry.package.as_ref());
        let scratch = ScratchFolder::create(state)?;
        let id = packages::choose_version(kind, &reference, known, &scratch.0)?;
        let locked = packages::resolve(&id, options, &scratch.0)?;
        drop(scratch);
        if known.is_none_or(|known| known.version != id.version || known.integrity.is_empty()) {
            self.warnings.push("This version was not checked for the catalogue.".to_owned());
        }
        self.runs = id.to_string();
        self.set("package", id.to_string().into());
        self.package = Some((id, locked));
        Ok(())
    }

    /// Program of the package, if the settings name one.
    pub fn command(&self) -> Option<&str> {
        self.entry.get("command").and_then(Value::as_str)
    }

    /// How to log in, if the server needs that and no key is set.
    pub fn login_command(&self, world: &Environment) -> Option<String> {
        let auth = self.entry.get("auth")?;
        let text = |key: &str| auth.get(key).and_then(Value::as_str);
        let is_set = text("env").is_some_and(|name| world.variable(name).is_some());
        (text("type")? != "none" && !is_set).then(|| format!("octoprox login {}", self.name))
    }
}
