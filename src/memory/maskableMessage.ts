import type { ParsedMessage } from '../domain/chat.ts'
import type { Json, ToolCall } from '../domain/entry.ts'
import { exceedsDepth, maxJsonDepth } from '../domain/stringify.ts'
import { parseJson } from '../text/json.ts'
import type { Replace, SecretScan } from './secretScan.ts'

/** The fields of a message that may contain secrets. */
export type MaskableMessage = Pick<
  ParsedMessage,
  'content' | 'partEnds' | 'name' | 'toolCalls' | 'toolCallId' | 'payload'
>

/** Scans all texts of messages. */
export function* scanMessages(scan: SecretScan, messages: readonly MaskableMessage[]): Generator<void, void> {
  for (const { content, partEnds, name, toolCalls, toolCallId, payload } of messages) {
    yield* scan.scanText(content, partEnds)
    if (name !== undefined) yield* scan.scanText(name)
    if (toolCallId !== undefined) yield* scan.scanText(toolCallId)
    for (const call of toolCalls ?? []) {
      yield* scan.scanText(call.id)
      yield* scan.scanText(call.name)
      yield* scan.scanText(call.arguments)
      yield* scan.scanJson(parseNested(call.arguments))
    }
    if (payload !== undefined) yield* scan.scanJson(payload.items as Json[])
  }
}

/** Replaces the secrets of a scanned message; a message without any stays the same object. */
export function* replaceInMessage<T extends MaskableMessage>(
  scan: SecretScan,
  message: T,
  replace: Replace,
): Generator<void, T> {
  const { toolCalls, payload } = message
  const calls: ToolCall[] = []
  for (const call of toolCalls ?? []) calls.push(yield* replaceNested(scan, call, replace))
  const replaced = mapMessageTexts(toolCalls === undefined ? message : { ...message, toolCalls: calls }, (text) =>
    scan.replaceText(text, replace),
  )
  if (payload === undefined) return replaced
  const items = (yield* scan.replaceJson(payload.items as Json[], replace)) as Json[]
  return { ...replaced, payload: { ...payload, items } }
}

/** Changes all texts of a message except its payload. */
export function mapMessageTexts<T extends MaskableMessage>(message: T, change: (text: string) => string): T {
  const { content, name, toolCalls, toolCallId } = message
  return {
    ...message,
    content: change(content),
    ...(name !== undefined && { name: change(name) }),
    ...(toolCalls !== undefined && {
      toolCalls: toolCalls.map((call) => ({
        id: change(call.id),
        name: change(call.name),
        arguments: change(call.arguments),
      })),
    }),
    ...(toolCallId !== undefined && { toolCallId: change(toolCallId) }),
  }
}

/** Rewrites the arguments of a call if a name around a value, and not their text, marks it as a secret. */
function* replaceNested(scan: SecretScan, call: ToolCall, replace: Replace): Generator<void, ToolCall> {
  const value = parseNested(call.arguments)
  const replaced = yield* scan.replaceJson(value, replace)
  if (replaced === value) return call
  const json = JSON.stringify(replaced)
  const isInText = JSON.stringify(parseJson(scan.replaceText(call.arguments, replace))) === json
  return isInText ? call : { ...call, arguments: json }
}

/**
 * Parses arguments with a list, an object or an escape such as `\\n` inside, which may hide the start of a secret.
 * Returns null for others, in which the text has each name beside its value.
 */
function parseNested(text: string): Json {
  if (!/.[[{]|\\/s.test(text)) return null
  const value = (parseJson(text) ?? null) as Json
  return exceedsDepth(value, maxJsonDepth) ? null : value
}
