import { describe, expect } from 'vitest'
import { formatKey, type Key } from '../../../src/domain/key.ts'
import type { SearchIndex, Store } from '../../../src/domain/ports.ts'
import { openStore } from '../../../src/stores/open.ts'
import { interceptStore } from '../../memory/storeFixtures.ts'
import { verifies } from '../../requirements/verifies.ts'
import { createTestStores } from '../api/testStores.ts'
import { assistant, user } from '../start.ts'
import { ann, openTestSession } from './testSession.ts'

const testStores = createTestStores()
const firstTurn = [user('One'), assistant('Re: One')]
const twoTurns = [...firstTurn, user('Two'), assistant('Re: Two')]
const turns = (...questions: readonly string[]): readonly string[] =>
  questions.flatMap((each) => [`user: ${each}`, `assistant: Re: ${each}`])
const facts = ['My name is Ann.', 'I live in Rome.', 'What is my name?']

describe('messages that a client puts before each question', () => {
  verifies('T-15', 'a greeting › is not taken as history, and nothing is cut', async () => {
    await using session = await openTestSession()
    for (const question of facts) await session.chat([assistant('Hi! How can I help?'), user(question)])
    expect(await session.transcript()).toEqual(['assistant: Hi! How can I help?', ...turns(...facts)])
    expect(await session.branches()).toEqual({})
    expect(session.prompt()).toEqual([
      'Hi! How can I help?',
      'My name is Ann.',
      'Re: My name is Ann.',
      'I live in Rome.',
      'Re: I live in Rome.',
      'What is my name?',
    ])
  })

  const examples = [user('2+2'), assistant('4'), user('3+3'), assistant('6')]
  const exampleLines = ['user: 2+2', 'assistant: 4', 'user: 3+3', 'assistant: 6']
  const beginnings = [
    ['alone', []],
    ['after a turn without them', ['Hello']],
  ] as const
  for (const [when, first] of beginnings) {
    verifies('T-15', `examples, ${when} › are not taken as history, and nothing is cut`, async () => {
      await using session = await openTestSession()
      for (const question of first) await session.chat([user(question)])
      for (const question of facts) await session.chat([...examples, user(question)])
      expect(await session.transcript()).toEqual([...turns(...first), ...exampleLines, ...turns(...facts)])
      expect(await session.branches()).toEqual({})
    })
  }
})

describe('two conversations under one `user` name', () => {
  verifies('T-15', 'never cut each other', async () => {
    await using session = await openTestSession({ defaultScope: 'demo' })
    const conversations: readonly unknown[][] = [[], []]
    for (const turn of [1, 2, 3, 4]) {
      for (const [place, conversation] of conversations.entries()) {
        conversation.push(user(`Talk ${place}, turn ${turn}`))
        const { body } = await session.send('POST /v1/chat/completions', {
          model: 'test-model',
          user: 'ann',
          messages: conversation,
        })
        conversation.push(body.choices[0].message)
      }
    }
    expect(await session.branches()).toEqual({})
    expect(await session.transcript()).toEqual(
      turns(...[1, 2, 3, 4].flatMap((turn) => [`Talk 0, turn ${turn}`, `Talk 1, turn ${turn}`])),
    )
  })
})

