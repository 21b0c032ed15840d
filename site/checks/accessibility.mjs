// axe on pages of every kind, in both themes, on a desktop and a phone, and with the search open.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { goTo, openPage, openSearch } from './open_site.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = ['', 'start/', 'concepts/', 'guide/', 'guide/servers/', 'guide/trust/', 'guide/deployment/', 'security/', 'reference/cli/', 'reference/settings/', 'reference/rest/', 'reference/tools/git/', 'decisions/', 'changelog/', 'architecture/', 'cookbook/'];
const PHONE_PAGES = ['', 'guide/servers/', 'reference/settings/', 'reference/rest/'];

export async function accessibility(site) {
  const problems = [];
  let count = 0;
  const run = async (page, view) => {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    count += 1;
    for (const { id, help, nodes } of violations)
      problems.push(`${view}: ${id}, ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')} (${nodes.length})`);
  };
  const visit = async (theme, phone) => {
    const page = await openPage(site, '', { theme, phone });
    for (const path of phone ? PHONE_PAGES : PAGES) {
      await goTo(site, page, path);
      await run(page, `/${path} ${theme}${phone ? ' phone' : ''}`);
    }
    await goTo(site, page, '');
    await openSearch(page, 'deny tools');
    await run(page, `search ${theme}${phone ? ' phone' : ''}`);
    await page.context().close();
  };
  await Promise.all(['light', 'dark'].flatMap((theme) => [visit(theme, false), visit(theme, true)]));
  return { name: 'accessibility', summary: `axe on ${count} views, ${problems.length} violations`, problems };
}
