// Pictures of the site, to look at.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openPage, openSearch } from './open_site.mjs';

const VIEWS = [
  ['landing-light', '', {}],
  ['landing-dark', '', { theme: 'dark' }],
  ['guide-light', 'guide/servers/', {}],
  ['guide-dark', 'guide/trust/', { theme: 'dark' }],
  ['concepts-dark', 'concepts/', { theme: 'dark' }],
  ['login-light', 'guide/servers/#logins', {}],
  ['reference-rest', 'reference/rest/', {}],
  ['reference-tools', 'reference/tools/git/', {}],
  ['reference-settings-dark', 'reference/settings/', { theme: 'dark' }],
  ['search-light', '', {}, 'deny tools'],
  ['search-dark', 'guide/policy/', { theme: 'dark' }, 'rate limit'],
  ['phone-landing', '', { phone: true }],
  ['phone-guide', 'guide/servers/', { phone: true }],
  ['phone-search', '', { phone: true }, 'undo'],
  ['phone-settings-dark', 'reference/settings/', { phone: true, theme: 'dark' }],
];

export async function screenshots(site, folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, path, look, words] of VIEWS) {
    const page = await openPage(site, path, look);
    if (words) await openSearch(page, words);
    await page.screenshot({ path: join(folder, `${name}.png`) });
    await page.context().close();
  }
  return { name: 'screenshots', summary: `${VIEWS.length} in ${folder}`, problems: [] };
}
