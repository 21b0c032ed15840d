//! The view of the catalogue through one profile.

use crate::apps::app_tool::app_uri;
use crate::catalogue::item::{Entry, Item};
use crate::catalogue::profile::Profile;
use crate::catalogue::rendered_list::RenderedList;
use crate::catalogue::scoped_uris;
use crate::catalogue::surface::{ListOptions, Structure, Surface};
use crate::catalogue::template_pattern::template_pattern;
use crate::catalogue::tool_override::ToolOverride;
use crate::code::run_code::RUN_CODE_TOOL;
use crate::find::find_source::HUB_TOOLBOX;
use crate::find::tools_call::CALL_TOOL;
use crate::find::tools_find::FIND_TOOL;
use octo_model::{
    Effect, EffectOrigin, ItemKind, Json, JsonObject, Method, Operation, RpcError, ToolError, listed_name,
    nearest, normalized_name, with_suffix,
};
use octo_toolkit::{Definition, ListingState, Source, SourceState};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, LazyLock};

/// One key for all unlisted resources: callers could make up any number of URIs.
const UNLISTED_URI_KEY: &str = "{+uri}";
/// Maximum characters of a name in an error message.
const MAX_NAME_CHARS: usize = 300;
/// Maximum number of suggestions for a name that is a prefix of other names.
const MAX_SUGGESTIONS: usize = 4;
pub(crate) const LIST_HINT: &str = "List the available items and use one of their names.";

/// The items of one source at one version.
#[derive(Clone)]
pub struct SourceSnapshot {
    pub listing: ListingState,
    pub items: Arc<Vec<Arc<Item>>>,
    pub source: Arc<dyn Source>,
    pub name: String,
    pub is_native: bool,
    /// Whether the listing is that of the source's predecessor.
    pub is_carried_over: bool,
}

/// Everything that one profile lists, in a stable order, with every accepted name.
pub struct View {
    pub version: u64,
    pub profile: Profile,
    /// Entries of each kind, until they are rendered.
    lists: HashMap<ItemKind, Vec<Entry>>,
    rendered: HashMap<ItemKind, Arc<RenderedList>>,
    names: HashMap<(ItemKind, String), Entry>,
    patterns: Vec<(Regex, Entry)>,
    /// Sources that list resources of a URI scheme.
    schemes: HashMap<String, Vec<Arc<dyn Source>>>,
    /// Disabled tools, each with what can be done about it.
    disabled: HashMap<String, String>,
    /// Overrides that cannot be applied, each with the reason.
    broken_overrides: HashMap<String, String>,
    down: Vec<(Arc<dyn Source>, String)>,
    /// Sources on their first listing.
    first_listing: Vec<Arc<dyn Source>>,
    /// Names that several servers have, in profiles without server prefixes.
    ambiguous_names: HashSet<(ItemKind, String)>,
    pub is_starting: bool,
    pub ttl_ms: u64,
    pub completes: bool,
    pub subscribes: bool,
    pub instructions: Option<String>,
    /// Upstream servers, by name.
    pub(crate) servers: BTreeMap<String, Arc<dyn Source>>,
    /// URIs of apps, as clients get them.
    pub(crate) app_uris: HashSet<String>,
    /// Servers with apps.
    pub(crate) app_servers: BTreeSet<String>,
    /// Extensions that servers declare. Settings in which they differ are left out.
    pub extensions: JsonObject,
}

