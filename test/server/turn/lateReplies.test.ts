import { describe, expect } from 'vitest'
import { parseKey } from '../../../src/domain/key.ts'
import type { SessionChange } from '../../../src/domain/session.ts'
import { openMemory } from '../../../src/index.ts'
import { internalsOf, type Memory } from '../../../src/memory.ts'
import { storeReply } from '../../../src/server/turn/storeMessages.ts'
import { openStore } from '../../../src/stores/open.ts'
import { ramStore } from '../../../src/stores/ram.ts'
import { interceptStore } from '../../memory/storeFixtures.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTestStores } from '../api/testStores.ts'
import { assistant, user } from '../start.ts'
import { openTestSession, replyText, type TestResponse, type TestSession } from './testSession.ts'

const testStores = createTestStores()

/** Sends a question and returns once the model has received it; the reply waits for `release()`. */
async function askAndHold(
  session: TestSession,
  question: string,
  history: readonly unknown[] = [],
): Promise<{ release(): Promise<TestResponse> }> {
  const hold = session.model.hold(question)
  const answer = session.chat([...history, user(question)])
  await hold.arrived
  return {
    release: () => {
      hold.release()
      return answer
    },
  }
}

const firstTurn = [user('One'), assistant('Re: One')]

const forget = (session: TestSession, target: Readonly<Record<string, string>>): Promise<TestResponse> =>
  session.send('POST /api/forget', target)

