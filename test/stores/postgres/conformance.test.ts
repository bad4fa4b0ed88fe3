import { describe, it } from 'vitest'
import { storeConformance } from '../../../src/stores/conformance.ts'
import { createEmptyStores } from '../../support/postgres.ts'

describe('postgresStore', () => {
  for (const { name, run } of storeConformance(createEmptyStores(1))) it(name, run)
})

describe('postgresStore on pglite:', () => {
  for (const { name, run } of storeConformance(createEmptyStores(2_000, async () => 'pglite:memory://'))) it(name, run)
})
