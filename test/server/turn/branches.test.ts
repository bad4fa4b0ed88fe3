import { describe, expect } from 'vitest'
import { formatKey, type Key } from '../../../src/domain/key.ts'
import type { Index, Store } from '../../../src/domain/ports.ts'
import { openStore } from '../../../src/stores/open.ts'
import { verifies } from '../../requirements/verifies.ts'
import { places } from '../api/places.ts'
import { assistant, user } from '../start.ts'
import { meddled } from './meddled.ts'
import { ann, openScene } from './scene.ts'

const one = [user('One'), assistant('Re: One')]
const two = [...one, user('Two'), assistant('Re: Two')]
const turns = (...words: readonly string[]): readonly string[] =>
  words.flatMap((each) => [`user: ${each}`, `assistant: Re: ${each}`])
const facts = ['My name is Ann.', 'I live in Rome.', 'What is my name?']

describe('what a client tells before each of its questions', () => {
  verifies('T-15', 'is no history, if it is a greeting: nothing is cut off', async () => {
    await using scene = await openScene()
    for (const question of facts) await scene.chat([assistant('Hi! How can I help?'), user(question)])
    expect(await scene.said()).toEqual(['assistant: Hi! How can I help?', ...turns(...facts)])
    expect(await scene.branches()).toEqual({})
    expect(scene.prompt()).toEqual([
      'Hi! How can I help?',
      'My name is Ann.',
      'Re: My name is Ann.',
      'I live in Rome.',
      'Re: I live in Rome.',
      'What is my name?',
    ])
  })

  const examples = [user('2+2'), assistant('4'), user('3+3'), assistant('6')]
  const told = ['user: 2+2', 'assistant: 4', 'user: 3+3', 'assistant: 6']
  const beginnings = [
    ['alone', []],
    ['after a turn without them', ['Hello']],
  ] as const
  for (const [when, first] of beginnings) {
    verifies('T-15', `is no history, if it is examples, ${when}: nothing is cut off`, async () => {
      await using scene = await openScene()
      for (const question of first) await scene.chat([user(question)])
      for (const question of facts) await scene.chat([...examples, user(question)])
      expect(await scene.said()).toEqual([...turns(...first), ...told, ...turns(...facts)])
      expect(await scene.branches()).toEqual({})
    })
  }
})

describe('two conversations of one person who is known by name only', () => {
  verifies('T-15', 'never cut each other off', async () => {
    await using scene = await openScene({ defaultScope: 'demo' })
    const talks: readonly unknown[][] = [[], []]
    for (const turn of [1, 2, 3, 4]) {
      for (const [place, talk] of talks.entries()) {
        talk.push(user(`Talk ${place}, turn ${turn}`))
        const { body } = await scene.send('POST /v1/chat/completions', {
          model: 'test-model',
          user: 'ann',
          messages: talk,
        })
        talk.push(body.choices[0].message)
      }
    }
    expect(await scene.branches()).toEqual({})
    expect(await scene.said()).toEqual(
      turns(...[1, 2, 3, 4].flatMap((turn) => [`Talk 0, turn ${turn}`, `Talk 1, turn ${turn}`])),
    )
  })
})

describe.each(places)('a client that takes something back, kept in %s', (_, store) => {
  verifies(['T-15', 'C-10'], 'by an edit, has the old turn in a branch, whole', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    await scene.chat([...one, user('Two')])
    await scene.chat([...two, user('Three')])
    await scene.chat([...one, user('Two, but edited')])
    expect(scene.prompt()).toEqual(['One', 'Re: One', 'Two, but edited'])
    expect(await scene.said()).toEqual(turns('One', 'Two, but edited'))
    expect(await scene.branches()).toEqual({ 3: turns('Two', 'Three') })
  })

  verifies(['T-15', 'C-10'], 'by asking for another reply, has the old one in a branch', async () => {
    const reply = (asked: string, place: number) => ({ text: place < 3 ? `Re: ${asked}` : 'Otherwise.' })
    await using scene = await openScene({ memory: { store: store() }, reply })
    await scene.chat([user('One')])
    await scene.chat([...one, user('Two')])
    await scene.chat([...one, user('Two')])
    expect(await scene.said()).toEqual([...turns('One'), 'user: Two', 'assistant: Otherwise.'])
    expect(await scene.branches()).toEqual({ 4: ['assistant: Re: Two'] })
  })

  verifies(['T-15', 'C-10'], 'by going back to an earlier question, has all that followed in a branch', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    await scene.chat([...one, user('Two')])
    await scene.chat([...two, user('Three')])
    await scene.chat([...one, user('Two')])
    expect(await scene.said()).toEqual(turns('One', 'Two'))
    expect(await scene.branches()).toEqual({ 4: ['assistant: Re: Two', ...turns('Three')] })
  })

  verifies(
    'T-15',
    'only wants a reply that has not reached it, if it sends the same request again: one turn, the new reply in its place',
    async () => {
      const reply = (asked: string, place: number) => ({ text: place === 2 ? 'Done.' : `Re: ${asked}` })
      await using scene = await openScene({ memory: { store: store() }, reply })
      await scene.chat([user('Transfer 100')])
      await scene.chat([user('Transfer 100')], { 'x-stainless-retry-count': '1' })
      expect(await scene.said()).toEqual(['user: Transfer 100', 'assistant: Done.'])
      expect(await scene.branches()).toEqual({ 2: ['assistant: Re: Transfer 100'] })
      await scene.chat([user('Transfer 100')], { 'x-stainless-retry-count': '0' })
      expect(await scene.said()).toEqual(['user: Transfer 100', 'assistant: Done.', ...turns('Transfer 100')])
    },
  )
})

/** A store that fails once, when the next entries of a session are to be erased. */
async function failing(url: string): Promise<{ readonly store: Store & Index; failNext(): void }> {
  let fails = false
  const erase = async (key: Key): Promise<void> => {
    if (!fails || formatKey(key) !== ann) return
    fails = false
    throw new Error('power cut')
  }
  return {
    store: meddled(await openStore(url), { erase }),
    failNext: () => {
      fails = true
    },
  }
}

describe.each(places)('a crash between the branch and the session it is cut off, kept in %s', (_, place) => {
  verifies('C-10', 'loses nothing, and the same request again does the rest', async () => {
    const { store, failNext } = await failing(place())
    await using scene = await openScene({ memory: { store } })
    await scene.chat([user('One')])
    await scene.chat([...one, user('Two')])
    failNext()
    expect((await scene.chat([...one, user('Two, but edited')])).status).toBe(500)
    expect(await scene.said()).toEqual(turns('One', 'Two'))
    expect((await scene.chat([...one, user('Two, but edited')])).status).toBe(200)
    expect(await scene.said()).toEqual(turns('One', 'Two, but edited'))
    expect(await scene.branches()).toEqual({ 3: turns('Two') })
  })

  verifies('C-10', 'loses nothing either if the conversation goes on before somebody edits it again', async () => {
    const { store, failNext } = await failing(place())
    await using scene = await openScene({ memory: { store } })
    await scene.chat([user('One')])
    await scene.chat([...one, user('Two')])
    failNext()
    await scene.chat([...one, user('Two, but edited')])
    await scene.chat([...two, user('Three')])
    expect(await scene.said()).toEqual(turns('One', 'Two', 'Three'))
    await scene.chat([...one, user('Two, edited again')])
    expect(await scene.said()).toEqual(turns('One', 'Two, edited again'))
    expect(await scene.branches()).toEqual({ 3: turns('Two', 'Three') })
  })
})
