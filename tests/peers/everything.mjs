// Uses all that @modelcontextprotocol/server-everything has, with the official TypeScript client, and says what came of
// it. The test runs this against the server itself and against the hub in front of it; both must say the same.
// See peer_scripts.rs for how it is started.

import { createRequire } from "node:module";
import { join } from "node:path";

const need = createRequire(join(process.env.TS_SDK, "from-here.js"));
const { Client } = need("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = need("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = need("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = need("@modelcontextprotocol/sdk/types.js");

const { target } = JSON.parse(process.argv[2]);

// --- What differs from one run to the next, or by design between the two ways, and why. Nothing else is changed. ---

const volatile = [
  // The hub sorts lists, so that their order does not depend on who answered first.
  ["list", (list, key) => list.toSorted((a, b) => (a[key] < b[key] ? -1 : 1))],
  // Dynamic resources carry the time at which they were read.
  ["text", (text) => text.replace(/created at \d+:\d+:\d+( [AP]M)?/, "created at TIME")],
  ["blob", (blob) => {
    const text = Buffer.from(blob, "base64").toString();
    return text.includes("created at ") ? settled("text", text) : blob;
  }],
  // The last step is reported together with the answer; the SDK forgets who wants progress as soon as it has the answer.
  ["progress", (reports) => reports.filter((report) => report.progress < report.total)],
  // The prerequisite of a URL elicitation has a random id, whatever the caller says.
  ["prerequisite", (error) => ({
    ...error,
    data: { elicitations: error.data.elicitations.map((asked) => ({ ...asked, elicitationId: "RANDOM" })) },
  })],
  // A URI that nobody has listed: the hub says so itself, and with the code that the revision has for it.
  ["missing", (answer) => ({ error: answer.error !== undefined })],
  // A child of the hub sees only what the settings give it, by design; a child of this script sees more.
  ["env", (text) => JSON.stringify({ GIVEN: JSON.parse(text).GIVEN })],
];

function settled(kind, ...what) {
  return volatile.find(([name]) => name === kind)[1](...what);
}

/** The same value with every volatile text and blob in it settled. */
function steady(value) {
  if (Array.isArray(value)) return value.map(steady);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if ((key === "text" || key === "blob") && typeof inner === "string") return [key, settled(key, inner)];
      return [key, steady(inner)];
    }),
  );
}

// --- The client, with everything that a server may ask of it --------------------------------------------------------

const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };
const asked = [];
const updated = new Set();
const logged = [];
let changes = 0;
/** What the person will say next. */
const answers = [];

function person(request) {
  const { _meta, ...params } = request.params;
  asked.push({ method: request.method, params });
  const answer = answers.shift() ?? new Error("nobody is there");
  if (answer instanceof Error) throw answer;
  return answer;
}

async function connect() {
  const client = new Client({ name: "everything", version: "1" }, { capabilities });
  client.setRequestHandler(types.ListRootsRequestSchema, async () => ({
    roots: [{ uri: "file:///one", name: "one" }, { uri: "file:///two" }],
  }));
  client.setRequestHandler(types.ElicitRequestSchema, async (request) => person(request));
  client.setRequestHandler(types.CreateMessageRequestSchema, async (request) => person(request));
  client.setNotificationHandler(types.ResourceListChangedNotificationSchema, () => void (changes += 1));
  client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, ({ params }) => void updated.add(params.uri));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, ({ params }) => void logged.push(params));
  await client.connect(
    target.url
      ? new StreamableHTTPClientTransport(new URL(target.url))
      : new StdioClientTransport({ ...target, stderr: "ignore" }),
  );
  return client;
}

