// Logs in at the test server of scripts/oidc with Debian's Chromium, beginning at the start page of the hub.
//
//   node login.mjs PLAYWRIGHT_CORE URL
//
// Prints the title of the last page.
import { pathToFileURL } from 'node:url';

const [library, url] = process.argv.slice(2);
const { chromium } = (await import(pathToFileURL(`${library}/index.js`).href)).default;
// Chromium's sandbox does not work for root; the pages are those of this check.
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const page = await browser.newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.locator('input[name=login]').fill('ada');
  await page.locator('input[name=password]').fill('x');
  await page.getByRole('button', { name: 'Sign-in' }).click();
  await page.getByRole('button', { name: 'Continue' }).click();
  await page.waitForURL((to) => to.pathname === '/auth/callback');
  console.log(await page.locator('h1').innerText());
} finally {
  await browser.close();
}
