// A real authorization server (npm oidc-provider) and a protected MCP server before it, both on loopback.
//
//   OIDC_PROVIDER=.../oidc-provider/lib/index.js node scripts/oidc/serve.mjs
//
// Prints one line of JSON with the addresses of both and runs until its standard input ends. ACCESS_TTL is the life of an
// access token in seconds (3600), REFRESH_TTL that of a refresh token (3600). CLIENT_DOCUMENT is a client id metadata
// document, as JSON, that is found at its `client_id`.
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';

// Nobody reads more than the one line.
console.info = console.warn = () => {};

const { default: Provider, errors } = await import(pathToFileURL(process.env.OIDC_PROVIDER).href);
const life = Number(process.env.ACCESS_TTL ?? 3600);
const refreshLife = Number(process.env.REFRESH_TTL ?? 3600);
const document = JSON.parse(process.env.CLIENT_DOCUMENT ?? 'null');
const scopes = ['mcp:read', 'mcp:write'];

const listen = (server) =>
  new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(`http://127.0.0.1:${server.address().port}`)));

const authorization = createServer();
const resource = createServer();
const issuer = await listen(authorization);
const origin = await listen(resource);
const mcp = `${origin}/mcp`;

const provider = new Provider(issuer, {
  cookies: { keys: ['not a secret: this server is for tests'] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    deviceFlow: { enabled: true },
    clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => true,
      getResourceServerInfo: (_ctx, indicator) => {
        if (indicator !== mcp) throw new errors.InvalidTarget();
        return { scope: scopes.join(' '), audience: mcp, accessTokenTTL: life, accessTokenFormat: 'opaque' };
      },
    },
  },
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  scopes: ['openid', 'offline_access'],
  ttl: { DeviceCode: 60, RefreshToken: refreshLife, Grant: 3600, Session: 3600, Interaction: 600, AuthorizationCode: 60 },
  fetch: (url, options) =>
    document && String(url) === document.client_id
      ? new Response(JSON.stringify(document), { headers: { 'content-type': 'application/json' } })
      : fetch(url, options),
});
authorization.on('request', provider.callback());

async function allowed(request) {
  const [, value] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
  const token = value && (await provider.AccessToken.find(value));
  return token && !token.isExpired && token.aud === mcp ? token : undefined;
}

const results = {
  initialize: () => ({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'protected', version: '1' } }),
  'tools/list': () => ({ tools: [{ name: 'whoami', inputSchema: { type: 'object' } }] }),
  'tools/call': (token) => ({ content: [{ type: 'text', text: token.accountId }] }),
};

resource.on('request', async (request, response) => {
  const answer = (status, body, headers = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body === undefined ? '' : JSON.stringify(body));
  };
  const chunks = await request.toArray();
  if (request.url === '/.well-known/oauth-protected-resource/mcp')
    return answer(200, { resource: mcp, authorization_servers: [issuer], scopes_supported: scopes });
  if (request.url !== '/mcp') return answer(404);
  const token = await allowed(request);
  if (!token)
    return answer(401, undefined, { 'www-authenticate': `Bearer resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"` });
  if (request.method !== 'POST') return answer(405);
  const message = JSON.parse(Buffer.concat(chunks).toString());
  if (message.id === undefined) return answer(202);
  const result = results[message.method];
  const body = result ? { result: result(token) } : { error: { code: -32601, message: 'unknown' } };
  return answer(200, { jsonrpc: '2.0', id: message.id, ...body });
});

console.log(JSON.stringify({ issuer, mcp }));
process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