/** Whether the server's tools are listed, at once or after a while. */
async function listed(tries) {
  for (let count = 1; ; count += 1) {
    const { tools } = await client.request({ method: "tools/list" }, types.ListToolsResultSchema);
    if (tools.length > 0) return true;
    if (count === tries) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// A hub that was just started waits a moment for its servers. On a busy machine this server may need longer, and whoever
// connected before that was not told its instructions. The hub knows them the next time, also if it was started again.
let client = await connect();
if (!(await listed(1))) {
  await listed(400);
  await client.close();
  client = await connect();
}

/** The answer whole: a schema that keeps what it does not know. */
async function ask(method, params, options = {}) {
  try {
    return { result: steady(await client.request({ method, params }, types.ResultSchema, { timeout: 30_000, ...options })) };
  } catch (error) {
    if (!(error instanceof types.McpError)) throw error;
    return { error: { code: error.code, message: error.message, data: error.data } };
  }
}

const call = (name, args, options) => ask("tools/call", { name, arguments: args }, options);

async function until(holds, ms) {
  const end = Date.now() + ms;
  while (!holds() && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 20));
  return holds();
}

const said = {};

// --- Lists ----------------------------------------------------------------------------------------------------------

for (const [method, member, key] of [
  ["tools/list", "tools", "name"],
  ["resources/list", "resources", "uri"],
  ["resources/templates/list", "resourceTemplates", "uriTemplate"],
  ["prompts/list", "prompts", "name"],
]) {
  said[member] = settled("list", (await ask(method, {})).result[member], key);
}
said.instructions = client.getInstructions();

// --- Tools that only answer -----------------------------------------------------------------------------------------

said.calls = {};
for (const [name, args] of [
  ["echo", { message: "hello \u{1F40B}" }],
  ["get-annotated-message", { messageType: "error", includeImage: true }],
  ["get-annotated-message", { messageType: "debug" }],
  ["get-resource-links", { count: 4 }],
  ["get-resource-links", {}],
  ["get-resource-reference", { resourceType: "Text", resourceId: 3 }],
  ["get-resource-reference", { resourceType: "Blob", resourceId: 4 }],
  ["get-resource-reference", { resourceType: "Text", resourceId: -1 }],
  ["get-structured-content", { location: "Chicago" }],
  ["get-sum", { a: 1.5, b: -7 }],
  ["get-tiny-image", {}],
  ["get-roots-list", {}],
  ["gzip-file-as-resource", { name: "whole.gz", data: "data:text/plain,hello", outputType: "resource" }],
]) {
  said.calls[`${name} ${JSON.stringify(args)}`] = await call(name, args);
}
const env = await call("get-env", {});
env.result.content[0].text = settled("env", env.result.content[0].text);
said.calls["get-env"] = env;

// A resource that a call has just made is there to be read.
changes = 0;
const link = await call("gzip-file-as-resource", { name: "link.gz", data: "data:text/plain,hello", outputType: "resourceLink" });
said.calls["gzip-file-as-resource link"] = link;
const { uri } = link.result.content[0];
said.calls["the link, read at once"] = await ask("resources/read", { uri });
said.changed = await until(() => changes > 0, 20_000);
// The notice may still have been about the call before.
for (let tries = 0; tries < 100 && !said.added?.length; tries += 1) {
  said.added = (await ask("resources/list", {})).result.resources.filter((resource) => resource.uri === uri);
  await new Promise((resolve) => setTimeout(resolve, 30));
}
said.calls["the link, read when it is listed"] = await ask("resources/read", { uri });

// --- Tools that ask -------------------------------------------------------------------------------------------------

const form = { name: "Ada", check: true, email: "ada@example.com", integer: 7, number: 2.5 };
for (const answer of [{ action: "accept", content: form }, { action: "decline" }, { action: "cancel" }]) {
  answers.push(answer);
  said.calls[`trigger-elicitation-request ${answer.action}`] = await call("trigger-elicitation-request", {});
}
const open = { url: "https://example.com/go", message: "Go", elicitationId: "e-1" };
answers.push({ action: "accept" });
said.calls["trigger-url-elicitation"] = await call("trigger-url-elicitation", open);
const refused = await call("trigger-url-elicitation", { ...open, errorPath: true });
said.calls["trigger-url-elicitation errorPath"] = refused.error?.data ? settled("prerequisite", refused.error) : refused;
answers.push({ role: "assistant", model: "m", content: { type: "text", text: "sampled" }, stopReason: "endTurn" });
said.calls["trigger-sampling-request"] = await call("trigger-sampling-request", { prompt: "say", maxTokens: 9 });
answers.push(new types.McpError(-1, "User rejected sampling request"));
said.calls["trigger-sampling-request refused"] = await call("trigger-sampling-request", { prompt: "say" });
said.asked = asked;

// --- Progress and cancellation --------------------------------------------------------------------------------------

const reports = [];
said.calls["trigger-long-running-operation"] = await call(
  "trigger-long-running-operation",
  { duration: 0.8, steps: 4 },
  { onprogress: (report) => reports.push(report) },
);
said.progress = settled("progress", reports);
const stop = new AbortController();
const begun = Date.now();
setTimeout(() => stop.abort("enough"), 500);
const cancelled = await call("trigger-long-running-operation", { duration: 8, steps: 2 }, { signal: stop.signal }).catch(String);
said.cancelled = { said: cancelled, soon: Date.now() - begun < 6_000 };
// The connection goes on as if nothing had happened.
said.calls["echo after the cancellation"] = await call("echo", { message: "still here" });

// --- Resources ------------------------------------------------------------------------------------------------------

said.reads = {};
for (const uri of [
  ...said.resources.map((resource) => resource.uri),
  "demo://resource/dynamic/text/5",
  "demo://resource/dynamic/blob/6",
  "demo://resource/dynamic/text/none",
]) {
  said.reads[uri] = await ask("resources/read", { uri });
}
said.reads.nowhere = settled("missing", await ask("resources/read", { uri: "demo://resource/nowhere" }));

const watched = ["demo://resource/dynamic/text/1", said.resources[0].uri];
said.watching = [];
for (const uri of watched) said.watching.push(await ask("resources/subscribe", { uri }));
said.calls["toggle-subscriber-updates on"] = await call("toggle-subscriber-updates", {});
await until(() => watched.every((uri) => updated.has(uri)), 20_000);
said.updated = [...updated].toSorted();
said.calls["toggle-subscriber-updates off"] = await call("toggle-subscriber-updates", {});
for (const uri of watched) said.watching.push(await ask("resources/unsubscribe", { uri }));

// --- Prompts and completions ----------------------------------------------------------------------------------------

said.gets = {};
for (const [name, args] of [
  ["simple-prompt", undefined],
  ["args-prompt", { city: "Berlin" }],
  ["args-prompt", { city: "Austin", state: "Texas" }],
  ["args-prompt", {}],
  ["completable-prompt", { department: "Sales", name: "Eve" }],
  ["resource-prompt", { resourceType: "Text", resourceId: "8" }],
  ["resource-prompt", { resourceType: "Blob", resourceId: "9" }],
  ["resource-prompt", { resourceType: "Nothing", resourceId: "9" }],
]) {
  said.gets[`${name} ${JSON.stringify(args)}`] = await ask("prompts/get", { name, arguments: args });
}

said.completions = [];
const prompt = (name) => ({ type: "ref/prompt", name });
const template = (uri) => ({ type: "ref/resource", uri });
for (const params of [
  { ref: prompt("completable-prompt"), argument: { name: "department", value: "S" } },
  { ref: prompt("completable-prompt"), argument: { name: "name", value: "" }, context: { arguments: { department: "Sales" } } },
  { ref: prompt("resource-prompt"), argument: { name: "resourceType", value: "B" } },
  { ref: prompt("args-prompt"), argument: { name: "city", value: "B" } },
  { ref: template("demo://resource/dynamic/text/{resourceId}"), argument: { name: "resourceId", value: "12" } },
  { ref: template("demo://resource/dynamic/blob/{resourceId}"), argument: { name: "resourceId", value: "none" } },
]) {
  said.completions.push(await ask("completion/complete", params));
}

// --- Log messages: their level is random, so only their arrival is compared; what a server says outside of a call
// --- concerns none of the hub's clients in particular and is not passed on -------------------------------------------

const random = (message) => /(-level message|level-message)/.test(message.data);
said.level = await ask("logging/setLevel", { level: "debug" });
logged.length = 0;
said.calls["toggle-simulated-logging on"] = await call("toggle-simulated-logging", {});
said.logged = await until(() => logged.some(random), 1_500);
said.calls["toggle-simulated-logging off"] = await call("toggle-simulated-logging", {});

await client.close();
console.log(JSON.stringify(said));