impl View {
    pub fn new(version: u64, profile: Profile, stocks: &[SourceSnapshot]) -> Self {
        let mut view = Self {
            version,
            profile,
            lists: HashMap::new(),
            rendered: HashMap::new(),
            names: HashMap::new(),
            patterns: Vec::new(),
            schemes: HashMap::new(),
            disabled: HashMap::new(),
            broken_overrides: HashMap::new(),
            down: Vec::new(),
            first_listing: Vec::new(),
            ambiguous_names: HashSet::new(),
            is_starting: false,
            ttl_ms: u64::MAX,
            completes: false,
            subscribes: false,
            instructions: None,
            servers: BTreeMap::new(),
            app_uris: HashSet::new(),
            app_servers: BTreeSet::new(),
            extensions: JsonObject::new(),
        };
        let own = view.profile.override_names().map(|name| (ItemKind::Tool, normalized_name(name)));
        let mut taken: HashSet<_> = own.collect();
        let shown: Vec<&SourceSnapshot> = stocks
            .iter()
            .filter(|stock| view.profile.shows_source(&stock.name) || view.needs(stock))
            .collect();
        view.ambiguous_names = find_ambiguous_names(&view.profile, &shown);
        let count = shown.iter().map(|stock| stock.items.len()).sum();
        taken.reserve(count);
        // Most items have two names.
        view.names.reserve(2 * count);
        for stock in shown {
            view.add_source(stock, &mut taken);
        }
        view.add_short_names();
        for kind in ItemKind::ALL {
            let entries = view.lists.remove(&kind).unwrap_or_default();
            view.rendered.insert(kind, Arc::new(RenderedList::new(entries)));
        }
        view
    }

    fn add_source(&mut self, stock: &SourceSnapshot, taken: &mut HashSet<(ItemKind, String)>) {
        match &stock.listing.state {
            SourceState::Off(how) => {
                let hint = format!("The toolbox `{}` is disabled; the operator can {how}.", stock.name);
                for item in stock.items.iter() {
                    let shown = self.profile.overrides_of(item).map(|(name, _)| name.clone());
                    let names: Vec<String> = shown.chain([item.key.clone()]).collect();
                    self.disabled.extend(names.into_iter().map(|name| (name, hint.clone())));
                }
                return;
            }
            SourceState::Starting => {
                self.is_starting = true;
                self.first_listing.push(Arc::clone(&stock.source));
            }
            SourceState::Down(why) => self.down.push((Arc::clone(&stock.source), why.clone())),
            SourceState::Ready => {}
        }
        let lists = &stock.listing.listing;
        self.completes |= lists.supports_completion;
        self.subscribes |= lists.supports_subscribe;
        if !stock.is_native {
            self.servers.insert(stock.name.clone(), Arc::clone(&stock.source));
            self.add_extensions(&lists.extensions);
            self.ttl_ms = self.ttl_ms.min(lists.ttl_ms.unwrap_or(0));
            if self.profile.servers.len() == 1 {
                self.instructions.clone_from(&lists.instructions);
            }
            // In a passthrough profile the hub's own instructions would be misleading.
            if self.profile.passthrough_source().is_some() {
                self.instructions.get_or_insert_default();
            }
        }
        let mut items: Vec<&Arc<Item>> = stock.items.iter().collect();
        if self.profile.passthrough_source().is_none() {
            items.sort_by(|a, b| a.key.cmp(&b.key));
        }
        for item in items {
            self.add(stock, item, taken);
        }
    }

    fn add_extensions(&mut self, declared: &JsonObject) {
        for (name, settings) in declared.iter() {
            match self.extensions.get(name) {
                Some(known) if known != settings => self.extensions.set(name, JsonObject::new()),
                _ => self.extensions.set(name, settings.clone()),
            };
        }
    }

