import { measureMessage } from '../context/render.ts'
import type { ParsedMessage, Payload } from '../domain/chat.ts'
import type { DerivedEntry, Json, Message, ToolCall } from '../domain/entry.ts'
import { formatKey, isInScope, type Key, type Scope } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import { unpackPayload } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { mapJsonStrings } from '../text/json.ts'
import { findMasks, findSecrets, formatMask, maskSecrets, unmaskSecrets } from '../text/secrets.ts'
import { SecretValues } from './secretValues.ts'

/** Sessions whose secret values are kept in RAM; the prompts of others show placeholders. */
const maxSessions = 10_000
const maxValueBytes = 16_000_000
/** Field names around a value that are tried as its label. */
const maxLabels = 8
/** Longer strings of a payload are texts, which field names around them do not turn into secrets. */
const maxLabelledCharacters = 1_000
/** Encoded data, such as an image: no detector recognises a secret in it, and scanning megabytes takes long. */
const encodedDataPattern = /^(?:data:[\w/+.;=-]{0,200},)?[\w+/=-]{1000,}$/
/** Placeholders carry numbers below this. */
const placeholderNumbers = 1_000_000

/**
 * Replaces secrets in everything that is stored or passed on by placeholders, the same one for the same secret. Values
 * are in RAM only, by session, and return in that session's own prompts if the profile allows it.
 */
export class SecretMasker {
  private readonly policy: Profile['secrets']
  private readonly tokenizer: Tokenizer
  /** Secret values by placeholder, by session. */
  private readonly values = new LruCache<string, SecretValues>({ maxEntries: maxSessions, maxTotalSize: maxValueBytes })
  /** Placeholder numbers are digests under a key that never leaves this process, so they reveal nothing. */
  private readonly digestKey: Promise<CryptoKey>

  constructor(policy: Profile['secrets'], tokenizer: Tokenizer) {
    this.policy = policy
    this.tokenizer = tokenizer
    this.digestKey = crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']) as Promise<CryptoKey>
  }

  /** True when a message contains a secret that must be masked. */
  hasSecrets(messages: readonly ParsedMessage[]): boolean {
    return this.policy !== 'keep' && messages.some(containsSecret)
  }

  /** Masks all texts of a message. */
  async maskMessage(key: Key, message: ParsedMessage): Promise<ParsedMessage> {
    if (!this.hasSecrets([message])) return message
    const { content, name, toolCalls, toolCallId, payload } = message
    const maskCall = async (call: ToolCall): Promise<ToolCall> => ({
      id: await this.maskText(key, call.id),
      name: await this.maskText(key, call.name),
      arguments: await this.maskText(key, call.arguments),
    })
    const masked = {
      ...message,
      content: await this.maskText(key, content),
      ...(name !== undefined && { name: await this.maskText(key, name) }),
      ...(toolCalls !== undefined && { toolCalls: await Promise.all(toolCalls.map(maskCall)) }),
      ...(toolCallId !== undefined && { toolCallId: await this.maskText(key, toolCallId) }),
    }
    return payload === undefined ? masked : { ...masked, payload: await this.maskPayload(key, payload, masked) }
  }

  /** Masks a text. */
  async maskText(key: Key, text: string): Promise<string> {
    if (this.policy === 'keep') return text
    const found = findSecrets(text)
    if (found.length === 0) return text
    const placeholders = new Map<string, string>()
    for (const { start, end } of found) {
      const secret = text.slice(start, end)
      if (!placeholders.has(secret)) placeholders.set(secret, await this.placeholderFor(key, secret))
    }
    return maskSecrets(text, (secret) => placeholders.get(secret) as string)
  }

