// Makes a built site independent of its address: site-absolute URLs become relative ones. Puts wide tables into frames.
//
//   node site/pages/relative.mjs FOLDER

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const folder = process.argv[2];
const BASE = '/__octoprox__/';

for (const name of readdirSync(folder, { recursive: true })) {
  const kind = name.split('.').at(-1);
  if (!['html', 'css', 'js'].includes(kind) || name.startsWith('pagefind/')) continue;
  const file = join(folder, name);
  const text = readFileSync(file, 'utf8');
  const up = `${relative(dirname(file), folder) || '.'}/`;
  const changed =
    kind === 'js'
      ? text.replace(/(["'`])\/__octoprox__\/([^"'`]*)\1/g, (_, quote, path) => `(new URL("${up}${path}",import.meta.url).pathname)`)
      : scrollable(text.replaceAll(BASE, up));
  if (changed.includes('__octoprox__')) throw new Error(`${name} still has an absolute address`);
  if (changed !== text) writeFileSync(file, changed);
}

/** Wide tables get a frame that scrolls; a script in SiteTitle.astro lets the keyboard reach what scrolls. */
function scrollable(html) {
  return html
    .replace(/<table[ >][\s\S]*?<\/table>/g, (table) => `<div class="scrolls">${table}</div>`)
    .replaceAll('<pre data-language', '<pre tabindex="0" data-language');
}
