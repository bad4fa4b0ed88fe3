import type { Tokens } from '../../domain/entry.ts'
import { isObject } from '../../domain/error.ts'
import { isInScope } from '../../domain/key.ts'
import { LruCache } from '../../domain/lruCache.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { estimateSize, stringifyInSteps } from '../../domain/stringify.ts'
import { runInSlices, type Work } from '../../domain/work.ts'
import { Column, uint32Array } from '../../search/column.ts'
import { yieldWhenLong } from '../../stores/yieldToEventLoop.ts'
import type { RequestBody } from '../protocols/protocol.ts'
import { asArray } from '../protocols/request.ts'

/**
 * Digest of a prompt, from which the next one learns how much of it it repeats. It has no text. The first part stands
 * for model and tools, the others for instructions and messages.
 */
export type PromptDigest = {
  /** Hash of the prompt up to the end of each line. */
  readonly lines: Uint32Array
  /** Number of lines up to the end of each part. */
  readonly partEnds: Uint32Array
  /** Tokens of each part; -1 until a later prompt repeats it. */
  readonly partTokens: Int32Array
}

/** A request body as it is sent, and the counters of its tokens. */
export type PromptToMeasure = {
  readonly body: RequestBody
  readonly tokenizer: Tokenizer
  /** Counts the tool definitions, which differ between the protocols. */
  readonly countTools: () => Tokens
}

/** Upper limits of all digests together. The least recently used sessions are dropped. */
const maxSessions = 10_000
const maxDigestBytes = 16_000_000

/** Remembers the newest prompt of each session that a model was sent, to measure how much the next one repeats. */
export class SentPrompts {
  private readonly sessions = new LruCache<string, PromptDigest & { readonly upstream: string }>({
    maxEntries: maxSessions,
    maxTotalSize: maxDigestBytes,
  })

  /**
   * Measures the beginning that a prompt shares with the previous one of its session: whole parts, and of the first
   * part that differs its whole lines. `upstream` is the one that received the previous prompt.
   */
  async measure(
    session: string,
    prompt: PromptToMeasure,
  ): Promise<{ readonly digest: PromptDigest; readonly commonTokens: Tokens; readonly upstream: string | undefined }> {
    const parts = readParts(prompt.body)
    const { lines, partEnds } = await runInSlices(digestInSteps(parts), yieldWhenLong)
    const partTokens = new Int32Array(parts.length).fill(-1)
    const digest = { lines, partEnds, partTokens }
    const previous = this.sessions.get(session)
    if (previous === undefined) return { digest, commonTokens: 0, upstream: undefined }
    const commonTokens = await runInSlices(countCommonInSteps(parts, prompt, digest, previous), yieldWhenLong)
    return { digest, commonTokens, upstream: previous.upstream }
  }

  /** Remembers a prompt that an upstream has accepted. */
  record(session: string, { lines, partEnds, partTokens }: PromptDigest, upstream: string): void {
    const bytes = 200 + lines.byteLength + partEnds.byteLength + partTokens.byteLength
    this.sessions.set(session, { lines, partEnds, partTokens, upstream }, bytes)
  }

  /** Drops a session, or a tenant with all its sessions. */
  forget(target: { readonly key: string } | { readonly scope: string }): void {
    if ('key' in target) this.sessions.delete(target.key)
    else this.sessions.deleteWhere((session) => isInScope(session, target.scope))
  }
}

/** The parts of a prompt in the order in which providers read them. */
function readParts(body: RequestBody): readonly unknown[] {
  const { model, tools, functions, system, instructions, messages, input } = body
  return [
    { model, tools, functions },
    ...[system, instructions].flatMap((text) => (text === undefined ? [] : [{ role: 'system', content: text }])),
    ...asArray(messages),
    ...(typeof input === 'string' ? [{ role: 'user', content: input }] : asArray(input)),
  ]
}

/** Written after each part, so that one part never equals two. */
const partMark = 0xff_ff
const newline = 10
const hashPrime = 0x01_00_01_93

/** Characters hashed in one step: about as fast as a slice of other work. */
const charactersPerStep = 262_144
const [hashingSpeed, countingSpeed] = [32, 8]

/** Hashes the prompt line by line, each hash over everything before it (FNV-1a). */
function* digestInSteps(parts: readonly unknown[]): Work<Pick<PromptDigest, 'lines' | 'partEnds'>> {
  const lines = new Column(uint32Array)
  const partEnds = new Uint32Array(parts.length)
  let hash = 0x81_1c_9d_c5
  for (const [index, part] of parts.entries()) {
    const text = yield* renderPart(part)
    for (let start = 0, end = 0; start < text.length; start = end) {
      end = Math.min(start + charactersPerStep, text.length)
      hash = hashLines(text, start, end, hash, lines)
      yield Math.ceil((end - start) / hashingSpeed)
    }
    hash = Math.imul(hash ^ partMark, hashPrime)
    lines.push(hash >>> 0)
    partEnds[index] = lines.length
  }
  return { lines: lines.used.slice(), partEnds }
}

/** Continues a hash over part of a text, and adds the hash at the end of each line. */
function hashLines(text: string, from: number, to: number, before: number, lines: Column<Uint32Array>): number {
  let hash = before
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at)
    hash = Math.imul(hash ^ code, hashPrime)
    if (code === newline) lines.push(hash >>> 0)
  }
  return hash
}

