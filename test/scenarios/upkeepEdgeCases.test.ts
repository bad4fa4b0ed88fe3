import { DatabaseSync } from 'node:sqlite'
import { describe, expect } from 'vitest'
import { createUpkeep } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, toLines, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { countWords, sampleMessages, sampleTurn } from './sampleTurns.ts'
import {
  memoryBlocksIn,
  modelName,
  openRecordingMemory,
  type RecordingMemory,
  runTurnsUntil,
  startUpkeepModel,
  type UpkeepModel,
} from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const opening = user('Never deploy on Fridays. The ticket is OPS-4711. I prefer dark mode.')
const mustKeep = ['Never deploy on Fridays', 'OPS-4711']

const openMemoryBy = (
  by: string,
  upkeepModel: UpkeepModel,
  file: string,
  warnings: string[] = [],
): Promise<RecordingMemory> =>
  openRecordingMemory({
    store: sqliteStore(file, { onWarning: (warning) => warnings.push(warning) }),
    model: by === modelName ? upkeepModel.model : undefined,
  })

/** Writes and closes a file with a conversation that was summarised twice. */
async function writeSummarised(
  by: string,
  upkeepModel: UpkeepModel,
): Promise<{ file: string; transcriptLines: string[]; turn: number }> {
  const file = fresh()
  await using memory = await openMemoryBy(by, upkeepModel, file)
  await memory.append(key, [opening])
  const turn = await runTurnsUntil(memory, key, 2, 0)
  return { file, transcriptLines: toLines(await memory.transcript(key)), turn }
}

/** Changes rows without updating their checksums. */
function corrupt(file: string, kind: string, body: string): void {
  const database = new DatabaseSync(file)
  expect(database.prepare(`UPDATE derived SET body = ${body} WHERE kind = ?`).run(kind).changes).toBeGreaterThan(0)
  database.close()
}

