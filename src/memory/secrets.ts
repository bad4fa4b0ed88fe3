import { weighed } from '../context/render.ts'
import type { Parsed } from '../domain/chat.ts'
import type { Derived, Json, Message, ToolCall } from '../domain/entry.ts'
import { formatKey, type Key, type Scope } from '../domain/key.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { Head } from '../domain/session.ts'
import { markOf, marksIn, withMarks, withValues } from '../text/secretMark.ts'
import { findSecrets } from '../text/secrets.ts'

/** So many sessions have their secrets at hand; those of the others are shown as marks. */
const mostSessions = 10_000

/**
 * Keeps secrets from everything that is kept or passed on: a mark stands in their place, the same one for the same
 * secret. The values are held in RAM alone, for their session, and go into that session's prompts if its profile allows.
 */
export class Barrier {
  private readonly policy: Profile['secrets']
  private readonly tokenizer: Tokenizer
  /** The value behind each mark, by session. */
  private readonly values = new Map<string, Map<string, string>>()
  /** Numbers come from a digest under a key that never leaves this process: a mark tells nothing about its secret. */
  private readonly digestKey: Promise<CryptoKey>

  constructor(policy: Profile['secrets'], tokenizer: Tokenizer) {
    this.policy = policy
    this.tokenizer = tokenizer
    this.digestKey = crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']) as Promise<CryptoKey>
  }

  /** Whether there is anything in what was said for which a mark is to stand. */
  finds(said: readonly Parsed[]): boolean {
    return this.policy !== 'keep' && said.some(holdsSecrets)
  }

  /** What was said, with marks in the place of secrets. */
  async masked(key: Key, said: Parsed): Promise<Parsed> {
    if (!this.finds([said])) return said
    const { content, name, calls, answers } = said
    const call = async (one: ToolCall): Promise<ToolCall> => ({
      id: await this.text(key, one.id),
      name: await this.text(key, one.name),
      arguments: await this.text(key, one.arguments),
    })
    return {
      ...said,
      content: await this.text(key, content),
      ...(name === undefined ? {} : { name: await this.text(key, name) }),
      ...(calls === undefined ? {} : { calls: await Promise.all(calls.map(call)) }),
      ...(answers === undefined ? {} : { answers: await this.text(key, answers) }),
    }
  }

  /** A text with marks in the place of secrets. */
  async text(key: Key, text: string): Promise<string> {
    if (this.policy === 'keep') return text
    const found = findSecrets(text)
    if (found.length === 0) return text
    const marks = new Map<string, string>()
    for (const { start, end } of found) {
      const secret = text.slice(start, end)
      if (!marks.has(secret)) marks.set(secret, await this.mark(key, secret))
    }
    return withMarks(text, (secret) => marks.get(secret) as string)
  }

