import type { AnthropicBlock, AnthropicMessage, ChatMessage } from '../../src/domain/ledger.ts'

/** Requests are JSON in UTF-8: both providers answer 400 to half a surrogate pair. */
const broken = /\p{Surrogate}/u
const visible = /\S/
const participant = /^[^\s<|\\/>]{1,64}$/
const functionName = /^[a-zA-Z0-9_-]{1,64}$/
const anthropicToolName = /^[a-zA-Z0-9_-]{1,128}$/
const anthropicId = /^[a-zA-Z0-9_-]+$/

/**
 * What OpenAI's chat completions API would refuse in a list of messages, by its reference: contents, names, and tool
 * messages that answer each call of the assistant message before them, once, before anything else is said.
 */
export function openaiFaults(messages: readonly ChatMessage[], checkFunctionNames = true): string[] {
  const faults: string[] = []
  let open = new Set<string>()
  messages.forEach((message, place) => {
    const report = (fault: string) => faults.push(`messages[${place}] ${fault}`)
    if (message.role === 'tool') {
      if (!open.delete(message.tool_call_id))
        report(`answers ${JSON.stringify(message.tool_call_id)}, which is no open call`)
    } else {
      for (const id of open) report(`stands before the answer to ${JSON.stringify(id)}`)
      open = new Set(message.role === 'assistant' ? message.tool_calls?.map((call) => call.id) : [])
    }
    faultsOf(message, checkFunctionNames).forEach(report)
  })
  for (const id of open) faults.push(`nothing answers ${JSON.stringify(id)}`)
  return faults
}

function faultsOf(message: ChatMessage, checkFunctionNames: boolean): string[] {
  const faults: string[] = []
  if (!['system', 'user', 'assistant', 'tool'].includes(message.role))
    faults.push(`has the unknown role ${message.role}`)
  if (broken.test(textIn(message))) faults.push('holds half a surrogate pair')
  if (message.role === 'assistant') faults.push(...assistantFaults(message, checkFunctionNames))
  else if (typeof message.content !== 'string' || !visible.test(message.content)) faults.push('has no content')
  if (message.role !== 'tool' && message.name !== undefined && !participant.test(message.name))
    faults.push(`has the name ${JSON.stringify(message.name)}`)
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
  if (new Set(ids).size < ids.length) faults.push(`has calls of the same id: ${ids.join(', ')}`)
  for (const call of calls) {
    if (call.type !== 'function' || typeof call.function.arguments !== 'string') faults.push('has a call that is none')
    if (checkFunctionNames && !functionName.test(call.function.name))
      faults.push(`calls ${JSON.stringify(call.function.name)}`)
  }
  return faults
}

/**
 * What Anthropic's messages API would refuse: a user's turn first, roles taking turns, no blank text, every tool use with
 * an id of its own and its result at the beginning of the next turn, no white space at the end of the assistant's text.
 */
export function anthropicFaults({
  system,
  messages,
}: {
  readonly system: string
  readonly messages: readonly AnthropicMessage[]
}): string[] {
  const faults: string[] = typeof system === 'string' ? [] : ['system is no text']
  if (broken.test(system)) faults.push('system holds half a surrogate pair')
  const used = new Set<string>()
  messages.forEach((message, place) => {
    const report = (fault: string) => faults.push(`messages[${place}] ${fault}`)
    if (message.role !== (place % 2 === 0 ? 'user' : 'assistant')) report(`is a turn of the ${message.role}`)
    const blocks = blocksOf(message)
    if (blocks.length === 0) report('is empty')
    blocks.flatMap((block) => blockFaults(block, message.role)).forEach(report)
    for (const id of blocks.flatMap(useOf)) {
      if (used.has(id)) report(`uses the id ${id} again`)
      used.add(id)
    }
    resultFaults(blocks, place === 0 ? [] : blocksOf(messages[place - 1] as AnthropicMessage).flatMap(useOf)).forEach(
      report,
    )
  })
  return [...faults, ...endFaults(messages.at(-1))]
}

const blocksOf = ({ content }: AnthropicMessage): readonly AnthropicBlock[] =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content
const useOf = (block: AnthropicBlock): string[] => (block.type === 'tool_use' ? [block.id] : [])

function blockFaults(block: AnthropicBlock, role: 'user' | 'assistant'): string[] {
  const faults: string[] = []
  if (broken.test(textIn(block))) faults.push(`holds half a surrogate pair in ${block.type}`)
  if (block.type === 'text' && !visible.test(block.text)) faults.push('has a blank text')
  if (block.type === 'tool_result' && !visible.test(block.content)) faults.push('has a blank result')
  if (block.type === 'tool_use' && !anthropicId.test(block.id))
    faults.push(`uses a tool with the id ${JSON.stringify(block.id)}`)
  if (block.type === 'tool_use' && !anthropicToolName.test(block.name))
    faults.push(`uses the tool ${JSON.stringify(block.name)}`)
  if (
    block.type === 'tool_use' &&
    (typeof block.input !== 'object' || block.input === null || Array.isArray(block.input))
  )
    faults.push('uses a tool with an input that is no object')
  if (block.type === (role === 'user' ? 'tool_use' : 'tool_result'))
    faults.push(`has a ${block.type} in a turn of the ${role}`)
  return faults
}

/** All text in a value, the names of its fields included. */
function textIn(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null ? Object.entries(value).flat().map(textIn).join('\n') : ''
}

function resultFaults(blocks: readonly AnthropicBlock[], uses: readonly string[]): string[] {
  const open = new Set(uses)
  const faults: string[] = []
  let talking = false
  for (const block of blocks) {
    if (block.type !== 'tool_result') talking = true
    else if (!open.delete(block.tool_use_id))
      faults.push(`has a result of ${block.tool_use_id}, which is no open tool use of the turn before`)
    else if (talking) faults.push('has a result behind other content')
  }
  return [...faults, ...[...open].map((id) => `lacks the result of ${id}`)]
}

function endFaults(last: AnthropicMessage | undefined): string[] {
  if (last?.role !== 'assistant') return []
  const blocks = blocksOf(last)
  const end = blocks.at(-1)
  const faults = blocks.flatMap(useOf).map((id) => `nothing answers ${id}`)
  return end?.type === 'text' && end.text !== end.text.trimEnd()
    ? [...faults, 'the last text ends with white space']
    : faults
}
