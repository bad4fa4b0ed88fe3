import { Agent } from 'undici'
import { expect } from 'vitest'
import { replyTo } from './echoModel.ts'

type ChatResponse = {
  readonly choices: readonly {
    readonly message?: { readonly content: string }
    readonly delta?: { readonly content?: string }
  }[]
}

/** A session under load; its messages contain its tag. */
export type LoadSession = { readonly key: string; readonly tag: string; turns: number }

/** Sessions spread over the tenants. */
export const createLoadSessions = (sessions: number, tenants: number, name = 's'): readonly LoadSession[] =>
  Array.from({ length: sessions }, (_, at) => ({
    key: `tenant${at % tenants}:${name}${at}`,
    tag: `tag${at}`,
    turns: 0,
  }))

export type LoadClients = AsyncDisposable & {
  /** Sends a message, checks the reply and returns the message. */
  sendTurn(session: LoadSession): Promise<string>
}

/** The usual length of a support question. */
const padding =
  ' It should have come on Tuesday, and nobody has told us when another driver will be here, so we would like to know what happens next.'

/** Clients with a connection pool; `length` multiplies the length of their messages. */
export function createLoadClients(url: string, connections: number, length = 1): LoadClients {
  const agent = new Agent({ connections })
  const sendTurn = async (session: LoadSession): Promise<string> => {
    const content = `Turn ${++session.turns} of ${session.tag}: where is parcel ${session.turns * 7} of mine?${padding.repeat(length)}`
    // Every second request is streamed.
    const stream = session.turns % 2 === 0
    const { statusCode, body } = await agent.request({
      ...{
        origin: url,
        path: `/v1/${session.key}/chat/completions`,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      },
      body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content }] }),
    })
    const text = await body.text()
    expect([statusCode, stream ? streamedText(text) : bufferedText(text)]).toEqual([200, replyTo(content)])
    return content
  }
  return { sendTurn, [Symbol.asyncDispose]: () => agent.close() }
}

const bufferedText = (text: string): string => (JSON.parse(text) as ChatResponse).choices[0]?.message?.content ?? text

function streamedText(text: string): string {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'))
  return events
    .map((event) => (JSON.parse(event.slice('data: '.length)) as ChatResponse).choices[0]?.delta?.content ?? '')
    .join('')
}

/** Runs the work with `concurrency` workers and returns all results. */
export async function runConcurrently<T, R>(
  concurrency: number,
  work: Iterable<T>,
  perform: (item: T) => Promise<R>,
): Promise<readonly R[]> {
  const [remaining, results]: [Iterator<T>, R[]] = [work[Symbol.iterator](), []]
  const worker = async (): Promise<void> => {
    for (let next = remaining.next(); next.done !== true; next = remaining.next())
      results.push(await perform(next.value))
  }
  await Promise.all(Array.from({ length: concurrency }, worker))
  return results
}
