import { describe, expect, it } from 'vitest'
import { user } from '../start.ts'
import { ann, openScene, type Scene } from './scene.ts'

const inOneToken = ({ send }: Scene, words: string) =>
  send(`POST /v1/${ann}/chat/completions`, { model: 'test-model', max_tokens: 1, messages: [user(words)] })

describe('a request for a single token', () => {
  it('is a sign of life if it says no more than that, and leaves nothing', async () => {
    await using scene = await openScene()
    const { status, headers } = await inOneToken(scene, 'ping')
    expect([status, headers.get('x-threadkeep-memory')]).toEqual([200, 'auxiliary'])
    expect(await scene.said()).toEqual([])
  })

  it('is a turn like any other if somebody asks something', async () => {
    await using scene = await openScene()
    const { status, headers } = await inOneToken(scene, 'Is 17 prime? My name is Ann.')
    expect([status, headers.get('x-threadkeep-memory')]).toEqual([200, 'on'])
    expect(await scene.said()).toEqual([
      'user: Is 17 prime? My name is Ann.',
      'assistant: Re: Is 17 prime? My name is Ann.',
    ])
  })
})
