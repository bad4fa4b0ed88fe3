import fc from 'fast-check'
import { describe, expect } from 'vitest'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import type { Model, ModelRequest } from '../../src/domain/ports.ts'
import type { Profile } from '../../src/domain/profile.ts'
import type { Memory } from '../../src/memory.ts'
import { profiles } from '../../src/profiles/index.ts'
import { ramStore } from '../../src/stores/ram.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { isCampaign } from '../context/campaign.ts'
import { verifies } from '../requirements/verifies.ts'
import { toLines } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { briefTurn, sampleMessages, sampleTurn } from './sampleTurns.ts'
import {
  memoryBlocksIn,
  modelName,
  openRecordingMemory,
  type RecordingMemory,
  runTurn,
  startUpkeepModel,
  type UpkeepModel,
  writeSummary,
} from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const hour = 3_600_000
const noon = Date.UTC(2026, 0, 1, 12)
const durable: Profile = { ...profiles.support, durability: 'durable' }

/** Asserts that each message is stored once and that every question precedes its reply. */
async function expectComplete(memory: Memory, turns: number): Promise<void> {
  const messages = await memory.transcript(key)
  expect(messages.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 2 * turns }, (_, at) => at + 1))
  const place = new Map(toLines(messages).map((line, at) => [line, at]))
  for (let turn = 0; turn < turns; turn++) {
    const [question = -1, reply = -1] = toLines(briefTurn(turn)).map((line) => place.get(line))
    expect([turn, question >= 0, question < reply]).toEqual([turn, true, true])
  }
}

/** Messages sent to the model for summaries, one line each. */
const summarisedLines = (upkeepModel: UpkeepModel): readonly string[] =>
  upkeepModel.requestsFor('summary').flatMap((request) => memoryBlocksIn(request).at(-1)?.split('\n') ?? [])

/** Asserts consecutive versions that all start at the first message, each covering more than the one before. */
function expectVersionChain(committed: readonly Summary[], by: string): void {
  const ordered = [...committed].sort((one, other) => one.version - other.version)
  expect(ordered.map(({ version, by: maker, covers }) => [version, maker, covers[0]])).toEqual(
    ordered.map((_, at) => [at + 1, by, 1]),
  )
  for (const [at, { covers }] of ordered.entries()) expect(covers[1]).toBeGreaterThan(ordered[at - 1]?.covers[1] ?? 0)
}

const runAllTurns = (memory: Memory, turns: number, from = 0): Promise<unknown> =>
  Promise.all(Array.from({ length: turns }, (_, at) => runTurn(memory, key, briefTurn(from + at))))

describe('100 concurrent turns of one session', () => {
  verifies('C-12', 'profile summary › all are stored, and each message is summarised in one version', async () => {
    await using upkeepModel = await startUpkeepModel()
    await using memory = await openRecordingMemory({ store: `sqlite:${fresh()}`, model: upkeepModel.model })
    await runAllTurns(memory, 100)
    await memory.upkeep.whenIdle()
    await expectComplete(memory, 100)
    expectVersionChain(memory.committed, modelName)
    const last = memory.committed.at(-1)
    expect(upkeepModel.requestsFor('summary').length).toBe(last?.version)
    expect(summarisedLines(upkeepModel)).toEqual(toLines(await memory.transcript(key)).slice(0, last?.covers[1]))
    expect((await memory.context(key)).ledger.spent).toBeLessThan(3_000)
    expect(memory.health()).toMatchObject({ running: 0, degraded: [] })
  })

  verifies(
    'C-12',
    'profile support › all are stored, and each batch of twenty is summarised in one version of its hour',
    async () => {
      let reads = 0
      await using upkeepModel = await startUpkeepModel()
      // Hours are out of order: writers are concurrent and their clocks differ.
      await using memory = await openRecordingMemory({
        profile: durable,
        store: `sqlite:${fresh()}`,
        model: upkeepModel.model,
        clock: () => noon + (reads++ % 3) * hour,
      })
      await runAllTurns(memory, 100)
      await memory.upkeep.whenIdle()
      await expectComplete(memory, 100)
      // 200 messages make eight batches; fewer than fifty messages stay unsummarised.
      expect(upkeepModel.requestsFor('summary').length).toBe(8)
      expect(summarisedLines(upkeepModel)).toEqual(toLines(await memory.transcript(key)).slice(0, 160))
      const hours = await memory.upkeep.summaries(key)
      expect(
        hours.flatMap(({ covers: [from, to] }) => Array.from({ length: to - from + 1 }, (_, at) => from + at)),
      ).toEqual(Array.from({ length: 160 }, (_, at) => at + 1))
      expect(hours.reduce((sum, { version }) => sum + version, 0)).toBe(8)
    },
  )
})

