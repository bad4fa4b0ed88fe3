import { afterAll, beforeAll, describe, expect } from 'vitest'
import { type Behaviour, replyWith, respondWithStatus, startUpstream } from '../../providers/upstream.ts'
import { verifies } from '../../requirements/verifies.ts'
import { assistant, startServer, type TestServer, user } from '../start.ts'
import { ann } from './testSession.ts'

const turnCount = 4

type Protocol = { readonly name: string; readonly path: string; readonly fields: object }
const protocols: readonly Protocol[] = [
  { name: 'chat completions', path: 'chat/completions', fields: {} },
  { name: 'messages', path: 'v1/messages', fields: { max_tokens: 100 } },
]

/** A full client resends its conversation, a thin client sends the new question alone. */
const historyModes = ['full', 'thin'] as const
type Client = { readonly protocol: Protocol; readonly history: (typeof historyModes)[number] }
const clients = protocols.flatMap((protocol) => historyModes.map((history): Client => ({ protocol, history })))

/** A way in which the upstream fails one request; `streamed` requests a stream. */
type Fault = { readonly name: string; readonly behaviour: Behaviour; readonly streamed?: boolean }
const error = '{"type":"error","error":{"type":"some_error","message":"No.","code":"no"}}'
const createStatusFault = (status: number): Fault => ({
  name: `status ${status}`,
  behaviour: respondWithStatus(status, {}, error),
})
const refusals = [400, 401, 413, 422, 429].map(createStatusFault)
const timeout: Fault = { name: 'no response', behaviour: { does: 'hang' } }
const interruptions: readonly Fault[] = [
  ...[500, 503].map(createStatusFault),
  timeout,
  { name: 'a connection closed before the reply', behaviour: { does: 'cut' } },
  {
    name: 'a connection closed in the middle of the reply',
    behaviour: { does: 'drop', pieces: ['Half an'] },
    streamed: true,
  },
]

type Message = { readonly role: string; readonly content: unknown }

/** Text of the messages that reached the upstream, in their order. */
const readTexts = (messages: readonly Message[]): readonly string[] =>
  messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.map((block: { readonly text: string }) => block.text) : [String(content)],
  )

/** Behaviour of the upstream at the next request of a model; each conversation has a model of its own. */
const behaviours = new Map<string, Behaviour>()

/** Starts a server in front of an upstream whose behaviour each conversation sets. */
async function startBackend(timeouts: Pick<NonNullable<Parameters<typeof startServer>[0]>, 'timeouts'>) {
  const upstream = await startUpstream(({ body }) => behaviours.get(body.model) ?? replyWith('Unused.'))
  return { upstream, server: await startServer({ upstream: upstream.url, retries: { tries: 1 }, ...timeouts }) }
}

type Backend = Awaited<ReturnType<typeof startBackend>>
let backends: Readonly<Record<'normal' | 'impatient', Backend>>
beforeAll(async () => {
  backends = {
    normal: await startBackend({}),
    // Only for the upstream that never responds: a busy machine must not cause other timeouts.
    impatient: await startBackend({ timeouts: { firstByte: 200, idle: 200 } }),
  }
})
afterAll(async () => {
  for (const { server, upstream } of Object.values(backends)) {
    await server.close(0)
    await upstream.close()
    expect(server.faults).toEqual([])
  }
})

let conversations = 0

