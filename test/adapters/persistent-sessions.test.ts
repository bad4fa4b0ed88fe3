import { describe, expect, it } from 'vitest'
import { PersistentSessions, type PersistentSessionsOptions } from '../../src/adapters/persistent-sessions.ts'
import type { Summary } from '../../src/domain/entry.ts'
import { parseKey } from '../../src/domain/key.ts'
import { openMemory, profiles, ramStore } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite.ts'
import { chars4 } from '../../src/text/estimators.ts'
import { upperBound } from '../../src/text/upperBound.ts'
import { verifies } from '../requirements/verifies.ts'
import { createTempPaths } from '../stores/tempPaths.ts'

const newFile = createTempPaths()
const noon = Date.UTC(2026, 0, 1, 12)

/** Opens sessions on a file with a clock that advances by a second per call; closed with the block. */
function openSessions(file = newFile(), options: Partial<PersistentSessionsOptions> = {}) {
  const store = sqliteStore(file)
  let now = noon
  const clock = () => {
    now += 1_000
    return now
  }
  const sessions = new PersistentSessions({ store, scope: 'acme', tokenizer: chars4, clock, ...options })
  return { store, sessions, [Symbol.asyncDispose]: () => store.close() }
}

/** Adds `count` messages, the first one by the user; their ids are m1, m2 and so on. */
async function addMessages(sessions: PersistentSessions, count: number): Promise<void> {
  for (let number = 1; number <= count; number++)
    await sessions.addMessage('task', number % 2 === 1 ? 'user' : 'assistant', `message ${number}`)
}

/** Lists the messages, `-` for compressed ones. */
const listMessages = async (sessions: PersistentSessions): Promise<string[]> =>
  (await sessions.getOrCreate('task')).messages.map(
    ({ content, isCompressed }) => `${isCompressed ? '-' : '+'} ${content}`,
  )

