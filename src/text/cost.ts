import type { Tokens, ToolCall } from '../domain/entry.ts'
import type { Tokenizer } from '../domain/ports.ts'
import { utf8Length } from './utf8.ts'

/**
 * What OpenAI's chat format adds. For messages, names and the reply the published figures of OpenAI's cookbook. For a tool
 * call nobody publishes one, so it is the largest of the known renderings without id, name and arguments: 17 as JSON of the
 * request, 16 as one of two parallel calls, 14 in the harmony format; a lone call has been seen to cost 3.
 */
export const chatOverhead: Tokenizer['overhead'] = { message: 3, name: 1, call: 17, reply: 3 }

type Priced = {
  readonly role: string
  readonly content: string | null
  readonly name?: string | undefined
  readonly calls?: readonly ToolCall[] | undefined
  readonly answers?: string | undefined
}

/**
 * What one message costs, the reply's overhead not included.
 *
 * @example
 * messageCost(tokenizer, { role: 'user', content: 'Hello world' }) // 6
 */
export function messageCost(tokenizer: Tokenizer, message: Priced): Tokens {
  const { overhead } = tokenizer
  const count = (text: string | null | undefined): Tokens => (text ? tokenizer.count(text) : 0)
  let cost = overhead.message + count(message.role) + count(message.content) + count(message.answers)
  if (message.name) cost += overhead.name + count(message.name)
  for (const call of message.calls ?? [])
    cost += overhead.call + count(call.name) + count(call.arguments) + count(call.id)
  return cost
}

/** Of all that a request brings along so many tokens are counted: that takes some 60 ms at worst, in which nobody else is served. */
const counted = 65_536

/**
 * What a request's instructions and tools cost. If they are more than any model reads with care, the rest is bounded from
 * above by its bytes.
 *
 * @example
 * preludeCost(tokenizer, [{ role: 'system', content: 'Be brief.' }], []) // 7
 */
export function preludeCost(tokenizer: Tokenizer, instructions: readonly Priced[], tools: readonly unknown[]): Tokens {
  const { name, kind, overhead } = tokenizer
  let spent = 0
  const count = (text: string): Tokens => {
    if (kind !== 'estimate' && spent >= counted) return utf8Length(text)
    const tokens = tokenizer.count(text)
    spent += tokens
    return tokens
  }
  const sparing: Tokenizer = { name, kind, overhead, isExact: (text) => tokenizer.isExact(text), count }
  return instructions.reduce((sum, message) => sum + messageCost(sparing, message), toolsCost(sparing, tools))
}

/** The figures of OpenAI's cookbook for tool definitions; a function costs more in models of the older encoding. */
const figures = { function: 7, olderFunction: 10, properties: 3, key: 3, enum: -3, item: 3, end: 12 }
const deepest = 32

/**
 * What a list of tool definitions costs, by the formula OpenAI's cookbook publishes. Nested schemas are counted as
 * properties too, and what the formula does not know as JSON text.
 *
 * @example
 * toolsCost(tokenizer, [{ type: 'function', function: { name: 'now', description: 'The time' } }]) // 22
 */
export function toolsCost(tokenizer: Tokenizer, tools: readonly unknown[]): Tokens {
  if (tools.length === 0) return 0
  const pricer: Pricer = {
    count: (text) => (text === '' ? 0 : tokenizer.count(text)),
    start: tokenizer.name === 'o200k_base' ? figures.function : figures.olderFunction,
  }
  return tools.reduce((sum: Tokens, tool) => sum + toolCost(pricer, tool), figures.end)
}

type Pricer = { count(text: string): Tokens; readonly start: Tokens }
type Fields = { readonly [key: string]: unknown }

function toolCost(pricer: Pricer, tool: unknown): Tokens {
  const json = jsonOf(tool)
  const definition = isFields(tool) && tool.type === 'function' && json !== '' ? tool.function : undefined
  if (!isFields(definition) || typeof definition.name !== 'string') return pricer.start + pricer.count(json)
  const { name, description, parameters, strict: _, ...rest } = definition
  return (
    pricer.start +
    pricer.count(`${name}:${sentence(description)}`) +
    schemaCost(pricer, parameters, 0) +
    restCost(pricer, rest)
  )
}

function schemaCost(pricer: Pricer, schema: unknown, depth: number): Tokens {
  if (schema === undefined) return 0
  if (!isFields(schema) || depth > deepest) return pricer.count(jsonOf(schema))
  const { type: _type, required: _required, additionalProperties, properties, ...rest } = schema
  const keys = isFields(properties) ? Object.entries(properties) : []
  const open = isFields(additionalProperties) ? { additionalProperties } : {}
  const inside = keys.reduce(
    (sum: Tokens, [key, property]) => sum + propertyCost(pricer, key, property, depth),
    keys.length > 0 ? figures.properties : 0,
  )
  return inside + restCost(pricer, { ...rest, ...open })
}

function propertyCost(pricer: Pricer, key: string, property: unknown, depth: number): Tokens {
  if (!isFields(property) || depth > deepest) return figures.key + pricer.count(`${key}:${jsonOf(property)}`)
  const { type, description, enum: choices, items, ...rest } = property
  const kind = typeof type === 'string' ? type : type === undefined ? '' : jsonOf(type)
  let cost = figures.key + pricer.count(`${key}:${kind}:${sentence(description)}`)
  if (Array.isArray(choices))
    cost += figures.enum + choices.reduce((sum: Tokens, choice) => sum + figures.item + pricer.count(textOf(choice)), 0)
  else if (choices !== undefined) cost += pricer.count(jsonOf(choices))
  if (items !== undefined) cost += propertyCost(pricer, 'items', items, depth + 1)
  return cost + schemaCost(pricer, rest, depth + 1)
}

const restCost = (pricer: Pricer, rest: Fields): Tokens =>
  Object.keys(rest).length > 0 ? pricer.count(jsonOf(rest)) : 0
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : jsonOf(value))

/** A description without its full stop, which the format drops. */
function sentence(description: unknown): string {
  const text = description === undefined ? '' : textOf(description)
  return text.endsWith('.') ? text.slice(0, -1) : text
}

/** What cannot be written as JSON, because it holds itself, cannot be sent either and costs nothing. */
function jsonOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? ''
  } catch {
    return ''
  }
}
