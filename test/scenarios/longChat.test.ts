import { encodeChat } from 'gpt-tokenizer/model/gpt-4o-mini'
import { describe, expect } from 'vitest'
import type { MessageInput } from '../../src/domain/chat.ts'
import type { Key } from '../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../src/domain/ports.ts'
import { openMemory } from '../../src/index.ts'
import { profiles } from '../../src/profiles/index.ts'
import { SessionModels } from '../../src/server/upstreams/sessionModels.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { replyWith } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, toLines, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { countWords, sampleMessages, sampleTurn } from './sampleTurns.ts'
import {
  asksForData,
  memoryBlocksIn,
  modelName,
  openRecordingMemory,
  type RecordingMemory,
  runTurn,
  runTurnsUntil,
  startUpkeepModel,
  type UpkeepModel,
} from './upkeepHarness.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const newYear = Date.UTC(2026, 0, 1)
const emptyData = {
  user_preferences: {},
  key_decisions: [],
  important_facts: [],
  source_urls: [],
  document_structure: {},
  entities: [],
  custom_fields: {},
}

/** Tokens that the provider adds before a reply. */
const reply = 3
/** Token count by an independent tokenizer, without the overhead of the reply. */
const countTokens = (messages: readonly Pick<MessageInput, 'role' | 'content'>[]): number =>
  encodeChat(messages.map(({ role, content }) => ({ role: role as 'user' | 'assistant', content: String(content) })))
    .length - reply

/** Opens a memory on a file, with upkeep by a model or by the built-in rules. */
async function openMemoryBy(
  by: string,
  upkeepModel: UpkeepModel,
  store: string | (Store & SearchIndex) = 'ram:',
): Promise<RecordingMemory> {
  return openRecordingMemory({ store, clock: () => newYear, model: by === modelName ? upkeepModel.model : undefined })
}

/** Numbers of summary and extraction requests to the model. */
const modelCalls = (upkeepModel: UpkeepModel): readonly [number, number] => [
  upkeepModel.requestsFor('summary').length,
  upkeepModel.requestsFor('facts').length,
]