describe.each(testStores)('a client that changes its history, store %s', (_, store) => {
  verifies(['T-15', 'C-10'], 'an edit › moves the old turn into a branch', async () => {
    await using session = await openTestSession({ memory: { store: store() } })
    await session.chat([user('One')])
    await session.chat([...firstTurn, user('Two')])
    await session.chat([...twoTurns, user('Three')])
    await session.chat([...firstTurn, user('Two, but edited')])
    expect(session.prompt()).toEqual(['One', 'Re: One', 'Two, but edited'])
    expect(await session.transcript()).toEqual(turns('One', 'Two, but edited'))
    expect(await session.branches()).toEqual({ 3: turns('Two', 'Three') })
  })

  verifies(['T-15', 'C-10'], 'a regenerated reply › moves the old one into a branch', async () => {
    const reply = (asked: string, place: number) => ({ text: place < 3 ? `Re: ${asked}` : 'Otherwise.' })
    await using session = await openTestSession({ memory: { store: store() }, reply })
    await session.chat([user('One')])
    await session.chat([...firstTurn, user('Two')])
    await session.chat([...firstTurn, user('Two')])
    expect(await session.transcript()).toEqual([...turns('One'), 'user: Two', 'assistant: Otherwise.'])
    expect(await session.branches()).toEqual({ 4: ['assistant: Re: Two'] })
  })

  verifies(
    ['T-15', 'C-10'],
    'going back to an earlier question › moves everything after it into a branch',
    async () => {
      await using session = await openTestSession({ memory: { store: store() } })
      await session.chat([user('One')])
      await session.chat([...firstTurn, user('Two')])
      await session.chat([...twoTurns, user('Three')])
      await session.chat([...firstTurn, user('Two')])
      expect(await session.transcript()).toEqual(turns('One', 'Two'))
      expect(await session.branches()).toEqual({ 4: ['assistant: Re: Two', ...turns('Three')] })
    },
  )

  verifies('T-15', 'a retried request › replaces the reply that did not arrive', async () => {
    const reply = (asked: string, place: number) => ({ text: place === 2 ? 'Done.' : `Re: ${asked}` })
    await using session = await openTestSession({ memory: { store: store() }, reply })
    await session.chat([user('Transfer 100')])
    await session.chat([user('Transfer 100')], { 'x-stainless-retry-count': '1' })
    expect(await session.transcript()).toEqual(['user: Transfer 100', 'assistant: Done.'])
    expect(await session.branches()).toEqual({ 2: ['assistant: Re: Transfer 100'] })
    await session.chat([user('Transfer 100')], { 'x-stainless-retry-count': '0' })
    expect(await session.transcript()).toEqual(['user: Transfer 100', 'assistant: Done.', ...turns('Transfer 100')])
  })
})

/** Opens a store whose next erase of session entries fails once. */
async function openFailingStore(url: string): Promise<{ readonly store: Store & SearchIndex; failNext(): void }> {
  let fails = false
  const erase = async (key: Key): Promise<void> => {
    if (!fails || formatKey(key) !== ann) return
    fails = false
    throw new Error('power cut')
  }
  return {
    store: interceptStore(await openStore(url), { erase }),
    failNext: () => {
      fails = true
    },
  }
}

describe.each(testStores)('a crash between writing a branch and cutting the session, store %s', (_, place) => {
  verifies('C-10', 'loses nothing, and repeating the request completes the cut', async () => {
    const { store, failNext } = await openFailingStore(place())
    await using session = await openTestSession({ memory: { store } })
    await session.chat([user('One')])
    await session.chat([...firstTurn, user('Two')])
    failNext()
    expect((await session.chat([...firstTurn, user('Two, but edited')])).status).toBe(500)
    expect(await session.transcript()).toEqual(turns('One', 'Two'))
    expect((await session.chat([...firstTurn, user('Two, but edited')])).status).toBe(200)
    expect(await session.transcript()).toEqual(turns('One', 'Two, but edited'))
    expect(await session.branches()).toEqual({ 3: turns('Two') })
  })

  verifies('C-10', 'followed by further turns and another edit › loses nothing', async () => {
    const { store, failNext } = await openFailingStore(place())
    await using session = await openTestSession({ memory: { store } })
    await session.chat([user('One')])
    await session.chat([...firstTurn, user('Two')])
    failNext()
    await session.chat([...firstTurn, user('Two, but edited')])
    await session.chat([...twoTurns, user('Three')])
    expect(await session.transcript()).toEqual(turns('One', 'Two', 'Three'))
    await session.chat([...firstTurn, user('Two, edited again')])
    expect(await session.transcript()).toEqual(turns('One', 'Two, edited again'))
    expect(await session.branches()).toEqual({ 3: turns('Two', 'Three') })
  })
})
