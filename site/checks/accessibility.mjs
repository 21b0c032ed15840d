// axe on pages of every kind, in both themes, on a desktop and a phone, and with the search open.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { goTo, openPage, openSearch } from './open_site.mjs';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PAGES = ['', 'start/', 'concepts/', 'guide/', 'guide/servers/', 'guide/trust/', 'guide/deployment/', 'security/', 'reference/settings/', 'reference/admin/', 'reference/tools/git/', 'decisions/', 'contributing/', 'report-a-vulnerability/'];
const PHONE_PAGES = ['', 'guide/servers/', 'reference/admin/'];
/** What depends on the theme; the rest is the same in both. */
const COLORS = { runOnly: ['color-contrast', 'link-in-text-block'] };

export async function accessibility(site) {
  const problems = [];
  let count = 0;
  const run = async (page, view) => {
    await page.evaluate(axe);
    for (const [theme, rules] of [['light', {}], ['dark', COLORS]]) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForSelector(`html[data-theme="${theme}"]`, { state: 'attached' });
      const violations = await page.evaluate((options) => window.axe.run(document, options).then((result) => result.violations), { ...rules, resultTypes: ['violations'] });
      count += 1;
      for (const { id, help, nodes } of violations)
        problems.push(`${view} ${theme}: ${id}, ${help}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')} (${nodes.length})`);
    }
    await page.emulateMedia({ colorScheme: 'light' });
  };
  const visit = async (phone) => {
    const page = await openPage(site, '', { phone });
    for (const path of phone ? PHONE_PAGES : PAGES) {
      await goTo(site, page, path);
      await run(page, `/${path}${phone ? ' phone' : ''}`);
    }
    await goTo(site, page, '');
    await openSearch(page, 'deny tools');
    await run(page, `search${phone ? ' phone' : ''}`);
    await page.context().close();
  };
  await Promise.all([visit(false), visit(true)]);
  return { name: 'accessibility', summary: `axe on ${count} views, ${problems.length} violations`, problems };
}