for (const by of [modelName, 'builtin']) {
  /** Expected model calls after this many compactions: one for summary and facts, none with the built-in rules. */
  const expectedCalls = (count: number): readonly [number, number] => (by === modelName ? [count, 0] : [0, 0])

  describe(`a long chat, summarised by ${by}`, () => {
    verifies(['C-13', 'C-02'], 'scenario 1: a short conversation › is shown unchanged and not summarised', async () => {
      await using upkeepModel = await startUpkeepModel()
      const file = fresh()
      const sent = [...sampleMessages(0, 2), sampleTurn(2)[0]]
      {
        await using memory = await openMemoryBy(by, upkeepModel, `sqlite:${file}`)
        await memory.append(key, sent)
        await memory.upkeep.whenIdle()
        expect(toLines((await memory.context(key)).messages)).toEqual(toLines(sent))
      }
      await using memory = await openMemoryBy(by, upkeepModel, `sqlite:${file}`)
      expect(await memory.upkeep.record(key)).toEqual({
        important_data: emptyData,
        conversation_summary: '',
        summary_version: 0,
        last_summarized_at: null,
        messages_summarized_count: 0,
        last_keep_window_index: 0,
      })
      expect([await memory.upkeep.summaries(key), await memory.upkeep.facts(key), modelCalls(upkeepModel)]).toEqual([
        [],
        [],
        [0, 0],
      ])
    })

    verifies(
      ['C-13', 'C-02', 'C-03', 'C-04'],
      'scenario 2: the message that exceeds 3,000 tokens, and no earlier one › triggers the first summary',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openMemoryBy(by, upkeepModel)
        const sent: MessageInput[] = []
        const appendAndSettle = async (message: MessageInput): Promise<void> => {
          sent.push(message)
          await memory.append(key, [message])
          await memory.upkeep.whenIdle()
        }
        const talk = [user('I prefer dark mode.'), assistant('Dark it is.'), ...sampleMessages(0, 30)]
        for (const message of talk) {
          if (countTokens([...sent, message]) > 3_000) break
          await appendAndSettle(message)
        }
        expect([(await memory.upkeep.record(key)).summary_version, modelCalls(upkeepModel)]).toEqual([0, [0, 0]])
        await appendAndSettle(talk[sent.length] as MessageInput)
        const record = await memory.upkeep.record(key)
        expect(record).toMatchObject({
          summary_version: 1,
          last_summarized_at: '2026-01-01T00:00:00.000Z',
          important_data: { user_preferences: { theme: 'dark' } },
        })
        const words = countWords(record.conversation_summary)
        expect([
          words >= 100,
          words <= 150,
          memory.committed.map((summary) => summary.by),
          modelCalls(upkeepModel),
        ]).toEqual([true, true, [by], expectedCalls(1)])
        expect(record.messages_summarized_count).toBe(record.last_keep_window_index)
        // The newest messages of up to 500 tokens stay whole.
        const [kept, more] = [0, 1].map((place) => countTokens(sent.slice(record.last_keep_window_index - place)))
        expect([kept !== undefined && kept <= 500, more !== undefined && more > 500]).toEqual([true, true])
        const { ledger } = await memory.context(key)
        expect(ledger.spent).toBeLessThan(1_000)
        for (const message of sampleMessages(40, 3).slice(0, 5)) await appendAndSettle(message)
        expect([(await memory.upkeep.record(key)).summary_version, modelCalls(upkeepModel)]).toEqual([
          1,
          expectedCalls(1),
        ])
      },
    )

    verifies(
      ['C-13', 'C-03', 'C-10'],
      'scenario 2: after the first summary › the context is important data, the summary and the later messages whole',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openMemoryBy(by, upkeepModel)
        await memory.append(key, [user('I prefer dark mode.'), assistant('Dark it is.')])
        await runTurnsUntil(memory, key, 1, 0)
        const question = user('What should be done next week?')
        await memory.append(key, [question], { replyFollows: true })
        const { messages } = await memory.context(key)
        const { conversation_summary: summary, last_keep_window_index: index } = await memory.upkeep.record(key)
        const [block, ...recent] = messages
        expect(toLines(recent)).toEqual(toLines((await memory.transcript(key)).slice(index)))
        expect(block?.role).toBe('user')
        const parts = [
          '[IMPORTANT DATA FROM PREVIOUS CONVERSATIONS]\n',
          'dark',
          '[CONVERSATION SUMMARY]\n',
          summary,
          '[RECENT MESSAGES]',
        ]
        const places = parts.map((part) => block?.content?.indexOf(part) ?? -1)
        expect([places.includes(-1), places]).toEqual([false, [...places].sort((a, b) => a - b)])
      },
    )

    verifies(
      ['C-13', 'C-07', 'C-08'],
      'scenario 3: each later summary › covers the new messages and grows with its version',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openMemoryBy(by, upkeepModel)
        const ranges = [
          [100, 150],
          [200, 250],
          [300, 350],
          [400, 450],
          [500, 750],
          [500, 750],
        ] as const
        let turn = 0
        for (const [place, [least, most]] of ranges.entries()) {
          turn += await runTurnsUntil(memory, key, place + 1, turn)
          const { conversation_summary: text, summary_version: version } = await memory.upkeep.record(key)
          expect([version, countWords(text) >= least, countWords(text) <= most, modelCalls(upkeepModel)]).toEqual([
            place + 1,
            true,
            true,
            expectedCalls(place + 1),
          ])
          expect((await memory.context(key)).ledger.spent).toBeLessThan(3_000)
        }
        const ends = memory.committed.map(({ covers }) => covers[1])
        expect(memory.committed.map((summary) => [summary.version, summary.by, summary.covers[0]])).toEqual(
          ranges.map((_, place) => [place + 1, by, 1]),
        )
        const lines = toLines(await memory.transcript(key))
        // The new messages and the previous summary, never the whole history.
        const given = memory.committed.map(({ covers }, place) => [
          ...memory.committed.slice(place - 1, place).map(({ text }) => text),
          lines.slice(ends[place - 1] ?? 0, covers[1]).join('\n'),
        ])
        expect(upkeepModel.requestsFor('summary').map(memoryBlocksIn)).toEqual(by === modelName ? given : [])
        expect(upkeepModel.requests.every(asksForData)).toBe(true)
      },
    )

    verifies(['C-13', 'C-04'], 'scenario 4: important data › is kept from cycle to cycle and extended', async () => {
      await using upkeepModel = await startUpkeepModel()
      await using memory = await openMemoryBy(by, upkeepModel)
      await memory.append(key, [
        user('I prefer dark mode.'),
        user('Document structure: Intro, Methods, Results, Conclusion.'),
        user('Key sources: https://example.org/alpha and https://example.org/beta?page=2'),
      ])
      let turn = await runTurnsUntil(memory, key, 1, 0)
      const first = (await memory.upkeep.record(key)).important_data
      expect(first).toMatchObject({
        user_preferences: { theme: 'dark' },
        document_structure: { sections: ['Intro', 'Methods', 'Results', 'Conclusion'] },
        source_urls: ['https://example.org/alpha', 'https://example.org/beta?page=2'],
      })
      await memory.append(key, [
        user('I prefer answers in French.'),
        user('We decided to use oak for the stairs.'),
        user('See https://example.org/gamma too.'),
      ])
      turn += await runTurnsUntil(memory, key, 2, turn)
      const second = (await memory.upkeep.record(key)).important_data
      expect(second).toMatchObject({
        user_preferences: { theme: 'dark', language: expect.stringMatching(/French/) },
        key_decisions: ['We decided to use oak for the stairs'],
        document_structure: first.document_structure,
        source_urls: [...first.source_urls, 'https://example.org/gamma'],
      })
      const shown = (await memory.context(key)).text
      for (const value of [
        'dark',
        'French',
        'Methods',
        'oak for the stairs',
        'https://example.org/beta?page=2',
        'https://example.org/gamma',
      ])
        expect(shown).toContain(value)
      await runTurnsUntil(memory, key, 4, turn)
      expect((await memory.upkeep.record(key)).important_data).toEqual(second)
    })

    verifies(
      ['C-13', 'C-01'],
      "scenario 5: token counts › equal OpenAI's tokenizer before and after a summary",
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openMemoryBy(by, upkeepModel)
        const sent = [
          user('Grüße aus Köln! 你好,世界 🚀'),
          assistant('if (a !== b) return a\n\t// 3.14159'),
          ...sampleMessages(0, 10),
        ]
        await memory.append(key, sent)
        const { messages, ledger } = await memory.context(key)
        expect([ledger.counted, ledger.history]).toEqual(['exact', countTokens(sent)])
        expect((await memory.transcript(key)).map(({ tokens }) => tokens)).toEqual(
          sent.map((message) => countTokens([message])),
        )
        await runTurnsUntil(memory, key, 2, 20)
        const later = await memory.context(key)
        for (const { spent, exact } of [
          { spent: ledger.spent, exact: countTokens(messages) + reply },
          { spent: later.ledger.spent, exact: countTokens(later.messages) + reply },
        ])
          expect([spent >= exact, spent < exact * 1.05]).toEqual([true, true])
      },
    )

    verifies(
      ['C-13', 'C-02'],
      'scenario 6: the turn that triggers a summary › costs one model call, the following turns none',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        const store = recordCalls(sqliteStore(fresh()))
        await using memory = await openMemoryBy(by, upkeepModel, store)
        const steps = async (turn: number): Promise<readonly string[]> => {
          await memory.append(key, [sampleTurn(turn)[0]], { replyFollows: true })
          await memory.upkeep.whenIdle()
          store.calls.length = 0
          await memory.context(key)
          return [...store.calls]
        }
        const before = await steps(0)
        const turn = await runTurnsUntil(memory, key, 1, 1)
        expect(modelCalls(upkeepModel)).toEqual(expectedCalls(1))
        for (const later of [turn + 1, turn + 2, turn + 3])
          expect((await steps(later)).length).toBeLessThanOrEqual(before.length)
        expect(modelCalls(upkeepModel)).toEqual(expectedCalls(1))
      },
    )

    verifies(['C-13', 'C-10'], 'scenario 7: the transcript › is complete and unchanged', async () => {
      await using upkeepModel = await startUpkeepModel()
      const file = fresh()
      const sent: MessageInput[] = []
      {
        await using memory = await openMemoryBy(by, upkeepModel, `sqlite:${file}`)
        for (let turn = 0; turn < 45; turn++) {
          await runTurn(memory, key, sampleTurn(turn))
          sent.push(...sampleTurn(turn))
          if (turn % 9 === 0) expect(toLines(await memory.transcript(key))).toEqual(toLines(sent))
        }
        await memory.upkeep.whenIdle()
        expect((await memory.upkeep.record(key)).summary_version).toBe(3)
      }
      await using memory = await openMemoryBy(by, upkeepModel, `sqlite:${file}`)
      expect(toLines(await memory.transcript(key))).toEqual(toLines(sent))
      expect((await memory.transcript(key)).map(({ sequence }) => sequence)).toEqual(sent.map((_, place) => place + 1))
      const pages = await Promise.all([0, 30, 60].map((after) => memory.transcript(key, { after, limit: 30 })))
      expect(toLines(pages.flat())).toEqual(toLines(sent))
      expect(toLines(await memory.transcript(key, { limit: 3, newest: true }))).toEqual(toLines(sent.slice(-3)))
    })

    verifies(
      ['C-13', 'C-04'],
      'scenario 8: sessions › are isolated, and one record is cleared without the others',
      async () => {
        await using upkeepModel = await startUpkeepModel()
        await using memory = await openMemoryBy(by, upkeepModel)
        const owners = ['ann', 'bob', 'eve']
        const own = (owner: string): string => `https://example.org/${owner}`
        await Promise.all(
          owners.map((owner) =>
            memory.append(`acme:${owner}`, [user(`My notes are on ${own(owner)}, Zebra${owner} is the word.`)]),
          ),
        )
        await Promise.all(owners.map((owner, place) => runTurnsUntil(memory, `acme:${owner}`, 2, 100 * place)))
        const read = (owner: string) =>
          Promise.all([
            memory.upkeep.record(`acme:${owner}`),
            memory.context(`acme:${owner}`),
            memory.upkeep.facts(`acme:${owner}`),
          ])
        for (const owner of owners) {
          const [record, { text, messages }] = await read(owner)
          expect([record.summary_version, record.important_data.source_urls]).toEqual([2, [own(owner)]])
          const shown = JSON.stringify([record, text, messages])
          for (const other of owners)
            expect([other, shown.includes(`Zebra${other}`) || shown.includes(own(other))]).toEqual([
              other,
              other === owner,
            ])
        }
        for (const { text } of upkeepModel.requests)
          expect(owners.filter((owner) => text.includes(own(owner))).length).toBeLessThanOrEqual(1)
        expect(modelCalls(upkeepModel)).toEqual(expectedCalls(6))
        const [, untouched] = [await read('ann'), await read('bob')]
        await memory.upkeep.clear('acme:ann')
        expect(await memory.upkeep.record('acme:ann')).toMatchObject({
          important_data: emptyData,
          conversation_summary: '',
          summary_version: 0,
        })
        expect(await read('bob')).toEqual(untouched)
      },
    )
  })
}

