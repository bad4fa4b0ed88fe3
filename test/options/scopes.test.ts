import { describe, expect } from 'vitest'
import { openMemory } from '../../src/index.ts'
import type { Memory } from '../../src/memory.ts'
import { verifies } from '../requirements/verifies.ts'

/** Methods that take a scope, called with the key of a session. */
const calls: Readonly<Record<string, (memory: Memory, scope: string) => unknown>> = {
  forget: (memory, scope) => memory.forget({ scope }),
  'forget by text': (memory, scope) => memory.forget({ scope, text: 'cat' }),
  sessions: (memory, scope) => memory.sessions({ scope }),
  remember: (memory, scope) => memory.remember(scope, { category: 'domain', key: 'cat', value: 'Miso' }),
  table: (memory, scope) => memory.table(scope),
  export: async (memory, scope) => {
    for await (const _ of memory.export({ scope }));
  },
  import: (memory, scope) => memory.import(() => memory.export(), { scope }),
}

describe('methods that take a scope', () => {
  for (const [name, call] of Object.entries(calls))
    verifies('R-06', `${name} › with the key of a session › refuses it and leaves the tenant as it was`, async () => {
      await using memory = await openMemory()
      for (const key of ['acme:ann', 'acme:bob'])
        await memory.append(key, [{ role: 'user', content: 'My cat is called Miso.' }])
      const refusal = { param: 'scope', message: expect.stringContaining('acme') }
      await expect((async () => call(memory, 'acme:ann'))()).rejects.toMatchObject(refusal)
      expect((await memory.sessions()).map(({ key, messages }) => [key, messages])).toEqual([
        ['acme:ann', 1],
        ['acme:bob', 1],
      ])
    })
})
