// Settings of the search, for Pagefind in the browser.

/** Words of a question that say nothing about its subject. Pagefind returns only pages that have every word. */
const FILLERS = new Set(
  'a an and are as at be by can do does for from how i in is it its me my of on or that the there this to was what when where which who why will with you your'.split(' '),
);

export function withoutFillers(query) {
  const words = query.split(/\s+/).filter((word) => word && !FILLERS.has(word.toLowerCase().replace(/[?.,]+$/, '')));
  return words.length ? words.join(' ').replace(/[?]/g, '') : query;
}

export const pagefindUserConfig = {
  processTerm: withoutFillers,
  ranking: { pageLength: 0.1, termFrequency: 0.1, termSaturation: 2, termSimilarity: 9 },
};
