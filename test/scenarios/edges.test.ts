import { DatabaseSync } from 'node:sqlite'
import { describe, expect } from 'vitest'
import type { Incoming } from '../../src/domain/chat.ts'
import { upkeepWith } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { dataIn, modelName, openStaged, type Scribe, type Staged, startScribe, talkUntil } from './stage.ts'
import { linesOf, messagesOf, turnAt, wordsIn } from './turns.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const user = (content: string): Incoming => ({ role: 'user', content })
const opening = user('Never deploy on Fridays. The ticket is OPS-4711. I prefer dark mode.')
const vital = ['Never deploy on Fridays', 'OPS-4711']

const opened = (by: string, scribe: Scribe, file: string, warnings: string[] = []): Promise<Staged> =>
  openStaged({
    store: sqliteStore(file, { onWarning: (warning) => warnings.push(warning) }),
    model: by === modelName ? scribe.model : undefined,
  })

/** A file with a conversation that has been summed up twice, closed; tells what is in it. */
async function summedUp(by: string, scribe: Scribe): Promise<{ file: string; said: string[]; turn: number }> {
  const file = fresh()
  await using memory = await opened(by, scribe, file)
  await memory.append(key, [opening])
  const turn = await talkUntil(memory, key, 2, 0)
  return { file, said: linesOf(await memory.transcript(key)), turn }
}

/** Changes rows behind everybody's back, so that their checksums are wrong. */
function damage(file: string, kind: string, body: string): void {
  const database = new DatabaseSync(file)
  expect(database.prepare(`UPDATE derived SET body = ${body} WHERE kind = ?`).run(kind).changes).toBeGreaterThan(0)
  database.close()
}

for (const by of [modelName, 'builtin']) {
  describe(`a record that is damaged, kept by ${by},`, () => {
    for (const [how, body] of [
      ['changed', "replace(body, 'Fridays', 'Mondays')"],
      ['cut off', 'substr(body, 1, 40)'],
      ['overwritten', "'not JSON'"],
    ] as const) {
      verifies('C-12', `is put aside when its summary is ${how}, and rebuilt from the messages`, async () => {
        await using scribe = await startScribe()
        const { file, said, turn } = await summedUp(by, scribe)
        damage(file, 'summary', body)
        const warnings: string[] = []
        await using memory = await opened(by, scribe, file, warnings)
        expect([(await memory.upkeep.record(key)).summary_version, warnings.length]).toEqual([0, 1])
        expect((await memory.context(key)).ledger.spent).toBeLessThanOrEqual(3_000)
        const before = scribe.asked('summary').length
        const next = turnAt(turn)[0]
        await memory.append(key, [next])
        await memory.upkeep.settled()
        const [summary] = await memory.upkeep.summaries(key)
        expect([
          summary?.version,
          summary?.by,
          summary?.covers[0],
          vital.filter((text) => !summary?.text.includes(text)),
        ]).toEqual([1, by, 1, []])
        expect(wordsIn(summary?.text ?? '')).toBeLessThanOrEqual(150)
        expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
        // the whole stretch again, and nothing of the damaged text
        const asked = scribe.asked('summary').slice(before).map(dataIn)
        expect(asked).toEqual(by === modelName ? [[said.slice(0, summary?.covers[1]).join('\n')]] : [])
        expect(linesOf(await memory.transcript(key))).toEqual([...said, ...linesOf([next])])
        expect(memory.health().degraded).toEqual([])
      })
    }

    verifies('C-12', 'has its important data again, found in the messages', async () => {
      await using scribe = await startScribe()
      const { file, turn } = await summedUp(by, scribe)
      damage(file, 'fact', "replace(body, 'dark', 'pink')")
      await using memory = await opened(by, scribe, file)
      await talkUntil(memory, key, 3, turn)
      expect((await memory.upkeep.record(key)).important_data.user_preferences).toEqual({ theme: 'dark' })
    })
  })

  describe(`a single message over the whole budget, with upkeep by ${by},`, () => {
    const huge = messagesOf(0, 40)
      .map(({ content }) => content)
      .join(' ')

    verifies('C-12', 'is kept whole, shown as far as it fits, and summed up once something follows', async () => {
      await using scribe = await startScribe()
      await using memory = await opened(by, scribe, fresh())
      await memory.append(key, [user(huge)], { replyFollows: true })
      const { messages, ledger } = await memory.context(key)
      expect([messages.length, ledger.spent <= 3_000, ledger.spent > 2_000]).toEqual([1, true, true])
      expect(ledger.lines.map(({ verdict }) => verdict)).toContain('shortened')
      // it is the newest message: there is nothing before it to sum up
      expect([memory.committed, scribe.requests.length]).toEqual([[], 0])
      const turn = await talkUntil(memory, key, 1, 50)
      const [summary] = await memory.upkeep.summaries(key)
      expect([summary?.by, summary?.covers[0], wordsIn(summary?.text ?? '') <= 150]).toEqual([by, 1, true])
      expect((await memory.context(key)).ledger.spent).toBeLessThan(1_500)
      expect(linesOf(await memory.transcript(key))).toEqual([`user: ${huge}`, ...linesOf(messagesOf(50, turn))])
      expect([scribe.asked('summary').length, memory.health().degraded]).toEqual([by === modelName ? 1 : 0, []])
    })

    verifies('C-12', 'goes through the server as it is, and its reply is sent', async () => {
      await using scribe = await startScribe()
      const memory = {
        profile: 'summary' as const,
        store: `sqlite:${fresh()}`,
        upkeep: upkeepWith({ model: by === modelName ? scribe.model : undefined }),
      }
      await using server = await startServer({ upstream: scribe.url, memory })
      const response = await server.post(key, { model: 'gpt-4o', messages: [user(huge)] })
      expect([response.status, response.headers.get('x-threadkeep-degraded')]).toEqual([200, 'budget'])
      expect(scribe.asked('chat').at(-1)?.body.messages).toEqual([user(huge)])
      expect(await server.said(key)).toEqual([`user: ${huge}`, 'assistant: Noted.'])
    })
  })

  describe(`an empty history, with upkeep by ${by},`, () => {
    verifies('C-12', 'is an empty context and an empty record, and nobody is asked anything', async () => {
      await using scribe = await startScribe()
      await using memory = await opened(by, scribe, fresh())
      expect(await memory.append(key, [])).toEqual([])
      await memory.upkeep.clear(key)
      await memory.sweep()
      await memory.upkeep.settled()
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
      expect([scribe.requests.length, memory.health()]).toEqual([
        0,
        { by: 'builtin', running: 0, done: 0, degraded: [] },
      ])
    })

    verifies('C-12', 'of blank messages is kept, and nobody is asked to sum it up', async () => {
      await using scribe = await startScribe()
      await using memory = await opened(by, scribe, fresh())
      const blank = Array.from({ length: 700 }, () => user(' \n'))
      await memory.append(key, blank)
      await memory.upkeep.settled()
      expect([(await memory.context(key)).messages, (await memory.transcript(key)).length]).toEqual([[], 700])
      expect((await memory.upkeep.record(key)).conversation_summary).toBe('')
      expect([scribe.requests.length, memory.health().degraded]).toEqual([0, []])
    })
  })
}
