import { type MemoryOptions, type MessageInput, openMemory, profiles } from '../../src/index.ts'
import type { Memory } from '../../src/memory.ts'

const minuteMs = 60_000
let now = 0
const clock = (): number => now

/** Opens a memory on the store, uses it, and waits until upkeep is idle. */
async function withMemory(
  store: string,
  options: MemoryOptions,
  use: (memory: Memory) => Promise<unknown>,
): Promise<void> {
  await using memory = await openMemory({ store, clock, ...options })
  await use(memory)
  if (options.upkeep !== false) await memory.upkeep.whenIdle()
}

const longStep = (number: number): string =>
  `Here is step ${number} of the plan, told at length so that there is something to sum up. `.repeat(14).trim()

const createTurns = (count: number, content: (index: number) => string): MessageInput[] =>
  Array.from({ length: count }, (_, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: content(index),
  }))

/** Adds `acme:ann`: a long chat in which a preference changes; the first 18 messages are summarised. */
export const addChat = (store: string): Promise<void> =>
  withMemory(store, { profile: 'summary' }, async (memory) => {
    now = Date.UTC(2026, 2, 1, 9)
    const statements = [
      'I prefer dark mode.',
      "Let's go with PostgreSQL for the archive.",
      'My cat is called Miso. Never deploy on Fridays.',
      'Actually I prefer light mode now. See https://example.com/report first.',
    ]
    for (const [index, content] of statements.entries()) {
      await memory.append('acme:ann', [
        { role: 'user', content },
        { role: 'assistant', content: longStep(index + 1) },
      ])
      now += 60 * minuteMs
    }
    const next = (index: number): string =>
      index % 2 === 0 ? `What comes after step ${index / 2 + 4}?` : longStep((index - 1) / 2 + 5)
    await memory.append('acme:ann', createTurns(12, next))
  })

/** Adds `acme:bot`: an agent that repeats itself four times and is optimized twice. */
const addAgentRun = (store: string): Promise<void> =>
  withMemory(store, { profile: 'agent' }, async (memory) => {
    now = Date.UTC(2026, 2, 2, 9)
    await memory.append(
      'acme:bot',
      createTurns(4, () => longStep(1)),
    )
    for (const content of ['Go on.', 'Go on, please.']) {
      now += 3 * minuteMs
      await memory.sweep()
      await memory.upkeep.whenIdle()
      await memory.append('acme:bot', [{ role: 'user', content }])
    }
  })

/** Adds `shop:eve`, with more numbers than a summary of its first messages can hold, and `shop:kim`, with none. */
export const addOrders = (store: string): Promise<void> =>
  withMemory(
    store,
    { profile: { ...profiles.support, durability: 'durable', lifetime: { whenFull: 'refuse' } } },
    async (memory) => {
      now = Date.UTC(2026, 2, 3, 9)
      const order = (index: number): string =>
        Array.from(
          { length: 20 },
          (_, parcel) => `Parcel ${10_000 + index * 100 + parcel} weighs ${2_000 + parcel * 7} grams.`,
        ).join(' ')
      await memory.append('shop:eve', createTurns(50, order))
      await memory.append(
        'shop:kim',
        createTurns(50, () => 'and so it goes on and on'),
      )
    },
  )

/** Adds knowledge stated by users and by models to `zoo`, and a message to its own memory. */
export const addKnowledge = (store: string): Promise<void> =>
  withMemory(store, {}, async (memory) => {
    now = Date.UTC(2026, 2, 4, 9)
    await memory.remember('zoo', { category: 'domain', key: 'opening hours', value: 'nine to five' })
    await memory.remember('zoo', {
      category: 'domain',
      key: 'walrus',
      value: 'Bruno',
      confidence: 0.3,
      by: 'assistant',
    })
    await memory.remember('zoo', {
      category: 'user_preference',
      key: 'diet',
      value: ['fish'],
      confidence: 0.9,
      by: 'assistant',
    })
    await memory.append('zoo', [{ role: 'user', content: 'Feed the walrus.' }])
  })

/** Adds `acme:due`: a session whose summary is overdue under the default profile. */
const addOverdueSession = (store: string): Promise<void> =>
  withMemory(store, { upkeep: false }, (memory) => memory.append('acme:due', createTurns(60, longStep)))

/** Adds all sample sessions. */
export async function addAllSamples(store: string): Promise<void> {
  await addKnowledge(store)
  await addChat(store)
  await addAgentRun(store)
  await addOrders(store)
  await addOverdueSession(store)
}