describe.each(testStores)('a late reply, store %s', (_, store) => {
  verifies('T-15', 'after an edit cut its question into a branch › is stored in that branch', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'Two', firstTurn)
    await session.chat([...firstTurn, user('Two, but edited')])
    const answer = await slow.release()
    expect([answer.status, replyText(answer)]).toEqual([200, 'Re: Two'])
    expect(await session.transcript()).toEqual([
      'user: One',
      'assistant: Re: One',
      'user: Two, but edited',
      'assistant: Re: Two, but edited',
    ])
    expect(await session.branches()).toEqual({ 3: ['user: Two', 'assistant: Re: Two'] })
    expect(session.server.faults).toEqual([])
  })

  const orders = [
    ['A', 'B', 'C'],
    ['C', 'B', 'A'],
    ['B', 'A', 'C'],
  ] as const
  for (const order of orders)
    verifies(
      'T-15',
      `three concurrent clients with whole histories, replies in order ${order.join(', ')} › each follows its question`,
      async () => {
        await using session = await openTestSession({ memory: { store: store() } })
        await session.chat([user('One')])
        const late = {
          A: await askAndHold(session, 'A', firstTurn),
          B: await askAndHold(session, 'B', firstTurn),
          C: await askAndHold(session, 'C', firstTurn),
        }
        for (const question of order) await late[question].release()
        expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One', 'user: C', 'assistant: Re: C'])
        expect(Object.values(await session.branches())).toEqual([
          ['user: A', 'assistant: Re: A'],
          ['user: B', 'assistant: Re: B'],
        ])
        expect(session.server.faults).toEqual([])
      },
    )

  verifies(
    'T-15',
    'of a question that was asked twice, after the next question › follows its own question',
    async () => {
      await using session = await openTestSession({ memory: { store: store() } })
      await session.chat([user('One')])
      const first = await askAndHold(session, 'Two')
      const again = await askAndHold(session, 'Two')
      const next = await askAndHold(session, 'Three')
      for (const each of [first, again, next]) await each.release()
      const lines = await session.transcript()
      expect(lines.slice(2)).toEqual([
        'user: Two',
        ...Array(lines.filter((line) => line === 'assistant: Re: Two').length).fill('assistant: Re: Two'),
        'user: Three',
        'assistant: Re: Three',
      ])
    },
  )

  verifies('T-15', 'with several branches › is stored in the branch of its question', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const two = await askAndHold(session, 'Two', firstTurn)
    const three = await askAndHold(session, 'Three', [...firstTurn, user('Two')])
    const four = await askAndHold(session, 'Four', [...firstTurn, user('Two')])
    const five = await askAndHold(session, 'Five', firstTurn)
    for (const each of [two, three, four, five]) await each.release()
    expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One', 'user: Five', 'assistant: Re: Five'])
    expect(await session.branches()).toEqual({
      3: ['user: Two', 'user: Four', 'assistant: Re: Two', 'assistant: Re: Four'],
      // The number after Two was kept for its reply when Three arrived.
      5: ['user: Three', 'assistant: Re: Three'],
    })
  })

  verifies('X-05', 'after its question was forgotten › is not stored', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'I am ill with X')
    expect((await forget(session, { key: 'demo:ann', messageId: 'm3' })).body.sessions).toEqual([
      { key: 'demo:ann', entries: ['m3'] },
    ])
    expect(replyText(await slow.release())).toBe('Re: I am ill with X')
    expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One'])
    expect(session.server.faults).toEqual([])
  })

  const targets = [
    ['the session', { key: 'demo:ann' }],
    ['the scope', { scope: 'demo' }],
    ['a text of the question', { scope: 'demo', text: 'ill with X' }],
  ] as const
  for (const [what, target] of targets) {
    verifies('X-05', `after ${what} was forgotten › is not stored`, async () => {
      await using session = await openTestSession({ memory: { store: store() } })
      const slow = await askAndHold(session, 'I am ill with X')
      await forget(session, target)
      expect((await slow.release()).status).toBe(200)
      expect([await session.transcript(), await session.branches()]).toEqual([[], {}])
      expect((await session.server.requestJson('GET /api/scopes/demo/search?q=ill')).body).toMatchObject({ items: [] })
      expect(session.server.faults).toEqual([])
    })
  }

  verifies('X-05', 'after the branch of its question was forgotten › is not stored', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'I am ill with X', firstTurn)
    await session.chat([...firstTurn, user('Two')])
    await forget(session, { scope: 'demo', text: 'ill with X' })
    await slow.release()
    expect(await session.transcript()).toEqual(['user: One', 'assistant: Re: One', 'user: Two', 'assistant: Re: Two'])
    expect(Object.values(await session.branches()).flat()).toEqual([])
  })

  for (const [where, isEdited] of [
    ['in the session', false],
    ['in a branch', true],
  ] as const) {
    verifies(
      'X-05',
      `its question ${where} forgotten while the reply is being stored › is deleted as well`,
      async () => {
        let onLateWrite: (() => Promise<unknown>) | undefined
        const commit = async ({ append }: SessionChange): Promise<void> => {
          const isLate = append.some(({ content }) => content === 'Re: I am ill with X')
          if (isLate) await onLateWrite?.()
        }
        await using session = await openTestSession({
          memory: { store: interceptStore(await openStore(store()), { commit }) },
        })
        await session.chat([user('One')])
        const slow = await askAndHold(session, 'I am ill with X', firstTurn)
        if (isEdited) await session.chat([...firstTurn, user('Two')])
        onLateWrite = () => forget(session, { scope: 'demo', text: 'I am ill with X' })
        await slow.release()
        expect(await session.transcript()).toEqual([
          'user: One',
          'assistant: Re: One',
          ...(isEdited ? ['user: Two', 'assistant: Re: Two'] : []),
        ])
        expect(Object.values(await session.branches()).flat()).toEqual([])
        expect(session.server.faults).toEqual([])
      },
    )
  }

  verifies('T-17', 'after the session was transferred › is stored under the new key', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'Two')
    expect((await session.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })).body).toEqual({
      key: 'demo:bea',
    })
    expect(replyText(await slow.release())).toBe('Re: Two')
    expect(await session.transcript('demo:bea')).toEqual([
      'user: One',
      'assistant: Re: One',
      'user: Two',
      'assistant: Re: Two',
    ])
    expect(session.server.faults).toEqual([])
  })

  verifies('T-17', 'after an edit and a transfer › is stored in the branch of its question', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'Two', firstTurn)
    await session.chat([...firstTurn, user('Three')])
    await session.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })
    await slow.release()
    expect(await session.transcript('demo:bea')).toEqual([
      'user: One',
      'assistant: Re: One',
      'user: Three',
      'assistant: Re: Three',
    ])
    expect(await session.branches('demo:bea')).toEqual({ 3: ['user: Two', 'assistant: Re: Two'] })
  })

  verifies('T-17', 'after its question was forgotten under the new key › is not stored', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    const slow = await askAndHold(session, 'I am ill with X')
    await session.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })
    await forget(session, { key: 'demo:bea', messageId: 'm3' })
    await slow.release()
    expect(await session.transcript('demo:bea')).toEqual(['user: One', 'assistant: Re: One'])
  })
})

