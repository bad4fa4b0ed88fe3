import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect } from 'vitest'
import { parseKey } from '../../src/domain/key.ts'
import { type MessageInput, openaiEmbedder, openMemory, profiles } from '../../src/index.ts'
import { toCanonicalJson } from '../../src/portable/canonical.ts'
import { parseForeign } from '../../src/portable/format.ts'
import { importForeign } from '../../src/portable/importForeign.ts'
import { openaiModel } from '../../src/providers/openai.ts'
import { openStore } from '../../src/stores/open.ts'
import { startCommand } from '../cli/command.ts'
import { readAll } from '../portable/byteStreams.ts'
import { type RecordedRequest, replyWith, sendRaw, startUpstream } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { assistant, user } from '../server/start.ts'
import { createTempPaths } from '../stores/tempPaths.ts'
import { databaseFiles, findTraces } from '../stores/traces.ts'
import { cardNumbers, keyFormats } from '../text/secretFormats.ts'
import { findSecrets, secretBatches, secretInToolLoop, secretSamples, storedSecrets } from './plantedSecrets.ts'

const fresh = createTempPaths()
const key = 'acme:ann'
const now = Date.UTC(2026, 2, 2, 9)
const clock = (): number => now

/** Model server with embeddings that echoes its input. */
function echoModel({ path, body }: RecordedRequest) {
  if (!path.endsWith('/embeddings')) return replyWith(String(body.messages.at(-1).content).slice(0, 2_000))
  const data = (body.input as string[]).map((_, index) => ({ index, embedding: [1, index % 2, 0] }))
  return sendRaw('application/json', JSON.stringify({ object: 'list', data }))
}

/** Printed only with the policy that masks nothing. */
const keepWarning = '\nWARNING: keys and passwords in messages are stored unmasked (--secrets keep).\n'

