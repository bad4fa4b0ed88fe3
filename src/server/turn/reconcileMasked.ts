import type { Message } from '../../domain/entry.ts'
import type { Key } from '../../domain/key.ts'
import { runInSlices, toSlices, type Work } from '../../domain/work.ts'
import { normalizeMessageInSteps } from '../../memory/secretMasker.ts'
import type { Memory } from '../../memory.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import { findMasks, normalizeSecretsInSteps } from '../../text/secrets.ts'
import type { ClientMessage } from '../protocols/protocol.ts'
import { type ComparableMessage, type NormalForms, normalizeInSteps } from './messageEquality.ts'
import { type HistoryChange, reconcile } from './reconcile.ts'

export type StoredHistory = {
  readonly stored: readonly Message[]
  readonly hasEarlier: boolean
  readonly forms: NormalForms
}

/**
 * Reconciles in the stored form, with secrets masked. Placeholders written by another process cannot be resolved here;
 * such messages are matched by the rest of their text, and in doubt the newest message is stored twice rather than
 * lost.
 */
export function reconcileMasked(
  memory: Memory,
  key: Key,
  history: StoredHistory,
  sent: readonly ClientMessage[],
): HistoryChange | Promise<HistoryChange> {
  return history.stored.some(hasPlaceholder)
    ? reconcileWithPlaceholders(memory, key, history, sent)
    : reconcile(history.stored, sent, history)
}

async function reconcileWithPlaceholders(
  memory: Memory,
  key: Key,
  { stored, hasEarlier }: StoredHistory,
  sent: readonly ClientMessage[],
): Promise<HistoryChange> {
  const withoutMasks = await runInSlices(replaceSecrets(stored, normalizeStored), yieldWhenLong)
  const withoutSecrets = await normalizeSent(sent)
  const forms: NormalForms = new Map()
  await runInSlices(normalizeInSteps([...withoutMasks.values(), ...withoutSecrets.values()], forms), yieldWhenLong)
  const change = reconcile([...withoutMasks.values()], [...withoutSecrets.values()], { hasEarlier, forms })
  const remaining = stored.filter(({ sequence }) => change.cutFrom === undefined || sequence < change.cutFrom)
  const matched = remaining.slice(Math.max(0, remaining.length - change.newFrom))
  const offset = change.newFrom - matched.length
  // Of messages that differ only in their secrets, the first with another secret is new, and so is all that follows.
  for (const [matchedIndex, message] of matched.entries()) {
    const index = matchedIndex + offset
    const other = sent[index]
    // A client may leave messages out or reword them; then these two are not a pair.
    if (other === undefined || !hasPlaceholder(message)) continue
    if (!haveSameTexts(withoutSecrets.get(other) ?? other, withoutMasks.get(message) ?? message)) continue
    const isSame = memory.knowsSecrets(key, textsOf(message).join('\n'))
      ? haveSameTexts(await memory.maskMessage(key, other), message)
      : index < sent.length - 1
    if (!isSame) return { ...change, newFrom: index }
  }
  return change
}

/** Replaces all secrets and masks of sent messages by one mask. */
export const normalizeSent = (sent: readonly ClientMessage[]): Promise<ReadonlyMap<ClientMessage, ClientMessage>> =>
  runInSlices(replaceSecrets(sent, normalizeMessageInSteps), yieldWhenLong)

/** Replaces the secrets of messages in steps; the result is in the order of the messages. */
function* replaceSecrets<T extends ComparableMessage>(
  messages: readonly T[],
  replace: (message: T) => Generator<void, T>,
): Work<ReadonlyMap<T, T>> {
  const replaced = new Map<T, T>()
  for (const message of messages) {
    const steps = replace(message)
    let step = steps.next()
    for (; step.done !== true; step = steps.next()) yield Number.POSITIVE_INFINITY
    replaced.set(message, step.value)
    yield replaceWork + Math.ceil(message.content.length / replaceSpeed)
  }
  return replaced
}

/** Work on a message beside its text, and speed of the work on its text, in units of other work on text. */
const [replaceWork, replaceSpeed] = [100, 8]

/** Replaces all secrets and masks of a stored message by one mask. */
function* normalizeStored(message: Message): Generator<void, Message> {
  const texts = new Map<string, string>()
  for (const text of textsOf(message)) texts.set(text, yield* toSlices(normalizeSecretsInSteps(text)))
  return mapTexts(message, (text) => texts.get(text) ?? text)
}

const textsOf = ({ content, toolCalls, toolCallId }: ComparableMessage): readonly string[] => [
  content,
  ...(toolCalls ?? []).flatMap((call) => [call.id, call.name, call.arguments]),
  toolCallId ?? '',
]
/** Placeholders start with a rare character, which is tested first. */
const containsPlaceholder = (text: string): boolean => text.includes('⟨') && findMasks(text).length > 0
export const hasPlaceholder = (message: Message): boolean =>
  message.toolCalls === undefined && message.toolCallId === undefined
    ? containsPlaceholder(message.content)
    : textsOf(message).some(containsPlaceholder)
const haveSameTexts = (a: ComparableMessage, b: ComparableMessage): boolean =>
  JSON.stringify(textsOf(a)) === JSON.stringify(textsOf(b))

function mapTexts<T extends ComparableMessage>(message: T, change: (text: string) => string): T {
  const { content, toolCalls, toolCallId } = message
  return {
    ...message,
    content: change(content),
    ...(toolCalls && {
      toolCalls: toolCalls.map((call) => ({
        id: change(call.id),
        name: change(call.name),
        arguments: change(call.arguments),
      })),
    }),
    ...(toolCallId !== undefined && { toolCallId: change(toolCallId) }),
  }
}
