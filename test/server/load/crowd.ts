import { Agent } from 'undici'
import { expect } from 'vitest'
import { replyTo } from './echo.ts'

type Whole = {
  readonly choices: readonly {
    readonly message?: { readonly content: string }
    readonly delta?: { readonly content?: string }
  }[]
}

/** A session somebody talks in; what is said in it bears its tag. */
export type Talk = { readonly key: string; readonly tag: string; turns: number }

/** So many sessions, spread over the tenants. */
export const talksOf = (sessions: number, tenants: number, name = 's'): readonly Talk[] =>
  Array.from({ length: sessions }, (_, at) => ({
    key: `tenant${at % tenants}:${name}${at}`,
    tag: `tag${at}`,
    turns: 0,
  }))

export type Crowd = AsyncDisposable & {
  /** Says something in a session and checks the reply; resolves to what was said. */
  say(talk: Talk): Promise<string>
}

/** About as long as what people write to a shop. */
const rest =
  ' It should have come on Tuesday, and nobody has told us when another driver will be here, so we would like to know what happens next.'

/** Clients with so many connections to a server; `length` says how much they write, one being usual. */
export function crowdAt(url: string, connections: number, length = 1): Crowd {
  const agent = new Agent({ connections })
  const say = async (talk: Talk): Promise<string> => {
    const content = `Turn ${++talk.turns} of ${talk.tag}: where is parcel ${talk.turns * 7} of mine?${rest.repeat(length)}`
    // Every other one as a stream.
    const stream = talk.turns % 2 === 0
    const { statusCode, body } = await agent.request({
      ...{
        origin: url,
        path: `/v1/${talk.key}/chat/completions`,
        method: 'POST',
        headers: { 'content-type': 'application/json' },
      },
      body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content }] }),
    })
    const text = await body.text()
    expect([statusCode, stream ? streamed(text) : whole(text)]).toEqual([200, replyTo(content)])
    return content
  }
  return { say, [Symbol.asyncDispose]: () => agent.close() }
}

const whole = (text: string): string => (JSON.parse(text) as Whole).choices[0]?.message?.content ?? text

function streamed(text: string): string {
  const events = text.split('\n\n').filter((event) => event.startsWith('data: {'))
  return events
    .map((event) => (JSON.parse(event.slice('data: '.length)) as Whole).choices[0]?.delta?.content ?? '')
    .join('')
}

/** So many at a time take the next piece of work until there is none; resolves to what came of all of them. */
export async function abreast<T, R>(
  many: number,
  work: Iterable<T>,
  take: (one: T) => Promise<R>,
): Promise<readonly R[]> {
  const [rest, results]: [Iterator<T>, R[]] = [work[Symbol.iterator](), []]
  const worker = async (): Promise<void> => {
    for (let next = rest.next(); next.done !== true; next = rest.next()) results.push(await take(next.value))
  }
  await Promise.all(Array.from({ length: many }, worker))
  return results
}
