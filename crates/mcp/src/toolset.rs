//! Toolsets: named sets of tools, and the resources that some of them have beside the files.

use rmcp::ErrorData;
use rmcp::model::{ReadResourceResponse, ReadResourceResult, Resource, ResourceContents};
use rmcp::service::{RequestContext, RoleServer};
use sidenote_base::error::Result;
use sidenote_store::Store;

use crate::tool::Tool;
use crate::{Server, member_of, notes, resources};

/// A named set of tools with a contract of its own (docs/spec/toolsets.md).
#[derive(Debug, Clone, Copy)]
pub struct Toolset {
    name: &'static str,
    tools: fn() -> Vec<Tool>,
    resource: Option<ToolsetResource>,
}

impl PartialEq for Toolset {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Toolset {
    /// Our own tools for notes, links and memories.
    pub const NOTES: Self = Self::new("notes", notes::tools);
    /// Our own tools for longer work: batches of edits, renames across the vault, queries of properties.
    pub const MORE: Self = Self::new("more", notes::toolset_more::tools);
    /// The tools `search` and `fetch`, as ChatGPT's connectors ask for them.
    pub const CONNECTOR: Self = Self::new("connector", notes::connector::tools);

    /// Names a set of tools.
    pub const fn new(name: &'static str, tools: fn() -> Vec<Tool>) -> Self {
        Self { name, tools, resource: None }
    }

    /// Adds a resource to the set.
    #[must_use]
    pub const fn with_resource(self, resource: ToolsetResource) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// Returns the name of the toolset.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns whether the toolset has a tool of a name.
    pub fn has_tool(self, name: &str) -> bool {
        (self.tools)().iter().any(|tool| tool.name == name)
    }

    /// Makes the tools of the set.
    pub(crate) fn tools(self) -> Vec<Tool> {
        (self.tools)()
    }
}

/// A resource that a toolset has beside the files of the vault. It changes with any of them.
#[derive(Debug, Clone, Copy)]
pub struct ToolsetResource {
    /// The URI.
    pub uri: &'static str,
    /// The name.
    pub name: &'static str,
    /// The title.
    pub title: &'static str,
    /// What it is.
    pub description: &'static str,
    /// The media type of its text.
    pub media_type: &'static str,
    /// The tool that gives the same. Who is not offered it does not get the resource.
    pub tool: &'static str,
    /// Returns the text.
    pub text: fn(&Store) -> Result<String>,
}

impl ToolsetResource {
    fn describe(&self) -> Resource {
        Resource::new(self.uri, self.name)
            .with_title(self.title)
            .with_description(self.description)
            .with_mime_type(self.media_type)
    }

    /// Reads the resource.
    pub(crate) fn contents(&self, store: &Store) -> Result<ReadResourceResponse> {
        let contents = ResourceContents::text((self.text)(store)?, self.uri).with_mime_type(self.media_type);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

impl Server {
    /// Lists the resources of the toolsets that are served to the caller.
    pub(crate) fn toolset_resources(&self, context: &RequestContext<RoleServer>) -> Vec<Resource> {
        let offered = self.offered(member_of(context).as_ref(), &self.names(context));
        let mut found: Vec<ToolsetResource> = Vec::new();
        for resource in self.shared.tools.values().filter_map(|served| served.toolset.resource) {
            if offered.has(resource.tool) && !found.iter().any(|known| known.uri == resource.uri) {
                found.push(resource);
            }
        }
        found.iter().map(ToolsetResource::describe).collect()
    }

    /// Returns the resource of a toolset with a URI.
    pub(crate) fn toolset_resource(&self, uri: &str) -> Option<ToolsetResource> {
        let mut served = self.shared.tools.values().filter_map(|served| served.toolset.resource);
        served.find(|resource| resource.uri == uri)
    }

    /// Refuses a resource to a caller who is not offered its tool.
    pub(crate) fn require_offered(
        &self,
        resource: &ToolsetResource,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if self.offered(member_of(context).as_ref(), &self.names(context)).has(resource.tool) {
            return Ok(());
        }
        let data = resources::error_data(resource.uri);
        Err(ErrorData::resource_not_found("there is no such resource", data))
    }
}
