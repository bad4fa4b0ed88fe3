import type { AnthropicBlock, AnthropicMessage, ChatMessage } from '../../src/domain/ledger.ts'

/** Requests are UTF-8 JSON: both providers reject lone surrogates with status 400. */
const loneSurrogate = /\p{Surrogate}/u
const visible = /\S/
const participant = /^[^\s<|\\/>]{1,64}$/
const functionName = /^[a-zA-Z0-9_-]{1,64}$/
const anthropicToolName = /^[a-zA-Z0-9_-]{1,128}$/
const anthropicId = /^[a-zA-Z0-9_-]+$/

/**
 * Lists what OpenAI's chat completions API rejects in a list of messages, according to its reference: contents, names, and tool
 * calls that are not followed by exactly one result each.
 */
export function findOpenaiFaults(messages: readonly ChatMessage[], checkFunctionNames = true): string[] {
  const faults: string[] = []
  let openCalls = new Set<string>()
  messages.forEach((message, index) => {
    const report = (fault: string) => faults.push(`messages[${index}] ${fault}`)
    if (message.role === 'tool') {
      if (!openCalls.delete(message.tool_call_id))
        report(`answers ${JSON.stringify(message.tool_call_id)}, which is not an open call`)
    } else {
      for (const id of openCalls) report(`precedes the result of ${JSON.stringify(id)}`)
      openCalls = new Set(message.role === 'assistant' ? message.tool_calls?.map((call) => call.id) : [])
    }
    messageFaults(message, checkFunctionNames).forEach(report)
  })
  for (const id of openCalls) faults.push(`call ${JSON.stringify(id)} has no result`)
  return faults
}

function messageFaults(message: ChatMessage, checkFunctionNames: boolean): string[] {
  const faults: string[] = []
  if (!['system', 'user', 'assistant', 'tool'].includes(message.role))
    faults.push(`has the unknown role ${message.role}`)
  if (loneSurrogate.test(textIn(message))) faults.push('contains a lone surrogate')
  if (message.role === 'assistant') faults.push(...assistantFaults(message, checkFunctionNames))
  else if (typeof message.content !== 'string' || !visible.test(message.content)) faults.push('has no content')
  if (message.role !== 'tool' && message.name !== undefined && !participant.test(message.name))
    faults.push(`has the invalid name ${JSON.stringify(message.name)}`)
  return faults
}

function assistantFaults(
  { content, tool_calls: calls }: Extract<ChatMessage, { role: 'assistant' }>,
  checkFunctionNames: boolean,
): string[] {
  const faults: string[] = []
  if (content === null ? calls === undefined : typeof content !== 'string' || !visible.test(content))
    faults.push('has no content')
  if (calls === undefined) return faults
  const ids = calls.map((call) => call.id)
  if (ids.length === 0) faults.push('has an empty list of tool calls')
  if (ids.includes('')) faults.push('has a call without an id')
  if (new Set(ids).size < ids.length) faults.push(`has duplicate call ids: ${ids.join(', ')}`)
  for (const call of calls) {
    if (call.type !== 'function' || typeof call.function.arguments !== 'string') faults.push('has an invalid call')
    if (checkFunctionNames && !functionName.test(call.function.name))
      faults.push(`calls a function with the invalid name ${JSON.stringify(call.function.name)}`)
  }
  return faults
}

/**
 * Lists what Anthropic's messages API rejects. Rules: a user turn first, alternating roles, no blank text, unique tool use ids,
 * tool results at the start of the next turn, no white space at the end of the last assistant text.
 */
export function findAnthropicFaults({
  system,
  messages,
}: {
  readonly system: string
  readonly messages: readonly AnthropicMessage[]
}): string[] {
  const faults: string[] = typeof system === 'string' ? [] : ['system is not a string']
  if (loneSurrogate.test(system)) faults.push('system contains a lone surrogate')
  const usedIds = new Set<string>()
  messages.forEach((message, index) => {
    const report = (fault: string) => faults.push(`messages[${index}] ${fault}`)
    if (message.role !== (index % 2 === 0 ? 'user' : 'assistant'))
      report(`is a turn of the ${message.role}, which is out of order`)
    const blocks = blocksOf(message)
    if (blocks.length === 0) report('is empty')
    blocks.flatMap((block) => blockFaults(block, message.role)).forEach(report)
    for (const id of blocks.flatMap(toolUseIds)) {
      if (usedIds.has(id)) report(`reuses the id ${id}`)
      usedIds.add(id)
    }
    resultFaults(
      blocks,
      index === 0 ? [] : blocksOf(messages[index - 1] as AnthropicMessage).flatMap(toolUseIds),
    ).forEach(report)
  })
  return [...faults, ...endFaults(messages.at(-1))]
}

const blocksOf = ({ content }: AnthropicMessage): readonly AnthropicBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content
const toolUseIds = (block: AnthropicBlock): string[] => (block.type === 'tool_use' ? [block.id] : [])

function blockFaults(block: AnthropicBlock, role: 'user' | 'assistant'): string[] {
  const faults: string[] = []
  if (loneSurrogate.test(textIn(block))) faults.push(`contains a lone surrogate in ${block.type}`)
  if (block.type === 'text' && !visible.test(block.text)) faults.push('has a blank text block')
  if (block.type === 'tool_result' && !visible.test(String(block.content))) faults.push('has a blank result')
  if (block.type === 'tool_use' && !anthropicId.test(block.id))
    faults.push(`has a tool use with the invalid id ${JSON.stringify(block.id)}`)
  if (block.type === 'tool_use' && !anthropicToolName.test(block.name))
    faults.push(`uses a tool with the invalid name ${JSON.stringify(block.name)}`)
  if (
    block.type === 'tool_use' &&
    (typeof block.input !== 'object' || block.input === null || Array.isArray(block.input))
  )
    faults.push('has a tool use whose input is not an object')
  if (block.type === (role === 'user' ? 'tool_use' : 'tool_result'))
    faults.push(`has a ${block.type} in a turn of the ${role}`)
  return faults
}

/** Joins all strings in a value, including field names. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null ? Object.entries(value).flat().map(textIn).join('\n') : ''
}

function resultFaults(blocks: readonly AnthropicBlock[], uses: readonly string[]): string[] {
  const openUses = new Set(uses)
  const faults: string[] = []
  let hasOtherContent = false
  for (const block of blocks) {
    if (block.type !== 'tool_result') hasOtherContent = true
    else if (!openUses.delete(block.tool_use_id))
      faults.push(`has a result of ${block.tool_use_id}, which is not an open tool use of the previous turn`)
    else if (hasOtherContent) faults.push('has a result after other content')
  }
  return [...faults, ...[...openUses].map((id) => `lacks the result of ${id}`)]
}

function endFaults(last: AnthropicMessage | undefined): string[] {
  if (last?.role !== 'assistant') return []
  const blocks = blocksOf(last)
  const end = blocks.at(-1)
  const faults = blocks.flatMap(toolUseIds).map((id) => `tool use ${id} has no result`)
  return end?.type === 'text' && end.text !== end.text.trimEnd()
    ? [...faults, 'the last text ends with white space']
    : faults
}
