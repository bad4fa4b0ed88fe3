import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { freshFile, places } from '../api/places.ts'
import { openScene, type Scene } from './scene.ts'

/** Says something, after the response of this id if there is one, and resolves to the id of the response. */
async function say(scene: Scene, input: string, previous?: string): Promise<string> {
  const { body } = await scene.respond({ input, ...(previous === undefined ? {} : { previous_response_id: previous }) })
  return body.id
}

const refusal = async (scene: Scene, previous: string): Promise<readonly unknown[]> => {
  const { status, body } = await scene.respond({ input: 'Go on', previous_response_id: previous })
  return [status, body.error.code, body.error.param]
}
const gone = [404, 'previous_response_not_found', 'previous_response_id']

describe.each(places)('a client that names the response it goes on from, kept in %s', (_, store) => {
  verifies('T-15', 'tells only what is new, and its model hears the rest', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    const first = await say(scene, 'One')
    await say(scene, 'Two', first)
    expect(scene.prompt()).toEqual(['One', 'Re: One', 'Two'])
    expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One', 'user: Two', 'assistant: Re: Two'])
    expect(await scene.branches()).toEqual({})
  })

  verifies(
    ['T-15', 'C-10'],
    'may go back to the first of twenty: what came after it is a branch, of which its model hears nothing',
    async () => {
      await using scene = await openScene({ memory: { store: store() } })
      const ids: string[] = []
      for (let turn = 1; turn <= 20; turn++) ids.push(await say(scene, `Question ${turn}`, ids.at(-1)))
      await say(scene, 'Another way', ids[0])
      expect(scene.prompt()).toEqual(['Question 1', 'Re: Question 1', 'Another way'])
      expect(await scene.said()).toEqual([
        'user: Question 1',
        'assistant: Re: Question 1',
        'user: Another way',
        'assistant: Re: Another way',
      ])
      const cut = Array.from({ length: 19 }, (_, at) => [
        `user: Question ${at + 2}`,
        `assistant: Re: Question ${at + 2}`,
      ]).flat()
      expect(await scene.branches()).toEqual({ 3: cut })
      expect(await refusal(scene, ids[19] as string)).toEqual(gone)
    },
  )

  verifies('T-15', 'says once more what it said before, if it means to', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    await say(scene, 'Yes', await say(scene, 'Yes'))
    expect(await scene.said()).toEqual(['user: Yes', 'assistant: Re: Yes', 'user: Yes', 'assistant: Re: Yes'])
  })

  verifies('T-15', 'cannot go on from one that was cut off, nor from one that came late to a branch', async () => {
    await using scene = await openScene({ memory: { store: store() } })
    const first = await say(scene, 'One')
    const hold = scene.model.hold('Slow')
    const slow = say(scene, 'Slow', first)
    await hold.arrived
    const quick = await say(scene, 'Quick', first)
    hold.release()
    const late = await slow
    await say(scene, 'Quicker', quick)
    expect(await refusal(scene, late)).toEqual(gone)
    expect(await refusal(scene, 'resp_404')).toEqual(gone)
    expect(await scene.said()).toEqual(
      ['One', 'Quick', 'Quicker'].flatMap((words) => [`user: ${words}`, `assistant: Re: ${words}`]),
    )
    expect(await scene.branches()).toEqual({ 3: ['user: Slow', 'assistant: Re: Slow'] })
  })

  verifies(
    'T-15',
    'cannot go on from one of another session, which is not told apart from one that never was',
    async () => {
      await using scene = await openScene({ memory: { store: store() } })
      const { body } = await scene.send('POST /v1/demo:bea/responses', { model: 'test-model', input: 'Mine' })
      await say(scene, 'One')
      expect(await refusal(scene, body.id)).toEqual(gone)
      expect(scene.model.requests).toHaveLength(2)
      expect(await scene.said()).toEqual(['user: One', 'assistant: Re: One'])
    },
  )
})

describe('after a restart', () => {
  verifies('T-15', 'a client still goes on from, and back to, the responses it has', async () => {
    const store = freshFile()
    const ids: string[] = []
    {
      await using scene = await openScene({ memory: { store } })
      ids.push(await say(scene, 'One'))
      ids.push(await say(scene, 'Two', ids[0]))
    }
    // Another model server counts anew: its ids must not be those of the first.
    await using scene = await openScene({ memory: { store }, first: 100 })
    await say(scene, 'Three', ids[1])
    expect(scene.prompt()).toEqual(['One', 'Re: One', 'Two', 'Re: Two', 'Three'])
    await say(scene, 'Another way', ids[0])
    expect(scene.prompt()).toEqual(['One', 'Re: One', 'Another way'])
    expect(await scene.branches()).toEqual({
      3: ['user: Two', 'assistant: Re: Two', 'user: Three', 'assistant: Re: Three'],
    })
  })
})

describe('a conversation that was deleted', () => {
  verifies('X-05', 'does not come back with a turn', async () => {
    await using scene = await openScene()
    const { body } = await scene.send('POST /v1/demo/conversations', {})
    const turn = () =>
      scene.send('POST /v1/demo/responses', { model: 'test-model', input: 'Hello', conversation: body.id })
    expect((await turn()).status).toBe(200)
    await scene.server.ask(`DELETE /v1/demo/conversations/${body.id}`)
    const after = await turn()
    expect([after.status, after.body.error.code]).toEqual([404, 'conversation_not_found'])
    expect(await scene.said(`demo:${body.id}`)).toEqual([])
    expect(scene.model.requests).toHaveLength(1)
  })
})