describe('a model that does not answer', () => {
  for (const [name, messages] of [
    ['thread', sampleMessages(0, 90)],
    ['support', sampleMessages(0, 25)],
  ] as const) {
    verifies(['C-13', 'T-05'], `scenario 6: profile ${name} › delays neither append nor context`, async () => {
      const requested = Promise.withResolvers<void>()
      await using upkeepModel = await startUpkeepModel(() => {
        requested.resolve()
        return { does: 'hang' }
      })
      const profile = { ...profiles[name], durability: 'durable' as const }
      const [store, other] = [recordCalls(sqliteStore(fresh())), recordCalls(sqliteStore(fresh()))]
      await using memory = await openRecordingMemory({
        profile,
        store,
        clock: () => newYear,
        model: upkeepModel.model,
        timeoutSignal: () => new AbortController().signal,
      })
      await using idle = await openMemory({ profile, store: other, clock: () => newYear, upkeep: false })
      await memory.append(key, messages)
      await requested.promise
      await memory.append(key, [sampleTurn(99)[0]])
      await idle.append(key, [...messages, sampleTurn(99)[0]])
      for (const { calls } of [store, other]) calls.length = 0
      // The same store calls and the same context as without upkeep.
      expect(await memory.context(key)).toEqual(await idle.context(key))
      expect(store.calls).toEqual(other.calls)
      expect([memory.health().running, memory.committed, upkeepModel.requestsFor('chat')]).toEqual([1, [], []])
      expect(await memory.transcript(key)).toHaveLength(messages.length + 1)
    })
  }
})

