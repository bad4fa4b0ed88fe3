import { agent } from './agent.ts'
import { beyond } from './beyond.ts'
import { compression } from './compression.ts'
import { ephemeral } from './ephemeral.ts'
import { handoff } from './handoff.ts'
import type { Row } from './row.ts'
import { surfaces } from './surfaces.ts'
import { tenants } from './tenants.ts'

/** The rows by chapter, in reading order. */
export const chapters: readonly { readonly title: string; readonly rows: readonly Row[] }[] = [
  { title: 'Ephemeral sessions', rows: ephemeral },
  { title: 'Tenants and sessions behind a proxy', rows: tenants },
  { title: 'Compression', rows: compression },
  { title: 'Agent memory', rows: agent },
  { title: 'Handoff', rows: handoff },
  { title: 'Beyond the documents', rows: beyond },
  { title: 'Surfaces', rows: surfaces },
]

export const rows: readonly Row[] = chapters.flatMap((chapter) => chapter.rows)
