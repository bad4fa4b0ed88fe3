import { describe } from 'vitest'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { campaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { proveRoundTrip } from './roundTrip.ts'

const fresh = freshFiles()
const runs = campaign ? 300 : 20

describe('a bundle', () => {
  verifies('X-12', 'goes from RAM into a file and back, byte by byte', () =>
    proveRoundTrip(
      async () => ramStore(),
      async () => sqliteStore(fresh()),
      runs,
    ),
  )
  verifies('X-12', 'goes from a file into RAM and back, byte by byte', () =>
    proveRoundTrip(
      async () => sqliteStore(fresh()),
      async () => ramStore(),
      runs,
    ),
  )
})