describe('two memories working on one session of one file', () => {
  verifies('C-12', 'call the model once per window and lose nothing', async () => {
    await using upkeepModel = await startUpkeepModel()
    const file = fresh()
    await using one = await openRecordingMemory({ store: sqliteStore(file), model: upkeepModel.model })
    await using other = await openRecordingMemory({ store: sqliteStore(file), model: upkeepModel.model })
    await Promise.all([runAllTurns(one, 100), runAllTurns(other, 100, 100)])
    await Promise.all([one.upkeep.whenIdle(), other.upkeep.whenIdle()])
    await expectComplete(one, 200)
    const committed = [...one.committed, ...other.committed]
    expectVersionChain(committed, modelName)
    // A window of replies only has no facts to extract.
    expect([
      upkeepModel.requestsFor('summary').length,
      upkeepModel.requestsFor('facts').length <= committed.length,
    ]).toEqual([committed.length, true])
    const reach = Math.max(...committed.map(({ covers }) => covers[1]))
    expect(summarisedLines(upkeepModel)).toEqual(toLines(await other.transcript(key)).slice(0, reach))
  })

  /** Starts two memories, one of which waits for a model that never answers; the clock stands still. */
  async function startHanging(model: (upkeepModel: UpkeepModel) => Model = (upkeepModel) => upkeepModel.model) {
    const [file, asked] = [fresh(), Promise.withResolvers<void>()]
    const time = { now: noon }
    const upkeepModel = await startUpkeepModel(() => {
      asked.resolve()
      return { does: 'hang' }
    })
    const stores = [sqliteStore(file), sqliteStore(file)] as const
    const open = (store: (typeof stores)[number], made: Model): Promise<RecordingMemory> =>
      openRecordingMemory({
        store,
        model: made,
        timeout: 30_000,
        timeoutSignal: () => new AbortController().signal,
        clock: () => time.now,
      })
    const [first, second] = [await open(stores[0], model(upkeepModel)), await open(stores[1], upkeepModel.model)]
    const append = async (memory: Memory, turn: number): Promise<void> => {
      await memory.append(key, [sampleTurn(turn)[0]])
      await memory.upkeep.whenIdle()
    }
    await first.append(key, sampleMessages(0, 20))
    const close = async (): Promise<void> => {
      await Promise.all([first.close(), second.close()])
      await upkeepModel.close()
    }
    return {
      upkeepModel,
      time,
      stores,
      first,
      second,
      append,
      asked: asked.promise,
      [Symbol.asyncDispose]: close,
    }
  }

  verifies('C-12', 'one killed › the other continues after its lease expires', async () => {
    await using at = await startHanging()
    await at.asked
    // Simulates a killed process: it can neither write nor release the lease.
    await at.stores[0].close()
    at.upkeepModel.setOverride()
    const before = at.upkeepModel.requests.length
    await at.append(at.second, 20)
    at.time.now += 6 * 30_000 + 30_000 - 1
    await at.append(at.second, 21)
    expect([at.upkeepModel.requests.length, at.second.committed]).toEqual([before, []])
    at.time.now += 1
    await at.append(at.second, 22)
    expectVersionChain(at.second.committed, modelName)
    expect([at.second.committed.length, at.upkeepModel.requests.length - before]).toEqual([1, 1])
    expect(toLines(await at.second.transcript(key))).toEqual(
      toLines([...sampleMessages(0, 20), ...[20, 21, 22].map((turn) => sampleTurn(turn)[0])]),
    )
  })

  verifies('C-12', 'one closed during upkeep › the other continues at once', async () => {
    await using at = await startHanging()
    await at.asked
    await at.first.close()
    at.upkeepModel.setOverride()
    const before = at.upkeepModel.requests.length
    await at.append(at.second, 20)
    expectVersionChain(at.second.committed, modelName)
    expect([at.second.committed.length, at.upkeepModel.requests.length - before]).toEqual([1, 1])
  })

  verifies('C-12', 'one answers after its lease was taken over › the summary of the other is kept', async () => {
    const [asked, late] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow = ({ model }: UpkeepModel): Model => ({
      name: 'slow',
      async *reply(ask: ModelRequest, signal?: AbortSignal) {
        asked.resolve()
        await late.promise
        yield* model.reply(ask, signal)
      },
    })
    await using at = await startHanging(slow)
    await asked.promise
    at.upkeepModel.setOverride()
    await at.append(at.second, 20)
    expect(at.second.committed).toEqual([])
    at.time.now += 210_000
    await at.append(at.second, 21)
    const [summary] = await at.second.upkeep.summaries(key)
    late.resolve()
    await at.first.upkeep.whenIdle()
    expect([at.first.committed, summary?.by, await at.first.upkeep.summaries(key)]).toEqual([[], modelName, [summary]])
  })
})

