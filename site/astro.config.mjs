// The documentation site: Starlight on the pages that site/pages/generate.mjs wrote.

import starlight from '@astrojs/starlight';
import { defineConfig } from 'astro/config';
import { readFileSync } from 'node:fs';

const sidebar = JSON.parse(readFileSync(new URL('sidebar.json', import.meta.url), 'utf8'));
const component = (name) => `./src/components/${name}.astro`;

export default defineConfig({
  base: '/__octoprox__',
  trailingSlash: 'always',
  outDir: process.env.SITE_OUT,
  telemetry: false,
  markdown: { smartypants: false },
  devToolbar: { enabled: false },
  image: { service: { entrypoint: 'astro/assets/services/noop' } },
  vite: { build: { assetsInlineLimit: 0 } },
  integrations: [
    starlight({
      title: 'Octoprox',
      sidebar,
      disable404Route: true,
      favicon: '/favicon.svg',
      customCss: ['./src/styles.css'],
      components: {
        PageTitle: component('PageTitle'),
        Search: component('Search'),
        SiteTitle: component('SiteTitle'),
        SocialIcons: component('VersionSelect'),
      },
      expressiveCode: {
        themes: ['github-dark', 'github-light'],
        defaultProps: { frame: 'none', wrap: false },
        styleOverrides: { borderRadius: '8px', borderColor: 'var(--octo-line)', codeBackground: 'var(--octo-sunk)', codeFontSize: '0.8125rem', codeLineHeight: '1.6', frames: { shadowColor: 'transparent' } },
      },
    }),
  ],
});
