// Applies the rules for prose to the files it is given; site/prose starts it.

import { readFileSync } from 'node:fs';
import { proseProblems } from './prose_rules.mjs';

const files = process.argv.slice(2);
let count = 0;
for (const file of files) {
  for (const { line, text } of proseProblems(readFileSync(file, 'utf8'), { guide: /docs\/(guide|tutorials)\//.test(file) })) {
    console.error(`${file}:${line}: ${text}`);
    count += 1;
  }
}
console.log(`prose: ${files.length} files, ${count} problems`);
process.exitCode = count ? 1 : 0;
