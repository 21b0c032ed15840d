// The pages, with one field beside Starlight's: the subject that the index of the guide gives a page, which the search reads.

import { docsLoader } from '@astrojs/starlight/loaders';
import { docsSchema } from '@astrojs/starlight/schema';
import { defineCollection } from 'astro:content';
import { z } from 'astro/zod';

export const collections = {
  docs: defineCollection({ loader: docsLoader(), schema: docsSchema({ extend: z.object({ subject: z.string().optional() }) }) }),
};
