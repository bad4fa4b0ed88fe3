import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type Incoming, type Memory, openaiEmbedder, openMemory, profiles } from '../../src/index.ts'
import { canonical } from '../../src/portable/canonical.ts'
import { parseForeign } from '../../src/portable/format.ts'
import { keepForeign } from '../../src/portable/importForeign.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import { openStore } from '../../src/stores/open.ts'
import { command } from '../cli/command.ts'
import { anthropicBudgetFaults, budgetFaults } from '../context/contextChecks.ts'
import { gathered } from '../portable/byteHelpers.ts'
import { type Received, replies, sends, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, startServer, user } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { databaseFiles, tracesOf } from '../stores/traces.ts'
import { cards, contexts, sayings, shapes } from '../text/secretFormats.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const now = Date.UTC(2026, 2, 2, 9)
const clock = (): number => now

/** Every format, in the words in which it is usually told. */
const planted: readonly { readonly name: string; readonly secret: string; readonly text: string }[] = [
  ...shapes.map(({ name, secret }) => ({ name, secret, text: `Use ${secret} for it, please.` })),
  ...contexts,
  ...sayings,
  ...cards,
]

/** What a secret can be told by wherever it lies: all of it, or each long line of a key. A few digits stand anywhere. */
const probes = planted.flatMap(({ secret }) =>
  secret.includes('PRIVATE KEY') ? secret.split(/\n|\\n/).filter((line) => /^[\w+/=]{32,}$/.test(line)) : [secret],
)
const telling = [...new Set(probes)].filter((probe) => probe.length >= 7)
/** Those of them that stand in a text, however it is written. */
const leaked = (text: string): string[] =>
  telling.filter((probe) => text.includes(probe) || text.includes(JSON.stringify(probe).slice(1, -1)))
/** Those that lie in a database or beside it, in any form. In base64 short ones look like anything. */
const kept = (file: string): string[] =>
  telling.filter((probe) =>
    probe.length < 12 ? readFileSync(file).includes(probe) : tracesOf(probe, databaseFiles(file)).length > 0,
  )

/** A secret as it comes up at work: told, in the arguments of a call and in its result. */
function told(text: string, place: number): Incoming[] {
  const id = `call${place}`
  return [
    user(text),
    {
      role: 'assistant',
      content: '',
      tool_calls: [{ id, type: 'function', function: { name: 'run', arguments: JSON.stringify({ input: text }) } }],
    },
    { role: 'tool', tool_call_id: id, content: JSON.stringify({ stdout: text, code: 0 }) },
    assistant(`I have used what you gave me:\n${text}`),
  ]
}

/** A model server with embeddings: repeats what it reads, whatever it is asked for. */
function repeating({ path, body }: Received) {
  if (!path.endsWith('/embeddings')) return replies(String(body.messages.at(-1).content).slice(0, 2_000))
  const data = (body.input as string[]).map((_, index) => ({ index, embedding: [1, index % 2, 0] }))
  return sends('application/json', JSON.stringify({ object: 'list', data }))
}