function* countCommonInSteps(
  parts: readonly unknown[],
  { tokenizer, countTools }: PromptToMeasure,
  { lines, partEnds, partTokens }: PromptDigest,
  previous: PromptDigest,
): Work<Tokens> {
  let common = 0
  while (common < lines.length && lines[common] === previous.lines[common]) common++
  let tokens = 0
  for (const [index, part] of parts.entries()) {
    const start = index === 0 ? 0 : (partEnds[index - 1] ?? 0)
    if ((partEnds[index] ?? 0) > common) {
      // Another model or other tools: the provider has cached nothing for this prompt.
      return index === 0 ? 0 : tokens + (yield* countLines(tokenizer, part, common - start))
    }
    const known = previous.partTokens[index] ?? -1
    partTokens[index] = known >= 0 ? known : index === 0 ? countTools() : countPart(tokenizer, part)
    tokens += partTokens[index] as number
    if (known < 0) yield 512 + Math.ceil(estimateSize(part, charactersPerStep) / countingSpeed)
  }
  return tokens
}

/** The text of a part. Markers of cache breakpoints move from turn to turn and are no part of it. */
function* renderPart(part: unknown): Work<string> {
  if (!isObject(part)) return toJson(part)
  const { role, content, cache_control: _marker, ...rest } = part
  const more = Object.keys(rest).length === 0 ? '' : `\n${yield* stringifyInSteps(rest, cacheMarker)}`
  const text = isObject(content) || Array.isArray(content) ? yield* renderBlocks(content) : renderContent(content)
  return `${typeof role === 'string' ? role : ''}\n${text}${more}`
}

/** Does the same as `renderContent` in steps. */
function* renderBlocks(content: unknown): Work<string> {
  if (!Array.isArray(content)) return yield* stringifyInSteps(content, cacheMarker)
  const texts: string[] = []
  for (const block of content) texts.push(readBlockText(block) ?? (yield* stringifyInSteps(block, cacheMarker)))
  return texts.join('\n')
}

function renderContent(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return content === undefined ? '' : toJson(content)
  return content.map((block: unknown) => readBlockText(block) ?? toJson(block)).join('\n')
}

const cacheMarker = 'cache_control'
const toJson = (value: unknown): string =>
  JSON.stringify(value, (name, field: unknown) => (name === cacheMarker ? undefined : field)) ?? ''

const blockTextTypes: ReadonlySet<unknown> = new Set(['text', 'input_text', 'output_text'])

const readBlockText = (block: unknown): string | undefined =>
  isObject(block) && blockTextTypes.has(block.type) && typeof block.text === 'string' ? block.text : undefined

/** Tokens of the first lines of a part; its first line is the role. */
function* countLines(tokenizer: Tokenizer, part: unknown, lines: number): Work<Tokens> {
  if (lines < 2) return 0
  const text = yield* renderPart(part)
  const roleEnd = text.indexOf('\n')
  let end = roleEnd
  for (let line = 1; line < lines; line++) {
    end = text.indexOf('\n', end + 1)
    yield 1
  }
  yield Math.ceil(end / countingSpeed)
  return (
    tokenizer.overhead.message +
    tokenizer.count(text.slice(0, roleEnd)) +
    tokenizer.count(text.slice(roleEnd + 1, end + 1))
  )
}

/** Counts a part like a message: text, tool calls and tool results. Media are not counted. */
function countPart(tokenizer: Tokenizer, part: unknown): Tokens {
  if (!isObject(part)) return 0
  const { overhead } = tokenizer
  const count = (value: unknown): Tokens =>
    value === undefined || value === '' ? 0 : tokenizer.count(typeof value === 'string' ? value : toJson(value))
  const countCall = (name: unknown, input: unknown, id: unknown): Tokens =>
    overhead.call + count(name) + count(input) + count(id)
  const { role, content, name, tool_call_id: answers, tool_calls: calls, type, call_id: callId } = part
  if (role === 'system' && Array.isArray(content))
    return content.reduce(
      (sum: Tokens, block: unknown) => sum + overhead.message + count(role) + count(readBlockText(block)),
      0,
    )
  let tokens = overhead.message
  if (type === 'function_call') tokens += count('assistant') + countCall(name, part.arguments, callId)
  else if (type === 'function_call_output') tokens += count('tool') + count(part.output) + count(callId)
  else tokens += count(role) + count(answers) + (name === undefined ? 0 : overhead.name + count(name))
  if (typeof content === 'string') tokens += count(content)
  for (const block of asArray(content)) {
    const text = readBlockText(block)
    if (text !== undefined) tokens += count(text)
    else if (isObject(block) && block.type === 'tool_use') tokens += countCall(block.name, block.input, block.id)
    else if (isObject(block) && block.type === 'tool_result')
      tokens += overhead.message + count('tool') + count(renderContent(block.content)) + count(block.tool_use_id)
  }
  for (const call of asArray(calls))
    if (isObject(call) && isObject(call.function))
      tokens += countCall(call.function.name, call.function.arguments, call.id)
  return tokens
}
