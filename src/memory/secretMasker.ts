import { measureInSteps } from '../context/measureMessage.ts'
import type { ParsedMessage } from '../domain/chat.ts'
import type { DerivedEntry, Json, Message, NewMessage, ToolCall } from '../domain/entry.ts'
import { MemoryError } from '../domain/error.ts'
import { formatKey, isInScope, type Key, type Scope } from '../domain/key.ts'
import { getOrCompute } from '../domain/keyed.ts'
import { LruCache } from '../domain/lruCache.ts'
import { unpackPayload } from '../domain/payload.ts'
import type { Tokenizer } from '../domain/ports.ts'
import type { Profile } from '../domain/profile.ts'
import type { SessionHead } from '../domain/session.ts'
import { type Pause, runSync, type Work } from '../domain/work.ts'
import { mapJsonStrings } from '../text/json.ts'
import { findMasks, findSecrets, formatMask, unmaskSecrets } from '../text/secrets.ts'
import { type MaskableMessage, mapMessageTexts, replaceInMessage, scanMessages } from './maskableMessage.ts'
import { type Replace, type SecretFields, SecretScan } from './secretScan.ts'
import { SecretValues } from './secretValues.ts'

/** Sessions whose secret values are kept in RAM; the prompts of others show placeholders. */
const maxSessions = 10_000
const maxValueBytes = 16_000_000
/** Placeholders carry numbers below the first limit, or below the second if that number is taken. */
const placeholderNumbers = [1_000_000, 1_000_000_000_000] as const
/** Secrets of one value with a placeholder of their own; all others share one that is never restored. */
const maxPlaceholders = 2_000
const sharedPlaceholder = formatMask(0)
/** Digests computed at a time. */
const digestBatchSize = 128

export type { Pause }

/**
 * Replaces secrets in everything that is stored or passed on by placeholders, the same one for the same secret. Values
 * are in RAM only, by session, and return in that session's own prompts if the profile allows it.
 */
export class SecretMasker {
  private readonly policy: Profile['secrets']
  private readonly tokenizer: Tokenizer
  private readonly pause: Pause
  /** Secret values by placeholder, by session. */
  private readonly values = new LruCache<string, SecretValues>({ maxEntries: maxSessions, maxTotalSize: maxValueBytes })
  /** Placeholder numbers are digests under a key that never leaves this process, so they reveal nothing. */
  private readonly digestKey: Promise<CryptoKey>

  constructor(policy: Profile['secrets'], tokenizer: Tokenizer, pause: Pause = async () => undefined) {
    this.policy = policy
    this.tokenizer = tokenizer
    this.pause = pause
    this.digestKey = crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']) as Promise<CryptoKey>
  }

  /**
   * Masks all texts of messages. Returns a promise only if there is a secret or the messages are long; messages without
   * secrets stay the same objects.
   */
  maskMessages(
    key: Key,
    messages: readonly ParsedMessage[],
  ): readonly ParsedMessage[] | Promise<readonly ParsedMessage[]> {
    if (this.policy === 'keep') return messages
    const scan = new SecretScan()
    return this.mask(key, scan, scanMessages(scan, messages), messages, function* (placeholderOf) {
      const masked: ParsedMessage[] = []
      for (const message of messages) masked.push(yield* replaceInMessage(scan, message, placeholderOf))
      return masked
    })
  }

  /** Masks all texts of a message. */
  async maskMessage(key: Key, message: ParsedMessage): Promise<ParsedMessage> {
    const [masked] = await this.maskMessages(key, [message])
    return masked as ParsedMessage
  }

  /** Masks a text. */
  async maskText(key: Key, text: string): Promise<string> {
    if (this.policy === 'keep') return text
    const scan = new SecretScan()
    // biome-ignore lint/correctness/useYield: replacing the secrets of one text is fast
    return this.mask(key, scan, scan.scanText(text), text, function* (placeholderOf) {
      return scan.replaceText(text, placeholderOf)
    })
  }

