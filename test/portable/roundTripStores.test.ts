import { describe } from 'vitest'
import { encryptedStore } from '../../src/stores/encrypted.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { testKeyring } from '../stores/encrypted/fixtures.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { expectRoundTrip } from './roundTrip.ts'

const newFile = createTempPaths()
const runs = isCampaign ? 300 : 8

describe('exportBundle and importBundle', () => {
  verifies('X-12', 'round trip › from RAM to a file › keeps every byte', () =>
    expectRoundTrip(
      async () => ramStore(),
      async () => sqliteStore(newFile()),
      runs,
    ),
  )
  verifies('X-12', 'round trip › from a file to RAM › keeps every byte', () =>
    expectRoundTrip(
      async () => sqliteStore(newFile()),
      async () => ramStore(),
      runs,
    ),
  )
  verifies('X-12', 'round trip › from RAM to an encrypted store › keeps every byte', () =>
    expectRoundTrip(
      async () => ramStore(),
      () => encryptedStore(ramStore(), testKeyring('old')),
      runs,
    ),
  )
})
