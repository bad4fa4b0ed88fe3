import { readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { type Memory, openMemory } from '../../src/index.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const fresh = createTempPaths()
const key = 'acme:ann'

/** Appends messages of a customer and an agent, in turns. */
async function appendMessages(memory: Memory, contents: readonly string[]): Promise<void> {
  for (const [index, content] of contents.entries())
    await memory.append(key, [{ role: index % 2 === 0 ? 'user' : 'assistant', content }])
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, index) => `Message ${index + 1}.`)

describe('support', () => {
  verifies('T-08', 'while nothing is summarised › shows the newest 100 messages and stores all', async () => {
    await using memory = await openMemory({ profile: 'support', upkeep: false })
    const contents = numbered(150)
    await appendMessages(memory, contents)
    const { messages, ledger } = await memory.context(key)
    const recent = ledger.lines.filter(({ band }) => band === 'recent')
    expect(messages.map(({ content }) => content)).toEqual(expect.arrayContaining(contents.slice(-100)))
    expect(recent.reduce((sum, { count }) => sum + count, 0)).toBe(100)
    expect(await memory.transcript(key)).toHaveLength(150)
  })

  verifies('T-08', 'after 1,000 messages › keeps the first and the newest of them', async () => {
    await using memory = await openMemory({ profile: 'support', upkeep: false })
    await appendMessages(memory, numbered(1_003))
    const stored = (await memory.transcript(key)).map(({ content }) => content)
    expect([stored.length, stored[0], stored[1], stored.at(-1)]).toEqual([
      1_000,
      'Message 1.',
      'Message 5.',
      'Message 1003.',
    ])
  })

  verifies(
    'T-03',
    'once a message has left the tail › shows its preferences as facts of the session, in RAM only',
    async () => {
      const file = fresh()
      const memory = await openMemory({ profile: 'support', store: `sqlite:${file}` })
      await memory.remember('acme', { category: 'domain', key: 'returns', value: 'within 30 days' })
      await appendMessages(memory, ['I prefer e-mail over phone calls.', 'Noted.', ...numbered(58)])
      await memory.append('acme:bob', [{ role: 'user', content: 'Hello' }])
      await memory.upkeep.whenIdle()
      const facts = (await memory.upkeep.facts(key)).map(({ value }) => value).join()
      const { text, messages } = await memory.context(key)
      expect(facts).toContain('e-mail')
      expect(text).toMatch(/\[KNOWN ABOUT THIS USER\][^[]*e-mail/)
      expect(messages.filter(({ role }) => role !== 'system').map(({ content }) => content)).not.toContain(
        'I prefer e-mail over phone calls.',
      )
      expect((await memory.context('acme:bob')).text).not.toContain('e-mail')
      expect((await memory.search('acme', 'e-mail', { session: '' })).map(({ key: found }) => found)).toEqual([])
      await memory.close()
      expect([readFileSync(file).includes('30 days'), readFileSync(file).includes('e-mail')]).toEqual([true, false])
    },
  )
})
