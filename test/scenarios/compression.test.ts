import { encodeChat } from 'gpt-tokenizer/model/gpt-4o-mini'
import { describe, expect } from 'vitest'
import type { Incoming } from '../../src/domain/chat.ts'
import type { Key } from '../../src/domain/key.ts'
import type { Index, Store } from '../../src/domain/ports.ts'
import { openMemory } from '../../src/index.ts'
import { profiles } from '../../src/profiles/index.ts'
import { SessionModels } from '../../src/server/upstreams/sessionModels.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { replies } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { dataIn, modelName, openStaged, type Scribe, type Staged, startScribe, takeTurn, talkUntil } from './stage.ts'
import { linesOf, messagesOf, turnAt, wordsIn } from './turns.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const newYear = Date.UTC(2026, 0, 1)
const user = (content: string): Incoming => ({ role: 'user', content })
const assistant = (content: string): Incoming => ({ role: 'assistant', content })
const emptyData = {
  user_preferences: {},
  key_decisions: [],
  important_facts: [],
  source_urls: [],
  document_structure: {},
  entities: [],
  custom_fields: {},
}

/** What the provider adds before a reply. */
const reply = 3
/** How many tokens messages have by a tokenizer that is not ours, without what precedes the reply. */
const published = (messages: readonly Pick<Incoming, 'role' | 'content'>[]): number =>
  encodeChat(messages.map(({ role, content }) => ({ role: role as 'user' | 'assistant', content: String(content) })))
    .length - reply

/** A memory over a file whose upkeep a model does, or the built-in rules. */
async function opened(
  by: string,
  scribe: Scribe,
  store: string | (Store & Index) = `sqlite:${fresh()}`,
): Promise<Staged> {
  return openStaged({ store, clock: () => newYear, model: by === modelName ? scribe.model : undefined })
}

/** How often the model was asked for a summary, and for important data. */
const asked = (scribe: Scribe): readonly [number, number] => [
  scribe.asked('summary').length,
  scribe.asked('facts').length,
]

