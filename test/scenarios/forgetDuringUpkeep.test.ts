import { describe, expect } from 'vitest'
import type { DerivedEntry, Message, Summary } from '../../src/domain/entry.ts'
import type { Model, ModelRequest } from '../../src/domain/ports.ts'
import { openMemory } from '../../src/index.ts'
import { respondWithStatus } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { appendAlternating, sampleMessages } from './sampleTurns.ts'
import { openRecordingMemory, runTurnsUntil, startUpkeepModel, type UpkeepModel } from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'

/** Wraps the model so that, after `block()`, summary requests wait for `release()`. */
function blockableModel(upkeepModel: UpkeepModel) {
  const [asked, free] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const gate = { isBlocked: false }
  const model: Model = {
    name: upkeepModel.model.name,
    async *reply(ask: ModelRequest, signal?: AbortSignal) {
      if (gate.isBlocked && ask.messages[0]?.content?.startsWith('Summarize')) {
        asked.resolve()
        await free.promise
      }
      yield* upkeepModel.model.reply(ask, signal)
    },
  }
  return { model, block: () => Object.assign(gate, { isBlocked: true }), asked: asked.promise, release: free.resolve }
}

describe('forgetting a message while a model summarises later ones', () => {
  const dentist = user('Never call my dentist Zebulon Quark before noon, who lives at /home/zebulon/place.')

  for (const [how, isDown, byText] of [
    ['the model answers', false, false],
    ['the model fails', true, false],
    ['the model answers, forgotten by another memory on the same file', false, true],
    ['the model fails, forgotten by another memory on the same file', true, true],
  ] as const)
    verifies('X-05', `${how} › no summary and no byte of the file contains it`, async () => {
      await using upkeepModel = await startUpkeepModel()
      const { model, block, asked, release } = blockableModel(upkeepModel)
      const file = fresh()
      const memory = await openRecordingMemory({ store: `sqlite:${file}`, model })
      await memory.append(key, [dentist])
      const turns = await runTurnsUntil(memory, key, 1, 0)
      expect(
        (await memory.upkeep.summaries(key)).map(({ text, version }) => [text.includes('Zebulon'), version]),
      ).toEqual([[true, 1]])
      block()
      await memory.append(key, sampleMessages(turns, 20))
      await asked
      const other = byText ? await openMemory({ profile: 'summary', store: `sqlite:${file}` }) : memory
      await other.forget(byText ? { scope: 'acme', text: 'zebulon' } : { key, messageId: 'm1' })
      if (byText) await other.close()
      if (isDown) upkeepModel.setOverride(() => respondWithStatus(400))
      release()
      await memory.upkeep.whenIdle()
      const [summary] = await memory.upkeep.summaries(key)
      expect([summary?.text.includes('Zebulon'), summary?.covers[0], memory.health().running]).toEqual([false, 1, 0])
      expect(
        JSON.stringify([
          await memory.context(key),
          await memory.upkeep.facts(key, { history: true }),
          await memory.transcript(key),
        ]),
      ).not.toMatch(/zebulon/i)
      expect(findTraces('Zebulon', databaseFiles(file))).toEqual([])
      await memory.append(key, sampleMessages(turns + 20, 20))
      await memory.upkeep.whenIdle()
      expect((await memory.upkeep.summaries(key))[0]?.covers[1]).toBeGreaterThan(summary?.covers[1] ?? 0)
      await memory.close()
      expect(findTraces('Zebulon', databaseFiles(file))).toEqual([])
    })
})

const hour = 3_600_000
const start = Date.UTC(2026, 2, 2, 9)

const ticket = (place: number): string =>
  `Ticket TCK-${1_000 + place} about service-${place} was closed by Ann. ${'plain words follow here and there. '.repeat(20)}`

const remark = (place: number): string => `Remark number ${place} about parcel ${7_000 + place}.`