    fn add(&mut self, stock: &SourceSnapshot, item: &Arc<Item>, taken: &mut HashSet<(ItemKind, String)>) {
        let kind = item.kind;
        if kind == ItemKind::Tool && item.app.is_part_of_app {
            self.app_uris.extend(app_uri(&item.members));
            self.app_servers.insert(stock.name.clone());
        }
        if matches!(kind, ItemKind::Resource | ItemKind::Template | ItemKind::Skill) {
            return self.add_uri(item);
        }
        if kind == ItemKind::Tool && self.add_override(item) {
            return;
        }
        let contested = || self.ambiguous_names.contains(&(kind, normalized_name(&item.key)));
        let prefixed = !stock.is_native && (self.profile.prefix || contested());
        let full = if prefixed { format!("{}__{}", stock.name, item.key) } else { item.key.clone() };
        let mut listed = if prefixed || stock.is_native { listed_name(&full) } else { full.clone() };
        if !taken.insert((kind, normalized_name(&listed))) && self.profile.passthrough_source().is_none() {
            listed = with_suffix(&listed, &format!("{}/{}", stock.name, item.key));
            taken.insert((kind, normalized_name(&listed)));
        }
        let is_listed = self.profile.shows(&listed) && self.profile.shows_source(&stock.name);
        if !is_listed && !self.needs(stock) {
            return;
        }
        let entry =
            Entry { listed_name: listed.as_str().into(), item: Arc::clone(item), tool_override: None };
        if !is_listed {
            self.names.entry((kind, listed)).or_insert(entry);
            return;
        }
        let full = Some(full).filter(|full| *full != listed);
        for alias in [listed, format!("{}:{}", stock.name, item.key)].into_iter().chain(full) {
            self.names.entry((kind, alias)).or_insert_with(|| entry.clone());
        }
        self.lists.entry(kind).or_default().push(entry);
    }

    /// Accepts the tools of a server that prefixes its tool names with its own name without that prefix, too:
    /// `notion:search` and `notion__search` for its `notion-search`. Existing names take precedence.
    fn add_short_names(&mut self) {
        for kind in [ItemKind::Tool, ItemKind::Prompt] {
            let entries =
                self.lists.get(&kind).into_iter().flatten().filter(|entry| entry.tool_override.is_none());
            let short = entries.filter_map(|entry| {
                let server = entry.item.source.name();
                let rest = entry.item.key.strip_prefix(server).filter(|_| !entry.item.source.is_native())?;
                let rest = rest.strip_prefix(['-', '_', '.']).filter(|rest| !rest.is_empty())?;
                Some(
                    [format!("{server}:{rest}"), format!("{server}__{rest}")]
                        .map(|name| (name, entry.clone())),
                )
            });
            let short: Vec<(String, Entry)> = short.flatten().collect();
            for (name, entry) in short {
                self.names.entry((kind, name)).or_insert(entry);
            }
        }
    }

    /// Adds the profile's overrides of a tool; returns false if there are none.
    fn add_override(&mut self, item: &Arc<Item>) -> bool {
        let made: Vec<(String, Result<ToolOverride, String>)> = self
            .profile
            .overrides_of(item)
            .map(|(name, settings)| (name.clone(), ToolOverride::new(settings, &item.members, item.target())))
            .collect();
        let any = !made.is_empty();
        for (name, recast) in made {
            match recast {
                Ok(recast) => {
                    let recast = Some(Arc::new(recast));
                    let entry = Entry {
                        listed_name: name.as_str().into(),
                        item: Arc::clone(item),
                        tool_override: recast,
                    };
                    self.names.insert((ItemKind::Tool, name), entry.clone());
                    self.lists.entry(ItemKind::Tool).or_default().push(entry);
                }
                Err(why) => {
                    tracing::warn!(profile = %self.profile.name, tool = %name, %why, "invalid tool override in profile");
                    self.broken_overrides.insert(name, why);
                }
            }
        }
        any
    }

    /// URIs are never rewritten, because results refer to them. The first source with a URI keeps it.
    fn add_uri(&mut self, item: &Arc<Item>) {
        let entry =
            Entry { listed_name: item.key.as_str().into(), item: Arc::clone(item), tool_override: None };
        let key = (item.kind, item.key.clone());
        if self.names.contains_key(&key) {
            return tracing::warn!(target: "upstream", source = item.source.name(), "duplicate resource URI");
        }
        if item.kind == ItemKind::Resource && scoped_uris::is_app_uri(&item.key) {
            self.app_uris.insert(item.key.clone());
        }
        let of_scheme = self.schemes.entry(scheme(&item.key).to_owned()).or_default();
        if item.kind != ItemKind::Skill && !of_scheme.iter().any(|source| Arc::ptr_eq(source, &item.source)) {
            of_scheme.push(Arc::clone(&item.source));
        }
        if item.kind == ItemKind::Template
            && let Some(pattern) = template_pattern(&item.key)
        {
            self.patterns.push((pattern, entry.clone()));
        }
        self.names.insert(key, entry.clone());
        self.lists.entry(item.kind).or_default().push(entry);
    }