  /** A value with marks in the place of secrets, in names of fields too; `names` are those it stands under, the nearest first. */
  async json(key: Key, value: Json, names: readonly string[] = []): Promise<Json> {
    if (typeof value === 'string') return this.named(key, value, names)
    if (typeof value === 'number') return marksIn(await this.named(key, `${value}`, names))[0] ?? value
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.json(key, item, names)))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(
      async ([name, inner]): Promise<[string, Json]> => [
        await this.text(key, name),
        await this.json(key, inner, [name, ...names]),
      ],
    )
    return Object.fromEntries(await Promise.all(entries))
  }

  /** Whether there is something to put back into prompts of a session. */
  knows(key: Key): boolean {
    return this.known(key) !== undefined
  }

  /** A message as a prompt of its session may show it: weighed anew if that makes it longer. */
  shown(key: Key, message: Message): Message {
    const values = this.known(key)
    if (values === undefined) return message
    const restored = (text: string): string =>
      marksIn(text).length === 0 ? text : withValues(text, (mark) => values.get(mark))
    if (marksIn(JSON.stringify(message)).length === 0) return message
    const { content, calls, answers, weight } = message
    const said = {
      ...message,
      content: restored(content),
      ...(calls === undefined
        ? {}
        : {
            calls: calls.map((call) => ({
              id: restored(call.id),
              name: restored(call.name),
              arguments: restored(call.arguments),
            })),
          }),
      ...(answers === undefined ? {} : { answers: restored(answers) }),
    }
    return { ...message, ...weighed(this.tokenizer, said), weight }
  }

  /** What was made of a session as a prompt of it may show it. */
  shownEntry(key: Key, entry: Derived): Derived {
    const values = this.known(key)
    if (values === undefined || marksIn(JSON.stringify(entry)).length === 0) return entry
    const restored = (text: string): string => withValues(text, (mark) => values.get(mark))
    if (entry.kind === 'summary') return { ...entry, text: restored(entry.text) }
    if (entry.kind === 'item') return { ...entry, content: restored(entry.content) }
    return entry.kind === 'fact' ? { ...entry, value: within(entry.value, restored) } : entry
  }

  /** A session as a prompt of it may show it. */
  shownHead(head: Head): Head {
    const shown = (message: Message): Message => this.shown(head.key, message)
    return {
      ...head,
      first: head.first && shown(head.first),
      asked: head.asked && shown(head.asked),
      recent: head.recent.map(shown),
      derived: head.derived.map((entry) => this.shownEntry(head.key, entry)),
    }
  }

  /** Whether the values behind all marks in a text are at hand: then the same secret has the same mark. */
  knowsAll(key: Key, text: string): boolean {
    const values = this.values.get(formatKey(key))
    return marksIn(text).every((mark) => values?.has(mark) === true)
  }

  /** The marks of secrets that hold a text, in whichever case. */
  marksOf(key: Key, text: string): readonly string[] {
    const values = this.values.get(formatKey(key)) ?? new Map<string, string>()
    return [...values].flatMap(([mark, value]) => (value.toLowerCase().includes(text.toLowerCase()) ? [mark] : []))
  }

  /** Forgets the values behind some marks. */
  dropMarks(key: Key, marks: readonly string[]): void {
    for (const mark of marks) this.values.get(formatKey(key))?.delete(mark)
  }

  /** Forgets the values of a session, or of all sessions of a scope. */
  drop(scope: Scope, id?: string): void {
    const whole = id === undefined || id === '' ? scope : `${scope}:${id}`
    for (const name of this.values.keys())
      if (name === whole || (id === undefined && name.startsWith(`${scope}:`))) this.values.delete(name)
  }

  /** Gives the values of one session to another that goes on in its place. */
  move(from: Key, to: Key): void {
    const values = this.values.get(formatKey(from))
    if (values === undefined) return
    this.values.set(formatKey(to), new Map([...(this.values.get(formatKey(to)) ?? []), ...values]))
    this.values.delete(formatKey(from))
  }

  private known(key: Key): ReadonlyMap<string, string> | undefined {
    return this.policy === 'mask' ? this.values.get(formatKey(key)) : undefined
  }

  /** The name before a value may be all that tells it for a secret: `{ "password": "…" }`, `{ "passwords": ["…"] }`. */
  private async named(key: Key, value: string, names: readonly string[]): Promise<string> {
    for (const name of names.slice(0, 8).flatMap((one) => [one, one.replace(/s$/i, '')])) {
      const label = `${name}: `
      const masked = await this.text(key, label + value)
      if (masked !== label + value && masked.startsWith(label)) return masked.slice(label.length)
    }
    return this.text(key, value)
  }

  private async mark(key: Key, secret: string): Promise<string> {
    const name = formatKey(key)
    const digest = await crypto.subtle.sign(
      'HMAC',
      await this.digestKey,
      new TextEncoder().encode(`${key.scope}\n${secret}`),
    )
    const values = this.values.get(name) ?? new Map<string, string>()
    // The session used last is the last to be let go.
    this.values.delete(name)
    this.values.set(name, values)
    for (const oldest of this.values.keys()) {
      if (this.values.size <= mostSessions) break
      this.values.delete(oldest)
    }
    let number = new DataView(digest).getUint32(0) % 1_000_000
    while ((values.get(markOf(number)) ?? secret) !== secret) number++
    values.set(markOf(number), secret)
    return markOf(number)
  }
}

const hasSecrets = (text: string | undefined): boolean => text !== undefined && findSecrets(text).length > 0

/** Whether a secret stands in any text of a message. */
const holdsSecrets = ({ content, name, calls, answers }: Parsed): boolean =>
  hasSecrets(content) ||
  hasSecrets(name) ||
  hasSecrets(answers) ||
  calls?.some((call) => [call.id, call.name, call.arguments].some(hasSecrets)) === true

/** A value with every text in it changed. */
function within(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map((item) => within(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, within(inner, change)]))
}

/** Makes the barrier of a memory. */
export const secretBarrier = (policy: Profile['secrets'], tokenizer: Tokenizer): Barrier =>
  new Barrier(policy, tokenizer)
