import { describe, expect, it } from 'vitest'
import { profiles } from '../../../src/profiles/index.ts'
import { messageCost } from '../../../src/text/cost.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, user } from '../start.ts'
import { type Answered, ann, openScene, type Scene } from './scene.ts'

type Written = {
  readonly role: string
  readonly content: string | null
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
  readonly tool_call_id?: string
}

/** What the model was really sent, in tokens. */
function sent({ model, server }: Scene): number {
  const { tokenizer } = server.memory
  const messages: readonly Written[] = model.requests.at(-1)?.body.messages ?? []
  const costs = messages.map(({ role, content, tool_calls: made, tool_call_id: answers }) =>
    messageCost(tokenizer, {
      ...{ role, content },
      ...(made === undefined ? {} : { calls: made.map((call) => ({ id: call.id, ...call.function })) }),
      ...(answers === undefined ? {} : { answers }),
    }),
  )
  return costs.reduce((sum, cost) => sum + cost, tokenizer.overhead.reply)
}

const told = ({ headers }: Answered): readonly (string | null)[] => [
  headers.get('x-threadkeep-tokens'),
  headers.get('x-threadkeep-degraded'),
]

const begun = [user('Write a poem.'), assistant('Old pond,')]
const goesOn = () => ({ text: ' a frog leaps in.' })

describe('a reply that the client has begun', () => {
  verifies(
    'T-15',
    'is one reply in a chat, and stays one in the next turns, with its beginning or without',
    async () => {
      await using scene = await openScene({ reply: goesOn })
      await scene.chat(begun)
      expect(scene.model.requests.at(-1)?.body.messages).toEqual(begun)
      expect(await scene.said()).toEqual(['user: Write a poem.', 'assistant: Old pond, a frog leaps in.'])
      await scene.chat([user('Write a poem.'), assistant('Old pond, a frog leaps in.'), user('More')])
      await scene.chat([
        user('Write a poem.'),
        assistant('a frog leaps in.'),
        user('More'),
        assistant('a frog leaps in.'),
        user('Enough'),
      ])
      expect(await scene.said()).toEqual([
        'user: Write a poem.',
        'assistant: Old pond, a frog leaps in.',
        'user: More',
        'assistant:  a frog leaps in.',
        'user: Enough',
        'assistant:  a frog leaps in.',
      ])
      expect(await scene.branches()).toEqual({})
    },
  )

  it.each([false, true])("is one reply in Anthropic's messages, streamed: %s", async (stream) => {
    await using scene = await openScene({ reply: goesOn })
    const body = { model: 'test-model', max_tokens: 100, stream, messages: begun }
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${scene.server.url}/v1/${ann}/messages`, init)
    expect([response.status, (await response.text()).includes('event: message_stop')]).toEqual([200, stream])
    expect(scene.model.requests.at(-1)?.body.messages).toEqual(begun)
    expect(await scene.said()).toEqual(['user: Write a poem.', 'assistant: Old pond, a frog leaps in.'])
  })

  verifies('T-15', 'may be begun again, and then the other one is a branch', async () => {
    await using scene = await openScene({ reply: goesOn })
    const first = [user('Hello'), assistant('a frog leaps in.')]
    await scene.chat(first.slice(0, 1))
    await scene.chat([...first, ...begun])
    await scene.chat([...first, user('Write a poem.'), assistant('New pond,')])
    expect((await scene.said()).slice(2)).toEqual(['user: Write a poem.', 'assistant: New pond, a frog leaps in.'])
    expect(await scene.branches()).toEqual({ 4: ['assistant: Old pond, a frog leaps in.'] })
  })

  it('is paid for out of the budget', async () => {
    await using scene = await openScene({ reply: goesOn, memory: { profile: { ...profiles.thread, budget: 200 } } })
    for (const turn of [1, 2, 3, 4]) await scene.chat([user(`Turn ${turn}: ${'a long story '.repeat(8)}`)])
    const answer = await scene.chat([user('Write a poem.'), assistant('Old pond, '.repeat(20))])
    expect(told(answer)).toEqual([`${sent(scene)}/200`, null])
    expect(sent(scene)).toBeLessThanOrEqual(200)
    expect(scene.model.requests.at(-1)?.body.messages.length).toBeGreaterThan(2)
  })
})

describe('a message that a client tells at greater length inside a tool loop', () => {
  const reply = (asked: string) =>
    asked === 'What is X?' ? { calls: [{ id: 'call_1', name: 'look', input: {} }] } : { text: 'Well.' }
  const call = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
  }
  const loop = (words: number) => [
    user(`What is X?\n<context>${'lorem ipsum dolor '.repeat(words)}</context>`),
    call,
    { role: 'tool', tool_call_id: 'call_1', content: '42' },
  ]
  /** A session in which X was asked for after some turns, and then as many words more than were stored are sent with the result. */
  const dressed = async (scene: Scene, words: number): Promise<Answered> => {
    for (const turn of [1, 2, 3, 4, 5, 6]) await scene.chat([user(`Turn ${turn}: ${'a long story '.repeat(20)}`)])
    await scene.chat([user('What is X?')])
    return scene.chat(loop(words))
  }

  it.each([1, 20, 100, 150])('is counted as it is sent: %s times as long', async (words) => {
    await using scene = await openScene({ reply, memory: { profile: { ...profiles.thread, budget: 800 } } })
    const answer = await dressed(scene, words)
    expect(told(answer)).toEqual([`${sent(scene)}/800`, null])
    expect(sent(scene)).toBeLessThanOrEqual(800)
    expect(scene.model.requests.at(-1)?.body.messages.slice(-3)).toEqual(loop(words))
    expect((await scene.said()).slice(-4)).toEqual(['user: What is X?', 'assistant: ', 'tool: 42', 'assistant: Well.'])
  })

  it('goes to the model as it is when it leaves no room, and the client is told', async () => {
    await using scene = await openScene({ reply, memory: { profile: { ...profiles.thread, budget: 800 } } })
    const answer = await dressed(scene, 5_000)
    expect(scene.model.requests.at(-1)?.body.messages).toEqual(loop(5_000))
    expect(told(answer)).toEqual([`${sent(scene)}/800`, 'budget'])
    expect(sent(scene)).toBeGreaterThan(15_000)
  })
})
