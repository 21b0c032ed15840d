//! Everything that a tool's author imports, and the trait that all sources implement.

mod backoff;
mod body_selection;
mod call_context;
mod call_header;
mod example;
pub mod hidden_text;
mod layer;
mod nested_calls;
pub mod pdf_text;
mod peer;
pub mod plain_text;
pub mod reply_budget;
pub mod secrets;
mod source;
mod tool;
mod tool_fixture;
mod tool_image;
mod tool_schema;
mod tool_search;
mod toolbox;

pub use backoff::Backoff;
pub use body_selection::{BodySelection, select};
pub use call_context::CallContext;
pub use call_header::CallHeader;
pub use example::Example;
pub use layer::Layer;
pub use nested_calls::{NestedCalls, NestedOutcome, QuestionRecord, ServerQuestion};
pub use octo_grants::{
    Capabilities, Chromium, Clock, Exec, Fs, Grant, JqRunner, Llm, Net, PageRenderer, Pdf, Render,
    RenderedPage, RootedPath, SshKey, WorkPath, Workspace, chromium, exec, fs, jq, net, pdf,
};
pub use octo_model::{
    BoxFuture, Caller, Effect, Json, JsonObject, Kind, Principal, Remedy, Secret, ToolError, edit_distance,
    hex, json_len, nearest, sha256_hex,
};
pub use octo_ports::{Apis, Memory, ResultWriter, apis, memory};
pub use peer::{AskError, NoPeer, Peer, SilentPeer};
pub use plain_text::{ModelText, counted};
pub use reply_budget::ReplyBudget;
pub use source::{Audience, Definition, Event, Listing, ListingState, SearchTexts, Source, SourceState};
pub use tool::Tool;
pub use tool_fixture::{PointerJq, ToolFixture};
pub use tool_image::Image;
pub use tool_schema::schema_of;
pub use tool_search::{CallableTool, FoundTool, FoundTools, SiblingTool, SiblingTools, ToolSearch};
pub use toolbox::{ErasedTool, Requirement, TEXT_ONLY_META_KEY, ToolOutput, Toolbox};
