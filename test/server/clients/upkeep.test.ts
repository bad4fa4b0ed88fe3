import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { sampleMessages } from '../../scenarios/sampleTurns.ts'
import { createHarness, type Harness } from './harness.ts'
import { failWith, type ReceivedRequest, replyWith, type ScriptedResponse, startModelServer } from './modelServer.ts'

const key = 'demo:ann'
const model = 'gpt-4o'

/** Sends a message and returns the `x-threadkeep-degraded` header of the response. */
type SendMessage = (harness: Harness, content: string) => Promise<string | null>

const sendChat: SendMessage = async ({ url }, content) => {
  const { chat } = new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await chat.completions
    .create({ model, seed: 1, messages: [{ role: 'user', content }] })
    .withResponse()
  expect(data.choices[0]?.message.content).toBe('Noted.')
  return response.headers.get('x-threadkeep-degraded')
}
const sendResponse: SendMessage = async ({ url }, content) => {
  const { responses } = new OpenAI({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await responses.create({ model, input: content }).withResponse()
  expect(data.output_text).toBe('Noted.')
  return response.headers.get('x-threadkeep-degraded')
}
const sendMessage: SendMessage = async ({ url }, content) => {
  const { messages } = new Anthropic({ baseURL: `${url}/v1/${key}`, apiKey: 'sk-client', maxRetries: 0 })
  const { data, response } = await messages
    .create({ model, max_tokens: 50, messages: [{ role: 'user', content }] })
    .withResponse()
  expect(data.content).toMatchObject([{ type: 'text', text: 'Noted.' }])
  return response.headers.get('x-threadkeep-degraded')
}

/** Sends the key in the x-api-key header, as older Anthropic clients do. */
const sendMessageWithApiKey: SendMessage = async ({ url }, content) => {
  const response = await fetch(`${url}/v1/${key}/v1/messages`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-api-key': 'sk-client', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify({ model, max_tokens: 50, messages: [{ role: 'user', content }] }),
  })
  expect([response.status, await response.json()]).toMatchObject([200, { content: [{ text: 'Noted.' }] }])
  return response.headers.get('x-threadkeep-degraded')
}

/** Recognizes upkeep requests: chat completions without the seed that the test client sends. */
const isUpkeep = ({ path, body }: ReceivedRequest): boolean =>
  path === '/v1/chat/completions' && body.seed === undefined

/** Sends messages until there is a summary. */
async function sendUntilSummary(harness: Harness, send: SendMessage): Promise<void> {
  for (let turn = 0; (await harness.memory.upkeep.summaries(key)).length === 0; turn++) {
    const texts = sampleMessages(40 * turn, 40).map(({ content }) => content)
    await send(harness, texts.join(' '))
    await harness.memory.upkeep.whenIdle()
  }
}

describe('upkeep with a failing model', () => {
  for (const [name, send] of Object.entries({
    'chat completions': sendChat,
    responses: sendResponse,
    messages: sendMessage,
  })) {
    verifies('C-11', `retries once, then uses the built-in summary and reports it to clients: ${name}`, async () => {
      const script = (request: ReceivedRequest): ScriptedResponse =>
        isUpkeep(request) ? failWith(500) : replyWith('Noted.')
      await using harness = await createHarness(script)
      await sendUntilSummary(harness, send)
      const upkeepRequests = harness.model.requests.filter(isUpkeep)
      // One request for summary and facts, sent twice.
      expect(upkeepRequests.map(({ body, headers }) => [body.model, headers.authorization])).toEqual(
        Array(2).fill([model, 'Bearer sk-client']),
      )
      expect(await harness.memory.upkeep.summaries(key)).toMatchObject([{ by: 'builtin', version: 1 }])
      expect(await send(harness, 'What comes next?')).toContain('summary-failed')
      expect(await (await fetch(`${harness.url}/healthz`)).json()).toMatchObject({ status: 'degraded' })
      const receipts = (await (await fetch(`${harness.url}/api/sessions/${key}/receipts?limit=1`)).json()) as {
        items: { degraded: { code: string; message: string }[] }[]
      }
      expect(receipts.items[0]?.degraded).toContainEqual({
        code: 'summary-failed',
        message:
          'The summary from the model could not be created because the request failed; the built-in summary was used.',
      })
    })
  }
})

describe('upkeep', () => {
  it('uses the client key from either header', async () => {
    await using harness = await createHarness((request) => replyWith(isUpkeep(request) ? 'A summary.' : 'Noted.'))
    await sendUntilSummary(harness, sendMessageWithApiKey)
    const upkeepRequests = harness.model.requests.filter(isUpkeep).map(({ headers }) => headers.authorization)
    expect(new Set(upkeepRequests)).toEqual(new Set(['Bearer sk-client']))
  })

  it('uses the Anthropic protocol with an Anthropic upstream', async () => {
    const isClientRequest = ({ body }: ReceivedRequest): boolean => body.max_tokens === 50
    await using harness = await createHarness(
      (request) => replyWith(isClientRequest(request) ? 'Noted.' : 'A summary.'),
      'anthropic',
    )
    await sendUntilSummary(harness, sendMessageWithApiKey)
    const upkeepRequests = harness.model.requests
      .filter((request) => !isClientRequest(request))
      .map(({ path, headers }) => `${path} ${headers['x-api-key']}`)
    expect(new Set(upkeepRequests)).toEqual(new Set(['/v1/messages sk-client']))
    // The summary was parsed and rejected.
    expect(harness.memory.health().degraded).toContainEqual(
      expect.objectContaining({ step: 'summary', why: 'refused, no content' }),
    )
  })

  it('never sends a client key to another upstream', async () => {
    await using other = await startModelServer(replyWith('A summary.'))
    await using harness = await createHarness(replyWith('Noted.'), 'anthropic', [
      { base: other.url, protocol: 'openai' },
    ])
    await sendUntilSummary(harness, sendMessage)
    await fetch(`${harness.url}/v1/models`, { headers: { 'x-api-key': 'sk-client' } })
    expect(other.requests).toEqual([])
  })
})