  /**
   * Masks all strings, numbers and field names of a JSON value. `names` are the field names around it, innermost first.
   */
  async maskJson(key: Key, value: Json, names: readonly string[] = []): Promise<Json> {
    if (typeof value === 'string') return this.labelled(key, value, names)
    if (typeof value === 'number') return findMasks(await this.labelled(key, `${value}`, names))[0] ?? value
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.maskJson(key, item, names)))
    if (typeof value !== 'object' || value === null) return value
    const entries = Object.entries(value).map(
      async ([name, inner]): Promise<[string, Json]> => [
        await this.maskText(key, name),
        await this.maskJson(key, inner, [name, ...names]),
      ],
    )
    return Object.fromEntries(await Promise.all(entries))
  }

  /** True when the session has values to restore in its prompts. */
  hasValues(key: Key): boolean {
    return this.restorableValues(key) !== undefined
  }

  /** Restores the secrets of a message for a prompt of its session, and counts its tokens again. */
  restoreMessage(key: Key, message: Message): Message {
    const values = this.restorableValues(key)
    if (values === undefined) return message
    const restore = (text: string): string =>
      findMasks(text).length === 0 ? text : unmaskSecrets(text, (mark) => values.get(mark))
    if (findMasks(JSON.stringify(message)).length === 0) return message
    const { content, toolCalls, toolCallId, packedPayload, weight, ...rest } = message
    // A packed payload refers to the masked content.
    const payload = packedPayload === undefined ? undefined : unpackPayload(packedPayload, content)
    const restoreCall = (call: ToolCall): ToolCall => ({
      id: restore(call.id),
      name: restore(call.name),
      arguments: restore(call.arguments),
    })
    const restored = {
      ...rest,
      content: restore(content),
      ...(toolCalls !== undefined && { toolCalls: toolCalls.map(restoreCall) }),
      ...(toolCallId !== undefined && { toolCallId: restore(toolCallId) }),
      ...(payload !== undefined && {
        payload: { ...payload, items: mapJsonStrings(payload.items as Json[], restore) as Json[] },
      }),
    }
    return { ...rest, ...measureMessage(this.tokenizer, restored), weight }
  }

  /** Restores the secrets of a derived entry for a prompt of its session. */
  restoreEntry(key: Key, entry: DerivedEntry): DerivedEntry {
    const values = this.restorableValues(key)
    if (values === undefined || findMasks(JSON.stringify(entry)).length === 0) return entry
    const restore = (text: string): string => unmaskSecrets(text, (mark) => values.get(mark))
    if (entry.kind === 'summary') return { ...entry, text: restore(entry.text) }
    if (entry.kind === 'item') return { ...entry, content: restore(entry.content) }
    return entry.kind === 'fact' ? { ...entry, value: mapJsonStrings(entry.value, restore) as Json } : entry
  }

  /** Restores the secrets of a session's head for a prompt of the session. */
  restoreHead(head: SessionHead): SessionHead {
    const restore = (message: Message): Message => this.restoreMessage(head.key, message)
    return {
      ...head,
      firstMessage: head.firstMessage && restore(head.firstMessage),
      lastUserMessage: head.lastUserMessage && restore(head.lastUserMessage),
      recent: head.recent.map(restore),
      derived: head.derived.map((entry) => this.restoreEntry(head.key, entry)),
    }
  }

  /** True when the values of all placeholders in a text are known; equal secrets then have equal placeholders. */
  knowsAll(key: Key, text: string): boolean {
    const values = this.values.get(formatKey(key))
    return findMasks(text).every((mark) => values?.has(mark) === true)
  }

  /** Placeholders of secrets that contain a text, ignoring case. */
  placeholdersOf(key: Key, text: string): readonly string[] {
    const values = this.values.get(formatKey(key)) ?? new Map<string, string>()
    return [...values].flatMap(([mark, value]) => (value.toLowerCase().includes(text.toLowerCase()) ? [mark] : []))
  }

  /** Drops the values of some placeholders. */
  dropPlaceholders(key: Key, marks: readonly string[]): void {
    for (const mark of marks) this.values.get(formatKey(key))?.delete(mark)
  }

  /** Drops the values of a session, or of all sessions of a scope. */
  drop(scope: Scope, id?: string): void {
    if (id === undefined) this.values.deleteWhere((name) => isInScope(name, scope))
    else this.values.delete(formatKey({ scope, id }))
  }

  /** Moves the values of a transferred session. */
  move(from: Key, to: Key): void {
    const values = this.values.get(formatKey(from))
    if (values === undefined) return
    const target = getOrCompute(this.values, formatKey(to), () => new SecretValues())
    for (const [mark, value] of values) target.set(mark, value)
    this.values.set(formatKey(to), target, target.bytes)
    this.values.delete(formatKey(from))
  }

  /**
   * Masks all strings of a payload. Secrets of the masked message and of the payload's JSON text are replaced wherever
   * they occur: what marks them as secrets may be in another part of the payload.
   */
  private async maskPayload(key: Key, payload: Payload, masked: ParsedMessage): Promise<Payload> {
    const marks = new Set(findMasks(JSON.stringify({ ...masked, payload: undefined })))
    for (const secret of findJsonSecrets(payload.items)) marks.add(await this.placeholderFor(key, secret))
    // The longest first, because a secret may contain another one.
    const known = [...(this.values.get(formatKey(key)) ?? [])]
      .filter(([mark]) => marks.has(mark))
      .sort(([, left], [, right]) => right.length - left.length)
    const replaceKnown = (text: string): string =>
      known.reduce((result, [mark, secret]) => result.replaceAll(secret, mark), text)
    const items = mapJsonStrings(payload.items as Json[], replaceKnown) as Json[]
    return { ...payload, items: await Promise.all(items.map((item) => this.maskPayloadValue(key, item, []))) }
  }

  private async maskPayloadValue(key: Key, value: Json, names: readonly string[]): Promise<Json> {
    if (typeof value === 'string' && value.length > maxLabelledCharacters)
      return encodedDataPattern.test(value) ? value : this.maskText(key, value)
    if (typeof value !== 'object' || value === null) return this.maskJson(key, value, names)
    if (Array.isArray(value)) return Promise.all(value.map((item) => this.maskPayloadValue(key, item, names)))
    const entries = Object.entries(value).map(
      async ([name, inner]): Promise<[string, Json]> => [
        await this.maskText(key, name),
        await this.maskPayloadValue(key, inner, [name, ...names]),
      ],
    )
    return Object.fromEntries(await Promise.all(entries))
  }

  private restorableValues(key: Key): ReadonlyMap<string, string> | undefined {
    return this.policy === 'mask' ? this.values.get(formatKey(key)) : undefined
  }

  /** Masks a value with its field name as label, which may be all that marks it as a secret: `{ "password": "…" }`. */
  private async labelled(key: Key, value: string, names: readonly string[]): Promise<string> {
    for (const label of createLabels(names)) {
      const masked = await this.maskText(key, label + value)
      if (masked !== label + value && masked.startsWith(label)) return masked.slice(label.length)
    }
    return this.maskText(key, value)
  }

  private async placeholderFor(key: Key, secret: string): Promise<string> {
    const name = formatKey(key)
    const digest = await crypto.subtle.sign(
      'HMAC',
      await this.digestKey,
      new TextEncoder().encode(`${key.scope}\n${secret}`),
    )
    const values = getOrCompute(this.values, name, () => new SecretValues())
    let number = new DataView(digest).getUint32(0) % placeholderNumbers
    while ((values.get(formatMask(number)) ?? secret) !== secret) number++
    values.set(formatMask(number), secret)
    this.values.set(name, values, values.bytes)
    return formatMask(number)
  }
}