/** A profile that summarises after a few short messages. */
const eagerProfile: Profile = {
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

describe('store and model answering in any order', () => {
  verifies('C-12', 'two memories lose no message, call the model once per window and finish all upkeep', async () => {
    const windows: number[] = []
    const property = fc.asyncProperty(fc.scheduler(), fc.integer({ min: 2, max: 16 }), async (scheduler, turns) => {
      const ram = ramStore()
      const at = <T extends unknown[], R>(call: (...given: T) => Promise<R>) =>
        scheduler.scheduleFunction(call) as (...given: T) => Promise<R>
      const store = { ...ram, readHead: at(ram.readHead), readMessages: at(ram.readMessages), commit: at(ram.commit) }
      const read: string[] = []
      let calls = 0
      const model: Model = {
        name: 'scheduled',
        async *reply({ messages }: ModelRequest) {
          const data = Array.from(
            String(messages[1]?.content).matchAll(/<memory>\n([\s\S]*?)\n<\/memory>/g),
            ([, one = '']) => one,
          )
          read.push(...(data.at(-1)?.split('\n') ?? []))
          calls++
          await scheduler.schedule(Promise.resolve(), 'the model thinks')
          yield writeSummary(data.at(-1) ?? '', data.length > 1 ? data[0] : undefined, 8)
        },
      }
      const memories = await Promise.all(
        [0, 1].map(() => openRecordingMemory({ profile: eagerProfile, store, model, clock: () => noon })),
      )
      const settled = (): Promise<unknown> => Promise.all(memories.map((memory) => memory.upkeep.whenIdle()))
      const appends = Array.from({ length: turns }, async (_, turn) => {
        for (const message of briefTurn(turn)) await memories[turn % 2]?.append(key, [message])
      })
      await scheduler.waitFor(Promise.all(appends).then(settled))
      const committed = memories.flatMap((memory) => memory.committed)
      expectVersionChain(committed, 'scheduled')
      expect(calls).toBe(committed.length)
      const lines = toLines(await ram.readMessages(parseKey(key), { limit: 100 }))
      expect([...lines].sort()).toEqual(
        Array.from({ length: turns }, (_, turn) => toLines(briefTurn(turn)))
          .flat()
          .sort(),
      )
      expect(read).toEqual(lines.slice(0, Math.max(0, ...committed.map(({ covers }) => covers[1]))))
      for (const memory of memories) memory.upkeep.notify(parseKey(key), 'said')
      await scheduler.waitFor(settled())
      expect(calls).toBe(committed.length)
      windows.push(committed.length)
    })
    await fc.assert(property, { numRuns: isCampaign ? 300 : 60 })
    // Without any summary the property would prove nothing.
    expect(Math.max(...windows)).toBeGreaterThan(1)
  })
})
