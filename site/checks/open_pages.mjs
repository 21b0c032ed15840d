// Opens every page: no request to another host, no error in the console, nothing too large, nothing wider than a phone.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { READY } from './open_site.mjs';

const LIMIT = 350 * 1024;
const AT_ONCE = 4;

export async function openPages({ out, pages, browser, address }) {
  const problems = [];
  let largest = { size: 0 };
  const waiting = [...pages];
  const worker = async () => {
    const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const page = await context.newPage();
      let size = 0;
      page.on('console', (message) => message.type() === 'error' && problems.push(`${next.path}: ${message.text()}`));
      page.on('pageerror', (error) => problems.push(`${next.path}: ${error.message}`));
      page.on('request', (request) => {
        const url = request.url();
        if (!url.startsWith(address) && !url.startsWith('data:')) problems.push(`${next.path}: asks ${url}`);
      });
      page.on('response', (response) => {
        if (response.status() >= 400) problems.push(`${next.path}: ${response.status()} for ${response.url()}`);
        if (/html|css|javascript/.test(response.headers()['content-type'] ?? '')) size += Number(response.headers()['content-length'] ?? 0);
      });
      await page.goto(address + next.path);
      await page.waitForSelector(READY, { state: 'attached' });
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) problems.push(`${next.path}: ${wide} pixels wider than a phone`);
      await page.setViewportSize({ width: 1280, height: 800 });
      const tables = await page.evaluate(() => [...document.querySelectorAll('table')].filter((table) => table.scrollWidth > table.parentElement.clientWidth + 1).length);
      if (tables > 0) problems.push(`${next.path}: ${tables} tables are wider than the text`);
      await page.setViewportSize({ width: 390, height: 844 });
      if (size > LIMIT) problems.push(`${next.path}: ${kilobytes(size)} of HTML, CSS and JavaScript; the limit is ${kilobytes(LIMIT)}`);
      if (size > largest.size) largest = { size, path: next.path };
      await page.close();
    }
    await context.close();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const total = readdirSync(out, { recursive: true }).map((name) => statSync(join(out, name))).filter((file) => file.isFile()).reduce((sum, file) => sum + file.size, 0);
  return { name: 'pages', summary: `site ${(total / 2 ** 20).toFixed(1)} MB, largest page ${kilobytes(largest.size)} (${largest.path})`, problems };
}

const kilobytes = (size) => `${Math.round(size / 1024)} KB`;