describe('a chat through the server', () => {
  verifies(
    ['C-13', 'C-10'],
    'scenario 2: the reply › uses data that only the summary and important data still hold',
    async () => {
      await using upkeepModel = await startUpkeepModel((purpose, { body }) =>
        purpose === 'chat' ? replyWith(answerTo(body.messages)) : undefined,
      )
      const models = new SessionModels({ upstreams: upkeepModel.url })
      const memory = {
        profile: 'summary' as const,
        store: 'ram:',
        model: (session: Key) => models.get(session),
      }
      await using server = await startServer({ upstream: upkeepModel.url, upkeepModels: models, memory })
      const client = server.client(key)
      const ask = async (content: string): Promise<string | null> => {
        const { choices } = await client.chat.completions.create({
          model: modelName,
          messages: [{ role: 'user', content }],
        })
        return choices[0]?.message.content ?? null
      }
      const question = 'Which theme do I prefer?'
      expect([await ask(question), await ask('I prefer dark mode.')]).toEqual(['You have not told me.', 'Noted.'])
      for (let turn = 0; (await server.memory.upkeep.record(key)).summary_version === 0; turn++)
        await ask(String(sampleTurn(turn)[0].content))
      expect(await ask(question)).toBe('You prefer the dark one.')
      const [, ...recent] = upkeepModel.requestsFor('chat').at(-1)?.body.messages ?? []
      expect(toLines(recent).join()).not.toContain('dark')
      expect(
        upkeepModel.requestsFor('summary').map(({ headers, body }) => [headers.authorization, body.model]),
      ).toEqual([['Bearer sk-client', modelName]])
      expect((await server.transcriptLines(key)).slice(0, 4)).toEqual([
        `user: ${question}`,
        'assistant: You have not told me.',
        'user: I prefer dark mode.',
        'assistant: Noted.',
      ])
    },
  )
})

/** Model that answers from the memory part of its prompt. */
function answerTo(messages: readonly { readonly content: string }[]): string {
  if (!messages.at(-1)?.content.startsWith('Which theme')) return 'Noted.'
  const theme = /theme\W+(\w+)/.exec(
    messages[0]?.content.startsWith('<memory') === true ? messages[0].content : '',
  )?.[1]
  return theme === undefined ? 'You have not told me.' : `You prefer the ${theme} one.`
}

/** Store that records its calls. */
function recordCalls(store: Store & SearchIndex): Store & SearchIndex & { readonly calls: string[] } {
  const calls: string[] = []
  const note = (name: string | symbol, call: unknown) =>
    typeof call !== 'function'
      ? call
      : (...given: unknown[]): unknown => {
          calls.push(String(name))
          return call.apply(store, given)
        }
  return new Proxy(store, {
    get: (target, name) => (name === 'calls' ? calls : note(name, Reflect.get(target, name))),
  }) as Store & SearchIndex & { calls: string[] }
}