    /// Whether there are skills.
    pub fn has_skills(&self) -> bool {
        !self.list(ItemKind::Skill).is_empty()
    }

    /// Whether a server offers apps.
    pub fn has_apps(&self) -> bool {
        !self.app_uris.is_empty()
    }

    pub fn list(&self, kind: ItemKind) -> &[Entry] {
        self.rendered.get(&kind).map(|list| list.entries.as_slice()).unwrap_or_default()
    }

    pub(crate) fn rendered_list(&self, kind: ItemKind) -> &Arc<RenderedList> {
        static EMPTY: LazyLock<Arc<RenderedList>> = LazyLock::new(Arc::default);
        self.rendered.get(&kind).unwrap_or(&EMPTY)
    }

    pub fn rendered(&self, kind: ItemKind) -> &[Json] {
        &self.rendered_list(kind).rendered
    }

    pub fn by_name(&self, kind: ItemKind, name: &str) -> Option<&Entry> {
        self.names.get(&(kind, name.to_owned()))
    }

    /// Whether the source has the tools through which others are found and called. They work in every profile of the hub.
    fn needs(&self, stock: &SourceSnapshot) -> bool {
        stock.is_native && stock.name == HUB_TOOLBOX && self.profile.passthrough_source().is_none()
    }

    /// The tools that a surface needs and that the profile does not list.
    pub(crate) fn unlisted_hub_tools(&self, surface: Surface) -> Vec<Entry> {
        let names = match surface {
            Surface::Servers | Surface::Profile | Surface::Find => [FIND_TOOL, CALL_TOOL].as_slice(),
            Surface::Code => &[FIND_TOOL, RUN_CODE_TOOL],
            Surface::Auto | Surface::Full => &[],
        };
        let list = self.rendered_list(ItemKind::Tool);
        let missing = names.iter().filter(|name| list.find(name).is_none());
        let entries = missing.filter_map(|name| self.by_name(ItemKind::Tool, name));
        let is_of_hub = |entry: &&Entry| entry.item.source.is_native() && entry.source_name() == HUB_TOOLBOX;
        entries.filter(is_of_hub).cloned().collect()
    }

    /// Whether a client gets structured results.
    pub fn structure(&self, options: ListOptions) -> Structure {
        options.structure.unwrap_or(self.profile.structure)
    }

    /// The entries of a tool in this profile: usually one, none if the profile does not show it.
    pub(crate) fn entries_of(&self, item: &Item) -> Vec<Entry> {
        let is_same = |entry: &&Entry| {
            entry.item.key == item.key
                && entry.item.source.name() == item.source.name()
                && entry.item.source.is_native() == item.source.is_native()
        };
        let mut overrides = self.profile.overrides_of(item).peekable();
        if overrides.peek().is_some() {
            let entries = overrides.filter_map(|(name, _)| self.by_name(ItemKind::Tool, name));
            return entries.filter(is_same).cloned().collect();
        }
        let alias = format!("{}:{}", item.source.name(), item.key);
        let known = match self.by_name(ItemKind::Tool, &alias) {
            Some(known) if is_same(&known) => Some(known),
            // Another source has taken the alias.
            Some(_) => self.list(ItemKind::Tool).iter().find(is_same),
            None => None,
        };
        known.cloned().into_iter().collect()
    }

