import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openMemory, parseKey, profiles, ramStore } from '../src/index.ts'

const key = 'acme:ann'
const hello = { role: 'user' as const, content: 'hello' }

describe('memory', () => {
  it('append › with a repeated operationId › stores the messages once and returns the same result', async () => {
    await using memory = await openMemory()
    const first = await memory.append(key, [hello], { operationId: 'op1' })
    expect(await memory.append(key, [hello], { operationId: 'op1' })).toEqual(first)
    expect(await memory.append(key, [])).toEqual([])
    expect(await memory.transcript(key)).toMatchObject([{ id: 'm1', sequence: 1, role: 'user', content: 'hello' }])
  })

  it('transcript › reads from the start or the end, whole', async () => {
    await using memory = await openMemory()
    await memory.append(
      key,
      [...'abcde'].map((content) => ({ role: 'user' as const, content })),
    )
    const read = async (options: object) =>
      (await memory.transcript(key, options)).map((message) => message.content).join('')
    expect([
      await read({}),
      await read({ after: 2 }),
      await read({ limit: 2 }),
      await read({ limit: 2, newest: true }),
    ]).toEqual(['abcde', 'cde', 'ab', 'de'])
  })

  it('append › with empty content › is stored and never sent', async () => {
    await using memory = await openMemory()
    await memory.append(key, [hello, { role: 'assistant', content: '' }, { role: 'user', content: '   ' }])
    expect((await memory.transcript(key)).map((message) => message.content)).toEqual(['hello', '', '   '])
    expect((await memory.context(key)).messages).toEqual([{ role: 'user', content: 'hello' }])
  })

  it('forget › a message, a session or a scope › reports the deletions', async () => {
    let now = 5
    await using memory = await openMemory({ clock: () => now })
    await memory.append(key, [hello, { role: 'assistant', content: 'hi' }])
    await memory.append('acme:bob', [hello])
    await memory.append('zeta:eve', [hello])
    expect(await memory.forget({ key, messageId: 'm2' })).toEqual({ at: 5, sessions: [{ key, entries: ['m2'] }] })
    expect(await memory.forget({ key, messageId: 'm2' })).toEqual({ at: 5, sessions: [] })
    now = 6
    expect(await memory.forget({ scope: 'acme' })).toEqual({
      at: 6,
      sessions: [
        { key: 'acme:ann', entries: ['m1'] },
        { key: 'acme:bob', entries: ['m1'] },
      ],
    })
    expect([(await memory.transcript(key)).length, (await memory.transcript('zeta:eve')).length]).toEqual([0, 1])
  })

  it('append › a reply to a session forgotten meanwhile › is refused', async () => {
    await using memory = await openMemory()
    await memory.append(key, [hello])
    const epoch = await memory.epoch(key)
    await memory.forget({ key })
    await expect(memory.append(key, [{ role: 'assistant', content: 'late' }], { epoch })).rejects.toMatchObject({
      code: 'erased',
    })
    expect(await memory.transcript(key)).toEqual([])
  })

  it('append › to an expired session › begins a new one', async () => {
    let now = 0
    await using memory = await openMemory({
      profile: { ...profiles.support, lifetime: { idle: 10, age: 25, whenFull: 'evict' } },
      clock: () => now,
    })
    for (const time of [0, 9, 18, 24]) {
      now = time
      await memory.append(key, [{ role: 'user', content: `at ${time}` }])
    }
    now = 25
    expect([await memory.transcript(key), (await memory.context(key)).text]).toEqual([[], ''])
    await memory.append(key, [{ role: 'user', content: 'again' }])
    expect((await memory.transcript(key)).map((message) => message.content)).toEqual(['again'])
  })

  it('append › concurrently to an expired session, any store order › loses nothing', async () => {
    const property = fc.asyncProperty(fc.scheduler(), async (scheduler) => {
      let now = 0
      const ram = ramStore()
      const profile = { ...profiles.support, lifetime: { idle: 10, whenFull: 'evict' as const } }
      const at = <T extends unknown[], R>(call: (...given: T) => Promise<R>) =>
        scheduler.scheduleFunction(call) as (...given: T) => Promise<R>
      const sessions = {
        ...ram,
        readHead: at(ram.readHead),
        list: at(ram.list),
        erase: at(ram.erase),
        commit: at(ram.commit),
      }
      await ram.commit({ id: 'old', key: parseKey(key), at: 0, epoch: 0, append: [], put: [], drop: [], expiresAt: 10 })
      const memory = await openMemory({ profile, sessions, clock: () => now })
      now = 20
      const contents = ['one', 'two', 'three']
      const all = Promise.all([
        ...contents.map((content) => memory.append(key, [{ role: 'user', content }])),
        memory.sweep(),
      ])
      await scheduler.waitFor(all)
      expect((await ram.readMessages(parseKey(key), { limit: 9 })).map((message) => message.content).sort()).toEqual(
        [...contents].sort(),
      )
    })
    await fc.assert(property, { numRuns: 200 })
  })

  it('append › beyond the limit of a full session › is refused and loses nothing', async () => {
    await using memory = await openMemory({
      profile: { ...profiles.thread, lifetime: { messages: 2, whenFull: 'refuse' } },
    })
    await memory.append(key, [hello, hello])
    await expect(memory.append(key, [hello])).rejects.toThrow(
      'Session acme:ann holds 2 messages and its profile allows 2. Start a new session, or raise lifetime.messages.',
    )
    expect(await memory.transcript(key)).toHaveLength(2)
  })

  it.each([
    [{ budget: 0 }, 'budget is 0; it must be a whole number of tokens, 1 or more.'],
    [{ budget: 1.5 }, 'budget is 1.5; it must be a whole number of tokens, 1 or more.'],
    [{ framing: 'loud' }, 'framing is "loud"; it must be one of silent, open, sections.'],
    [{ provider: 'acme' }, 'provider is "acme"; it must be openai, anthropic or ai-sdk.'],
    [{ query: 7 }, 'query is 7; it must be text.'],
  ])('context › with %j › explains the error', async (options, message) => {
    await using memory = await openMemory()
    await expect(memory.context(key, options as object)).rejects.toMatchObject({ code: 'bad-option', message })
  })

  it('invalid keys, messages, profiles and stores › explain the error', async () => {
    await using memory = await openMemory()
    await expect(memory.append('a b', [hello])).rejects.toMatchObject({ code: 'bad-key' })
    await expect(memory.append(undefined as never, [hello])).rejects.toMatchObject({ code: 'bad-key' })
    await expect(memory.append({ scope: '../x', id: 'y' } as never, [hello])).rejects.toMatchObject({ code: 'bad-key' })
    await expect(memory.append(key, hello as never)).rejects.toThrow(
      'messages must be a list such as [{ role: "user", content: "Hello" }].',
    )
    await expect(openMemory({ profile: 'fast' as never })).rejects.toThrow(
      'Unknown profile "fast". Use one of: ephemeral, support, summary, agent, handoff, thread.',
    )
    await expect(openMemory({ store: 'mysql://me:secret@host' })).rejects.toThrow(
      'store is "mysql://…@host"; it must be ram:, sqlite:PATH, postgres://…, pglite:PATH or redis://….',
    )
    for (const [store, shown] of [
      ['postgres:/me:secret@host/a', 'postgres:/…@host/a'],
      ['postgress:me:secret@host?password=secret', 'postgress:…@host'],
      ['redis+clusters://:sec/ret?sec@ret@host', 'redis+clusters://…@host'],
      ['me:secret@host', 'me:…@host'],
    ] as const)
      await expect(openMemory({ store })).rejects.toThrow(`store is "${shown}"; it must be ram:`)
    await expect(openMemory({ store: 'sqlite::memory:' })).rejects.toThrow(
      'store is "sqlite::memory:"; it must be ram: or sqlite:PATH.',
    )
  })

  it('await using › closes the memory', async () => {
    const store = ramStore()
    const memory = await openMemory({ store })
    await memory.append(key, [hello])
    await memory[Symbol.asyncDispose]()
    await expect(memory.context(key)).rejects.toMatchObject({ code: 'closed' })
  })
})
