import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { messagesOf } from '../../scenarios/turns.ts'
import { type Act, type Received, refuses, says, startModel } from './model.ts'
import { openStage, type Stage } from './stage.ts'

const key = 'demo:ann'
const model = 'gpt-4o'

/** What a client is told beside its reply: what did not go as it should. */
type Asking = (stage: Stage, content: string) => Promise<string | null>

const byChat: Asking = async ({ url }, content) => {
  const { chat } = new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await chat.completions
    .create({ model, seed: 1, messages: [{ role: 'user', content }] })
    .withResponse()
  expect(data.choices[0]?.message.content).toBe('Noted.')
  return response.headers.get('x-threadkeep-degraded')
}
const byResponses: Asking = async ({ url }, content) => {
  const { responses } = new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await responses.create({ model, input: content }).withResponse()
  expect(data.output_text).toBe('Noted.')
  return response.headers.get('x-threadkeep-degraded')
}
const byMessages: Asking = async ({ url }, content) => {
  const { messages } = new Anthropic({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await messages
    .create({ model, max_tokens: 50, messages: [{ role: 'user', content }] })
    .withResponse()
  expect(data.content).toMatchObject([{ type: 'text', text: 'Noted.' }])
  return response.headers.get('x-threadkeep-degraded')
}

/** Older clients of Anthropic bring their key in a header of its own. */
const byOlderMessages: Asking = async ({ url }, content) => {
  const response = await fetch(`${url}/v1/${key}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-client', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content }] }),
  })
  expect([response.status, await response.json()]).toMatchObject([200, { content: [{ text: 'Noted.' }] }])
  return response.headers.get('x-threadkeep-degraded')
}

/** Clients ask in their protocol, and by chat with a seed; upkeep asks by chat. */
const isUpkeep = ({ path, body }: Received): boolean => path === '/v1/chat/completions' && body.seed === undefined

/** Asks until there is a summary. */
async function talkLong(stage: Stage, asking: Asking): Promise<void> {
  for (let turn = 0; (await stage.memory.upkeep.summaries(key)).length === 0; turn++) {
    const words = messagesOf(40 * turn, 40).map(({ content }) => content)
    await asking(stage, words.join(' '))
    await stage.memory.upkeep.settled()
  }
}

describe('a model server that does its clients well and upkeep badly', () => {
  for (const [name, asking] of Object.entries({
    'chat completions': byChat,
    responses: byResponses,
    messages: byMessages,
  })) {
    verifies(
      'C-11',
      `is asked once more, then the built-in summary serves, and clients are told: ${name}`,
      async () => {
        const script = (request: Received): Act => (isUpkeep(request) ? refuses(500) : says('Noted.'))
        await using stage = await openStage(script)
        await talkLong(stage, asking)
        const asked = stage.model.requests.filter(isUpkeep)
        // For a summary and for the facts in it, each of them twice.
        expect(asked.map(({ body, headers }) => [body.model, headers.authorization])).toEqual(
          Array(4).fill([model, 'Bearer sk-client']),
        )
        expect(await stage.memory.upkeep.summaries(key)).toMatchObject([{ by: 'builtin', version: 1 }])
        expect(await asking(stage, 'What comes next?')).toContain('summary failed')
        expect(await (await fetch(`${stage.url}/healthz`)).json()).toMatchObject({ status: 'degraded' })
        const receipts = (await (await fetch(`${stage.url}/api/sessions/${key}/receipts?limit=1`)).json()) as {
          items: { degraded: string[] }[]
        }
        expect(receipts.items[0]?.degraded).toContain('summary failed')
      },
    )
  }
})

describe('upkeep', () => {
  it('asks with the key of the client, whichever header that comes in', async () => {
    await using stage = await openStage((request) => says(isUpkeep(request) ? 'A summary.' : 'Noted.'))
    await talkLong(stage, byOlderMessages)
    const asked = stage.model.requests.filter(isUpkeep).map(({ headers }) => headers.authorization)
    expect(new Set(asked)).toEqual(new Set(['Bearer sk-client']))
  })

  it('asks where the client asks, by its protocol, where that is Anthropic’s alone', async () => {
    const isOwn = ({ body }: Received): boolean => body.max_tokens === 50
    await using stage = await openStage((request) => says(isOwn(request) ? 'Noted.' : 'A summary.'), 'anthropic')
    await talkLong(stage, byOlderMessages)
    const asked = stage.model.requests
      .filter((request) => !isOwn(request))
      .map(({ path, headers }) => `${path} ${headers['x-api-key']}`)
    expect(new Set(asked)).toEqual(new Set(['/v1/messages sk-client']))
    // What it says was read, and found wanting.
    expect(stage.memory.health().degraded).toContainEqual(
      expect.objectContaining({ step: 'summary', why: 'refused, too short' }),
    )
  })

  it('shows the key of a client to no other model server than the one it was meant for', async () => {
    await using other = await startModel(says('A summary.'))
    await using stage = await openStage(says('Noted.'), 'anthropic', [{ base: other.url, protocol: 'openai' }])
    await talkLong(stage, byMessages)
    await fetch(`${stage.url}/v1/models`, { headers: { 'x-api-key': 'sk-client' } })
    expect(other.requests).toEqual([])
  })
})