  /** Masks the text of a document whose fields stay apart. */
  async maskDocument(key: Key, text: string, fields: SecretFields): Promise<string> {
    if (this.policy === 'keep') return text
    const scan = new SecretScan()
    // biome-ignore lint/correctness/useYield: replacing the secrets of one text is fast
    return this.mask(key, scan, scan.scanDocument(text, fields), text, function* (placeholderOf) {
      return scan.replaceText(text, placeholderOf)
    })
  }

  /** Masks the lines of a text, of which none continues another one. */
  async maskLines(key: Key, text: string): Promise<string> {
    if (this.policy === 'keep') return text
    const scan = new SecretScan()
    const lines = text.split('\n')
    const scanLines = function* (): Generator<void, void> {
      for (const line of lines) yield* scan.scanText(line)
    }
    return this.mask(key, scan, scanLines(), text, function* (placeholderOf) {
      return lines.map((line) => scan.replaceText(line, placeholderOf)).join('\n')
    })
  }

  /**
   * Masks all strings, numbers and field names of a JSON value.
   *
   * @throws MemoryError `bad-option` for more than 100 levels.
   */
  async maskJson(key: Key, value: Json): Promise<Json> {
    if (this.policy === 'keep') return value
    const scan = new SecretScan()
    return this.mask(key, scan, scan.scanJson(value), value, (placeholderOf) => scan.replaceJson(value, placeholderOf))
  }

  /**
   * Refuses a key with a secret: keys are stored and shown as they are. Call it before a session or scope is created.
   *
   * @throws MemoryError `bad-key`, without the key.
   */
  checkKey({ scope, id }: Pick<Key, 'scope' | 'id'>): void {
    if (this.policy === 'keep') return
    const isScope = findSecrets(scope).length > 0
    if (!isScope && findSecrets(id).length === 0) return
    const part = isScope ? 'scope' : id.startsWith(':person:') ? 'person' : 'session'
    throw new MemoryError(
      'bad-key',
      `The ${part} of the key looks like a secret. Names are stored unmasked: use one without a key, password or card number.`,
      { param: 'key' },
    )
  }

  /**
   * Rejects external ids that contain a secret: they are stored unmasked.
   *
   * @throws MemoryError `bad-message`, without the id.
   */
  checkExternalIds(messages: readonly Pick<NewMessage, 'externalId'>[]): void {
    if (this.policy === 'keep') return
    for (const { externalId } of messages)
      if (externalId !== undefined && findSecrets(externalId).length > 0)
        throw new MemoryError(
          'bad-message',
          'The id of a message looks like a secret. Ids are stored unmasked: use one without a key, password or card number.',
          { param: 'id' },
        )
  }

  /** True when the session has values to restore in its prompts. */
  hasValues(key: Key): boolean {
    return this.restorableValues(key) !== undefined
  }

  /**
   * True if messages of a prompt show placeholders where its session should see its secrets: another process has seen
   * the values, or they were dropped.
   */
  lacksValues(messages: readonly { readonly content: string | null }[]): boolean {
    return this.policy === 'mask' && messages.some(({ content }) => findMasks(content ?? '').length > 0)
  }

  /** Restores the secrets of a message for a prompt of its session, and counts its tokens again. */
  restoreMessage(key: Key, message: Message): Message {
    return runSync(this.restoreMessageInSteps(key, message))
  }

