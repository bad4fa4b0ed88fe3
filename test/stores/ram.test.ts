import { describe, it } from 'vitest'
import { storeConformance } from '../../src/stores/conformance.ts'
import { ramStore } from '../../src/stores/ram.ts'

describe('the RAM store', () => {
  for (const { name, run } of storeConformance(async () => ramStore())) it(name, run)
})
