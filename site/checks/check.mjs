// The checks of a built site; site/check starts them.

import { chromium } from 'playwright-core';
import { links } from './links.mjs';
import { openPages } from './open_pages.mjs';
import { accessibility } from './accessibility.mjs';
import { search } from './search_score.mjs';
import { screenshots } from './screenshots.mjs';
import { serve, sitePages } from './site_server.mjs';
import { versionSelect } from './version_select.mjs';

const [out, flag, shots] = process.argv.slice(2);
const pages = sitePages(out);
const server = await serve(out);
// Root has no sandbox of its own in a container; the pages are ours.
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--disable-gpu', ...(process.getuid() === 0 ? ['--no-sandbox'] : [])] });
let failed = false;
try {
  const site = { out, pages, browser, address: server.address };
  const checks = flag === '--screenshots' ? [() => screenshots(site, shots)] : [links, openPages, accessibility, versionSelect, search].map((check) => () => check(site));
  for (const check of checks) {
    const began = Date.now();
    const { name, summary, problems: found } = await check();
    console.log(`${name}: ${summary} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
    for (const problem of found) console.error(`${name}: ${problem}`);
    failed ||= found.length > 0;
  }
} finally {
  await browser.close();
  server.close();
}
process.exitCode = failed ? 1 : 0;
