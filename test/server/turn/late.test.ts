import { describe, expect, it } from 'vitest'
import type { Change } from '../../../src/domain/session.ts'
import { openStore } from '../../../src/stores/open.ts'
import { verifies } from '../../requirements/verifies.ts'
import { places } from '../api/places.ts'
import { assistant, user } from '../start.ts'
import { meddled } from './meddled.ts'
import { type Answered, openScene, type Scene, textIn } from './scene.ts'

/** Asks, and comes back once the model has the question and keeps its reply to itself. */
async function asked(
  scene: Scene,
  words: string,
  history: readonly unknown[] = [],
): Promise<{ release(): Promise<Answered> }> {
  const hold = scene.model.hold(words)
  const answer = scene.chat([...history, user(words)])
  await hold.arrived
  return {
    release: () => {
      hold.release()
      return answer
    },
  }
}

const one = [user('One'), assistant('Re: One')]
const forget = (scene: Scene, target: Readonly<Record<string, string>>): Promise<Answered> =>
  scene.send('POST /api/forget', target)

describe.each(places)('a reply that comes late, kept in %s', (_, store) => {
  verifies('T-15', 'goes with its question to the branch that an edit has made meanwhile', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'Two', one)
    await scene.chat([...one, user('Two, but edited')])
    const answer = await slow.release()
    expect([answer.status, textIn(answer)]).toEqual([200, 'Re: Two'])
    expect(await scene.said()).toEqual([
      'user: One',
      'assistant: Re: One',
      'user: Two, but edited',
      'assistant: Re: Two, but edited',
    ])
    expect(await scene.branches()).toEqual({ 3: ['user: Two', 'assistant: Re: Two'] })
    expect(scene.server.faults).toEqual([])
  })

  const orders = [
    ['A', 'B', 'C'],
    ['C', 'B', 'A'],
    ['B', 'A', 'C'],
  ] as const
  for (const order of orders)
    verifies(
      'T-15',
      `stands behind its own question when three clients with their whole history talk at once: ${order.join(', ')}`,
      async () => {
        await using scene = await openScene({ memory: { store: store() } })
        await scene.chat([user('One')])
        const late = {
          A: await asked(scene, 'A', one),
          B: await asked(scene, 'B', one),
          C: await asked(scene, 'C', one),
        }
        for (const words of order) await late[words].release()
        expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One', 'user: C', 'assistant: Re: C'])
        expect(Object.values(await scene.branches())).toEqual([
          ['user: A', 'assistant: Re: A'],
          ['user: B', 'assistant: Re: B'],
        ])
        expect(scene.server.faults).toEqual([])
      },
    )

  verifies('T-15', 'finds its question in whichever of several branches that is', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const two = await asked(scene, 'Two', one)
    const three = await asked(scene, 'Three', [...one, user('Two')])
    const four = await asked(scene, 'Four', [...one, user('Two')])
    const five = await asked(scene, 'Five', one)
    for (const each of [two, three, four, five]) await each.release()
    expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One', 'user: Five', 'assistant: Re: Five'])
    expect(await scene.branches()).toEqual({
      3: ['user: Two', 'user: Four', 'assistant: Re: Two', 'assistant: Re: Four'],
      4: ['user: Three', 'assistant: Re: Three'],
    })
  })

  verifies('X-05', 'is not stored once its question is forgotten', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'I am ill with X')
    expect((await forget(scene, { key: 'demo:ann', messageId: 'm3' })).body.sessions).toEqual([
      { key: 'demo:ann', entries: ['m3'] },
    ])
    expect(textIn(await slow.release())).toBe('Re: I am ill with X')
    expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One'])
    expect(scene.server.faults).toEqual([])
  })

  const targets = [
    ['the session', { key: 'demo:ann' }],
    ['the scope', { scope: 'demo' }],
    ['a text of the question', { scope: 'demo', text: 'ill with X' }],
  ] as const
  for (const [what, target] of targets) {
    verifies('X-05', `does not come back with what was forgotten: ${what}`, async () => {
      await using scene = await openScene({ memory: { store: store() } })
      const slow = await asked(scene, 'I am ill with X')
      await forget(scene, target)
      expect((await slow.release()).status).toBe(200)
      expect([await scene.said(), await scene.branches()]).toEqual([[], {}])
      expect((await scene.server.ask('GET /api/scopes/demo/search?q=ill')).body).toMatchObject({ items: [] })
      expect(scene.server.faults).toEqual([])
    })
  }

  verifies('X-05', 'is not stored when the branch of its question is forgotten', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'I am ill with X', one)
    await scene.chat([...one, user('Two')])
    await forget(scene, { scope: 'demo', text: 'ill with X' })
    await slow.release()
    expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One', 'user: Two', 'assistant: Re: Two'])
    expect(Object.values(await scene.branches()).flat()).toEqual([])
  })

  for (const [where, isEdited] of [
    ['in the session', false],
    ['in a branch', true],
  ] as const) {
    verifies('X-05', `goes too when its question, ${where}, is forgotten while it is being stored`, async () => {
      let meddle: (() => Promise<unknown>) | undefined
      const commit = async ({ append }: Change): Promise<void> => {
        const isLate = append.some(({ content }) => content === 'Re: I am ill with X')
        if (isLate) await meddle?.()
      }
      await using scene = await openScene({ memory: { store: meddled(await openStore(store()), { commit }) } })
      await scene.chat([user('One')])
      const slow = await asked(scene, 'I am ill with X', one)
      if (isEdited) await scene.chat([...one, user('Two')])
      meddle = () => forget(scene, { scope: 'demo', text: 'I am ill with X' })
      await slow.release()
      expect(await scene.said()).toEqual([
        'user: One',
        'assistant: Re: One',
        ...(isEdited ? ['user: Two', 'assistant: Re: Two'] : []),
      ])
      expect(Object.values(await scene.branches()).flat()).toEqual([])
      expect(scene.server.faults).toEqual([])
    })
  }

  verifies('T-17', 'follows its question to the key under which the session goes on', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'Two')
    expect((await scene.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })).body).toEqual({
      key: 'demo:bea',
    })
    expect(textIn(await slow.release())).toBe('Re: Two')
    expect(await scene.said('demo:bea')).toEqual(['user: One', 'assistant: Re: One', 'user: Two', 'assistant: Re: Two'])
    expect(scene.server.faults).toEqual([])
  })

  verifies('T-17', 'goes to the branch of its question when the session was edited and moved meanwhile', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'Two', one)
    await scene.chat([...one, user('Three')])
    await scene.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })
    await slow.release()
    expect(await scene.said('demo:bea')).toEqual([
      'user: One',
      'assistant: Re: One',
      'user: Three',
      'assistant: Re: Three',
    ])
    expect(await scene.branches('demo:bea')).toEqual({ 3: ['user: Two', 'assistant: Re: Two'] })
  })

  verifies('T-17', 'is not stored under the new key when its question was forgotten there', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await scene.chat([user('One')])
    const slow = await asked(scene, 'I am ill with X')
    await scene.send('POST /api/sessions/demo:ann/transfer', { to: 'demo:bea' })
    await forget(scene, { key: 'demo:bea', messageId: 'm3' })
    await slow.release()
    expect(await scene.said('demo:bea')).toEqual(['user: One', 'assistant: Re: One'])
  })
})

describe('clients that send only what is new', () => {
  it('may ask at once: every turn is stored, and each reply once', async () => {
    await using scene = await openScene()
    const first = await asked(scene, 'A')
    const second = await asked(scene, 'B')
    await Promise.all([second.release(), first.release()])
    expect((await scene.said()).slice(0, 2)).toEqual(['user: A', 'user: B'])
    expect((await scene.said()).slice(2).sort()).toEqual(['assistant: Re: A', 'assistant: Re: B'])
    await Promise.all(['C', 'D', 'E', 'F'].map((words) => scene.chat([user(words)])))
    const turns = ['A', 'B', 'C', 'D', 'E', 'F'].flatMap((words) => [`assistant: Re: ${words}`, `user: ${words}`])
    expect((await scene.said()).toSorted()).toEqual(turns.sort())
    expect(await scene.branches()).toEqual({})
  })
})
