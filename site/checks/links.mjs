// Every link and anchor leads somewhere inside the site, and every page can be reached from the first one.

import { existsSync } from 'node:fs';
import { join } from 'node:path';

export async function links({ out, pages }) {
  const problems = [];
  const known = new Map(pages.map(({ path, html }) => [path, new Set([...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id))]));
  const reached = new Set();
  const targets = new Map();
  let count = 0;
  for (const { path, html } of pages) {
    const found = new Set();
    for (const [, attribute, value] of html.matchAll(/<(?:a|link|script|img)\b[^>]*?\s(href|src)="([^"]*)"/g)) {
      if (/^(https?:|mailto:|data:)/.test(value)) {
        if (attribute === 'src') problems.push(`${path}: loads ${value}`);
        continue;
      }
      count += 1;
      const url = new URL(value.replaceAll('&amp;', '&').replaceAll('&#38;', '&'), `http://x/${path}`);
      const target = decodeURIComponent(url.pathname.slice(1));
      if (known.has(target)) {
        found.add(target);
        const anchor = decodeURIComponent(url.hash.slice(1));
        if (anchor && anchor !== '_top' && !known.get(target).has(anchor)) problems.push(`${path}: no anchor #${anchor} in ${target}`);
      } else if (value.startsWith('/') || !existsSync(join(out, target)) || target.endsWith('/')) problems.push(`${path}: broken link ${value}`);
    }
    targets.set(path, found);
  }
  const queue = [pages.find(({ path }) => path.split('/').length === 2 && path.endsWith('/')).path];
  while (queue.length) {
    const path = queue.pop();
    if (reached.has(path)) continue;
    reached.add(path);
    queue.push(...targets.get(path));
  }
  for (const { path } of pages) if (!reached.has(path)) problems.push(`${path}: no page leads here`);
  return { name: 'links', summary: `${count} on ${pages.length} pages`, problems };
}
