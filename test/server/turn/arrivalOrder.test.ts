import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { isCampaign, propertyTimeoutMs } from '../../context/campaign.ts'
import { startServer, user } from '../start.ts'

const rounds = isCampaign ? 1_000 : 25

type RawRequest = { readonly path: string; readonly body: unknown }

const encodeRequest = ({ path, body }: RawRequest, connection: 'keep-alive' | 'close'): string => {
  const json = JSON.stringify(body)
  return [
    `POST ${path} HTTP/1.1`,
    'host: 127.0.0.1',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(json)}`,
    `connection: ${connection}`,
    '',
    json,
  ].join('\r\n')
}

/** Sends both requests in one write over one connection, and returns the status of each response. */
async function sendPipelined(url: string, first: RawRequest, second: RawRequest): Promise<readonly string[]> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  socket.write(encodeRequest(first, 'keep-alive') + encodeRequest(second, 'close'))
  // The server closes the connection after the second response.
  const responses = await text(socket)
  return [...responses.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status ?? '')
}

/** Names its session in the body; the server looks the conversation up before the turn. */
const responseRequest = (id: string, question: string): RawRequest => ({
  path: '/v1/acme/responses',
  body: { model: 'offline', conversation: id, input: question },
})

/** Names its session in the path. */
const chatRequest = (id: string, question: string): RawRequest => ({
  path: `/v1/acme:${id}/chat/completions`,
  body: { model: 'offline', messages: [user(question)] },
})

describe('two pipelined requests of one session', () => {
  it.each([
    ['a response of a conversation before a chat completion', responseRequest, chatRequest],
    ['a chat completion before a response of a conversation', chatRequest, responseRequest],
  ])(
    '%s: the questions are stored in arrival order',
    async (_, firstRequest, secondRequest) => {
      await using server = await startServer({ memory: { store: 'ram:' } })
      for (let round = 1; round <= rounds; round++) {
        const { body } = await server.requestJson('POST /v1/acme/conversations', {})
        const { id } = body as { readonly id: string }
        const [first, second] = [`First question of round ${round}`, `Second question of round ${round}`]
        const statuses = await sendPipelined(server.url, firstRequest(id, first), secondRequest(id, second))
        expect(statuses).toEqual(['200', '200'])
        const transcript = await server.memory.transcript(`acme:${id}`)
        const questions = transcript.filter(({ role }) => role === 'user').map(({ content }) => content)
        expect(questions).toEqual([first, second])
      }
      expect(server.faults).toEqual([])
    },
    propertyTimeoutMs,
  )
})
