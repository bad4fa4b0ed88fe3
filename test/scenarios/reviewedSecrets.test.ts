import { describe, expect } from 'vitest'
import { type Incoming, type Memory, openMemory, profiles } from '../../src/index.ts'
import { refuses } from '../providers/upstream.ts'
import { verifies } from '../requirements/verifies.ts'
import { startServer, user } from '../server/start.ts'
import { freshFiles } from '../stores/tempPaths.ts'
import { databaseFiles, tracesOf } from '../stores/traces.ts'
import { startScribe } from './stage.ts'

const fresh = freshFiles()
const key = 'acme:ann'
const day = 24 * 3_600_000
const start = Date.UTC(2026, 2, 2, 9)
const markIn = (text = ''): string => /⟨secret:\d+⟩/.exec(text)?.[0] ?? ''
const tells = async (memory: Memory, of = key): Promise<string> => (await memory.context(of)).text

describe('the value of a secret', () => {
  for (const isSwept of [false, true])
    verifies('X-08', `does not outlive its session that ${isSwept ? 'was swept' : 'expired'}`, async () => {
      let now = start
      await using memory = await openMemory({
        profile: { ...profiles.support, durability: 'durable' },
        store: `sqlite:${fresh()}`,
        clock: () => now,
      })
      const [said] = await memory.append(key, [user('My password is hunter2abc.')])
      const mark = markIn(said?.content)
      expect([said?.content, await tells(memory)]).toEqual([
        `My password is ${mark}.`,
        '[RECENT MESSAGES]\n\nUser: My password is hunter2abc.',
      ])
      now += 2 * day
      if (isSwept) await memory.sweep(now)
      await memory.append(key, [user(`What is ${mark}?`)])
      expect(await tells(memory)).toBe(`[RECENT MESSAGES]\n\nUser: What is ${mark}?`)
      // told again, it is at hand again
      await memory.append(key, [user('My password is hunter3abc.')])
      expect(await tells(memory)).toContain('My password is hunter3abc.')
    })

  verifies(['X-08', 'X-05'], 'stays usable when another message is forgotten, and goes with its own', async () => {
    await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
    const [first] = await memory.append(key, [
      user('My password is hunter2abc.'),
      user('My other password is hunter4abc.'),
      user('By the way, I like cats a lot.'),
    ])
    await memory.forget({ key, messageId: 'm3' })
    expect(await tells(memory)).toBe('User: My password is hunter2abc.\n\nUser: My other password is hunter4abc.')
    await memory.forget({ key, messageId: 'm1' })
    const mark = markIn(first?.content)
    await memory.append(key, [user(`What is ${mark}?`)])
    expect(await tells(memory)).toBe(`User: My other password is hunter4abc.\n\nUser: What is ${mark}?`)
  })

  verifies(
    ['X-08', 'X-05'],
    'stays usable in a message that holds it too when the other one is forgotten',
    async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
      await memory.append(key, [user('My password is hunter2abc.'), user('Again: my password is hunter2abc.')])
      await memory.forget({ key, messageId: 'm1' })
      expect(await tells(memory)).toBe('User: Again: my password is hunter2abc.')
    },
  )

  verifies(
    ['X-08', 'X-05'],
    'stays usable when what is to be forgotten is nowhere, or in another session',
    async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
      for (const session of ['acme:ann', 'acme:bob'])
        await memory.append(session, [user('My password is hunter2abc.'), user('I like cats a lot.')])
      expect((await memory.forget({ scope: 'acme', text: 'nobody says this' })).sessions).toEqual([])
      for (const session of ['acme:ann', 'acme:bob']) expect(await tells(memory, session)).toContain('hunter2abc')
      await memory.forget({ key: 'acme:bob' })
      expect(await tells(memory)).toContain('hunter2abc')
      await memory.forget({ scope: 'acme', text: 'cats' })
      expect(await tells(memory)).toBe('User: My password is hunter2abc.')
    },
  )
})

