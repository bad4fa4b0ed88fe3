import { describe, expect } from 'vitest'
import { verifies } from '../../requirements/verifies.ts'
import { startRecordingServer } from '../recordingServer.ts'
import { assistant, startServer, toLines, user } from '../start.ts'

type Answer = { readonly status: number; readonly text: string }

/** A server in front of a model whose answers the test gives one by one, in the order of the requests. */
async function openSession() {
  const waiting: ((answer: Answer) => void)[] = []
  const upstream = await startRecordingServer((_, response) => {
    waiting.push(({ status, text }) => {
      const body = status === 200 ? { choices: [{ index: 0, message: assistant(text) }] } : { error: { message: text } }
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
  })
  const server = await startServer({ upstream: upstream.url, retries: { tries: 1 } })
  const send = (messages: readonly object[], headers = {}) => {
    const sent = waiting.length
    const answered = server.postChat('demo:ann', { model: 'm', messages }, { 'user-agent': 'app/1', ...headers })
    const arrived = waitUntil(() => waiting.length > sent)
    return {
      arrived,
      answer: async (status: number, text: string) => {
        await arrived
        waiting[sent]?.({ status, text })
        await (await answered).text()
      },
    }
  }
  return {
    send,
    ask: (messages: readonly object[], status: number, text: string, headers = {}) =>
      send(messages, headers).answer(status, text),
    transcript: async () => toLines(await server.memory.transcript('demo:ann')),
    [Symbol.asyncDispose]: async () => {
      await server.close(0)
      await upstream[Symbol.asyncDispose]()
    },
  }
}

async function waitUntil(isReady: () => boolean): Promise<void> {
  while (!isReady()) await new Promise(setImmediate)
}

describe('a refused turn', () => {
  const opening = [user('One'), assistant('First')]

  verifies('F-03', 'sent twice at once, once accepted › keeps the question and its answer', async () => {
    await using session = await openSession()
    await session.ask([user('One')], 200, 'First')
    const refused = session.send([...opening, user('Two')])
    await refused.arrived
    const accepted = session.send([...opening, user('Two')])
    await accepted.answer(200, 'Second')
    await refused.answer(400, 'No')
    expect(await session.transcript()).toEqual(['user: One', 'assistant: First', 'user: Two', 'assistant: Second'])
  })

  verifies('F-03', 'sent twice at once, refused before the other is accepted › keeps the question', async () => {
    await using session = await openSession()
    await session.ask([user('One')], 200, 'First')
    const refused = session.send([...opening, user('Two')])
    await refused.arrived
    const accepted = session.send([...opening, user('Two')])
    await accepted.arrived
    await refused.answer(400, 'No')
    await accepted.answer(200, 'Second')
    expect(await session.transcript()).toEqual(['user: One', 'assistant: First', 'user: Two', 'assistant: Second'])
  })

  verifies('F-03', 'sent twice at once, both refused › leaves nothing', async () => {
    await using session = await openSession()
    await session.ask([user('One')], 200, 'First')
    const one = session.send([...opening, user('Two')])
    await one.arrived
    const other = session.send([...opening, user('Two')])
    await other.arrived
    await one.answer(400, 'No')
    await other.answer(400, 'No')
    expect(await session.transcript()).toEqual(['user: One', 'assistant: First'])
  })

  verifies('F-03', 'retried with the words of an earlier turn › does not touch that turn', async () => {
    await using session = await openSession()
    await session.ask([user('Tell a story')], 200, 'Part 1')
    await session.ask([user('continue')], 200, 'Part 2')
    await session.ask([user('continue')], 429, 'Slow down')
    await session.ask([user('continue')], 200, 'Part 3', { 'x-stainless-retry-count': '1' })
    expect(await session.transcript()).toEqual([
      'user: Tell a story',
      'assistant: Part 1',
      'user: continue',
      'assistant: Part 2',
      'user: continue',
      'assistant: Part 3',
    ])
  })

  verifies('F-03', 'that edited a message, after a newer edit › does not bring the old messages back', async () => {
    await using session = await openSession()
    await session.ask([user('One')], 200, 'First')
    await session.ask([...opening, user('Two')], 200, 'Second')
    const refused = session.send([...opening, user('Two, edited')])
    await refused.arrived
    await session.ask([...opening, user('Two, edited twice')], 200, 'Third')
    await refused.answer(400, 'No')
    expect(await session.transcript()).toEqual([
      'user: One',
      'assistant: First',
      'user: Two, edited twice',
      'assistant: Third',
    ])
  })
})