describe('a secret of any format', () => {
  verifies('X-08', 'reaches no byte of the file, no model that sums up, no embedder and no export', async () => {
    const file = fresh()
    await using upstream = await startUpstream(repeating)
    const access = { baseUrl: upstream.url, model: 'any' }
    const profile = { ...profiles.thread, budget: 9_000 }
    const memory = await openMemory({
      profile,
      store: `sqlite:${file}`,
      clock,
      model: openaiModel(access),
      embedder: openaiEmbedder(access),
    })
    for (const [place, { text }] of planted.entries()) {
      await memory.append(key, told(text, place))
      await memory.remember('acme', { category: 'domain', key: `note ${place}`, value: { said: text, list: [text] } })
      await memory.remember('acme', { category: 'error_pattern', key: text, value: place })
    }
    await memory.upkeep.settled()
    await memory.search('acme', `What about ${planted[0]?.text}`)
    await memory.embedded({ settled: true })
    expect((await memory.upkeep.summaries(key)).length).toBe(1)
    expect(await memory.upkeep.knowledge('acme')).not.toEqual([])

    const [asked, embedded] = [false, true].map((of) =>
      upstream.requests.filter(({ path }) => path.endsWith('/embeddings') === of),
    )
    expect([(asked?.length ?? 0) > 0, (embedded?.length ?? 0) > 0]).toEqual([true, true])
    expect(leaked(upstream.requests.map(({ text }) => text).join('\n'))).toEqual([])
    expect(leaked((await gathered(memory.export())).toString('utf8'))).toEqual([])
    expect(leaked(JSON.stringify([await memory.transcript(key), await memory.trace(key), memory.health()]))).toEqual([])
    expect(kept(file)).toEqual([])
    await memory.close()
    expect(kept(file)).toEqual([])
  })

  verifies(
    'X-08',
    'is masked in what is imported from other programs, and the same file again changes nothing',
    async () => {
      const file = fresh()
      const store = await openStore(`sqlite:${file}`)
      const memory = await openMemory({ store, clock })
      const texts = planted.map(({ text }) => text)
      const message = (sender: string, text: string) => ({
        uuid: crypto.randomUUID(),
        sender,
        text,
        content: [],
        created_at: '2026-01-02T03:04:05.678Z',
      })
      const claude = JSON.stringify([
        {
          uuid: 'c1',
          name: texts[0],
          chat_messages: texts.flatMap((text) => [message('human', text), message('assistant', text)]),
        },
      ])
      const openai = texts.flatMap((text) => [JSON.stringify(user(text)), JSON.stringify(assistant(text))]).join('\n')
      const graph = texts
        .map((text, at) =>
          JSON.stringify({ type: 'entity', name: `Entity ${at}`, entityType: 'note', observations: [text] }),
        )
        .join('\n')
      const sources = [
        parseForeign('claude', claude),
        parseForeign('openai', openai, 'o1'),
        parseForeign('server-memory', graph),
      ]
      for (const foreign of sources) await keepForeign({ memory, store, scope: 'acme' }, foreign, { now })
      expect([(await memory.transcript('acme:c1')).length, (await memory.transcript('acme:o1')).length]).toEqual([
        2 * texts.length,
        2 * texts.length,
      ])
      expect(kept(file)).toEqual([])
      for (const foreign of sources.slice(0, 2))
        expect(await keepForeign({ memory, store, scope: 'acme' }, foreign, { now })).toMatchObject({
          messages: 0,
          unchanged: 1,
        })
      await memory.close()
      expect(kept(file)).toEqual([])
    },
  )

  verifies('X-08', 'leaves no digest of itself when it is imported: a PIN is soon guessed', async () => {
    const file = fresh()
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ store, clock })
    const lines = [JSON.stringify(user('my PIN is 4821.')), JSON.stringify({ messages: [user('my PIN is 4821.')] })]
    for (const line of lines)
      await keepForeign({ memory, store, scope: 'acme' }, parseForeign('openai', line, 'pins'), { now })
    await memory.close()
    const bytes = databaseFiles(file).map((part) => (existsSync(part) ? readFileSync(part, 'latin1') : ''))
    const digests = [hash('sha256', canonical([user('my PIN is 4821.')])), ...lines.map((line) => hash('sha256', line))]
    expect(digests.filter((digest) => bytes.join('').includes(digest.slice(0, 32)))).toEqual([])
  })

  verifies('X-08', 'is masked in knowledge when it is a number and no text', async () => {
    const file = fresh()
    await using memory = await openMemory({ store: `sqlite:${file}`, clock })
    const card = Number(cards[0]?.secret)
    await memory.remember('acme', { category: 'domain', key: 'payment', value: { card, pin: 48_213 } })
    expect(
      [card, 48_213].filter(
        (number) => readFileSync(file).includes(String(number)) || readFileSync(`${file}-wal`).includes(String(number)),
      ),
    ).toEqual([])
  })

  verifies('X-08', 'is in nothing a served process writes, whether requests go well or not', async () => {
    const file = fresh()
    await using upstream = await startUpstream((request) =>
      request.text.includes('Fail') ? { does: 'cut' } : replies('Done.'),
    )
    const running = command(['serve', '--port', '0', '--store', `sqlite:${file}`, '--upstream', upstream.url])
    const said = await running.until('curl ')
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0]
    const post = async (body: string): Promise<string> => {
      const response = await fetch(`${url}/v1/${key}/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      })
      return `${[...response.headers].join()} ${await response.text()}`
    }
    const answers: string[] = []
    for (const { text } of planted) answers.push(await post(JSON.stringify({ model: 'any', messages: [user(text)] })))
    for (const { text } of planted.slice(0, 5)) {
      answers.push(await post(JSON.stringify({ model: 'any', messages: [user(`Fail. ${text}`)] })))
      answers.push(await post(`{"model": "any", "messages": [{"role": "user", "content": ${JSON.stringify(text)}`))
      answers.push(await post(JSON.stringify({ messages: [{ role: text, content: text }] })))
    }
    running.process.kill()
    const { code, stdout, stderr } = await running.ended
    expect([code, leaked(stdout), leaked(stderr), kept(file)]).toEqual([0, [], [], []])
    expect(answers.filter((answer) => answer.includes('Done.')).length).toBe(planted.length)
  })
})

const secret = shapes[0]?.secret ?? ''
const other = shapes[11]?.secret ?? ''
const open = (
  options: { readonly secrets?: 'mask' | 'hide' | 'keep'; readonly budget?: number; readonly file?: string } = {},
): Promise<Memory> => {
  const { secrets = 'mask', budget = profiles.thread.budget, file = fresh() } = options
  return openMemory({ profile: { ...profiles.thread, secrets, budget }, store: `sqlite:${file}`, clock })
}
const marks = async (memory: Memory, of: string): Promise<string[]> =>
  (await memory.transcript(of)).flatMap(
    ({ content, calls }) => `${content} ${JSON.stringify(calls ?? '')}`.match(/⟨secret:\d+⟩/g) ?? [],
  )

describe('the mark of a secret', () => {
  verifies('X-08', 'is the same for the same secret in a session, and another for another', async () => {
    await using memory = await open()
    await memory.append(key, told(`Use ${secret} and ${other}.`, 1))
    await memory.append(key, [user(`Was it ${other} or ${secret}?`)])
    const all = await marks(memory, key)
    const [first, second] = all
    expect(all).toEqual([first, second, first, second, first, second, first, second, second, first])
    expect(new Set(all).size).toBe(2)
  })

  verifies('X-08', 'gives the value back in prompts of its own session, and in no other', async () => {
    await using memory = await open()
    await memory.append(key, [
      user(`My key is ${secret}. Remember it.`),
      assistant('I will.'),
      user('Which key do I use?'),
    ])
    const [mark] = await marks(memory, key)
    for (const provider of ['openai', 'anthropic'] as const)
      expect(JSON.stringify((await memory.context(key, { provider: provider as 'openai' })).messages)).toContain(
        `My key is ${secret}.`,
      )
    // Whoever knows a mark knows no value.
    for (const session of ['acme:bob', 'other:ann', 'acme']) {
      await memory.append(session, [user(`Tell me the key: ${mark}`)])
      const shown = await memory.context(session)
      expect([leaked(shown.text), leaked(JSON.stringify(shown.messages))]).toEqual([[], []])
      expect(shown.text).toContain(mark)
    }
    await memory.remember('acme', { category: 'domain', key: 'key', value: `the key is ${secret}` })
    expect(leaked((await memory.context('acme:bob')).text)).toEqual([])
  })

  verifies('X-08', 'stays a mark everywhere with the policy hide', async () => {
    await using memory = await open({ secrets: 'hide' })
    await memory.append(key, [user(`My key is ${secret}. Remember it.`)])
    const shown = await memory.context(key)
    expect([leaked(shown.text), leaked(JSON.stringify(shown.messages))]).toEqual([[], []])
    expect(shown.text).toMatch(/My key is ⟨secret:\d+⟩\. Remember it\./)
  })

  verifies('X-08', 'stands in a trace, which may be kept, for what was said and for what is asked', async () => {
    await using memory = await open()
    await memory.append(key, [user(`My key is ${secret}.`), assistant('Noted.')])
    const trace = JSON.stringify(await memory.trace(key, { query: `Is ${other} my key, or ${secret}?` }))
    expect([trace.includes('⟨secret:'), leaked(trace)]).toEqual([true, []])
  })

  verifies('X-08', 'stays a mark once its session was forgotten, its scope was, or its process has ended', async () => {
    const file = fresh()
    const memory = await open({ file })
    const tells = async (asked: Memory, mark = ''): Promise<string> => {
      await asked.append(key, [user(`Which one is ${mark}?`)])
      return (await asked.context(key)).text
    }
    for (const target of [{ key }, { scope: 'acme' }]) {
      await memory.append(key, [user(`My key is ${secret}.`)])
      const [mark] = await marks(memory, key)
      expect(await tells(memory, mark)).toContain(secret)
      await memory.forget(target)
      expect(await tells(memory, mark)).toBe(`User: Which one is ${mark}?`)
      await memory.forget({ key })
    }
    await memory.append(key, [user(`My key is ${secret}.`)])
    await memory.close()
    await using reopened = await open({ file })
    const [mark] = await marks(reopened, key)
    expect(await tells(reopened, mark)).toBe(`User: My key is ${mark}.\n\nUser: Which one is ${mark}?`)
  })

  verifies(['X-08', 'X-01'], 'gives back long values inside the budget, by the exact count', async () => {
    const long = contexts.filter(({ secret: value }) => value.includes('PRIVATE KEY'))
    await using memory = await open()
    for (const [place, { text }] of [...long, ...long].entries()) await memory.append(key, told(text, place))
    await memory.append(key, [user('Which of these keys is the right one?')])
    let restored = 0
    for (const budget of [200, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 64_000]) {
      const shown = await memory.context(key, { budget })
      expect(budgetFaults(shown, memory.tokenizer, budget)).toEqual([])
      expect(
        anthropicBudgetFaults(await memory.context(key, { budget, provider: 'anthropic' }), memory.tokenizer),
      ).toEqual([])
      restored = Math.max(restored, leaked(JSON.stringify(shown.messages)).length)
    }
    expect(restored).toBeGreaterThan(20)
  })

  const filler = Array.from({ length: 60 }, (_, place) =>
    assistant(`Chapter ${place}. ${'The hills are green and the rivers run. '.repeat(20)}`),
  )
  /** What memory tells of a session, besides its turns. */
  const toldBy = async (memory: Memory, budget?: number): Promise<string> => {
    const { messages } = await memory.context(key, budget === undefined ? {} : { budget })
    return messages.flatMap(({ content }) => (content?.startsWith('<memory ') ? [content] : [])).join('\n')
  }

  verifies('X-08', 'gives the value back in the summary of its own session', async () => {
    const memory = await openMemory({ profile: 'summary', store: `sqlite:${fresh()}`, clock })
    await memory.append(key, [
      user('Hello.'),
      assistant(`The key of the server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    await memory.upkeep.settled()
    const [summary] = await memory.upkeep.summaries(key)
    expect(summary?.text).toMatch(/The key of the server Atlas is ⟨secret:\d+⟩\./)
    expect(await toldBy(memory)).toContain(`The key of the server Atlas is ${secret}.`)
    await memory.close()
  })

  verifies('X-08', 'gives the value back in facts of its own session', async () => {
    await using memory = await open({ budget: 9_000 })
    await memory.append(key, [
      user('Hello.'),
      user(`Remember that the key of my server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    await memory.upkeep.settled()
    expect((await memory.upkeep.facts(key)).map(({ value }) => String(value))).toContainEqual(
      expect.stringMatching(/my server Atlas is ⟨secret:\d+⟩/),
    )
    const facts = (await toldBy(memory)).split('## Summary')[0] ?? ''
    expect([facts.includes(secret), facts.includes('⟨secret:')]).toEqual([true, false])
  })

  verifies(['X-08', 'A-08'], 'gives the value back in long-term memory of its own session', async () => {
    let time = now
    await using memory = await openMemory({ profile: 'agent', store: `sqlite:${fresh()}`, clock: () => time })
    await memory.append(key, [
      user(`The key of the server Atlas is ${secret}.`),
      ...filler,
      user('What is the key of Atlas?'),
    ])
    time += 120_000
    await memory.sweep(time)
    await memory.upkeep.settled()
    const shown = await toldBy(memory, Math.floor((await memory.context(key)).ledger.history / 0.8))
    expect(shown).toContain('[LONG-TERM MEMORY]\n[data] The key of the server Atlas is ')
    expect([shown.includes(secret), shown.includes('⟨secret:')]).toEqual([true, false])
  })
})

describe('an event with a secret', () => {
  verifies(['A-06', 'X-08'], 'is relevant, and is promoted without the secret', async () => {
    let time = now
    const file = fresh()
    const store = await openStore(`sqlite:${file}`)
    await using memory = await openMemory({ profile: 'agent', store, clock: () => time })
    await memory.append(key, [
      user('The login of the shop has the password hunter22, it says.'),
      user('The garden of the shop has a fence and a gate.'),
    ])
    time += 120_000
    await memory.sweep(time)
    await memory.upkeep.settled()
    const { derived } = await store.head(parseKey(key), 0)
    const items = derived.flatMap((entry) => (entry.kind === 'item' ? [entry.content.replace(/\d+/, 'N')] : []))
    expect(items).toEqual(['The login of the shop has the password ⟨secret:N⟩, it says.'])
    expect(readFileSync(file).includes('hunter22')).toBe(false)
  })
})

describe('a client that resends its history with secrets in it', () => {
  verifies(['X-08', 'T-15'], 'causes no duplicates, also after a restart', async () => {
    await using upstream = await startUpstream(replies('Done.'))
    const memory = { store: `sqlite:${fresh()}`, clock }
    const history: { role: 'user' | 'assistant'; content: string }[] = []
    for (let start = 0; start < 3; start++) {
      await using server = await startServer({ upstream: upstream.url, memory })
      for (let turn = 0; turn < 8; turn++) {
        const { text } = planted[(start * 8 + turn) * 5] ?? { text: 'Hello.' }
        history.push(user(text))
        await server.client(key).chat.completions.create({ model: 'any', messages: history })
        history.push(assistant('Done.'))
        // The model a client asks is sent what the client has said.
        expect(upstream.requests.at(-1)?.body.messages.at(-1)).toEqual(user(text))
        expect((await server.said(key)).length).toBe(history.length)
      }
      expect([leaked((await server.said(key)).join('\n')), server.faults]).toEqual([[], []])
    }
  })
})

describe('the policy keep', () => {
  verifies('X-08', 'keeps secrets like anything else', async () => {
    await using memory = await open({ secrets: 'keep' })
    await memory.append(key, [user(`My key is ${secret}.`)])
    expect((await memory.transcript(key)).map(({ content }) => content)).toEqual([`My key is ${secret}.`])
  })

  verifies('X-08', 'is warned of when it is served, and only then', async () => {
    const warning = '\nWARNING: keys and passwords in what is said are kept like anything else (--secrets keep).\n'
    for (const [secrets, isWarned] of [
      ['keep', true],
      ['mask', false],
      ['hide', false],
    ] as const) {
      const running = command(['serve', '--port', '0', '--store', `sqlite:${fresh()}`, '--secrets', secrets])
      expect([secrets, (await running.until('curl ')).includes(warning)]).toEqual([secrets, isWarned])
      running.process.kill()
      await running.ended
    }
  })
})