describe.each(testStores)('concurrent clients that send only the newest message, store %s', (_, store) => {
  const turns = (...questions: readonly string[]) =>
    questions.flatMap((question) => [`user: ${question}`, `assistant: Re: ${question}`])

  verifies('T-15', 'turns › are stored as pairs in the order of their questions', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    const held = [await askAndHold(session, 'A'), await askAndHold(session, 'B'), await askAndHold(session, 'C')]
    for (const each of held.toReversed()) await each.release()
    expect(await session.transcript()).toEqual(turns('A', 'B', 'C'))
    await Promise.all(['D', 'E', 'F', 'G'].map((question) => session.chat([user(question)])))
    const later = (await session.transcript()).slice(6)
    const asked = later.filter((line) => line.startsWith('user: ')).map((line) => line.slice(6))
    expect(later).toEqual(turns(...asked))
    expect(asked.toSorted()).toEqual(['D', 'E', 'F', 'G'])
    expect(await session.branches()).toEqual({})
  })
})

verifies(
  'T-15',
  'a second reply to a question › leaves the number after the next question to its own reply',
  async () => {
    await using memory = await openMemory({ upkeep: false })
    const key = parseKey('demo:ann')
    await memory.append(key, [user('One')])
    await internalsOf(memory).append(key, [user('Two')], { reserve: 1 })
    const epoch = await memory.epoch(key)
    // Another server asked the questions, so that no further numbers are reserved here.
    const store = (question: number, text: string) =>
      storeReply(memory, key, {
        reply: assistant(text),
        ...{ question, epoch, ledger: undefined, branch: undefined, reserved: 0 },
      })
    await store(1, 'Re: One')
    await store(1, 'Re: One again')
    await store(3, 'Re: Two')
    const texts = (await memory.transcript(key)).map(({ content }) => content)
    expect(texts).toEqual(['One', 'Re: One', 'Two', 'Re: Two', 'Re: One again'])
  },
)

verifies(
  'T-15',
  'a second reply to a question › with a question of another server stored meanwhile › leaves its number free',
  async () => {
    const shared = ramStore()
    let onLateWrite: (() => Promise<unknown>) | undefined
    const commit = async (): Promise<void> => {
      const write = onLateWrite
      onLateWrite = undefined
      await write?.()
    }
    await using memory = await openMemory({ store: interceptStore(shared, { commit }), upkeep: false })
    await using other = await openMemory({ store: shared, upkeep: false })
    const key = parseKey('demo:ann')
    await memory.append(key, [user('One')])
    const epoch = await memory.epoch(key)
    const answer = (by: Memory, question: number, text: string) =>
      storeReply(by, key, {
        reply: assistant(text),
        ...{ question, epoch, ledger: undefined, branch: undefined, reserved: 0 },
      })
    await answer(memory, 1, 'Re: One')
    onLateWrite = () => other.append(key, [user('Two')])
    await answer(memory, 1, 'Re: One again')
    await answer(other, 3, 'Re: Two')
    const texts = (await memory.transcript(key)).map(({ content }) => content)
    expect(texts).toEqual(['One', 'Re: One', 'Two', 'Re: Two', 'Re: One again'])
  },
)
