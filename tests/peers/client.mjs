// The official TypeScript client: connects, lists, calls, is asked. See peer_scripts.rs for how it is started.

import { createRequire } from "node:module";
import { join } from "node:path";

const need = createRequire(join(process.env.TS_SDK, "from-here.js"));
const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = need("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = need("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ElicitRequestSchema } = need("@modelcontextprotocol/sdk/types.js");

const { target, calls, prompt, resource, own, style, typed } = JSON.parse(process.argv[2]);
const transport = target.url
  ? new StreamableHTTPClientTransport(new URL(target.url))
  : new StdioClientTransport({ ...target, stderr: "inherit" });

const client = new Client({ name: "typescript", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "accept", content: { answer: "forty-two" } }));
let revision;
const settle = transport.setProtocolVersion?.bind(transport);
transport.setProtocolVersion = (version) => {
  revision = version;
  settle?.(version);
};
await client.connect(transport);

async function all(method, member) {
  const found = [];
  let cursor;
  do {
    const page = await client[method](cursor === undefined ? {} : { cursor });
    found.push(...page[member]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return found;
}

const said = {
  server: client.getServerVersion().name,
  revision,
  tools: (await all("listTools", "tools")).map((tool) => tool.name),
  prompts: (await all("listPrompts", "prompts")).map((prompt) => prompt.name),
  resources: (await all("listResources", "resources")).map((resource) => resource.uri),
  templates: (await all("listResourceTemplates", "resourceTemplates")).map((template) => template.uriTemplate),
  // callTool checks structured content with the tool's output schema.
  calls: [],
};
for (const call of calls) {
  const result = await client.callTool(call);
  said.calls.push({ content: result.content, structuredContent: result.structuredContent, isError: result.isError ?? false });
}
said.prompt = (await client.getPrompt({ name: prompt })).messages;
said.own = (await client.getPrompt({ name: own, arguments: { style } })).messages;
const argument = { name: "style", value: typed };
said.completed = (await client.complete({ ref: { type: "ref/prompt", name: own }, argument })).completion.values;
said.resource = (await client.readResource({ uri: resource })).contents;
await client.close();
console.log(JSON.stringify(said));
