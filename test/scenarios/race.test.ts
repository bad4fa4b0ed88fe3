import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Ask, Model } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import type { Memory } from '../../src/memory.ts'
import { profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { summaryOf } from './scribe.ts'
import { dataIn, modelName, openStaged, type Scribe, type Staged, startScribe, takeTurn } from './stage.ts'
import { briefTurnAt, linesOf, messagesOf, turnAt } from './turns.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const hour = 3_600_000
const noon = Date.UTC(2026, 0, 1, 12)
const durable: Profile = { ...profiles.support, durability: 'durable' }

/** Every message once and in its place, and of each turn the question before its reply. */
async function isWhole(memory: Memory, turns: number): Promise<void> {
  const messages = await memory.transcript(key)
  expect(messages.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 2 * turns }, (_, at) => at + 1))
  const place = new Map(linesOf(messages).map((line, at) => [line, at]))
  for (let turn = 0; turn < turns; turn++) {
    const [question = -1, reply = -1] = linesOf(briefTurnAt(turn)).map((line) => place.get(line))
    expect([turn, question >= 0, question < reply]).toEqual([turn, true, true])
  }
}

/** What was put before the model for summaries, a line for each message. */
const readBy = (scribe: Scribe): readonly string[] =>
  scribe.asked('summary').flatMap((request) => dataIn(request).at(-1)?.split('\n') ?? [])

/** Versions without a gap, each of which begins where the whole begins and reaches further than the one before. */
function isChain(committed: readonly Summary[], by: string): void {
  const ordered = [...committed].sort((one, other) => one.version - other.version)
  expect(ordered.map(({ version, by: maker, covers }) => [version, maker, covers[0]])).toEqual(
    ordered.map((_, at) => [at + 1, by, 1]),
  )
  for (const [at, { covers }] of ordered.entries()) expect(covers[1]).toBeGreaterThan(ordered[at - 1]?.covers[1] ?? 0)
}

const allTurns = (memory: Memory, turns: number, from = 0): Promise<unknown> =>
  Promise.all(Array.from({ length: turns }, (_, at) => takeTurn(memory, key, briefTurnAt(from + at))))

describe('two hundred turns of one session at once', () => {
  verifies('C-12', 'are all kept, and each message goes into one version of the summary', async () => {
    await using scribe = await startScribe()
    await using memory = await openStaged({ store: `sqlite:${fresh()}`, model: scribe.model })
    await allTurns(memory, 200)
    await memory.upkeep.settled()
    await isWhole(memory, 200)
    isChain(memory.committed, modelName)
    const last = memory.committed.at(-1)
    expect(scribe.asked('summary').length).toBe(last?.version)
    expect(readBy(scribe)).toEqual(linesOf(await memory.transcript(key)).slice(0, last?.covers[1]))
    expect((await memory.context(key)).ledger.spent).toBeLessThan(3_000)
    expect(memory.health()).toMatchObject({ running: 0, degraded: [] })
  })

  verifies(
    'C-12',
    'are all kept, and each batch of twenty goes into one version of the summary of its hour',
    async () => {
      let told = 0
      await using scribe = await startScribe()
      // hours come in no order: many write at once, and clocks differ
      await using memory = await openStaged({
        profile: durable,
        store: `sqlite:${fresh()}`,
        model: scribe.model,
        clock: () => noon + (told++ % 3) * hour,
      })
      await allTurns(memory, 200)
      await memory.upkeep.settled()
      await isWhole(memory, 200)
      // 400 messages: eighteen batches, after which fewer than fifty wait
      expect(scribe.asked('summary').length).toBe(18)
      expect(readBy(scribe)).toEqual(linesOf(await memory.transcript(key)).slice(0, 360))
      const hours = await memory.upkeep.summaries(key)
      expect(
        hours.flatMap(({ covers: [from, to] }) => Array.from({ length: to - from + 1 }, (_, at) => from + at)),
      ).toEqual(Array.from({ length: 360 }, (_, at) => at + 1))
      expect(hours.reduce((sum, { version }) => sum + version, 0)).toBe(18)
    },
  )
})