for (const by of [modelName, 'builtin']) {
  describe(`a damaged record, upkeep by ${by}`, () => {
    for (const [how, body] of [
      ['changed', "replace(body, 'Fridays', 'Mondays')"],
      ['truncated', 'substr(body, 1, 40)'],
      ['overwritten', "'not JSON'"],
    ] as const) {
      verifies('C-12', `its summary ${how} › is quarantined and rebuilt from the messages`, async () => {
        await using upkeepModel = await startUpkeepModel()
        const { file, transcriptLines, turn } = await writeSummarised(by, upkeepModel)
        corrupt(file, 'summary', body)
        const warnings: string[] = []
        await using memory = await openMemoryBy(by, upkeepModel, file, warnings)
        expect([(await memory.upkeep.record(key)).summary_version, warnings.length]).toEqual([0, 1])
        expect((await memory.context(key)).ledger.spent).toBeLessThanOrEqual(3_000)
        const before = upkeepModel.requestsFor('summary').length
        const next = sampleTurn(turn)[0]
        await memory.append(key, [next])
        await memory.upkeep.whenIdle()
        const [summary] = await memory.upkeep.summaries(key)
        expect([
          summary?.version,
          summary?.by,
          summary?.covers[0],
          mustKeep.filter((text) => !summary?.text.includes(text)),
        ]).toEqual([1, by, 1, []])
        expect(countWords(summary?.text ?? '')).toBeLessThanOrEqual(150)
        expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
        // All covered messages again, without the damaged text.
        const requests = upkeepModel.requestsFor('summary').slice(before).map(memoryBlocksIn)
        expect(requests).toEqual(by === modelName ? [[transcriptLines.slice(0, summary?.covers[1]).join('\n')]] : [])
        expect(toLines(await memory.transcript(key))).toEqual([...transcriptLines, ...toLines([next])])
        expect(memory.health().degraded).toEqual([])
      })
    }

    verifies('C-12', 'its facts changed › important data is extracted again from the messages', async () => {
      await using upkeepModel = await startUpkeepModel()
      const { file, turn } = await writeSummarised(by, upkeepModel)
      corrupt(file, 'fact', "replace(body, 'dark', 'pink')")
      await using memory = await openMemoryBy(by, upkeepModel, file)
      await runTurnsUntil(memory, key, 3, turn)
      expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
    })
  })

  describe(`a single message over the whole budget, upkeep by ${by}`, () => {
    const huge = sampleMessages(0, 40)
      .map(({ content }) => content)
      .join(' ')

    verifies('C-12', 'is stored whole, shown shortened, and summarised once messages follow', async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openMemoryBy(by, upkeepModel, fresh())
      await memory.append(key, [user(huge)], { replyFollows: true })
      const { messages, ledger } = await memory.context(key)
      expect([messages.length, ledger.spent <= 3_000, ledger.spent > 2_000]).toEqual([1, true, true])
      expect(ledger.lines.map(({ verdict }) => verdict)).toContain('shortened')
      // As the newest message it is not summarised yet.
      expect([memory.committed, upkeepModel.requests.length]).toEqual([[], 0])
      const turn = await runTurnsUntil(memory, key, 1, 50)
      const [summary] = await memory.upkeep.summaries(key)
      expect([summary?.by, summary?.covers[0], countWords(summary?.text ?? '') <= 150]).toEqual([by, 1, true])
      expect((await memory.context(key)).ledger.spent).toBeLessThan(1_500)
      expect(toLines(await memory.transcript(key))).toEqual([`user: ${huge}`, ...toLines(sampleMessages(50, turn))])
      expect([upkeepModel.requestsFor('summary').length, memory.health().degraded]).toEqual([
        by === modelName ? 1 : 0,
        [],
      ])
    })

    verifies('C-12', 'sent through the server › is forwarded unchanged, and the reply is sent', async () => {
      await using upkeepModel = await startUpkeepModel()
      const memory = {
        profile: 'summary' as const,
        store: `sqlite:${fresh()}`,
        upkeep: createUpkeep({ model: by === modelName ? upkeepModel.model : undefined }),
      }
      await using server = await startServer({ upstream: upkeepModel.url, memory })
      const response = await server.postChat(key, { model: 'gpt-4o', messages: [user(huge)] })
      expect([response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([200, 'budget'])
      expect(upkeepModel.requestsFor('chat').at(-1)?.body.messages).toEqual([user(huge)])
      expect(await server.transcriptLines(key)).toEqual([`user: ${huge}`, 'assistant: Noted.'])
    })
  })

  describe(`an empty history, upkeep by ${by}`, () => {
    verifies('C-12', 'gives an empty context and an empty record without model calls', async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openMemoryBy(by, upkeepModel, fresh())
      expect(await memory.append(key, [])).toEqual([])
      await memory.upkeep.clear(key)
      await memory.sweep()
      await memory.upkeep.whenIdle()
      const { messages, text } = await memory.context(key)
      const { important_data: data, ...record } = await memory.upkeep.record(key)
      expect([messages, text, await memory.transcript(key), await memory.upkeep.summaries(key)]).toEqual([
        [],
        '',
        [],
        [],
      ])
      expect(Object.values(data).flatMap((field) => Object.values(field))).toEqual([])
      expect(record).toEqual({
        conversation_summary: '',
        summary_version: 0,
        last_summarized_at: null,
        messages_summarized_count: 0,
        last_keep_window_index: 0,
      })
      expect([upkeepModel.requests.length, memory.health()]).toEqual([
        0,
        { by: 'builtin', running: 0, done: 0, degraded: [], recent: [] },
      ])
    })

    verifies('C-12', 'of blank messages › is stored and not summarised', async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openMemoryBy(by, upkeepModel, fresh())
      const blank = Array.from({ length: 700 }, () => user(' \n'))
      await memory.append(key, blank)
      await memory.upkeep.whenIdle()
      expect([(await memory.context(key)).messages, (await memory.transcript(key)).length]).toEqual([[], 700])
      expect((await memory.upkeep.record(key)).conversation_summary).toBe('')
      expect([upkeepModel.requests.length, memory.health().degraded]).toEqual([0, []])
    })
  })
}
