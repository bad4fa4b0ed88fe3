import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'

const day = 86_400_000

describe('knowledge', () => {
  verifies('A-03', 'ages on its day though a clock that was a year ahead has looked at it before', async () => {
    let now = 0
    await using memory = await openMemory({ clock: () => now })
    await memory.sweep(365 * day)
    await memory.remember('acme', { category: 'domain', key: 'hours', value: 'nine to five' })
    now = 30 * day
    await memory.sweep(now)
    expect((await memory.upkeep.knowledge('acme')).map(({ confidence }) => confidence)).toEqual([0.4])
  })
})
