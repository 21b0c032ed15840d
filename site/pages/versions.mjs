// Lists the versions that lie side by side in a folder, newest first, and leads to the newest.
//
//   node site/pages/versions.mjs OUT

import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const out = process.argv[2];
const numbers = (version) => version.split(/[.+-]/).map((part) => (/^\d+$/.test(part) ? Number(part) : -1));
const byAge = (a, b) => {
  const [left, right] = [numbers(a), numbers(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++)
    if ((left[i] ?? 0) !== (right[i] ?? 0)) return (right[i] ?? 0) - (left[i] ?? 0);
  return 0;
};
const versions = readdirSync(out).filter((name) => /^\d+\.\d+/.test(name) && existsSync(join(out, name, 'index.html'))).sort(byAge);
writeFileSync(join(out, 'versions.json'), `${JSON.stringify({ versions })}\n`);
writeFileSync(join(out, 'index.html'), `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Octoprox documentation</title>
<meta http-equiv="refresh" content="0; url=./${versions[0]}/">
<p><a href="./${versions[0]}/">Octoprox ${versions[0]}</a></p>
</html>
`);