describe('PersistentSessions', () => {
  verifies('A-12', 'getOrCreate › twice › creates the session once', async () => {
    const file = newFile()
    await using first = openSessions(file, { clock: () => noon })
    const created = await first.sessions.getOrCreate('task')
    const time = '2026-01-01T12:00:00.000Z'
    expect(created).toEqual({
      id: 'task',
      createdAt: time,
      updatedAt: time,
      messageCount: 0,
      messages: [],
      totalTokens: 0,
      contextTokens: 0,
    })
    await using later = openSessions(file, { clock: () => noon + 60_000 })
    expect(await later.sessions.getOrCreate('task')).toEqual(created)
    expect(await later.sessions.list()).toEqual([{ id: 'task', createdAt: time, updatedAt: time, messageCount: 0 }])
  })

  verifies('A-12', 'addMessage › stores role, time and token count', async () => {
    await using opened = openSessions()
    const { sessions } = opened
    const asked = await sessions.addMessage('task', 'user', 'What is the title?')
    expect(asked).toEqual({
      id: 'm1',
      role: 'user',
      content: 'What is the title?',
      timestamp: '2026-01-01T12:00:01.000Z',
      tokenCount: 7,
      isCompressed: false,
    })
    const call = { id: 'c1', function: { name: 'read', arguments: '{}' } }
    await sessions.addMessage('task', 'assistant', null, { tool_calls: [call] })
    await sessions.addMessage('task', 'tool', 'Example Domain', { tool_call_id: 'c1' })
    await sessions.addMessage('task', 'system', 'Be brief.')
    const session = await sessions.getOrCreate('task')
    expect(session.messages.map(({ id, role }) => `${id} ${role}`)).toEqual([
      'm1 user',
      'm2 assistant',
      'm3 tool',
      'm4 system',
    ])
    expect(session.messages[0]).toEqual(asked)
    expect(session.messageCount).toBe(4)
    expect(session.totalTokens).toBe(session.messages.reduce((sum, message) => sum + message.tokenCount, 0))
    expect(session.createdAt < session.updatedAt).toBe(true)
  })

  verifies(
    ['A-12', 'C-10'],
    'compressMessages › replaces older messages by one [CONTEXT SUMMARY] and keeps them in the transcript',
    async () => {
      await using opened = openSessions()
      const { sessions } = opened
      await addMessages(sessions, 5)
      const before = await sessions.getOrCreate('task')
      const summary = await sessions.compressMessages('task', 'm4', 'Three messages were said.')
      expect(summary).toMatchObject({
        role: 'system',
        content: '[CONTEXT SUMMARY] Three messages were said.',
        isCompressed: false,
      })
      expect(await listMessages(sessions)).toEqual([
        '- message 1',
        '- message 2',
        '- message 3',
        '+ [CONTEXT SUMMARY] Three messages were said.',
        '+ message 4',
        '+ message 5',
      ])
      expect(await sessions.getContextMessages('task')).toEqual([
        { role: 'system', content: '[CONTEXT SUMMARY] Three messages were said.' },
        { role: 'assistant', content: 'message 4' },
        { role: 'user', content: 'message 5' },
      ])
      const after = await sessions.getOrCreate('task')
      const transcript = after.messages.filter(({ id }) => id !== summary?.id)
      expect(transcript).toEqual(before.messages.map((message, index) => ({ ...message, isCompressed: index < 3 })))
      expect([after.messageCount, after.totalTokens]).toEqual([5, before.totalTokens])
      expect(after.contextTokens).toBe(after.messages.slice(3).reduce((sum, message) => sum + message.tokenCount, 0))
    },
  )

  it('addMessage › with the default tokenizer › counts a word as one token besides role and overhead', async () => {
    const store = ramStore()
    const sessions = new PersistentSessions({ store, scope: 'acme' })
    const { overhead } = upperBound
    const counts = [
      await sessions.addMessage('task', 'user', 'one'),
      await sessions.addMessage('task', 'assistant', 'two'),
    ].map(({ tokenCount }) => tokenCount)
    expect(counts).toEqual([overhead.message + 2, overhead.message + 2])
  })

  verifies('A-12', 'compressMessages › a second time › supersedes the earlier summary', async () => {
    await using opened = openSessions()
    const { sessions, store } = opened
    await addMessages(sessions, 6)
    const first = await sessions.compressMessages('task', 'm3', 'Two.')
    const second = await sessions.compressMessages('task', 'm6', 'Two. Then three more.')
    expect(second?.id).toBe(first?.id)
    expect(await sessions.getContextMessages('task')).toEqual([
      { role: 'system', content: '[CONTEXT SUMMARY] Two. Then three more.' },
      { role: 'assistant', content: 'message 6' },
    ])
    const { derived } = await store.readHead(parseKey('acme:task'), 0)
    const sources = ['m1', 'm2', 'm3', 'm4', 'm5'].map((message) => ({ message }))
    expect(derived).toMatchObject([{ kind: 'summary', tier: 'batch', covers: [1, 5], version: 2, sources }])
    await sessions.compressMessages('task', 'm6', 'Five, put better.')
    expect((await sessions.getContextMessages('task'))[0]).toEqual({
      role: 'system',
      content: '[CONTEXT SUMMARY] Five, put better.',
    })
    expect((await listMessages(sessions)).filter((line) => line.startsWith('-'))).toHaveLength(5)
  })

  it('compressMessages › before the first message › returns undefined', async () => {
    await using opened = openSessions()
    await addMessages(opened.sessions, 2)
    expect(await opened.sessions.compressMessages('task', 'm1', 'Nothing.')).toBeUndefined()
    expect(await listMessages(opened.sessions)).toEqual(['+ message 1', '+ message 2'])
  })

  it('compressMessages, addMessage and getOrCreate › with invalid input › throw and change nothing', async () => {
    await using opened = openSessions()
    const { sessions } = opened
    await addMessages(sessions, 4)
    await sessions.compressMessages('task', 'm3', 'Two.')
    const before = await sessions.getOrCreate('task')
    const rejections = [
      [
        sessions.compressMessages('task', 'm4', ' \n'),
        'bad-option',
        'summary is empty. Pass the text that replaces the older messages.',
      ],
      [
        sessions.compressMessages('task', 'm9', 'x'),
        'bad-option',
        'acme:task has no message "m9". Pass the id of the first message to keep uncompressed.',
      ],
      [
        sessions.compressMessages('task', 'last', 'x'),
        'bad-option',
        'acme:task has no message "last". Pass the id of the first message to keep uncompressed.',
      ],
      [
        sessions.compressMessages('task', 'm2', 'x'),
        'conflict',
        'Message m2 of acme:task is compressed already. Read the session again and pass the id of a later message.',
      ],
      [
        sessions.addMessage('task', 'robot' as 'user', 'x'),
        'bad-message',
        expect.stringContaining('messages[0].role is "robot"'),
      ],
      [sessions.getOrCreate('no spaces'), 'bad-key', expect.stringContaining('may hold only the letters')],
      [sessions.getOrCreate(''), 'bad-key', expect.stringContaining('is empty')],
    ] as const
    for (const [promise, code, message] of rejections)
      await expect(promise).rejects.toMatchObject({ name: 'MemoryError', code, message })
    expect(await sessions.getOrCreate('task')).toEqual(before)
  })

  it('compressMessages › between a tool call and its result › keeps both', async () => {
    await using opened = openSessions()
    const { sessions } = opened
    const call = { id: 'c1', type: 'function' as const, function: { name: 'read', arguments: '{}' } }
    await sessions.addMessage('task', 'user', 'Read it.')
    await sessions.addMessage('task', 'assistant', null, { tool_calls: [call] })
    const result = await sessions.addMessage('task', 'tool', 'Example Domain', { tool_call_id: 'c1' })
    await sessions.compressMessages('task', result.id, 'The user wants it read.')
    expect(await sessions.getContextMessages('task')).toEqual([
      { role: 'system', content: '[CONTEXT SUMMARY] The user wants it read.' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', content: 'Example Domain', tool_call_id: 'c1' },
    ])
  })

  verifies('A-12', 'two processes › on one file › see the writes of each other', async () => {
    const file = newFile()
    await using here = openSessions(file)
    await using there = openSessions(file)
    await here.sessions.addMessage('task', 'user', 'from here')
    expect(await listMessages(there.sessions)).toEqual(['+ from here'])
    await there.sessions.addMessage('task', 'assistant', 'from there')
    expect(await listMessages(here.sessions)).toEqual(['+ from here', '+ from there'])
    await here.sessions.compressMessages('task', 'm2', 'Here.')
    expect(await listMessages(there.sessions)).toEqual(['- from here', '+ [CONTEXT SUMMARY] Here.', '+ from there'])
    await there.sessions.delete('task')
    expect(await here.sessions.getContextMessages('task')).toEqual([])
  })

  verifies('A-12', 'compressMessages › during concurrent writes › loses nothing and leaves one summary', async () => {
    const file = newFile()
    await using here = openSessions(file)
    await using there = openSessions(file)
    await addMessages(here.sessions, 4)
    await Promise.all([
      here.sessions.compressMessages('task', 'm4', 'Three.'),
      ...Array.from({ length: 8 }, (_, index) => there.sessions.addMessage('task', 'user', `late ${index + 1}`)),
      there.sessions.compressMessages('task', 'm4', 'Three.'),
    ])
    const lines = await listMessages(here.sessions)
    expect(lines.slice(0, 5)).toEqual([
      '- message 1',
      '- message 2',
      '- message 3',
      '+ [CONTEXT SUMMARY] Three.',
      '+ message 4',
    ])
    expect(lines.slice(5).sort()).toEqual(Array.from({ length: 8 }, (_, index) => `+ late ${index + 1}`))
    const { derived } = await here.store.readHead(parseKey('acme:task'), 0)
    expect(derived).toHaveLength(1)
    expect((derived[0] as Summary).version).toBe(2)
  })

  it('compressMessages › after a conflict › tries again', async () => {
    await using opened = openSessions()
    const { sessions, store } = opened
    await addMessages(sessions, 6)
    const meanwhile = [
      () => sessions.addMessage('task', 'user', 'message 7'),
      () => sessions.compressMessages('task', 'm3', 'Two.'),
    ]
    const interrupted: typeof store = Object.create(store, {
      commit: {
        async value(change: Parameters<typeof store.commit>[0]) {
          await meanwhile.shift()?.()
          return store.commit(change)
        },
      },
    })
    await new PersistentSessions({ store: interrupted, scope: 'acme' }).compressMessages('task', 'm5', 'Four.')
    expect(meanwhile).toEqual([])
    expect(await listMessages(sessions)).toEqual([
      '- message 1',
      '- message 2',
      '- message 3',
      '- message 4',
      '+ [CONTEXT SUMMARY] Four.',
      '+ message 5',
      '+ message 6',
      '+ message 7',
    ])
    const { derived } = await store.readHead(parseKey('acme:task'), 0)
    expect(derived).toMatchObject([{ covers: [1, 4], version: 2 }])
  })

  verifies('A-12', 'delete › erases the conversation and everything derived from it', async () => {
    await using opened = openSessions()
    const { sessions, store } = opened
    await addMessages(sessions, 3)
    await sessions.addMessage('other', 'user', 'stays')
    const summary = await sessions.compressMessages('task', 'm2', 'One.')
    const knowledge = {
      kind: 'knowledge',
      id: 'k1',
      at: noon,
      category: 'domain',
      key: 'title',
      value: 'x',
      confidence: 0.5,
      usedAt: noon,
    } as const
    const put = [{ ...knowledge, sources: [{ message: 'm1', session: 'task' }] }]
    await store.commit({
      id: 'learn',
      key: parseKey('acme'),
      at: noon,
      epoch: 0,
      append: [],
      put,
      drop: [],
      expiresAt: noon * 2,
    })
    expect((await sessions.delete('task')).sessions).toEqual([
      { key: 'acme', entries: ['k1'] },
      { key: 'acme:task', entries: ['m1', 'm2', 'm3', summary?.id] },
    ])
    expect((await sessions.list()).map(({ id }) => id)).toEqual(['other'])
    expect(await sessions.getContextMessages('task')).toEqual([])
    expect((await sessions.getOrCreate('task')).messages).toEqual([])
    expect((await sessions.delete('nobody')).sessions).toEqual([])
  })

  it('forget › of a compressed message › erases its summary', async () => {
    await using opened = openSessions()
    const { sessions, store } = opened
    await using memory = await openMemory({ store })
    await memory.append('acme:task', [
      { role: 'user', content: 'The code is 1234.' },
      { role: 'assistant', content: 'Noted.' },
    ])
    await sessions.compressMessages('task', 'm2', 'The code is 1234.')
    await memory.forget({ key: 'acme:task', messageId: 'm1' })
    expect(await listMessages(sessions)).toEqual(['+ Noted.'])
  })

  it('getOrCreate › with a session of another profile and tokenizer › recounts its tokens and restarts it after it expired', async () => {
    let now = noon
    await using opened = openSessions(newFile(), { clock: () => now })
    const { sessions, store } = opened
    await using memory = await openMemory({
      store,
      profile: { ...profiles.thread, lifetime: { idle: 1_000, whenFull: 'evict' } },
      clock: () => now,
    })
    const [stored] = await memory.append('acme:task', [{ role: 'user', content: 'message 1' }])
    expect(stored?.tokenizer).not.toBe('chars-4')
    const [shared] = (await sessions.getOrCreate('task')).messages
    expect(shared?.tokenCount).toBe((await sessions.addMessage('again', 'user', 'message 1')).tokenCount)
    now += 1_000
    expect((await sessions.list()).map(({ id }) => id)).toEqual(['again'])
    expect((await sessions.getOrCreate('task')).messages).toEqual([])
  })

  verifies(
    'X-08',
    'addMessage › with a password › stores it masked and reveals it only to the model of the same process',
    async () => {
      await using opened = openSessions()
      const { store, sessions } = opened
      const { content, id } = await sessions.addMessage('task-1', 'user', 'my password is hunter22')
      expect(content).toMatch(/^my password is ⟨secret:\d+⟩$/)
      expect(await sessions.getContextMessages('task-1')).toEqual([
        { role: 'user', content: 'my password is hunter22' },
      ])
      expect(await new PersistentSessions({ store, scope: 'acme' }).getContextMessages('task-1')).toEqual([
        { role: 'user', content },
      ])
      await sessions.addMessage('task-1', 'assistant', 'Noted.')
      await sessions.compressMessages('task-1', 'm2', 'my password is hunter22')
      expect(
        (await sessions.getOrCreate('task-1')).messages.filter(({ content: text }) => text.includes('hunter22')),
      ).toEqual([])
      expect(id).toBe('m1')
    },
  )
})
