// Two versions side by side: the selector leads to the same page of the other version, and to its first page where it has none; with one it is hidden.

import { mkdtempSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { goTo, openPage } from './open_site.mjs';
import { serve } from './site_server.mjs';

const OLD = '0.0.1';
const SELECT = '.right-group version-select';

export async function versionSelect(site) {
  const problems = [];
  const [version] = site.pages[0].path.split('/');
  const folder = mkdtempSync(join(tmpdir(), 'octoprox-site-'));
  const expect = (found, wanted) => found === wanted || problems.push(`${found} instead of ${wanted}`);
  const write = (versions) => writeFileSync(join(folder, 'versions.json'), JSON.stringify({ versions }));
  symlinkSync(resolve(site.out, version), join(folder, version));
  mkdirSync(join(folder, OLD));
  writeFileSync(join(folder, OLD, 'index.html'), 'old');
  const server = await serve(folder);
  try {
    const two = { ...site, address: server.address };
    write([version]);
    const page = await openPage(two, 'guide/trust/');
    await page.waitForLoadState('networkidle');
    expect(await page.isVisible(`${SELECT} select`), false);
    write([version, OLD]);
    for (const [path, wanted] of [['guide/trust/', `${OLD}/`], ['', `${OLD}/`]]) {
      await goTo(two, page, path);
      await page.selectOption(`${SELECT} select`, OLD);
      await page.waitForURL(`**/${OLD}/**`);
      expect(page.url(), server.address + wanted);
    }
    mkdirSync(join(folder, OLD, 'guide/trust'), { recursive: true });
    writeFileSync(join(folder, OLD, 'guide/trust/index.html'), 'old');
    await goTo(two, page, 'guide/trust/');
    await page.selectOption(`${SELECT} select`, OLD);
    await page.waitForURL(`**/${OLD}/guide/**`);
    expect(page.url(), `${server.address}${OLD}/guide/trust/`);
    await page.context().close();
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
  return { name: 'versions', summary: `${version} and ${OLD} side by side`, problems };
}