const hasSecret = (text: string | undefined): boolean => text !== undefined && findSecrets(text).length > 0

const containsSecret = ({ content, name, toolCalls, toolCallId, payload }: ParsedMessage): boolean =>
  hasSecret(content) ||
  hasSecret(name) ||
  hasSecret(toolCallId) ||
  toolCalls?.some((call) => [call.id, call.name, call.arguments].some(hasSecret)) === true ||
  (payload !== undefined && (findJsonSecrets(payload.items).length > 0 || payloadHasSecret(payload.items, content)))

/** Finds secrets in the JSON text of a payload, where field names and quotes mark them; long texts are left out. */
function findJsonSecrets(items: readonly unknown[]): readonly string[] {
  const json = JSON.stringify(items, (_, value: unknown) =>
    typeof value === 'string' && value.length > maxLabelledCharacters ? '' : value,
  )
  return findSecrets(json).map(({ start, end }) => unescapeJson(json.slice(start, end)))
}

function unescapeJson(text: string): string {
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

/**
 * True if a payload contains a secret beyond those of the content. A string or number may be one because of the field
 * names around it, innermost first.
 */
function payloadHasSecret(value: unknown, content: string, names: readonly string[] = []): boolean {
  if (typeof value === 'string' || typeof value === 'number') {
    const text = `${value}`
    if (text.length > maxLabelledCharacters)
      return !content.includes(text) && !encodedDataPattern.test(text) && hasSecret(text)
    return (
      hasSecret(text) ||
      createLabels(names).some((label) => (findSecrets(label + text)[0]?.start ?? -1) >= label.length)
    )
  }
  if (Array.isArray(value)) return value.some((item) => payloadHasSecret(item, content, names))
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(
    ([name, inner]) => hasSecret(name) || payloadHasSecret(inner, content, [name, ...names]),
  )
}

/** Labels for a value by the field names around it, as they are and in the singular. */
const createLabels = (names: readonly string[]): readonly string[] =>
  names.slice(0, maxLabels).flatMap((name) => [`${name}: `, `${name.replace(/s$/i, '')}: `])

/** Creates the masker of a memory. In a browser, pass it to `openMemory` as `masker`. */
export const createSecretMasker = (policy: Profile['secrets'], tokenizer: Tokenizer): SecretMasker =>
  new SecretMasker(policy, tokenizer)
