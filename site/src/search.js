// The ranking of the search, on Pagefind: each word is asked for by itself, and a rare word counts more than a common one. Pagefind alone returns only
// pages that have all words, so that one word of a question that the right page lacks would hide it.

/** Words of a question that say nothing about its subject. */
const FILLERS = new Set(
  'a an and another are as at be by can could do does for from get how i if in into is it its many me multiple my need not of on or our several should that the their there this to use using want was we what when where which who why will with you your'.split(' '),
);

/** Other words that people use for the words of the documentation. */
const SYNONYMS = [
  ['folder', 'directory'],
  ['config', 'settings', 'configuration'],
  ['https', 'tls'],
  ['docker', 'container'],
  ['k8s', 'kubernetes'],
  ['remember', 'memory'],
  ['delete', 'remove', 'prune'],
  ['password', 'secret'],
  ['block', 'deny'],
  ['permission', 'policy'],
  ['upgrade', 'update'],
  ['version', 'revision'],
  ['script', 'command'],
  ['website', 'page'],
  ['db', 'database', 'sql'],
  ['forbidden', 'denied'],
  ['broken', 'troubleshooting'],
];

/** How Pagefind weighs a word within a page: an exact match much more than a word that only begins with it. */
const RANKING = { termSimilarity: 30, pageLength: 0.2, termFrequency: 1, termSaturation: 1 };
const PAGES = 100;
/** Added to the number of pages with a word, so that a word of one page does not outweigh all others. */
const SMOOTHING = 8;
const SYNONYM_WEIGHT = 0.6;

/** Pages for looking things up, and those about the past, come after those that explain; the first page repeats the others. */
const WEIGHTS = [
  [/^\/(changelog|architecture|contributing|license|decisions|measurements)\//, 0.35],
  [/^\/(reference|packaging|helm|cookbook)\//, 0.55],
  [/^\/$/, 0.2],
];
/** Pages whose weight is looked up. */
const CANDIDATES = 24;

export function wordsOf(query) {
  const words = query.toLowerCase().split(/[\s?!,;:"()]+/).map((word) => word.replace(/^['.]+|['.]+$/g, '')).filter(Boolean);
  const useful = words.filter((word) => !FILLERS.has(word));
  return [...new Set(useful.length ? useful : words)];
}

/** Pages for a query, best first. */
export async function rank(pagefind, query) {
  await pagefind.options({ ranking: RANKING });
  const found = new Map();
  const terms = wordsOf(query).map((word) => {
    const single = word.replace(/s$/, '');
    const group = SYNONYMS.find((one) => one.includes(word) || one.includes(single)) ?? [];
    return [[word, 1], ...group.filter((other) => other !== word && other !== single).map((other) => [other, SYNONYM_WEIGHT])];
  });
  await Promise.all(
    terms.map(async (variants) => {
      const best = new Map();
      for (const [word, weight] of variants) {
        const { results } = await pagefind.search(word);
        const top = Math.max(...results.map(({ score }) => score));
        const rarity = Math.log(1 + PAGES / (results.length + SMOOTHING));
        for (const result of results) {
          const score = weight * rarity * (result.score / top);
          if (score > (best.get(result.id)?.score ?? 0)) best.set(result.id, { score, result });
        }
      }
      for (const [id, { score, result }] of best) {
        const entry = found.get(id) ?? { score: 0, top: 0 };
        entry.score += score;
        if (score > entry.top) Object.assign(entry, { top: score, result });
        found.set(id, entry);
      }
    }),
  );
  const candidates = [...found.values()].sort((a, b) => b.score - a.score).slice(0, CANDIDATES);
  const pages = await Promise.all(candidates.map(async ({ score, result }) => ({ score, page: await result.data() })));
  const weighed = pages.map(({ score, page }) => ({ page, score: score * (WEIGHTS.find(([pattern]) => pattern.test(page.raw_url))?.[1] ?? 1) }));
  return weighed.sort((a, b) => b.score - a.score).map(({ page }) => page);
}
