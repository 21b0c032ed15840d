// Asks the search of the site the questions in questions.tsv, and counts those whose page comes first.

import { readFileSync } from 'node:fs';
import { openPage } from './open_site.mjs';

const WANTED = 40;

export async function search(site) {
  const rows = readFileSync(process.env.QUESTIONS, 'utf8').split('\n').filter((line) => line && !line.startsWith('#')).map((line) => line.split('\t'));
  const page = await openPage(site, '');
  await page.click('site-search .open');
  const wrong = [];
  for (const [question, sources] of rows) {
    const slugs = sources.split(' ').map((source) => (source === 'README.md' ? 'start' : source.replace(/^docs\//, '').replace(/\.md$/, '')));
    await page.fill('site-search input', question);
    await page.waitForFunction((words) => document.querySelector('site-search').dataset.query === words, question);
    const found = await page.evaluate(() => [...document.querySelectorAll('site-search .results a:not(.section)')].map((link) => new URL(link.href).pathname));
    const root = new URL(site.address).pathname;
    const paths = found.map((path) => path.slice(root.length).split('/').slice(1, -1).join('/'));
    const place = paths.findIndex((path) => slugs.includes(path));
    if (place !== 0) wrong.push(`${question} → ${paths.slice(0, 3).join(', ') || 'nothing'}; wanted ${slugs.join(' or ')}${place > 0 ? ` (place ${place + 1})` : ''}`);
  }
  await page.context().close();
  const score = rows.length - wrong.length;
  for (const line of wrong) console.log(`  ${line}`);
  return { name: 'search', summary: `${score} of ${rows.length} questions have their page first`, problems: score < WANTED ? [`at least ${WANTED} must`] : [] };
}