describe('two memories that work on one session of one file', () => {
  verifies('C-12', 'ask the model once for each window, and lose nothing', async () => {
    await using scribe = await startScribe()
    const file = fresh()
    await using one = await openStaged({ store: sqliteStore(file), model: scribe.model })
    await using other = await openStaged({ store: sqliteStore(file), model: scribe.model })
    await Promise.all([allTurns(one, 100), allTurns(other, 100, 100)])
    await Promise.all([one.upkeep.settled(), other.upkeep.settled()])
    await isWhole(one, 200)
    const committed = [...one.committed, ...other.committed]
    isChain(committed, modelName)
    // where only replies are in a window, nothing is to be found in it
    expect([scribe.asked('summary').length, scribe.asked('facts').length <= committed.length]).toEqual([
      committed.length,
      true,
    ])
    const reach = Math.max(...committed.map(({ covers }) => covers[1]))
    expect(readBy(scribe)).toEqual(linesOf(await other.transcript(key)).slice(0, reach))
  })

  /** One of two has begun to ask a model that does not answer; time stands still. */
  async function begun(model: (scribe: Scribe) => Model = (scribe) => scribe.model) {
    const [file, asked] = [fresh(), Promise.withResolvers<void>()]
    const time = { now: noon }
    let hanging = 0
    const scribe = await startScribe(() => {
      // the summary and the important data
      if (++hanging === 2) asked.resolve()
      return { does: 'hang' }
    })
    const stores = [sqliteStore(file), sqliteStore(file)] as const
    const open = (store: (typeof stores)[number], made: Model): Promise<Staged> =>
      openStaged({
        store,
        model: made,
        timeout: 30_000,
        expire: () => new AbortController().signal,
        clock: () => time.now,
      })
    const [first, second] = [await open(stores[0], model(scribe)), await open(stores[1], scribe.model)]
    const append = async (memory: Memory, turn: number): Promise<void> => {
      await memory.append(key, [turnAt(turn)[0]])
      await memory.upkeep.settled()
    }
    await first.append(key, messagesOf(0, 20))
    const close = async (): Promise<void> => {
      await Promise.all([first.close(), second.close()])
      await scribe.close()
    }
    return { scribe, time, stores, first, second, append, asked: asked.promise, [Symbol.asyncDispose]: close }
  }

  verifies('C-12', 'wait for one that was killed until its lease is over, then the other goes on', async () => {
    await using at = await begun()
    await at.asked
    // what a killed process leaves behind: it can neither write nor let go of the session
    await at.stores[0].close()
    at.scribe.turn()
    const before = at.scribe.requests.length
    await at.append(at.second, 20)
    at.time.now += 2 * 30_000 + 30_000 - 1
    await at.append(at.second, 21)
    expect([at.scribe.requests.length, at.second.committed]).toEqual([before, []])
    at.time.now += 1
    await at.append(at.second, 22)
    isChain(at.second.committed, modelName)
    expect([at.second.committed.length, at.scribe.requests.length - before]).toEqual([1, 2])
    expect(linesOf(await at.second.transcript(key))).toEqual(
      linesOf([...messagesOf(0, 20), ...[20, 21, 22].map((turn) => turnAt(turn)[0])]),
    )
  })

  verifies('C-12', 'go on at once after one that was closed in the middle of its work', async () => {
    await using at = await begun()
    await at.asked
    await at.first.close()
    at.scribe.turn()
    const before = at.scribe.requests.length
    await at.append(at.second, 20)
    isChain(at.second.committed, modelName)
    expect([at.second.committed.length, at.scribe.requests.length - before]).toEqual([1, 2])
  })

  verifies('C-12', 'keep the summary of the one that took over when the other answers late', async () => {
    const [asked, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = ({ model }: Scribe): Model => ({
      name: 'slow',
      async *reply(ask: Ask, signal?: AbortSignal) {
        asked.resolve()
        await late.promise
        yield* model.reply(ask, signal)
      },
    })
    await using at = await begun(slow)
    await asked.promise
    at.scribe.turn()
    await at.append(at.second, 20)
    expect(at.second.committed).toEqual([])
    at.time.now += 90_000
    await at.append(at.second, 21)
    const [kept] = await at.second.upkeep.summaries(key)
    late.resolve()
    await at.first.upkeep.settled()
    expect([at.first.committed, kept?.by, await at.first.upkeep.summaries(key)]).toEqual([[], modelName, [kept]])
  })
})

/** A profile that sums up after a few short messages. */
const hasty: Profile = {
  ...profiles.summary,
  budget: 600,
  upkeep: [
    {
      when: { tokens: 160 },
      do: {
        summarise: 'progressive',
        words: [
          [6, 12],
          [8, 16],
        ],
        keep: { tokens: 40 },
        facts: false,
      },
      blocking: true,
    },
  ],
}

describe('in whatever order a store and a model answer', () => {
  verifies('C-12', 'two memories lose no message, ask once for each window and leave nothing undone', async () => {
    const windows: number[] = []
    const property = fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 16 }), async (scheduler, turns) => {
      const ram = ramStore()
      const at = <T extends unknown[], R>(call: (...given: T) => Promise<R>) =>
        scheduler.scheduleFunction(call) as (...given: T) => Promise<R>
      const store = { ...ram, head: at(ram.head), page: at(ram.page), commit: at(ram.commit) }
      const read: string[] = []
      let calls = 0
      const model: Model = {
        name: 'scheduled',
        async *reply({ messages }: Ask) {
          const data = Array.from(
            String(messages[1]?.content).matchAll(/<memory>\n([\s\S]*?)\n<\/memory>/g),
            ([, one = '']) => one,
          )
          read.push(...(data.at(-1)?.split('\n') ?? []))
          calls++
          await scheduler.schedule(Promise.resolve(), 'the model thinks')
          yield summaryOf(data.at(-1) ?? '', data.length > 1 ? data[0] : undefined, 8)
        },
      }
      const memories = await Promise.all(
        [0, 1].map(() => openStaged({ profile: hasty, store, model, clock: () => noon })),
      )
      const settled = (): Promise<unknown> => Promise.all(memories.map((memory) => memory.upkeep.settled()))
      const said = Array.from({ length: turns }, async (_, turn) => {
        for (const message of briefTurnAt(turn)) await memories[turn % 2]?.append(key, [message])
      })
      await scheduler.waitFor(Promise.all(said).then(settled))
      const committed = memories.flatMap((memory) => memory.committed)
      isChain(committed, 'scheduled')
      expect(calls).toBe(committed.length)
      const lines = linesOf(await ram.page(parseKey(key), { limit: 100 }))
      expect([...lines].sort()).toEqual(
        Array.from({ length: turns }, (_, turn) => linesOf(briefTurnAt(turn)))
          .flat()
          .sort(),
      )
      expect(read).toEqual(lines.slice(0, Math.max(0, ...committed.map(({ covers }) => covers[1]))))
      for (const memory of memories) memory.upkeep.heard(parseKey(key), 'said')
      await scheduler.waitFor(settled())
      expect(calls).toBe(committed.length)
      windows.push(committed.length)
    })
    await fc.assert(property, { numRuns: 300 })
    // it is no proof if nothing was ever summed up
    expect(Math.max(...windows)).toBeGreaterThan(1)
  })
})
