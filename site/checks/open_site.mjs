// Opens a page of the site in a theme and a size, and its search.

/** What the scripts of a page have done when it is ready. */
export const READY = 'site-search[data-ready]';

export async function openPage(site, path, { theme = 'light', phone = false } = {}) {
  const viewport = phone ? { width: 390, height: 844 } : { width: 1440, height: 900 };
  const context = await site.browser.newContext({ viewport, colorScheme: theme, deviceScaleFactor: phone ? 2 : 1 });
  const page = await context.newPage();
  await goTo(site, page, path);
  return page;
}

export async function goTo({ address, pages }, page, path) {
  await page.goto(`${address}${pages[0].path.split('/')[0]}/${path}`);
  await page.waitForSelector(READY, { state: 'attached' });
  await page.evaluate(() => document.fonts.ready);
}

export async function openSearch(page, words) {
  await page.click('site-search .open');
  await page.fill('site-search input', words);
  await page.waitForSelector(`site-search[data-query="${words}"]`);
}
