// Shows the apps of a hub as a client does: the official app bridge in a page, each app in a sandboxed frame, and a client
// of the official SDK. Argument: {url, modules, playwright, chromium, apps: {TOOL: {arguments, call: {name, arguments}}},
// pictures}. Prints {TOOL: {initialized, text, called, answer, calls, messages}}.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { url, modules, playwright, chromium: program, apps, pictures } = JSON.parse(process.argv[2]);
const require = createRequire(`${modules}/`);
const { chromium } = createRequire(`${playwright}/`)("playwright-core");
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { buildSync } = require("esbuild");

const host = buildSync({
  stdin: {
    contents: 'export { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";',
    resolveDir: modules,
  },
  bundle: true,
  format: "iife",
  globalName: "Apps",
  write: false,
  logLevel: "silent",
}).outputFiles[0].text;

const LIBRARY = `{
  const any = new Proxy(function () {}, {
    get: (_, name) => (name === Symbol.toPrimitive ? () => 0 : name === "then" ? undefined : any),
    apply: () => any, construct: () => any, set: () => true, has: () => true,
  });
  window.Cesium = any;
}`;

const client = new Client(
  { name: "apps", version: "1" },
  { capabilities: { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } } },
);
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
// In a process of its own, a frame may request the library before the request can be answered here.
const args = ["--no-sandbox", "--use-gl=swiftshader", "--disable-features=IsolateSandboxedIframes"];
const browser = await chromium.launch({ executablePath: program, args });
const results = {};
for (const [name, plan] of Object.entries(apps)) {
  const tool = tools.find((tool) => tool.name === name);
  const { contents } = await client.readResource({ uri: tool._meta.ui.resourceUri });
  const answer = await client.callTool({ name, arguments: plan.arguments });
  const page = await browser.newPage({ viewport: { width: 900, height: 700 } });
  const calls = [];
  await page.exposeFunction("callTool", async (params) => {
    calls.push(params.name);
    return await client.callTool(params);
  });
  await page.exposeFunction("readResource", async (params) => await client.readResource(params));
  // The map loads its library from the internet; a library that does nothing is enough to start.
  await page.route("https://cesium.com/**", (route) =>
    route.fulfill({ contentType: "text/javascript", headers: { "access-control-allow-origin": "*" }, body: LIBRARY }),
  );
  await page.goto("about:blank");
  await page.addScriptTag({ content: host });
  const initialized = page.evaluate(
    async ({ html, input, answer }) => {
      const frame = document.createElement("iframe");
      frame.sandbox = "allow-scripts";
      frame.style = "width:860px;height:640px;border:0";
      document.body.append(frame);
      const bridge = new Apps.AppBridge(null, { name: "host", version: "1" }, { serverTools: {}, serverResources: {}, openLinks: {}, logging: {} });
      bridge.oncalltool = (params) => window.callTool(params);
      bridge.onreadresource = (params) => window.readResource(params);
      const ready = new Promise((done) => (bridge.oninitialized = () => done(true)));
      await bridge.connect(new Apps.PostMessageTransport(frame.contentWindow, frame.contentWindow));
      frame.srcdoc = html;
      await ready;
      await bridge.sendToolInput({ arguments: input });
      await bridge.sendToolResult(answer);
      return bridge.getAppVersion();
    },
    { html: contents[0].text, input: plan.arguments, answer },
  );
  const timeout = new Promise((_, fail) => setTimeout(() => fail(new Error(`${name} does not start`)), 30_000));
  const result = { initialized: await Promise.race([initialized, timeout]) };
  const frame = page.frames().find((frame) => frame !== page.mainFrame());
  if (plan.click) {
    await frame.getByText(plan.click).first().click({ timeout: 10_000 });
  }
  // From inside the frame, as an app does: by the server's own name.
  result.answer = await frame.evaluate(
    ({ params }) =>
      new Promise((done) => {
        addEventListener("message", ({ data }) => data?.id === "inside" && done(data.result ?? data.error));
        parent.postMessage({ jsonrpc: "2.0", id: "inside", method: "tools/call", params }, "*");
      }),
    { params: plan.call },
  );
  await page.waitForTimeout(1_000);
  result.text = await frame.evaluate(() => document.body.innerText);
  result.elements = await frame.evaluate(() => document.body.querySelectorAll("*").length);
  result.calls = [...new Set(calls)];
  if (pictures) await page.screenshot({ path: `${pictures}/${name}.png` });
  results[name] = result;
  await page.close();
}
await browser.close();
await client.close();
console.log(JSON.stringify(results));
process.exit();
