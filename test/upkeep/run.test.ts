import { describe, expect, it } from 'vitest'
import { type MessageInput, openMemory, profiles } from '../../src/index.ts'

const key = 'acme:ann'
const turns: readonly MessageInput[] = [
  { role: 'user', content: 'I prefer dark mode. My cat is called Miso.' },
  { role: 'assistant', content: 'Noted.' },
  { role: 'user', content: 'What is my cat called?' },
  { role: 'assistant', content: 'Miso.' },
]

describe('upkeep.run', () => {
  it('of a short session › extracts facts once and summarises nothing', async () => {
    await using memory = await openMemory()
    await memory.append(key, turns)
    const first = await memory.upkeep.run(key)
    expect(first.facts.map(({ value }) => value)).toContain('dark')
    expect([first.summaries, first.degraded]).toEqual([[], []])
    expect(await memory.upkeep.facts(key)).toHaveLength(first.facts.length)
    expect(await memory.upkeep.run(key)).toEqual({ facts: [], summaries: [], degraded: [] })
  })

  it('with summarise › summarises all but the last exchange, and continues the summary later', async () => {
    await using memory = await openMemory()
    await memory.append(key, turns)
    expect((await memory.upkeep.run(key, { summarise: true })).summaries).toMatchObject([
      { version: 1, covers: [1, 2] },
    ])
    expect((await memory.upkeep.run(key, { summarise: true })).summaries).toEqual([])
    await memory.append(key, [
      { role: 'user', content: 'I live in Oslo.' },
      { role: 'assistant', content: 'Noted.' },
    ])
    expect((await memory.upkeep.run(key, { summarise: true })).summaries).toMatchObject([
      { version: 2, covers: [1, 4] },
    ])
    expect(await memory.transcript(key)).toHaveLength(6)
  })

  it('does what is due first', async () => {
    await using memory = await openMemory({ profile: { ...profiles.summary, budget: 3_000 } })
    await memory.append(key, [
      ...turns,
      ...Array.from({ length: 60 }, (_, index) => ({
        role: index % 2 === 0 ? ('user' as const) : ('assistant' as const),
        content: `Step ${index} of the plan. `.repeat(20),
      })),
    ])
    await memory.upkeep.run(key)
    expect(await memory.upkeep.summaries(key)).toHaveLength(1)
  })

  it('of a profile without rules › does nothing', async () => {
    await using memory = await openMemory({ profile: { ...profiles.thread, upkeep: [] } })
    await memory.append(key, turns)
    expect(await memory.upkeep.run(key, { summarise: true })).toEqual({ facts: [], summaries: [], degraded: [] })
  })

  it('of a missing session, and with an unknown option › throws', async () => {
    await using memory = await openMemory()
    await expect(memory.upkeep.run(key)).rejects.toMatchObject({ code: 'bad-option', param: 'key' })
    await memory.append(key, turns)
    // @ts-expect-error The option has another name.
    await expect(memory.upkeep.run(key, { force: true })).rejects.toMatchObject({ code: 'bad-option' })
  })
})
