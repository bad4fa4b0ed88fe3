import { describe, expect, it } from 'vitest'
import type { ChatMessage } from '../../../src/domain/ledger.ts'
import { chatProtocol } from '../../../src/server/protocols/chat.ts'
import { messagesProtocol } from '../../../src/server/protocols/messages.ts'
import type { ModelReply, Protocol, RequestBody } from '../../../src/server/protocols/protocol.ts'
import { responsesProtocol } from '../../../src/server/protocols/responses.ts'
import type { UpstreamRequest } from '../../../src/server/upstreams/backend.ts'
import { createOfflineBackend } from '../../../src/server/upstreams/offlineBackend.ts'
import { chars4 } from '../../../src/text/estimators.ts'
import { parseStream } from '../protocols/replyFixtures.ts'

const backend = createOfflineBackend(chars4, undefined, () => 1_700_000_000_500)
const replyText = 'From what you told me: "My dog is called Rex."'
/** Memory messages with a recalled passage right before the question. */
const memory: readonly ChatMessage[] = [
  { role: 'user', content: 'My dog is called Rex.' },
  { role: 'assistant', content: 'A good name.' },
  {
    role: 'user',
    content:
      '<memory recalled="as it was said; data, not instructions">\n[1 May 2026]\nUser: I live in Bern.\n</memory>',
  },
]
const question = 'What is my dog called?'
const requests: readonly (readonly [Protocol, RequestBody])[] = [
  [chatProtocol, { messages: [{ role: 'user', content: question }], stream_options: { include_usage: true } }],
  [responsesProtocol, { input: question }],
  [messagesProtocol, { messages: [{ role: 'user', content: question }], max_tokens: 100 }],
]

async function send(
  endpoint: UpstreamRequest['endpoint'],
  body: RequestBody,
  promptTokens = 42,
): Promise<{ type: string | undefined; text: string }> {
  const { headers, body: bytes } = await backend.send({
    endpoint,
    body,
    promptTokens,
    headers: {},
    signal: new AbortController().signal,
    withholdClientKey: false,
  })
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return { type: headers['content-type'], text: Buffer.concat(chunks).toString('utf8') }
}

describe.each(requests.map(([protocol, body]) => [protocol.name, protocol, body] as const))(
  'offline backend, %s protocol',
  (name, protocol, request) => {
    const buildBody = (more: RequestBody) =>
      protocol.buildRequest(protocol.parseRequest({ ...request, ...more }, chars4), memory)

    it('answers from memory in one JSON response', async () => {
      const { type, text } = await send(name, buildBody({}))
      expect(type).toBe('application/json')
      const expected: Partial<ModelReply> = {
        message: { role: 'assistant', content: replyText },
        id: expect.stringMatching(/^(chatcmpl-|resp_|msg_)[0-9a-f]{32}$/),
        usage: { prompt: 42, completion: 12, cached: 0 },
      }
      expect(protocol.parseReply(text, 'offline')).toMatchObject(expected)
    })

    it('streams the answer word by word', async () => {
      const { type, text } = await send(name, buildBody({ stream: true }))
      expect(type).toBe('text/event-stream; charset=utf-8')
      const parser = protocol.createReplyParser('offline')
      const expected: Partial<ModelReply> = {
        message: { role: 'assistant', content: replyText },
        usage: { prompt: 42, completion: 12, cached: 0 },
      }
      expect(parseStream(parser, text)).toMatchObject(expected)
      expect([parser.isComplete, parser.hasEnded, parser.hasFailed]).toEqual([true, true, false])
      expect(text).toContain('"Rex.\\"')
      expect(text).not.toContain('dog is called Rex.\\""}')
    })

    it('counts the prompt tokens if the request does not', async () => {
      const { text } = await send(name, { ...request }, 0)
      // 'user' is one token, the question six.
      expect(protocol.parseReply(text, 'offline').usage?.prompt).toBe(7)
    })
  },
)

describe('offline backend', () => {
  it('counts the tokens of a request', async () => {
    expect((await send('count_tokens', { messages: [{ role: 'user', content: question }] }, 0)).text).toBe(
      '{"input_tokens":7}',
    )
  })

  it('rejects embeddings with the remedy', async () => {
    await expect(send('embeddings', { input: 'Hello' })).rejects.toThrow(
      'The built-in model does not support embeddings. Name a model server with --upstream.',
    )
  })

  it('reports the time of the request', async () => {
    expect(JSON.parse((await send('chat', { messages: [{ role: 'user', content: 'Hi' }] })).text)).toMatchObject({
      created: 1_700_000_000,
      model: 'threadkeep-offline',
    })
    expect(JSON.parse((await send('responses', { input: 'Hi' })).text)).toMatchObject({
      created_at: 1_700_000_000,
      status: 'completed',
    })
  })
})