    pub fn find(&self, op: &Operation) -> Option<Entry> {
        let found = match op.method {
            Method::CallTool => self.by_name(ItemKind::Tool, &op.name).cloned(),
            Method::GetPrompt => self.by_name(ItemKind::Prompt, &op.name).cloned(),
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe => self.resource(&op.name),
            Method::Complete => self.completion_target(op),
            Method::GetSkill => self.skill(&op.name),
        };
        found.or_else(|| self.passthrough_entry(op))
    }

    /// In a passthrough profile the server itself reports what it does not have or why it cannot answer.
    fn passthrough_entry(&self, op: &Operation) -> Option<Entry> {
        let source = self.profile.passthrough_source()?;
        let (kind, key) = match op.method {
            Method::CallTool => (ItemKind::Tool, op.name.as_str()),
            Method::GetPrompt => (ItemKind::Prompt, op.name.as_str()),
            Method::Complete if op.params.object("ref").get("name").is_some() => {
                (ItemKind::Prompt, op.name.as_str())
            }
            Method::ReadResource
            | Method::Subscribe
            | Method::Unsubscribe
            | Method::Complete
            | Method::GetSkill => (ItemKind::Resource, UNLISTED_URI_KEY),
        };
        Some(unlisted_entry(source, kind, key, &op.name))
    }

    /// Returns the listed resource, the first template that matches the URI, or the only source that lists
    /// resources of its scheme: a server may serve resources that it does not list, or has not listed yet.
    pub fn resource(&self, uri: &str) -> Option<Entry> {
        let listed = self.by_name(ItemKind::Resource, uri).or_else(|| self.by_name(ItemKind::Template, uri));
        let fitting =
            || self.patterns.iter().find(|(pattern, _)| pattern.is_match(uri)).map(|(_, entry)| entry);
        // A template of one server must not take over the URIs of another.
        let server = scoped_uris::named_server(uri);
        let is_own = |entry: &&Entry| {
            !scoped_uris::is_scoped(uri)
                || entry.item.source.is_native()
                || Some(entry.source_name()) == server
        };
        let known = listed.or_else(fitting).filter(is_own).cloned().or_else(|| self.skill_with_file(uri));
        known.or_else(|| self.unlisted_resource(uri)).or_else(|| self.only_server_with(uri))
    }

    /// A server's own URI, as it may be in a text, if only one server lists it.
    fn only_server_with(&self, uri: &str) -> Option<Entry> {
        let scoped = self.servers.keys().filter_map(|server| scoped_uris::to_scoped(server, uri));
        let mut entries = scoped.filter_map(|scoped| {
            let resource = self.by_name(ItemKind::Resource, &scoped);
            resource.or_else(|| self.by_name(ItemKind::Skill, &scoped)).cloned()
        });
        entries.next().filter(|_| entries.next().is_none())
    }

    /// A listed skill, or one that its server does not list.
    fn skill(&self, uri: &str) -> Option<Entry> {
        let listed = self.by_name(ItemKind::Skill, uri).cloned();
        listed.or_else(|| self.unlisted_resource(uri).filter(|_| scoped_uris::is_scoped(uri)))
    }

    /// The file of a listed skill.
    fn skill_with_file(&self, uri: &str) -> Option<Entry> {
        let is_inside = |entry: &&Entry| {
            let root = entry.item.key.strip_suffix("SKILL.md");
            root.is_some_and(|root| uri.starts_with(root))
        };
        let skill = &self.list(ItemKind::Skill).iter().find(is_inside)?.item;
        let mut entry = unlisted_entry(&skill.source, ItemKind::Resource, UNLISTED_URI_KEY, uri);
        if let Some(item) = Arc::get_mut(&mut entry.item) {
            (item.effect, item.effect_origin) = (skill.effect, skill.effect_origin);
        }
        Some(entry)
    }