describe('a secret of any format', () => {
  verifies(
    'X-08',
    'appended or remembered › reaches no byte of the file, no summariser, no embedder and no export',
    async () => {
      const file = fresh()
      await using upstream = await startUpstream(echoModel)
      const access = { baseUrl: upstream.url, model: 'any' }
      const profile = { ...profiles.thread, budget: 9_000 }
      const memory = await openMemory({
        profile,
        store: `sqlite:${file}`,
        clock,
        model: openaiModel(access),
        embedder: openaiEmbedder(access),
      })
      for (const [batch, texts] of secretBatches.entries())
        await memory.append(
          key,
          texts.flatMap((text, at) => secretInToolLoop(text, 100 * batch + at)),
        )
      for (const [place, { text }] of secretSamples.entries()) {
        await memory.remember('acme', { category: 'domain', key: `note ${place}`, value: { said: text, list: [text] } })
        await memory.remember('acme', { category: 'error_pattern', key: text, value: place })
      }
      await memory.upkeep.whenIdle()
      await memory.search('acme', `What about ${secretSamples[0]?.text}`)
      await memory.embeddingProgress({ settled: true })
      expect((await memory.upkeep.summaries(key)).length).toBe(1)
      expect(await memory.upkeep.knowledge('acme')).not.toEqual([])

      const [asked, embedded] = [false, true].map((of) =>
        upstream.requests.filter(({ path }) => path.endsWith('/embeddings') === of),
      )
      expect([(asked?.length ?? 0) > 0, (embedded?.length ?? 0) > 0]).toEqual([true, true])
      expect(findSecrets(upstream.requests.map(({ text }) => text).join('\n'))).toEqual([])
      expect(findSecrets((await readAll(memory.export())).toString('utf8'))).toEqual([])
      expect(
        findSecrets(JSON.stringify([await memory.transcript(key), await memory.trace(key), memory.health()])),
      ).toEqual([])
      expect(storedSecrets(file)).toEqual([])
      await memory.close()
    },
  )

  verifies(
    'X-08',
    'imported from another program › is masked, and importing the same file again changes nothing',
    async () => {
      const file = fresh()
      const store = await openStore(`sqlite:${file}`)
      const memory = await openMemory({ store, clock })
      const texts = secretSamples.map(({ text }) => text)
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
      for (const foreign of sources) await importForeign({ memory, store, scope: 'acme' }, foreign, { now })
      expect([(await memory.transcript('acme:c1')).length, (await memory.transcript('acme:o1')).length]).toEqual([
        2 * texts.length,
        2 * texts.length,
      ])
      for (const foreign of sources.slice(0, 2))
        expect(await importForeign({ memory, store, scope: 'acme' }, foreign, { now })).toMatchObject({
          messages: 0,
          unchanged: 1,
        })
      expect(storedSecrets(file)).toEqual([])
      await memory.close()
    },
  )

  verifies('X-08', 'imported › leaves no digest of itself, from which a PIN could be guessed', async () => {
    const file = fresh()
    const store = await openStore(`sqlite:${file}`)
    const memory = await openMemory({ store, clock })
    const lines = [JSON.stringify(user('my PIN is 4821.')), JSON.stringify({ messages: [user('my PIN is 4821.')] })]
    for (const line of lines)
      await importForeign({ memory, store, scope: 'acme' }, parseForeign('openai', line, 'pins'), { now })
    await memory.close()
    const bytes = databaseFiles(file).map((part) => (existsSync(part) ? readFileSync(part, 'latin1') : ''))
    const digests = [
      hash('sha256', toCanonicalJson([user('my PIN is 4821.')])),
      ...lines.map((line) => hash('sha256', line)),
    ]
    expect(digests.filter((digest) => bytes.join('').includes(digest.slice(0, 32)))).toEqual([])
  })

  verifies('X-08', 'as a number in knowledge › is masked', async () => {
    const file = fresh()
    await using memory = await openMemory({ store: `sqlite:${file}`, clock })
    const card = Number(cardNumbers[0]?.secret)
    await memory.remember('acme', { category: 'domain', key: 'payment', value: { card, pin: 48_213 } })
    expect(
      [card, 48_213].filter(
        (number) => readFileSync(file).includes(String(number)) || readFileSync(`${file}-wal`).includes(String(number)),
      ),
    ).toEqual([])
  })

  verifies(
    'X-08',
    'sent to a server process › appears in none of its output, for good and for failing requests',
    async () => {
      const file = fresh()
      await using upstream = await startUpstream((request) =>
        request.text.includes('Fail') ? { does: 'cut' } : replyWith('Done.'),
      )
      const running = startCommand(['serve', '--port', '0', '--store', `sqlite:${file}`, '--upstream', upstream.url])
      const output = await running.waitForOutput('curl ')
      expect(output).not.toContain(keepWarning)
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
      const post = async (body: string): Promise<string> => {
        const response = await fetch(`${url}/v1/${key}/chat/completions`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body,
        })
        return `${[...response.headers].join()} ${await response.text()}`
      }
      const answers: string[] = []
      for (const texts of secretBatches)
        answers.push(await post(JSON.stringify({ model: 'any', messages: texts.map(user) })))
      for (const { text } of secretSamples.slice(0, 5)) {
        answers.push(await post(JSON.stringify({ model: 'any', messages: [user(`Fail. ${text}`)] })))
        answers.push(await post(`{"model": "any", "messages": [{"role": "user", "content": ${JSON.stringify(text)}`))
        answers.push(await post(JSON.stringify({ messages: [{ role: text, content: text }] })))
      }
      running.process.kill()
      const { code, stdout, stderr } = await running.result
      expect([code, findSecrets(stdout), findSecrets(stderr), storedSecrets(file)]).toEqual([0, [], [], []])
      expect(answers.filter((answer) => answer.includes('Done.')).length).toBe(secretBatches.length)
    },
  )
})

const secret = keyFormats[0]?.secret ?? ''

describe('an event that contains a secret', () => {
  verifies(['A-06', 'X-08'], 'is relevant and is promoted without the secret', async () => {
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
    await memory.upkeep.whenIdle()
    const { derived } = await store.readHead(parseKey(key), 0)
    const items = derived.flatMap((entry) => (entry.kind === 'item' ? [entry.content.replace(/\d+/, 'N')] : []))
    expect(items).toEqual(['The login of the shop has the password ⟨secret:N⟩, it says.'])
    expect(readFileSync(file).includes('hunter22')).toBe(false)
  })
})