for (const by of [modelName, 'builtin']) {
  /** So many compactions: a model is asked for one summary and one extraction each, the built-in rules ask nobody. */
  const cycles = (count: number): readonly [number, number] => (by === modelName ? [count, count] : [0, 0])

  describe(`a long chat, summed up by ${by}`, () => {
    verifies(
      ['C-13', 'C-02'],
      'scenario 1: a short conversation is shown as it is, and nothing is made of it',
      async () => {
        await using scribe = await startScribe()
        const file = fresh()
        const said = [...messagesOf(0, 2), turnAt(2)[0]]
        {
          await using memory = await opened(by, scribe, `sqlite:${file}`)
          await memory.append(key, said)
          await memory.upkeep.settled()
          expect(linesOf((await memory.context(key)).messages)).toEqual(linesOf(said))
        }
        await using memory = await opened(by, scribe, `sqlite:${file}`)
        expect(await memory.upkeep.record(key)).toEqual({
          important_data: emptyData,
          conversation_summary: '',
          summary_version: 0,
          last_summarized_at: null,
          messages_summarized_count: 0,
          last_keep_window_index: 0,
        })
        expect([await memory.upkeep.summaries(key), await memory.upkeep.facts(key), asked(scribe)]).toEqual([
          [],
          [],
          [0, 0],
        ])
      },
    )

    verifies(
      ['C-13', 'C-02', 'C-03', 'C-04'],
      'scenario 2: the message that passes 3,000 tokens, and no other, brings the first summary',
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
        const said: Incoming[] = []
        const say = async (message: Incoming): Promise<void> => {
          said.push(message)
          await memory.append(key, [message])
          await memory.upkeep.settled()
        }
        const talk = [user('I prefer dark mode.'), assistant('Dark it is.'), ...messagesOf(0, 30)]
        for (const message of talk) {
          if (published([...said, message]) > 3_000) break
          await say(message)
        }
        expect([(await memory.upkeep.record(key)).summary_version, asked(scribe)]).toEqual([0, [0, 0]])
        await say(talk[said.length] as Incoming)
        const record = await memory.upkeep.record(key)
        expect(record).toMatchObject({
          summary_version: 1,
          last_summarized_at: '2026-01-01T00:00:00.000Z',
          important_data: { user_preferences: { theme: 'dark' } },
        })
        const words = wordsIn(record.conversation_summary)
        expect([words >= 100, words <= 150, memory.committed.map((summary) => summary.by), asked(scribe)]).toEqual([
          true,
          true,
          [by],
          cycles(1),
        ])
        expect(record.messages_summarized_count).toBe(record.last_keep_window_index)
        // as many of the newest messages stay as have 500 tokens at most
        const [kept, more] = [0, 1].map((place) => published(said.slice(record.last_keep_window_index - place)))
        expect([kept !== undefined && kept <= 500, more !== undefined && more > 500]).toEqual([true, true])
        const { ledger } = await memory.context(key)
        expect(ledger.spent).toBeLessThan(1_000)
        for (const message of messagesOf(40, 3).slice(0, 5)) await say(message)
        expect([(await memory.upkeep.record(key)).summary_version, asked(scribe)]).toEqual([1, cycles(1)])
      },
    )

    verifies(
      ['C-13', 'C-03', 'C-10'],
      'scenario 2: after it the model is shown important data, the summary and the messages since, whole',
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
        await memory.append(key, [user('I prefer dark mode.'), assistant('Dark it is.')])
        await talkUntil(memory, key, 1, 0)
        const question = user('What should be done next week?')
        await memory.append(key, [question], { replyFollows: true })
        const { messages } = await memory.context(key)
        const { conversation_summary: summary, last_keep_window_index: index } = await memory.upkeep.record(key)
        const [block, ...recent] = messages
        expect(linesOf(recent)).toEqual(linesOf((await memory.transcript(key)).slice(index)))
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
      'scenario 3: each later summary takes in what is new and grows from version to version',
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
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
          turn += await talkUntil(memory, key, place + 1, turn)
          const { conversation_summary: text, summary_version: version } = await memory.upkeep.record(key)
          expect([version, wordsIn(text) >= least, wordsIn(text) <= most, asked(scribe)]).toEqual([
            place + 1,
            true,
            true,
            cycles(place + 1),
          ])
          expect((await memory.context(key)).ledger.spent).toBeLessThan(3_000)
        }
        const ends = memory.committed.map(({ covers }) => covers[1])
        expect(memory.committed.map((summary) => [summary.version, summary.by, summary.covers[0]])).toEqual(
          ranges.map((_, place) => [place + 1, by, 1]),
        )
        const lines = linesOf(await memory.transcript(key))
        // the new messages and the summary before them, never the whole history
        const given = memory.committed.map(({ covers }, place) => [
          ...memory.committed.slice(place - 1, place).map(({ text }) => text),
          lines.slice(ends[place - 1] ?? 0, covers[1]).join('\n'),
        ])
        expect(scribe.asked('summary').map(dataIn)).toEqual(by === modelName ? given : [])
        expect(scribe.asked('facts').map(dataIn)).toEqual(by === modelName ? given.map((data) => data.slice(-1)) : [])
      },
    )

    verifies(
      ['C-13', 'C-04'],
      'scenario 4: what matters is kept from cycle to cycle, and what is new comes to it',
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
        await memory.append(key, [
          user('I prefer dark mode.'),
          user('Document structure: Intro, Methods, Results, Conclusion.'),
          user('Key sources: https://example.org/alpha and https://example.org/beta?page=2'),
        ])
        let turn = await talkUntil(memory, key, 1, 0)
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
        turn += await talkUntil(memory, key, 2, turn)
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
        await talkUntil(memory, key, 4, turn)
        expect((await memory.upkeep.record(key)).important_data).toEqual(second)
      },
    )

    verifies(
      ['C-13', 'C-01'],
      "scenario 5: tokens are those of OpenAI's tokenizer, before and after a summary",
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
        const said = [
          user('Grüße aus Köln! 你好,世界 🚀'),
          assistant('if (a !== b) return a\n\t// 3.14159'),
          ...messagesOf(0, 10),
        ]
        await memory.append(key, said)
        const { messages, ledger } = await memory.context(key)
        expect([ledger.counted, ledger.history]).toEqual(['exact', published(said)])
        expect((await memory.transcript(key)).map(({ tokens }) => tokens)).toEqual(
          said.map((message) => published([message])),
        )
        await talkUntil(memory, key, 2, 20)
        const later = await memory.context(key)
        for (const { spent, exact } of [
          { spent: ledger.spent, exact: published(messages) + reply },
          { spent: later.ledger.spent, exact: published(later.messages) + reply },
        ])
          expect([spent >= exact, spent < exact * 1.05]).toEqual([true, true])
      },
    )

    verifies(
      ['C-13', 'C-02'],
      'scenario 6: the turn that brings a summary costs two questions to the model, and the turns after it none',
      async () => {
        await using scribe = await startScribe()
        const store = counting(sqliteStore(fresh()))
        await using memory = await opened(by, scribe, store)
        const steps = async (turn: number): Promise<readonly string[]> => {
          await memory.append(key, [turnAt(turn)[0]], { replyFollows: true })
          await memory.upkeep.settled()
          store.calls.length = 0
          await memory.context(key)
          return [...store.calls]
        }
        const before = await steps(0)
        const turn = await talkUntil(memory, key, 1, 1)
        expect(asked(scribe)).toEqual(cycles(1))
        for (const later of [turn + 1, turn + 2, turn + 3])
          expect((await steps(later)).length).toBeLessThanOrEqual(before.length)
        expect(asked(scribe)).toEqual(cycles(1))
      },
    )

    verifies(['C-13', 'C-10'], 'scenario 7: the history that is displayed is complete and unchanged', async () => {
      await using scribe = await startScribe()
      const file = fresh()
      const said: Incoming[] = []
      {
        await using memory = await opened(by, scribe, `sqlite:${file}`)
        for (let turn = 0; turn < 45; turn++) {
          await takeTurn(memory, key, turnAt(turn))
          said.push(...turnAt(turn))
          if (turn % 9 === 0) expect(linesOf(await memory.transcript(key))).toEqual(linesOf(said))
        }
        await memory.upkeep.settled()
        expect((await memory.upkeep.record(key)).summary_version).toBe(3)
      }
      await using memory = await opened(by, scribe, `sqlite:${file}`)
      expect(linesOf(await memory.transcript(key))).toEqual(linesOf(said))
      expect((await memory.transcript(key)).map(({ sequence }) => sequence)).toEqual(said.map((_, place) => place + 1))
      const pages = await Promise.all([0, 30, 60].map((after) => memory.transcript(key, { after, limit: 30 })))
      expect(linesOf(pages.flat())).toEqual(linesOf(said))
      expect(linesOf(await memory.transcript(key, { limit: 3, newest: true }))).toEqual(linesOf(said.slice(-3)))
    })

    verifies(
      ['C-13', 'C-04'],
      'scenario 8: sessions have nothing of each other, and one record is cleared without the others',
      async () => {
        await using scribe = await startScribe()
        await using memory = await opened(by, scribe)
        const owners = ['ann', 'bob', 'eve']
        const own = (owner: string): string => `https://example.org/${owner}`
        await Promise.all(
          owners.map((owner) =>
            memory.append(`acme:${owner}`, [user(`My notes are on ${own(owner)}, Zebra${owner} is the word.`)]),
          ),
        )
        await Promise.all(owners.map((owner, place) => talkUntil(memory, `acme:${owner}`, 2, 100 * place)))
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
        for (const { text } of scribe.requests)
          expect(owners.filter((owner) => text.includes(own(owner))).length).toBeLessThanOrEqual(1)
        expect(asked(scribe)).toEqual(cycles(6))
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
    ['thread', messagesOf(0, 90)],
    ['support', messagesOf(0, 25)],
  ] as const) {
    verifies(
      ['C-13', 'T-05'],
      `scenario 6: in profile ${name} neither storing nor a context waits for it`,
      async () => {
        const begun = Promise.withResolvers<void>()
        await using scribe = await startScribe(() => {
          begun.resolve()
          return { does: 'hang' }
        })
        const profile = { ...profiles[name], durability: 'durable' as const }
        const [store, other] = [counting(sqliteStore(fresh())), counting(sqliteStore(fresh()))]
        await using memory = await openStaged({
          profile,
          store,
          clock: () => newYear,
          model: scribe.model,
          expire: () => new AbortController().signal,
        })
        await using idle = await openMemory({ profile, store: other, clock: () => newYear, upkeep: false })
        await memory.append(key, messages)
        await begun.promise
        await memory.append(key, [turnAt(99)[0]])
        await idle.append(key, [...messages, turnAt(99)[0]])
        for (const { calls } of [store, other]) calls.length = 0
        // as if there were no upkeep at all: the same steps, and the same is shown
        expect(await memory.context(key)).toEqual(await idle.context(key))
        expect(store.calls).toEqual(other.calls)
        expect([memory.health().running, memory.committed, scribe.asked('chat')]).toEqual([1, [], []])
        expect(await memory.transcript(key)).toHaveLength(messages.length + 1)
      },
    )
  }
})

