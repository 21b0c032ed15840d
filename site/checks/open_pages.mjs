// Opens every page: no request to another host, no error in the console, nothing too large, nothing wider than the window of a phone or a desktop.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { READY } from './open_site.mjs';

const LIMIT = 350 * 1024;
const AT_ONCE = 2;
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 800 };

export async function openPages({ out, pages, browser, address }) {
  const problems = [];
  let largest = { size: 0 };
  const waiting = [...pages];
  const worker = async () => {
    const context = await browser.newContext({ viewport: PHONE });
    const page = await context.newPage();
    const sizes = [PHONE, DESKTOP];
    let current = '';
    let size = 0;
    const problem = (text) => problems.push(`${current}: ${text}`);
    page.on('console', (message) => message.type() === 'error' && problem(message.text()));
    page.on('pageerror', (error) => problem(error.message));
    page.on('request', (request) => {
      const url = request.url();
      if (!url.startsWith(address) && !url.startsWith('data:')) problem(`asks ${url}`);
    });
    // Files that the browser has from another page count as well: whoever opens this page first loads them.
    page.on('response', (response) => {
      if (response.status() >= 400) problem(`${response.status()} for ${response.url()}`);
      if (/html|css|javascript/.test(response.headers()['content-type'] ?? '')) size += Number(response.headers()['content-length'] ?? 0);
    });
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      [current, size] = [next.path, 0];
      await page.goto(address + current);
      await page.waitForSelector(READY, { state: 'attached' });
      // The size that the page was opened in comes first, so that each page is laid out only twice.
      for (const viewport of sizes) {
        await page.setViewportSize(viewport);
        const [wide, tables] = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, [...document.querySelectorAll('div.scrolls')].filter((frame) => frame.scrollWidth > frame.clientWidth).length]);
        if (wide > 0) problem(`${wide} pixels wider than a window of ${viewport.width}`);
        if (tables > 0 && viewport === DESKTOP) problem(`${tables} tables are wider than the text`);
      }
      sizes.reverse();
      if (size > LIMIT) problem(`${kilobytes(size)} of HTML, CSS and JavaScript; the limit is ${kilobytes(LIMIT)}`);
      if (size > largest.size) largest = { size, path: current };
    }
    await context.close();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const total = readdirSync(out, { recursive: true }).map((name) => statSync(join(out, name))).filter((file) => file.isFile()).reduce((sum, file) => sum + file.size, 0);
  return { name: 'pages', summary: `site ${(total / 2 ** 20).toFixed(1)} MB, largest page ${kilobytes(largest.size)} (${largest.path})`, problems };
}

const kilobytes = (size) => `${Math.round(size / 1024)} KB`;