/** A client in front of an upstream that can fail one request. */
function openConversation({ protocol, history }: Client, fault: Fault) {
  const { upstream, server } = backends[fault === timeout ? 'impatient' : 'normal']
  const number = ++conversations
  const [key, model] = [`${ann}${number}`, `m${number}`]
  const conversation: Message[] = []
  /** Sends a question; true if a whole reply arrived. */
  const send = async (question: string, behaviour: Behaviour, stream: boolean): Promise<boolean> => {
    behaviours.set(model, behaviour)
    const messages = history === 'thin' ? [user(question)] : [...conversation, user(question)]
    const headers = {
      'content-type': 'application/json',
      ...(history === 'thin' ? { 'x-threadkeep-history': 'thin' } : {}),
    }
    const body = JSON.stringify({ model, ...protocol.fields, messages, stream })
    const response = await fetch(`${server.url}/v1/${key}/${protocol.path}`, { method: 'POST', headers, body })
    const text = await response.text().catch(() => '"error"')
    return response.ok && !text.includes('"error"')
  }
  return {
    conversation,
    /** Asks a question that is answered. */
    ask: async (question: string, reply: string): Promise<void> => {
      expect(await send(question, replyWith(reply), false)).toBe(true)
      conversation.push(user(question), assistant(reply))
    },
    /** Asks a question at which the upstream fails. */
    fail: async (question: string): Promise<void> =>
      expect(await send(question, fault.behaviour, fault.streamed === true)).toBe(false),
    /** Texts of the newest prompt. */
    readPrompt: () => readTexts(upstream.requests.findLast(({ body }) => body.model === model)?.body.messages ?? []),
    readTranscript: () => readTranscript(server, key),
  }
}

async function readTranscript(server: TestServer, key: string): Promise<readonly string[]> {
  const { status, body } = await server.requestJson(`GET /api/sessions/${key}/messages`)
  // A session without any accepted message need not exist.
  return status === 404 ? [] : readTexts((body as { readonly items: readonly Message[] }).items)
}

type Conversation = ReturnType<typeof openConversation>

/** Asks the turns from `first` to `last` and checks that each prompt and the transcript have every accepted message once. */
async function askTurns(client: Conversation, first: number, last: number): Promise<void> {
  for (let turn = first; turn <= last; turn++) {
    const before = readTexts(client.conversation)
    await client.ask(`Question ${turn}`, `Answer ${turn}`)
    expect(client.readPrompt()).toEqual([...before, `Question ${turn}`])
  }
  expect(await client.readTranscript()).toEqual(readTexts(client.conversation))
}

/** Lets a question fail twice before it is answered. */
async function checkRetry(client: Client, fault: Fault, turn: number): Promise<void> {
  const conversation = openConversation(client, fault)
  await askTurns(conversation, 1, turn - 1)
  await conversation.fail(`Question ${turn}`)
  await conversation.fail(`Question ${turn}`)
  await askTurns(conversation, turn, turnCount + 1)
}

const turns = Array.from({ length: turnCount }, (_, index) => index + 1)

for (const client of clients) {
  describe(`a ${client.history} client, ${client.protocol.name}`, () => {
    for (const fault of refusals)
      for (const turn of turns)
        verifies('F-03', `turn ${turn}, ${fault.name} › leaves no trace of the refused message`, async () => {
          const conversation = openConversation(client, fault)
          await askTurns(conversation, 1, turn - 1)
          await conversation.fail('A refused question')
          expect(await conversation.readTranscript()).toEqual(readTexts(conversation.conversation))
          await askTurns(conversation, turn, turnCount + 1)
        })

    for (const fault of [...refusals.filter(({ name }) => name === 'status 429'), ...interruptions]) {
      const title = `${fault.name} and a retry › stores the question once`
      // Timers of the HTTP client are coarse: one after the other, the turns would wait for half a minute.
      if (fault === timeout)
        verifies('F-03', title, async () => {
          await Promise.all(turns.map((turn) => checkRetry(client, fault, turn)))
        })
      else for (const turn of turns) verifies('F-03', `turn ${turn}, ${title}`, () => checkRetry(client, fault, turn))
    }

    for (const fault of interruptions)
      verifies('F-03', `${fault.name} and another question › keeps the unanswered question`, async () => {
        const conversation = openConversation(client, fault)
        await askTurns(conversation, 1, 2)
        await conversation.fail('An unanswered question')
        conversation.conversation.push(user('An unanswered question'))
        expect(await conversation.readTranscript()).toEqual(readTexts(conversation.conversation))
        await askTurns(conversation, 3, turnCount)
      })
  })
}