describe('a chat behind the server', () => {
  verifies(
    ['C-13', 'C-10'],
    'scenario 2: the reply refers to what only the summary and the important data still tell',
    async () => {
      await using scribe = await startScribe((purpose, { body }) =>
        purpose === 'chat' ? replies(answerTo(body.messages)) : undefined,
      )
      const models = new SessionModels({ upstream: scribe.url })
      const memory = {
        profile: 'summary' as const,
        store: `sqlite:${fresh()}`,
        model: (session: Key) => models.for(session),
      }
      await using server = await startServer({ upstream: scribe.url, models, memory })
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
        await ask(String(turnAt(turn)[0].content))
      expect(await ask(question)).toBe('You prefer the dark one.')
      const [, ...recent] = scribe.asked('chat').at(-1)?.body.messages ?? []
      expect(linesOf(recent).join()).not.toContain('dark')
      expect(scribe.asked('summary').map(({ headers, body }) => [headers.authorization, body.model])).toEqual([
        ['Bearer sk-client', modelName],
      ])
      expect((await server.said(key)).slice(0, 4)).toEqual([
        `user: ${question}`,
        'assistant: You have not told me.',
        'user: I prefer dark mode.',
        'assistant: Noted.',
      ])
    },
  )
})

/** A model that answers from what it is shown besides the recent messages. */
function answerTo(messages: readonly { readonly content: string }[]): string {
  if (!messages.at(-1)?.content.startsWith('Which theme')) return 'Noted.'
  const theme = /theme\W+(\w+)/.exec(
    messages[0]?.content.startsWith('<memory') === true ? messages[0].content : '',
  )?.[1]
  return theme === undefined ? 'You have not told me.' : `You prefer the ${theme} one.`
}

/** A store that writes down what it is asked for. */
function counting(store: Store & Index): Store & Index & { readonly calls: string[] } {
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
  }) as Store & Index & { calls: string[] }
}
