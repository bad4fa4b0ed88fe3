import { agent } from './agent.ts'
import { beyond } from './beyond.ts'
import { compression } from './compression.ts'
import { ephemeral } from './ephemeral.ts'
import { fidelity } from './fidelity.ts'
import { handoff } from './handoff.ts'
import { product } from './product.ts'
import { relevance } from './relevance.ts'
import { reliability } from './reliability.ts'
import type { Row } from './row.ts'
import { surfaces } from './surfaces.ts'
import { tenants } from './tenants.ts'

/** Requirement rows by section, in reading order. */
export const sections: readonly { readonly title: string; readonly rows: readonly Row[] }[] = [
  { title: 'Ephemeral sessions', rows: ephemeral },
  { title: 'Tenants and sessions behind a proxy', rows: tenants },
  { title: 'Compression', rows: compression },
  { title: 'Agent memory', rows: agent },
  { title: 'Handoff', rows: handoff },
  { title: 'Beyond the documents', rows: beyond },
  { title: 'Surfaces', rows: surfaces },
  { title: 'Fidelity of the proxy', rows: fidelity },
  { title: 'Relevance of memory', rows: relevance },
  { title: 'Reliability and security', rows: reliability },
  { title: 'Product', rows: product },
]

export const rows: readonly Row[] = sections.flatMap((section) => section.rows)
