import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setImmediate as nextRound } from 'node:timers/promises'
import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { findRequestErrors } from '../clients/requestRules.ts'
import { chatFormat, messagesFormat } from '../clients/responseFormats.ts'
import { assistant, startServer, type TestServer, user } from '../start.ts'

type Step = 'abort 1' | 'question 2' | 'reply 1' | 'reply 2'
type Body = {
  readonly stream?: boolean
  readonly messages: readonly { readonly role: string; readonly content: unknown }[]
}

/** The texts of a message, given as a string or as parts. */
const textsOf = (content: unknown): readonly string[] =>
  Array.isArray(content) ? content.map((part: { readonly text?: string }) => part.text ?? '') : [String(content ?? '')]

/** A model server that begins each streamed reply at once and ends it when the test says so. */
async function startControlledModel() {
  const requests: { readonly path: string; readonly body: Body }[] = []
  const finish = new Map<string, () => void>()
  const server = createServer(async (request, response) => {
    const body = (await json(request)) as Body
    const path = request.url ?? ''
    requests.push({ path, body })
    const question = textsOf(body.messages.at(-1)?.content).at(-1) ?? ''
    const format = path.endsWith('/messages') ? messagesFormat : chatFormat
    const events = format.formatEvents({ text: `Re: ${question}` }, requests.length, body)
    if (body.stream === true) {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(events.slice(0, -3).join(''))
    }
    const end = (): ServerResponse =>
      body.stream === true
        ? response.end(events.slice(-3).join(''))
        : response
            .writeHead(200, { 'content-type': 'application/json' })
            .end(JSON.stringify(format.formatBody({ text: `Re: ${question}` }, requests.length)))
    if (question === 'Three') end()
    else finish.set(question, end)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    /** Ends the reply to a question, once the model has received it. */
    finish: async (question: string) => {
      while (!finish.has(question)) await nextRound()
      finish.get(question)?.()
    },
    received: async (question: string) => {
      while (!finish.has(question)) await nextRound()
    },
    [Symbol.asyncDispose]: async () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const orders: readonly (readonly Step[])[] = permute<Step>(['abort 1', 'question 2', 'reply 1', 'reply 2']).filter(
  (order) => order.indexOf('question 2') < order.indexOf('reply 2'),
)

function permute<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]]
  return items.flatMap((item, index) => permute(items.toSpliced(index, 1)).map((rest) => [item, ...rest]))
}

/** Waits until no turn of the server runs. */
async function settle(server: TestServer): Promise<void> {
  for (let idle = 0; idle < 40; idle++) await nextRound()
  await new Promise((resolve) => setTimeout(resolve, 10))
  await server.memory.transcript('demo:ann')
}

describe.each([
  ['chat/completions', true],
  ['chat/completions', false],
  ['messages', true],
] as const)('turns of one session, %s, streamed: %s', (path, stream) => {
  for (const history of ['thin', 'full'] as const)
    for (const isHurried of stream && path !== 'messages' ? [false, true] : [true])
      verifies(
        ['T-15', 'X-03'],
        `a ${history} client that aborts the first${isHurried ? ' at once' : ''} › finds pairs in order and a valid prompt`,
        async () => {
          for (const order of orders) {
            await using model = await startControlledModel()
            await using server = await startServer({ upstream: model.url })
            const send = (messages: readonly object[], signal?: AbortSignal): Promise<string> =>
              fetch(`${server.url}/v1/demo:ann/${path}`, {
                method: 'POST',
                headers: { 'content-type': 'application/json', 'x-threadkeep-history': history },
                body: JSON.stringify({ model: 'test-model', max_tokens: 50, stream, messages }),
                ...(signal && { signal }),
              })
                .then((response) => response.text())
                .catch(() => 'aborted')
            const abort = new AbortController()
            const first = send([user('One')], abort.signal)
            await model.received('One')
            let second: Promise<string> | undefined
            const steps: Record<Step, () => Promise<unknown>> = {
              'abort 1': async () => abort.abort(),
              'question 2': async () => {
                second = send(history === 'thin' ? [user('Two')] : [user('One'), user('Two')])
                if (!isHurried) await model.received('Two')
              },
              'reply 1': () => model.finish('One'),
              'reply 2': () => model.finish('Two'),
            }
            for (const step of order) {
              await steps[step]()
              if (!isHurried) await settle(server)
            }
            await Promise.all([first, second])
            await settle(server)
            const before = await server.transcriptLines('demo:ann')
            const answered = before.includes('assistant: Re: One')
            const label = order.join(', ')
            expect([label, before]).toEqual([
              label,
              ['user: One', ...(answered ? ['assistant: Re: One'] : []), 'user: Two', 'assistant: Re: Two'],
            ])
            const sent = [user('One'), ...(answered ? [assistant('Re: One')] : []), user('Two'), assistant('Re: Two')]
            await send(history === 'thin' ? [user('Three')] : [...sent, user('Three')])
            const prompt = model.requests.at(-1)
            expect([label, findRequestErrors(prompt as never)]).toEqual([label, []])
            expect(prompt?.body.messages.flatMap(({ content }) => textsOf(content))).toEqual(
              [...sent, user('Three')].map(({ content }) => content),
            )
            expect(server.faults).toEqual([])
          }
        },
        60_000,
      )
})
