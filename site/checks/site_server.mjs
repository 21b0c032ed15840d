// Serves a built site below an arbitrary path, as a web server for static files does, and lists its pages.

import { createReadStream, existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';

const PREFIX = '/some/where/';
const TYPES = { '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript', '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png', '.woff2': 'font/woff2', '.wasm': 'application/wasm' };

export async function serve(out) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, 'http://x').pathname);
    let file = path.startsWith(PREFIX) ? join(out, path.slice(PREFIX.length)) : '';
    if (file && existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html');
    if (!file || !existsSync(file)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream', 'Content-Length': statSync(file).size });
    createReadStream(file).pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { address: `http://127.0.0.1:${server.address().port}${PREFIX}`, close: () => server.close() };
}

/** The newest version and its pages: path below OUT, such as `0.1.0/guide/servers/`, and HTML. */
export function sitePages(out) {
  const [version] = JSON.parse(readFileSync(join(out, 'versions.json'), 'utf8')).versions;
  return readdirSync(join(out, version), { recursive: true })
    .filter((name) => name.endsWith('.html'))
    .sort()
    .map((name) => ({ path: `${version}/${name.replace(/index\.html$/, '')}`, html: readFileSync(join(out, version, name), 'utf8') }));
}