describe('a secret in a place where none belongs', () => {
  /** The nth of many keys. */
  const secret = (number: number): string => `sk-proj-${number}Abc4dEf7GhI2jKlMn0pQrStUvWx`

  const calls: readonly Incoming[] = [
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
    'is masked in the id and the name of a call and in what answers it, and call and result stay together',
    async () => {
      const file = fresh()
      const memory = await openMemory({ store: `sqlite:${file}`, clock: () => start })
      await memory.append(key, calls, { operationId: `first ${secret(6)}` })
      const again = await memory.append(key, calls, { operationId: `first ${secret(6)}` })
      expect([again.map(({ id }) => id), (await memory.transcript(key)).length]).toEqual([['m1', 'm2', 'm3', 'm4'], 4])
      const [, { calls: made = [] } = {}, { answers } = {}] = await memory.transcript(key)
      expect(made.map(({ id, name }) => [markIn(id), markIn(name)])).toEqual([
        [answers, expect.stringMatching(/^⟨secret:/)],
      ])
      await memory.close()
      for (let number = 1; number <= 6; number++) expect(tracesOf(secret(number), databaseFiles(file))).toEqual([])
    },
  )

  verifies(
    'X-08',
    'is given back in prompts of its own session: no provider takes a mark for the name of a tool',
    async () => {
      await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
      await memory.append(key, calls)
      expect((await memory.context(key)).messages.slice(1, 3)).toEqual(calls.slice(1, 3))
    },
  )

  verifies('X-08', 'is not seen in an ordinary id of a call or name of a tool', async () => {
    await using memory = await openMemory({ store: `sqlite:${fresh()}`, clock: () => start })
    const names = [
      'call_abc123DEF456ghi789JKL012',
      'toolu_01D7FLrfh4GYq7yT1ULFeyMV',
      'fc_68a1b2c3d4e5f60718293a4b5c6d7e8f',
      'reset_password',
      'create_api_key',
    ]
    const tool_calls = names.map((name) => ({ id: `${name}0`, type: 'function', function: { name, arguments: '{}' } }))
    const [stored] = await memory.append(key, [{ role: 'assistant', content: null, tool_calls }])
    expect(stored?.calls?.map(({ id, name }) => [id, name])).toEqual(names.map((name) => [`${name}0`, name]))
  })

  for (const [where, value] of [
    ['an object under a telling name', { password: { value: 'hunter2abc!' } }],
    ['a list under a telling name', { passwords: ['hunter2abc!', 'hunter2abc!'] }],
    ['a list under the name of one', { api_key: ['hunter2abc!Zx9kQ2mPv8'] }],
    [
      'objects in a list under a telling name',
      { credentials: { passwords: [{ of: 'the shop', value: 'hunter2abc!' }] } },
    ],
    ['a text under a short name that ends like many', { pass: 'hunter2abc!' }],
    ['a number under a telling name', { pin: { value: 48_213_377 } }],
  ] as const)
    verifies('X-08', `is masked in knowledge: ${where}`, async () => {
      const file = fresh()
      const memory = await openMemory({ store: `sqlite:${file}`, clock: () => start })
      await memory.remember('acme', { category: 'domain', key: 'shop', value: JSON.parse(JSON.stringify(value)) })
      const [known] = await memory.upkeep.knowledge('acme')
      expect(JSON.stringify(known?.value)).toMatch(/⟨secret:\d+⟩/)
      await memory.close()
      expect(['hunter2abc', '48213377'].flatMap((text) => tracesOf(text, databaseFiles(file)))).toEqual([])
    })
})

describe('another secret in the same sentence', () => {
  const first = user('my password is hunter2aaa')
  const second = user('my password is hunter3bbb')

  async function house() {
    const scribe = await startScribe()
    const server = await startServer({
      upstream: scribe.url,
      memory: { store: `sqlite:${fresh()}`, clock: () => start },
    })
    const ask = async (messages: readonly Incoming[]): Promise<number> =>
      (await server.post(key, { model: 'any', messages })).status
    const close = async (): Promise<void> => {
      await server.close()
      await scribe.close()
    }
    return { scribe, server, ask, [Symbol.asyncDispose]: close }
  }

  verifies('X-08', 'is a new message, after one that was never answered', async () => {
    await using at = await house()
    at.scribe.turn(() => refuses(400))
    expect(await at.ask([first])).toBe(400)
    at.scribe.turn()
    expect(await at.ask([second])).toBe(200)
    const said = await at.server.said(key)
    expect(said.map((line) => line.replace(/\d+/, 'N'))).toEqual([
      'user: my password is ⟨secret:N⟩',
      'user: my password is ⟨secret:N⟩',
      'assistant: Noted.',
    ])
    expect(markIn(said[0])).not.toBe(markIn(said[1]))
    expect(at.scribe.asked('chat').at(-1)?.body.messages.at(-1)).toEqual(second)
  })

  verifies('X-08', 'is a new message in a resent history, and the same secret again is not', async () => {
    await using at = await house()
    at.scribe.turn(() => refuses(400))
    await at.ask([first])
    at.scribe.turn()
    await at.ask([first])
    expect((await at.server.said(key)).length).toBe(2)
    const history = [first, { role: 'assistant', content: 'Noted.' } as const]
    await at.ask([...history, second])
    expect((await at.server.said(key)).length).toBe(4)
    await at.ask([...history, second, { role: 'assistant', content: 'Noted.' }, first])
    const said = await at.server.said(key)
    expect([said.length, markIn(said[4]) === markIn(said[0]), markIn(said[2]) === markIn(said[0])]).toEqual([
      6,
      true,
      false,
    ])
    expect(at.server.faults).toEqual([])
  })
})