  /** `restoreMessage` as interruptible work. */
  *restoreMessageInSteps(key: Key, message: Message): Work<Message> {
    const values = this.restorableValues(key)
    if (values === undefined || !hasMasks(message)) return message
    const restore = (text: string): string =>
      findMasks(text).length === 0 ? text : unmaskSecrets(text, (mark) => values.get(mark))
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
    yield content.length
    return { ...rest, ...(yield* measureInSteps(this.tokenizer, restored)), weight }
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
  *restoreHead(head: SessionHead): Work<SessionHead> {
    const { firstMessage, lastUserMessage, recent } = head
    // The first, the last and a recent message may be the same one.
    const restored = new Map<number, Message>()
    for (const message of [firstMessage, lastUserMessage, ...recent])
      if (message !== undefined && !restored.has(message.sequence)) {
        restored.set(message.sequence, yield* this.restoreMessageInSteps(head.key, message))
        yield 1
      }
    const restore = (message: Message): Message => restored.get(message.sequence) ?? message
    return {
      ...head,
      firstMessage: firstMessage && restore(firstMessage),
      lastUserMessage: lastUserMessage && restore(lastUserMessage),
      recent: recent.map(restore),
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
    const lowerCased = text.toLowerCase()
    return [...values].flatMap(([mark, value]) => (value.toLowerCase().includes(lowerCased) ? [mark] : []))
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

  private restorableValues(key: Key): ReadonlyMap<string, string> | undefined {
    return this.policy === 'mask' ? this.values.get(formatKey(key)) : undefined
  }

  /** Runs a scan, pausing where it yields, and applies `replace` if there is a secret. */
  private mask<T>(
    key: Key,
    scan: SecretScan,
    steps: Generator<void, void>,
    unchanged: T,
    replace: (placeholderOf: Replace) => Generator<void, T>,
  ): T | Promise<T> {
    const isDone = steps.next().done === true
    if (isDone && !scan.hasSecrets) return unchanged
    const finish = async (): Promise<T> => {
      for (let done = isDone; !done; done = steps.next().done === true) await this.pause()
      if (!scan.hasSecrets) return unchanged
      const placeholders = await this.placeholdersFor(key, scan.secrets(maxPlaceholders))
      const replacing = replace((secret) => placeholders.get(secret) ?? sharedPlaceholder)
      let step = replacing.next()
      for (; step.done !== true; step = replacing.next()) await this.pause()
      return step.value
    }
    return finish()
  }

  private async placeholdersFor(key: Key, secrets: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const digestKey = await this.digestKey
    const placeholders = new Map<string, string>()
    for (let from = 0; from < secrets.length; from += digestBatchSize) {
      const batch = secrets.slice(from, from + digestBatchSize)
      const digests = await Promise.all(
        batch.map((secret) =>
          crypto.subtle.sign('HMAC', digestKey, new TextEncoder().encode(`${key.scope}\n${secret}`)),
        ),
      )
      for (const [index, digest] of digests.entries()) {
        const secret = batch[index] as string
        placeholders.set(secret, this.assignPlaceholder(key, secret, digest))
      }
    }
    return placeholders
  }

  private assignPlaceholder(key: Key, secret: string, digest: ArrayBuffer): string {
    const name = formatKey(key)
    const values = getOrCompute(this.values, name, () => new SecretValues())
    const view = new DataView(digest)
    const isFree = (mark: string): boolean => (values.get(mark) ?? secret) === secret
    const short = formatMask(view.getUint32(0) % placeholderNumbers[0])
    const mark = isFree(short) ? short : formatMask(Number(view.getBigUint64(8) % BigInt(placeholderNumbers[1])))
    values.set(mark, secret)
    this.values.set(name, values, values.bytes)
    return mark
  }
}

const hasMasks = ({ content, name = '', toolCalls = [], toolCallId = '', packedPayload }: Message): boolean =>
  [content, name, toolCallId, ...toolCalls.flatMap((call) => [call.id, call.name, call.arguments])].some(
    (text) => findMasks(text).length > 0,
  ) ||
  (packedPayload !== undefined && findMasks(JSON.stringify(packedPayload)).length > 0)

/**
 * Replaces all secrets and masks of a message by one mask, in the places where the masker has put its masks. Yields
 * where the caller may let other work run.
 */
export function* normalizeMessageInSteps<T extends MaskableMessage>(message: T): Generator<void, T> {
  const scan = new SecretScan()
  yield* scanMessages(scan, [message])
  const replaced = scan.hasSecrets ? yield* replaceInMessage(scan, message, () => formatMask(0)) : message
  return mapMessageTexts(replaced, (text) => unmaskSecrets(text, () => formatMask(0)))
}

/** Creates the masker of a memory. In a browser, pass it to `openMemory` as `masker`. */
export const createSecretMasker = (policy: Profile['secrets'], tokenizer: Tokenizer, pause?: Pause): SecretMasker =>
  new SecretMasker(policy, tokenizer, pause)