describe('a summary rebuilt after one of its messages was forgotten', () => {
  /**
   * Forgets the third message; further messages are appended after its summary was deleted and before it is rebuilt.
   */
  async function forgetDuringRebuild(
    profile: 'support' | 'summary',
    counts: { readonly before: readonly number[]; readonly meanwhile: number },
  ) {
    let now = start
    const made: Summary[] = []
    await using plain = await openMemory({ profile })
    const rederive = async (entry: DerivedEntry, left: readonly Message[]): Promise<DerivedEntry | undefined> => {
      if (made.length === 0) {
        await appendAlternating(memory, counts.meanwhile, (place) => ticket(500 + place))
        made.push(...(await memory.upkeep.summaries(key)))
      }
      return plain.upkeep.rederive(entry, left)
    }
    await using memory = await openMemory({ profile, rederive, clock: () => now })
    for (const [place, count] of counts.before.entries()) {
      now = start + place * hour
      await appendAlternating(memory, count, ticket)
    }
    const before = await memory.upkeep.summaries(key)
    await memory.forget({ key, messageId: 'm3' })
    await memory.upkeep.whenIdle()
    return { before, made, after: await memory.upkeep.summaries(key) }
  }

  for (const [profile, where, counts] of [
    ['summary', 'of its conversation', { before: [40], meanwhile: 20 }],
    ['support', 'of its hour', { before: [60], meanwhile: 30 }],
    ['support', 'of the hour after', { before: [20, 40], meanwhile: 20 }],
  ] as const)
    verifies(
      ['X-05', 'T-04'],
      `profile ${profile} › is superseded by the summary ${where} that upkeep made of the same messages meanwhile`,
      async () => {
        const { before, made, after } = await forgetDuringRebuild(profile, counts)
        expect([before.length, made.length]).toEqual([1, 1])
        expect(made[0]?.covers[1]).toBeGreaterThan(before[0]?.covers[1] ?? Number.NaN)
        expect([made[0]?.covers[0], made[0]?.text.includes('TCK-1002 '), after]).toEqual([1, false, made])
      },
    )

  verifies(['X-05', 'T-04'], 'with few messages left in its hour › is still shown', async () => {
    let now = start
    await using memory = await openMemory({ profile: 'support', clock: () => now })
    const parcel =
      'my parcel should be left with the neighbours on the far side of the old harbour bridge, behind the red mill where the ferry stopped before the flood'
    await appendAlternating(memory, 20, (place) =>
      place === 0 ? parcel : `Zorg remark number ${place} about nothing in particular.`,
    )
    now += hour
    await appendAlternating(memory, 60, remark)
    const covers = async () => (await memory.upkeep.summaries(key)).map((summary) => summary.covers)
    const before = await covers()
    await memory.forget({ scope: 'acme', text: 'zorg' })
    expect([before[0], await covers()]).toEqual([[1, 20], before])
    await appendAlternating(memory, 30, remark)
    const { text, ledger } = await memory.context(key)
    expect([text.includes('my parcel should be left with the neighbours'), /zorg/i.test(text)]).toEqual([true, false])
    expect(ledger.lines.filter(({ verdict }) => verdict === 'dropped')).toEqual([])
  })
})

describe('forgetting in one session', () => {
  verifies('X-05', 'does not change the budget for which another session is summarised', async () => {
    await using memory = await openMemory({ clock: () => start })
    await memory.append('acme:bob', [user('Hello.')])
    await memory.context(key, { budget: 100_000 })
    await appendAlternating(memory, 60, (place) => `${'plain words follow here and there. '.repeat(60)}${place}`)
    await memory.forget({ key: 'acme:bob', messageId: 'm1' })
    await appendAlternating(memory, 1, () => 'What comes next?')
    expect(await memory.upkeep.summaries(key)).toEqual([])
    // With the profile's own budget upkeep would have summarised by now.
    await memory.context(key)
    await appendAlternating(memory, 1, () => 'And after that?')
    expect((await memory.upkeep.summaries(key)).length).toBe(1)
  })
})