    fn unlisted_resource(&self, uri: &str) -> Option<Entry> {
        if scoped_uris::is_scoped(uri) {
            let source = self.servers.get(scoped_uris::named_server(uri)?)?;
            return Some(unlisted_entry(source, ItemKind::Resource, UNLISTED_URI_KEY, uri));
        }
        let [source] = self.schemes.get(scheme(uri))?.as_slice() else { return None };
        Some(unlisted_entry(source, ItemKind::Resource, UNLISTED_URI_KEY, uri))
    }

    /// A completion refers to a prompt by its listed name or to a template by its URI.
    fn completion_target(&self, op: &Operation) -> Option<Entry> {
        match op.params.object("ref").text("type").as_deref() {
            Some("ref/prompt") => self.by_name(ItemKind::Prompt, &op.name).cloned(),
            _ => self.resource(&op.name),
        }
    }

    /// The error for an unknown name, with a hint. Mentions only entries that pass `may_know`.
    pub(crate) fn not_found_error(
        &self,
        op: &Operation,
        absent: &[(Arc<dyn Source>, String)],
        may_know: impl Fn(&Entry) -> bool,
    ) -> ToolError {
        let what = match op.method {
            Method::CallTool => "Tool",
            Method::GetPrompt => "Prompt",
            Method::ReadResource | Method::Subscribe | Method::Unsubscribe => "Resource",
            Method::Complete => "Prompt or template",
            Method::GetSkill => "Skill",
        };
        let name: String = op.name.chars().take(MAX_NAME_CHARS).collect();
        let message = format!("{what} not found: `{name}`.");
        let error = ToolError::not_found(message).hint(self.suggestion(op, absent, may_know));
        // A protocol error has no field for a hint, and many clients show the model only the message.
        let mut data = JsonObject::new();
        if op.method.names_resource() {
            data.set("uri", name.as_str());
        }
        if let Some(hint) = error.hint.as_deref() {
            data.set("hint", hint);
        }
        let is_resource = op.method.names_resource() && op.method != Method::GetSkill;
        let code = if is_resource { -32002 } else { -32602 };
        let rpc = RpcError { code, message: error.text(), data: Some(data.to_json()) };
        error.rpc(rpc)
    }

    /// Sources with an item that the caller may know. Of a source that has not listed its items, any would count.
    pub(crate) fn visible_sources(&self, may_know: impl Fn(&Entry) -> bool) -> BTreeSet<String> {
        let listed = ItemKind::ALL.into_iter().flat_map(|kind| self.list(kind)).cloned();
        let named =
            |it: &Arc<dyn Source>| unlisted_entry(it, ItemKind::Tool, "", &format!("{}__", it.name()));
        let unlisted = self.down.iter().map(|(source, _)| source).chain(&self.first_listing).map(named);
        let known = listed.chain(unlisted).filter(|entry| may_know(entry));
        known.map(|entry| entry.source_name().to_owned()).collect()
    }

    fn suggestion(
        &self,
        op: &Operation,
        absent: &[(Arc<dyn Source>, String)],
        may_know: impl Fn(&Entry) -> bool,
    ) -> String {
        if let Some(hint) = self.disabled.get(&op.name).filter(|_| op.method == Method::CallTool) {
            return hint.clone();
        }
        if let Some(why) = self.broken_overrides.get(&op.name).filter(|_| op.method == Method::CallTool) {
            return format!("The profile `{}` cannot list it: {why}", self.profile.name);
        }
        let meant = |source: &Arc<dyn Source>| {
            has_server_prefix(source, &op.name)
                && may_know(&unlisted_entry(source, ItemKind::Tool, &op.name, &op.name))
        };
        if let Some((source, why)) = self.down.iter().find(|(source, _)| meant(source)) {
            return format!("The server `{}` is down: {}.", source.name(), why.trim_end_matches('.'));
        }
        if let Some(source) = self.first_listing.iter().find(|source| meant(source)) {
            return format!("The server `{}` is still starting. Try again in a few seconds.", source.name());
        }
        let shown = |source: &Arc<dyn Source>| self.profile.shows_source(source.name());
        if let Some((source, why)) = absent.iter().find(|(source, _)| shown(source) && meant(source)) {
            return format!("The server `{}` is not connected: {why}", source.name());
        }
        if op.method != Method::CallTool {
            return LIST_HINT.to_owned();
        }
        if let Some(hint) = self.tools_of_servers(&op.name, &may_know) {
            return hint;
        }
        let tools = self.names.iter().filter(|((kind, _), entry)| *kind == ItemKind::Tool && may_know(entry));
        // Servers choose the names of their tools.
        let is_plain = |name: &&str| name.len() <= MAX_NAME_CHARS && !name.chars().any(char::is_control);
        match nearest(&op.name, tools.map(|((_, name), _)| name.as_str()).filter(is_plain)) {
            Some(close) => format!("Did you mean `{close}`?"),
            None => self.longer_names(&op.name, may_know).unwrap_or_else(|| LIST_HINT.to_owned()),
        }
    }

