import type { About, Message, Millis, Said } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, type Key, outboxKey, parseKey, type Scope } from '../domain/key.ts'
import type { Store } from '../domain/ports.ts'
import type { Gap, Head } from '../domain/session.ts'
import { endId, type Reason, type SessionEnd } from './ending.ts'

/** An end that waits to be told: where it is kept, how often it was tried, and when it is to be tried again. */
export type Waiting = {
  readonly scope: Scope
  readonly epoch: number
  readonly message: string
  readonly attempts: number
  readonly next: Millis
}

/** What is told of an end, and which life of the session has ended. */
export type Told = {
  readonly id: string
  readonly key: string
  readonly epoch: number
  readonly reason: Reason
  readonly data: SessionEnd
}

const everything = Number.MAX_SAFE_INTEGER
/** An outbox that has been empty for so long goes too. */
const day = 86_400_000
/** What others keep undoing is given up at last. */
const mostRounds = 1_000

/**
 * Ends of sessions that nobody has heard of yet, in the store in which the sessions are. Each is a message without words
 * that asks for one call: what has no words is neither found nor embedded.
 */
export class Outbox {
  private readonly store: Store

  constructor(store: Store) {
    this.store = store
  }

  /** Keeps the end of a session, once, however many find it; undefined if the session is gone. Resolves to the id of the message it is. */
  async put(session: Head, reason: Reason, now: Millis): Promise<string | undefined> {
    let id = endId(session)
    for (let round = 0; round < mostRounds; round++) {
      // Read first: if the session is forgotten from here on, its outbox changes, and nothing is kept.
      const box = await this.begun(session.key.scope, now)
      const said = callOf(await this.told(session, reason), now)
      if ((await this.store.head(session.key, 0)).epoch !== session.epoch) return undefined
      try {
        const [kept] = await this.store.commit({ ...blank(box, now), id, base: box.revision, append: [said] })
        if (kept !== undefined) return kept.id
        // It was withdrawn, because the session had not ended after all.
        id = `${endId(session)}:${session.revision}`
      } catch (error) {
        if (!(error instanceof MemoryError && (error.code === 'conflict' || error.code === 'erased'))) throw error
      }
    }
    throw new MemoryError('conflict', `Others write to the outbox of ${session.key.scope} without pause. Try again.`)
  }

  /** Takes back the end of a session that goes on. */
  async withdraw({ scope }: Key, message: string): Promise<void> {
    await this.store.erase(outboxKey(scope), { entries: [message] })
  }

  /** What waits in a scope. */
  async waiting(scope: Scope): Promise<readonly Waiting[]> {
    const { epoch, last, gaps, derived } = await this.store.head(outboxKey(scope), 0)
    const tries = new Map(
      derived.flatMap((entry) => (entry.kind === 'about' ? [[entry.id, triesOf(entry)] as const] : [])),
    )
    return present(gaps, last).map((sequence) => {
      const message = `m${sequence}`
      return { scope, epoch, message, ...(tries.get(triesId(message)) ?? { attempts: 0, next: 0 }) }
    })
  }

  /** What is to be told; undefined when it was told or forgotten meanwhile, and while the session is still there: it may yet be used. */
  async read({ scope, message }: Waiting): Promise<Told | undefined> {
    const sequence = Number(message.slice(1))
    const [found] = await this.store.page(outboxKey(scope), { after: sequence - 1, before: sequence + 1, limit: 1 })
    const told = found && toldIn(found)
    if (told === undefined) return undefined
    const { epoch, revision } = await this.store.head(parseKey(told.key), 0)
    return revision > 0 && epoch === told.epoch ? undefined : told
  }

  /** Notes when something that waits is to be tried next. */
  async postpone(waiting: Waiting, now: Millis): Promise<void> {
    const { scope, epoch, message, attempts, next } = waiting
    const tries: About = { kind: 'about', id: triesId(message), at: now, metadata: { attempts, next }, sources: [] }
    await this.store.commit({ ...blank({ key: outboxKey(scope), epoch }, now), put: [tries] })
  }

  /** Forgets an end that was told. */
  async done({ scope, message }: Waiting): Promise<void> {
    await this.store.erase(outboxKey(scope), { entries: [message, triesId(message)] })
  }

  /** The scopes in which something waits: for who has just begun, and cannot know. */
  async *scopes(): AsyncIterable<Scope> {
    for (let after = ''; ; ) {
      const [next] = await this.store.list({ after, limit: 1 })
      if (next === undefined) return
      const { scope } = next.key
      if ((await this.store.head(outboxKey(scope), 0)).messages > 0) yield scope
      // No key holds this letter, and all of them come before it.
      after = `${scope}:~`
    }
  }

  /** The outbox of a scope. One that is not there could not change. */
  private async begun(scope: Scope, now: Millis): Promise<Head> {
    const box = await this.store.head(outboxKey(scope), 0)
    if (box.revision > 0) return box
    await this.store.commit(blank(box, now))
    return this.store.head(box.key, 0)
  }

  private async told(session: Head, reason: Reason): Promise<Told> {
    const { key, epoch, startedAt, touchedAt, derived } = session
    const messages = await this.store.page(key, { limit: everything })
    const summaries = derived.flatMap((entry) =>
      entry.kind === 'summary' ? [{ text: entry.text, covers: entry.covers, tier: entry.tier }] : [],
    )
    const data = { messages, summaries, createdAt: startedAt, lastAccessed: touchedAt, messageCount: messages.length }
    return { id: endId(session), key: formatKey(key), epoch, reason, data }
  }
}

/** What waits to be told of a session. */
export async function endsOf(store: Store, key: Key): Promise<readonly string[]> {
  const waiting = await store.page(outboxKey(key.scope), { limit: everything })
  const own = waiting.filter(({ calls: [call] = [] }) => call?.id.startsWith(`end:${formatKey(key)}:`))
  return own.flatMap(({ id }) => [id, triesId(id)])
}

const blank = ({ key, epoch }: Pick<Head, 'key' | 'epoch'>, now: Millis) => ({
  key,
  at: now,
  epoch,
  append: [],
  put: [],
  drop: [],
  expiresAt: now + day,
})

const callOf = ({ id, ...told }: Told, at: Millis): Said => ({
  at,
  role: 'assistant',
  content: '',
  calls: [{ id, name: 'session.ended', arguments: JSON.stringify(told) }],
  tokens: 0,
  lineTokens: 0,
  tokenizer: '',
  weight: 0,
})

function toldIn({ calls: [call] = [] }: Message): Told | undefined {
  return call && { id: call.id, ...(JSON.parse(call.arguments) as Omit<Told, 'id'>) }
}

const triesId = (message: string): string => `${message}:tries`
const triesOf = ({ metadata }: About): Pick<Waiting, 'attempts' | 'next'> =>
  metadata as Pick<Waiting, 'attempts' | 'next'>

/** The sequence numbers whose messages are still there. */
function present(gaps: readonly Gap[], last: number): readonly number[] {
  const found: number[] = []
  let next = 1
  for (const [from, to] of [...gaps, [last + 1, last + 1] as const]) {
    for (; next < from; next++) found.push(next)
    next = to + 1
  }
  return found
}
