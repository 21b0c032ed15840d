// Applies the rules for prose to the files it is given; site/prose starts it.

import { readFileSync } from 'node:fs';
import { harmProblems } from './prose_harmless.mjs';
import { proseProblems } from './prose_rules.mjs';

const files = process.argv.slice(2);
let count = 0;
for (const file of files) {
  const page = readFileSync(file, 'utf8');
  for (const { line, text } of [...proseProblems(page, { guide: /docs\/(guide|tutorials)\//.test(file) }), ...harmProblems(page)]) {
    console.error(`${file}:${line}: ${text}`);
    count += 1;
  }
}
console.log(`prose: ${files.length} files, ${count} problems`);
process.exitCode = count ? 1 : 0;
