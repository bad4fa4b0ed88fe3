// The SQLite store on a real disk, side by side with the bare driver and with peers.
// npm run bench -- store [--only appends|cold|text|vectors|open] [--quick] [--folder DIR]

import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { appends } from './appends.ts'
import { cold } from './cold.ts'
import { open } from './opening.ts'
import { text } from './text.ts'
import { vectors } from './vectors.ts'

/** Measures something in a folder of its own, and prints what came of it. */
type Part = (folder: string, quick: boolean) => Promise<void>
const parts: Readonly<Record<string, Part>> = { appends, cold, text, vectors, open }

const {
  only,
  quick = false,
  folder = tmpdir(),
} = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, quick: { type: 'boolean' }, folder: { type: 'string' } },
}).values

if (only !== undefined && parts[only] === undefined) {
  console.error(`There is no part ${only}. npm run bench -- store --only ${Object.keys(parts).join('|')}`)
  process.exit(2)
}
const tmpfs = 0x01021994
if (statfsSync(folder).type === tmpfs) {
  console.error(`${folder} is in RAM. Name a folder on a disk with --folder DIR.`)
  process.exit(2)
}
if (quick) console.log('--quick: a look at smaller sizes; the targets are those of the full ones')
for (const [name, part] of Object.entries(parts)) {
  if (only !== undefined && name !== only) continue
  const own = mkdtempSync(join(folder, `threadkeep-${name}-`))
  try {
    await part(own, quick)
  } finally {
    rmSync(own, { recursive: true })
  }
}