describe('secret policy keep', () => {
  verifies('X-08', 'stores secrets unmasked', async () => {
    await using memory = await openMemory({
      profile: { ...profiles.thread, secrets: 'keep' },
      store: `sqlite:${fresh()}`,
      clock,
    })
    await memory.append(key, [user(`My key is ${secret}.`)])
    expect((await memory.transcript(key)).map(({ content }) => content)).toEqual([`My key is ${secret}.`])
  })

  verifies('X-08', 'prints a warning when served', async () => {
    const running = startCommand(['serve', '--port', '0', '--store', 'ram:', '--secrets', 'keep'])
    expect(await running.waitForOutput('curl ')).toContain(keepWarning)
    running.process.kill()
    await running.result
  })
})

const placeholderIn = (text = ''): string => /⟨secret:\d+⟩/.exec(text)?.[0] ?? ''

describe('a secret in an unusual field', () => {
  /** The nth of many API keys. */
  const secret = (number: number): string => `sk-proj-${number}Abc4dEf7GhI2jKlMn0pQrStUvWx`

  const calls: readonly MessageInput[] = [
    user('Look it up.'),
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: secret(1), type: 'function', function: { name: secret(2), arguments: `{"k":"${secret(3)}"}` } },
      ],
    },
    { role: 'tool', tool_call_id: secret(1), content: `{"found":"${secret(4)}"}` },
    { ...user('What did you find?'), name: secret(5) },
  ]

  verifies(
    'X-08',
    'is masked in call ids, tool names and results, and calls stay linked to their results',
    async () => {
      const file = fresh()
      const memory = await openMemory({ store: `sqlite:${file}`, clock })
      await memory.append(key, calls, { operationId: `first ${secret(6)}` })
      const again = await memory.append(key, calls, { operationId: `first ${secret(6)}` })
      expect([again.map(({ id }) => id), (await memory.transcript(key)).length]).toEqual([['m1', 'm2', 'm3', 'm4'], 4])
      const [, { toolCalls: made = [] } = {}, { toolCallId } = {}] = await memory.transcript(key)
      expect(made.map(({ id, name }) => [placeholderIn(id), placeholderIn(name)])).toEqual([
        [toolCallId, expect.stringMatching(/^⟨secret:/)],
      ])
      await memory.close()
      for (let number = 1; number <= 6; number++) expect(findTraces(secret(number), databaseFiles(file))).toEqual([])
    },
  )

  verifies(
    'X-08',
    'is restored in prompts of its own session, because no provider accepts a placeholder as a tool name',
    async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock })
      await memory.append(key, calls)
      expect((await memory.context(key)).messages.slice(1, 3)).toEqual(calls.slice(1, 3))
    },
  )

  verifies('X-08', 'is not detected in ordinary call ids and tool names', async () => {
    await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock })
    const names = [
      'call_abc123DEF456ghi789JKL012',
      'toolu_01D7FLrfh4GYq7yT1ULFeyMV',
      'fc_68a1b2c3d4e5f60718293a4b5c6d7e8f',
      'reset_password',
      'create_api_key',
    ]
    const tool_calls = names.map((name) => ({ id: `${name}0`, type: 'function', function: { name, arguments: '{}' } }))
    const [stored] = await memory.append(key, [{ role: 'assistant', content: null, tool_calls }])
    expect(stored?.toolCalls?.map(({ id, name }) => [id, name])).toEqual(names.map((name) => [`${name}0`, name]))
  })

  for (const [where, value] of [
    ["an object under a secret's field name", { password: { value: 'hunter2abc!' } }],
    ['a list under a plural field name', { passwords: ['hunter2abc!', 'hunter2abc!'] }],
    ['a list under a singular field name', { api_key: ['hunter2abc!Zx9kQ2mPv8'] }],
    [
      'objects in a list under a plural field name',
      { credentials: { passwords: [{ of: 'the shop', value: 'hunter2abc!' }] } },
    ],
    ['text under an abbreviated field name', { pass: 'hunter2abc!' }],
    ["a number under a secret's field name", { pin: { value: 48_213_377 } }],
  ] as const)
    verifies('X-08', `in knowledge, ${where} › is masked`, async () => {
      const file = fresh()
      const memory = await openMemory({ store: `sqlite:${file}`, clock })
      await memory.remember('acme', { category: 'domain', key: 'shop', value: JSON.parse(JSON.stringify(value)) })
      const [known] = await memory.upkeep.knowledge('acme')
      expect(JSON.stringify(known?.value)).toMatch(/⟨secret:\d+⟩/)
      await memory.close()
      expect(['hunter2abc', '48213377'].flatMap((text) => findTraces(text, databaseFiles(file)))).toEqual([])
    })
})
