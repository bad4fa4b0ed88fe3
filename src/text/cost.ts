import { type Tokens, type ToolCall, utf8Length } from '../domain/entry.ts'
import { isObject } from '../domain/error.ts'
import type { Tokenizer } from '../domain/ports.ts'

/**
 * Overhead of OpenAI's chat format. The values for messages, names and the reply are published in OpenAI's cookbook.
 * None is published for a tool call, so it is the largest of the known renderings without id, name and arguments: 17 as
 * JSON of the request, 16 as one of two parallel calls, 14 in the harmony format; a single call was observed to cost 3.
 */
export const chatOverhead: Tokenizer['overhead'] = { message: 3, name: 1, call: 17, reply: 3 }

type CountedMessage = {
  readonly role: string
  readonly content: string | null
  readonly name?: string | undefined
  readonly toolCalls?: readonly ToolCall[] | undefined
  readonly toolCallId?: string | undefined
}

/**
 * Counts the tokens of one message, without the overhead of the reply.
 *
 * @example
 * countMessageTokens(tokenizer, { role: 'user', content: 'Hello world' }) // 6
 */
export function countMessageTokens(tokenizer: Tokenizer, message: CountedMessage): Tokens {
  const { overhead } = tokenizer
  const count = (text: string | null | undefined): Tokens => (text ? tokenizer.count(text) : 0)
  let cost = overhead.message + count(message.role) + count(message.content) + count(message.toolCallId)
  if (message.name) cost += overhead.name + count(message.name)
  for (const call of message.toolCalls ?? [])
    cost += overhead.call + count(call.name) + count(call.arguments) + count(call.id)
  return cost
}

/** Tokens counted exactly per request. Counting this many blocks the event loop for about 60 ms at worst. */
const maxCountedTokens = 65_536

/**
 * Counts the tokens of a request's instructions and tools. Beyond 65,536 tokens the rest is bounded from above by its
 * UTF-8 length.
 *
 * @example
 * countPromptOverhead(tokenizer, [{ role: 'system', content: 'Be brief.' }], []) // 7
 */
export function countPromptOverhead(
  tokenizer: Tokenizer,
  instructions: readonly CountedMessage[],
  tools: readonly unknown[],
): Tokens {
  const { name, kind, overhead } = tokenizer
  let counted = 0
  const count = (text: string): Tokens => {
    if (kind !== 'estimate' && counted >= maxCountedTokens) return utf8Length(text)
    const tokens = tokenizer.count(text)
    counted += tokens
    return tokens
  }
  const limited: Tokenizer = { name, kind, overhead, isExact: (text) => tokenizer.isExact(text), count }
  return instructions.reduce(
    (sum, message) => sum + countMessageTokens(limited, message),
    countToolTokens(limited, tools),
  )
}

/** Token figures of OpenAI's cookbook for tool definitions; a function costs more in models of the older encoding. */
const toolFigures = { function: 7, olderFunction: 10, properties: 3, key: 3, enum: -3, item: 3, end: 12 }
const maxSchemaDepth = 32

/**
 * Counts the tokens of tool definitions by the formula in OpenAI's cookbook. Nested schemas count as properties too;
 * anything the formula does not cover counts as JSON text.
 *
 * @example
 * countToolTokens(tokenizer, [{ type: 'function', function: { name: 'now', description: 'The time' } }]) // 22
 */
export function countToolTokens(tokenizer: Tokenizer, tools: readonly unknown[]): Tokens {
  if (tools.length === 0) return 0
  const counter: ToolCounter = {
    count: (text) => (text === '' ? 0 : tokenizer.count(text)),
    functionTokens: tokenizer.name === 'o200k_base' ? toolFigures.function : toolFigures.olderFunction,
  }
  return tools.reduce((sum: Tokens, tool) => sum + countTool(counter, tool), toolFigures.end)
}

type ToolCounter = { count(text: string): Tokens; readonly functionTokens: Tokens }

function countTool(counter: ToolCounter, tool: unknown): Tokens {
  const json = toJson(tool)
  const definition = isObject(tool) && tool.type === 'function' && json !== '' ? tool.function : undefined
  if (!isObject(definition) || typeof definition.name !== 'string') return counter.functionTokens + counter.count(json)
  const { name, description, parameters, strict: _, ...rest } = definition
  return (
    counter.functionTokens +
    counter.count(`${name}:${formatDescription(description)}`) +
    countSchema(counter, parameters, 0) +
    countRest(counter, rest)
  )
}

function countSchema(counter: ToolCounter, schema: unknown, depth: number): Tokens {
  if (schema === undefined) return 0
  if (!isObject(schema) || depth > maxSchemaDepth) return counter.count(toJson(schema))
  const { type: _type, required: _required, additionalProperties, properties, ...rest } = schema
  const entries = isObject(properties) ? Object.entries(properties) : []
  const additional = isObject(additionalProperties) ? { additionalProperties } : {}
  const nested = entries.reduce(
    (sum: Tokens, [key, property]) => sum + countProperty(counter, key, property, depth),
    entries.length > 0 ? toolFigures.properties : 0,
  )
  return nested + countRest(counter, { ...rest, ...additional })
}

function countProperty(counter: ToolCounter, key: string, property: unknown, depth: number): Tokens {
  if (!isObject(property) || depth > maxSchemaDepth)
    return toolFigures.key + counter.count(`${key}:${toJson(property)}`)
  const { type, description, enum: choices, items, ...rest } = property
  const typeName = typeof type === 'string' ? type : type === undefined ? '' : toJson(type)
  let cost = toolFigures.key + counter.count(`${key}:${typeName}:${formatDescription(description)}`)
  if (Array.isArray(choices)) {
    cost += toolFigures.enum
    for (const choice of choices) cost += toolFigures.item + counter.count(toText(choice))
  } else if (choices !== undefined) cost += counter.count(toJson(choices))
  if (items !== undefined) cost += countProperty(counter, 'items', items, depth + 1)
  return cost + countSchema(counter, rest, depth + 1)
}

const countRest = (counter: ToolCounter, rest: Record<string, unknown>): Tokens =>
  Object.keys(rest).length > 0 ? counter.count(toJson(rest)) : 0
const toText = (value: unknown): string => (typeof value === 'string' ? value : toJson(value))

/** Removes the final full stop, as OpenAI's format does. */
function formatDescription(description: unknown): string {
  const text = description === undefined ? '' : toText(description)
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/** Returns '' for a value with a cycle: it cannot be sent either, so it costs nothing. */
function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}
