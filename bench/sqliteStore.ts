// SQLite store on a real disk, compared with the bare driver and with peers.
// npm run bench -- store [--only appends|cold|text|vectors|open|erasure] [--quick] [--folder DIR]

import { mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { benchAppendThroughput } from './appendThroughput.ts'
import { benchColdReads } from './coldReads.ts'
import { benchErasure } from './erasure.ts'
import { benchOpenTime } from './openTime.ts'
import { benchTextSearch } from './textSearch.ts'
import { benchVectorSearch } from './vectorSearch.ts'

/** Runs one benchmark in its own folder and prints the results. */
type StoreBenchmark = (folder: string, quick: boolean) => Promise<void>
const benchmarks: Readonly<Record<string, StoreBenchmark>> = {
  appends: benchAppendThroughput,
  cold: benchColdReads,
  text: benchTextSearch,
  vectors: benchVectorSearch,
  open: benchOpenTime,
  erasure: benchErasure,
}

const {
  only,
  quick = false,
  folder = tmpdir(),
} = parseArgs({
  allowPositionals: true,
  options: { only: { type: 'string' }, quick: { type: 'boolean' }, folder: { type: 'string' } },
}).values

if (only !== undefined && benchmarks[only] === undefined) {
  console.error(`Unknown part ${only}. Use npm run bench -- store --only ${Object.keys(benchmarks).join('|')}`)
  process.exit(2)
}
const tmpfsType = 0x01021994
if (statfsSync(folder).type === tmpfsType) {
  console.error(`${folder} is in RAM. Set a folder on a disk with --folder DIR.`)
  process.exit(2)
}
if (quick) console.log('--quick: smaller sizes; the targets apply to the full sizes')
for (const [name, benchmark] of Object.entries(benchmarks)) {
  if (only !== undefined && name !== only) continue
  const ownFolder = mkdtempSync(join(folder, `threadkeep-${name}-`))
  try {
    await benchmark(ownFolder, quick)
  } finally {
    rmSync(ownFolder, { recursive: true })
  }
}