    /// Suggests a few tools that have this name at their servers.
    fn tools_of_servers(&self, name: &str, may_know: impl Fn(&Entry) -> bool) -> Option<String> {
        let tools = self.list(ItemKind::Tool).iter();
        let same: Vec<String> = tools
            .filter(|entry| entry.tool_override.is_none() && entry.item.key == name && may_know(entry))
            .take(MAX_SUGGESTIONS)
            .map(|entry| format!("`{}:{name}`", entry.source_name()))
            .collect();
        (!same.is_empty()).then(|| format!("Did you mean {}?", same.join(" or ")))
    }

    /// Suggests a few tools whose names start with `name` and an underscore.
    fn longer_names(&self, name: &str, may_know: impl Fn(&Entry) -> bool) -> Option<String> {
        let begins = format!("{name}_");
        let tools = self.list(ItemKind::Tool).iter();
        let close: Vec<String> = tools
            .filter(|entry| entry.listed_name.starts_with(&begins) && may_know(entry))
            .take(MAX_SUGGESTIONS)
            .map(|entry| format!("`{}`", entry.listed_name))
            .collect();
        (!close.is_empty()).then(|| format!("Did you mean {}?", close.join(" or ")))
    }
}

/// Returns whether a name starts with the server's prefix.
fn has_server_prefix(source: &Arc<dyn Source>, name: &str) -> bool {
    let rest = name.strip_prefix(source.name()).filter(|_| !source.is_native());
    rest.is_some_and(|rest| rest.starts_with("__") || rest.starts_with(':'))
}

/// An entry of which only the name is known.
fn unlisted_entry(source: &Arc<dyn Source>, kind: ItemKind, key: &str, listed: &str) -> Entry {
    let definition = Definition {
        key: key.to_owned(),
        members: JsonObject::new(),
        effect: Effect::unknown(),
        effect_origin: EffectOrigin::Assumed,
    };
    Entry {
        listed_name: listed.into(),
        item: Arc::new(Item::new(source, kind, &definition)),
        tool_override: None,
    }
}

/// In a profile without prefixes no server gets a name that two servers have: the first one would shadow the
/// other.
fn find_ambiguous_names(profile: &Profile, shown: &[&SourceSnapshot]) -> HashSet<(ItemKind, String)> {
    let mut owners: HashMap<(ItemKind, String), &str> = HashMap::new();
    let mut contested = HashSet::new();
    let servers = shown.iter().filter(|stock| !profile.prefix && !stock.is_native);
    for (stock, item) in servers.flat_map(|stock| stock.items.iter().map(move |item| (stock, item))) {
        let name = (item.kind, normalized_name(&item.key));
        if *owners.entry(name.clone()).or_insert(&stock.name) != stock.name {
            contested.insert(name);
        }
    }
    contested
}

/// The part of a URI before the colon.
fn scheme(uri: &str) -> &str {
    uri.split_once(':').map_or("", |(scheme, _)| scheme)
}
