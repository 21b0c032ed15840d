// axe on pages of every kind, in both themes, on a desktop and a phone, and with the search open.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { openSearch, openPage } from './open_site.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = ['', 'start/', 'guide/', 'concepts/', 'guide/servers/', 'guide/trust/', 'guide/deployment/', 'guide/browser/', 'guide/policy/', 'security/', 'reference/', 'reference/cli/', 'reference/settings/', 'reference/rest/', 'reference/admin/', 'reference/tools/', 'decisions/', 'changelog/', 'architecture/', 'cookbook/'];
const PHONE_PAGES = ['', 'guide/servers/', 'reference/settings/', 'reference/rest/'];

export async function accessibility(site) {
  const problems = [];
  let count = 0;
  const run = async (path, theme, phone, prepare) => {
    const page = await openPage(site, path, { theme, phone });
    await prepare?.(page);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document));
    count += 1;
    for (const { id, help, nodes } of violations)
      problems.push(`/${path} ${theme}${phone ? ' phone' : ''}${prepare ? ' search' : ''}: ${id}, ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')} (${nodes.length})`);
    await page.context().close();
  };
  for (const theme of ['light', 'dark']) {
    const jobs = [...PAGES.map((path) => () => run(path, theme, false)), ...PHONE_PAGES.map((path) => () => run(path, theme, true))];
    for (const phone of [false, true]) jobs.push(() => run('', theme, phone, (page) => openSearch(page, 'deny tools')));
    for (let index = 0; index < jobs.length; index += 3) await Promise.all(jobs.slice(index, index + 3).map((job) => job()));
  }
  return { name: 'accessibility', summary: `axe on ${count} views, ${problems.length} violations`, problems };
}
