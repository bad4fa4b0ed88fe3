import type { Source, ToolCall } from '../../domain/entry.ts'
import type { Work } from '../../domain/work.ts'
import { splitFencedLinesInSteps } from '../../text/fences.ts'
import { getString, parseJson } from '../../text/json.ts'
import { findInjections, type Span } from './injectionCheck.ts'
import { findOutcome } from './outcomes.ts'
import { collapseWhitespace, type NamedEntity, type SummaryMessage } from './summary.ts'

/** Commands that were run with their last result, and files with their last state, oldest first. */
export type Actions = { readonly commands: readonly NamedEntity[]; readonly files: readonly NamedEntity[] }

type FileState = 'created' | 'written' | 'edited' | 'deleted' | 'renamed'
type Recorder = {
  readonly command: (command: string, output: string, source: Source) => void
  readonly file: (path: string, state: FileState, source: Source) => void
}

const maxCommandChars = 100
const maxPathChars = 200
/** Cost of a message and of a line beside their characters. */
const messageWork = 20
const lineWork = 20
/** Commands that only read. */
const reading =
  /^(?:cat|ls|ll|cd|pwd|head|tail|grep|rg|find|echo|sed -n|wc|which|tree|less|more|type|env|git (?:status|diff|log|show|branch|rev-parse))(?![\w-])/

/** Collects the commands and changed files of messages; a later result or state replaces an earlier one. */
export function* collectActions(messages: readonly SummaryMessage[], earlier: Actions): Work<Actions> {
  const commands = new Map(earlier.commands.map((item) => [commandKey(item.text), item]))
  const files = new Map(earlier.files.map((item) => [keyOf(item.text), item]))
  const recorder: Recorder = {
    command: (raw, output, source) => addCommand(commands, raw, output, source),
    file: (path, state, source) => addFile(files, path, state, source),
  }
  const calls = new Map<string, ToolCall>()
  for (const message of messages) {
    for (const call of message.toolCalls ?? []) calls.set(call.id, call)
    if (message.role === 'tool') recordCall(calls.get(message.toolCallId ?? ''), message, recorder)
    else if (message.role !== 'system') yield* recordText(message, recorder)
    yield message.content.length + messageWork
  }
  return { commands: [...commands.values()], files: [...files.values()] }
}

/** Part of an item that identifies it: the text before the result or state in brackets. */
const keyOf = (item: string): string => item.replace(/ \([^()]*\)$/, '')

/** Command without options: a run with other options replaces the result, too, unless the command takes a message. */
const commandKey = (item: string): string =>
  /\s-\w*m\b|["']/.test(keyOf(item)) ? keyOf(item) : keyOf(item).replace(/\s--?[\w-]+(?:=\S+)?/g, '')

function addCommand(commands: Map<string, NamedEntity>, raw: string, output: string, source: Source): void {
  const [line = ''] = raw.trimStart().split('\n', 1)
  // The last of several commands has the result.
  const command = collapseWhitespace(line.split(/ && |; /).at(-1) ?? '').trim()
  if (command.length > maxCommandChars || !/\w/.test(command) || reading.test(command)) return
  const outcome = findOutcome(output)
    ?.text.replace(/; |[()]/g, ' ')
    .trim()
  const text = outcome === undefined || outcome === '' ? command : `${command} (${outcome})`
  if (outcome === undefined || findInjections(text).length > 0) return
  commands.delete(commandKey(text))
  commands.set(commandKey(text), { text, sources: [source] })
}

function addFile(files: Map<string, NamedEntity>, path: string, state: FileState, source: Source): void {
  if (path.length > maxPathChars || !/\w/.test(path) || /\s/.test(path) || findInjections(path).length > 0) return
  const isNew = files.get(path)?.text.endsWith('(created)') && (state === 'edited' || state === 'written')
  files.delete(path)
  files.set(path, { text: `${path} (${isNew ? 'created' : state})`, sources: [source] })
}

const pathFields = ['file_path', 'filePath', 'path', 'target_file', 'filename', 'file', 'absolute_path']
const commandFields = ['command', 'cmd', 'script']
const statesByTool: readonly (readonly [pattern: RegExp, state: FileState])[] = [
  [/delete|remove|unlink/i, 'deleted'],
  [/rename|move/i, 'renamed'],
  [/create/i, 'created'],
  [/write/i, 'written'],
  [/edit|replace|update|patch|insert|append/i, 'edited'],
]

/** Records a tool call when its result is known; a failed change of a file is not recorded. */
function recordCall(call: ToolCall | undefined, result: SummaryMessage, recorder: Recorder): void {
  if (call === undefined) return
  const source: Source = { message: result.id, span: [0, result.content.length] }
  const values = parseJson(call.arguments)
  const read = (fields: readonly string[]): string =>
    fields.map((field) => getString(values, field)).find((value) => value !== '') ?? ''
  const command = read(commandFields)
  if (command !== '') {
    recorder.command(command, result.content, source)
    recordShell(command, source, recorder)
    return
  }
  if (/^\s*(?:error|failed|fatal)/i.test(result.content)) return
  const path = read(pathFields)
  const state = statesByTool.find(([pattern]) => pattern.test(call.name))?.[1]
  if (path !== '' && state !== undefined) recorder.file(path, state, source)
  recordPatch(call.arguments.replaceAll('\\n', '\n'), source, recorder)
}

const patchState: Readonly<Record<string, FileState>> = { Add: 'created', Update: 'edited', Delete: 'deleted' }

/** Records the files named by the headers of a patch. */
function recordPatch(text: string, source: Source, { file }: Recorder): void {
  for (const [, verb = '', path = ''] of text.matchAll(/^\*{3} (Add|Update|Delete) File: (\S{1,200})/gm))
    file(path, patchState[verb] ?? 'edited', source)
  for (const [, from = '', to = ''] of text.matchAll(/^--- (?:a\/)?(\S{1,200})\n\+\+\+ (?:b\/)?(\S{1,200})/gm))
    if (to === '/dev/null') file(from, 'deleted', source)
    else file(to, from === '/dev/null' ? 'created' : 'edited', source)
}

/** Records files that a shell command deletes or renames. */
function recordShell(command: string, source: Source, { file }: Recorder): void {
  for (const [, verb = '', rest = ''] of command.matchAll(/(?:^|[;&|]\s{0,4})(?:git )?(rm|mv) ([^;&|\n]{1,400})/g)) {
    const paths = rest.split(/\s+/).filter((word) => /^[\w@~./-]*\.\w{1,8}$/.test(word))
    if (verb === 'rm') for (const path of paths) file(path, 'deleted', source)
    else if (paths.length === 2 && paths[0] !== undefined) file(paths[0], 'renamed', source)
  }
}

const shellLanguages = new Set(['bash', 'sh', 'shell', 'zsh', 'console', 'terminal', 'powershell'])
/** Part of every line with a prompt. */
const promptSign = /[$❯%] /
const promptLine = /^\s{0,4}(?:[\w.@~-]{1,40}[@: ][^\n$%#❯]{0,60}[%$] |[$❯] )(\S.{0,300})$/
/** Statement that a file was changed: a verb, and the rest after it. */
const changeVerb = /\b(?:created|added|wrote|updated|edited|modified|changed|deleted|removed|renamed|refactored)\b/gi
const changedPath =
  /([^.\n]{0,60}?)(?<![\w./@~-])([\w@~./-]{1,200}\.(?:[cm]?[jt]sx?|json|mdc?|ya?ml|toml|py|rb|go|rs|java|kt|swift|c|h|cc|cpp|cs|php|sh|sql|html?|s?css|vue|txt|csv|xml))(?![\w/])/iy
/** Cost of looking for a path after a verb, in characters. */
const verbWork = 40
const statesByVerb: Readonly<Record<string, FileState>> = {
  created: 'created',
  added: 'created',
  wrote: 'written',
  deleted: 'deleted',
  removed: 'deleted',
  renamed: 'renamed',
}

/** Records commands with their output in a text, patches, and statements of an assistant about files. */
function* recordText(message: SummaryMessage, recorder: Recorder): Work<void> {
  const { id, role, name, content } = message
  if (content.includes('```') || content.includes('~~~') || promptSign.test(content))
    yield* recordTranscript(message, recorder)
  if (role !== 'assistant' || name !== undefined) return
  recordPatch(content, { message: id, span: [0, content.length] }, recorder)
  let searched = 0
  for (const { 0: verb, index } of content.matchAll(changeVerb)) {
    if (index < searched) continue
    yield verbWork
    changedPath.lastIndex = index + verb.length
    const [rest, between = '', path = ''] = changedPath.exec(content) ?? []
    if (rest === undefined) continue
    searched = index + verb.length + rest.length
    if (
      /\b(?:be|not|never|should|must|if|when|to|the|an?|your|this|these|any)\s$/i.test(
        content.slice(Math.max(0, index - 8), index),
      )
    )
      continue
    const isPart = /\b(?:to|in|from|into|of|at|for|inside|within|on)\b/i.test(between)
    const state = isPart ? 'edited' : (statesByVerb[verb.toLowerCase()] ?? 'edited')
    recorder.file(path, state, { message: id, span: [index, searched] })
  }
}

/** Spans of commands after a prompt and of their output, which ends at an empty line. */
export function* findTerminalOutput(content: string): Work<readonly Span[]> {
  if (!promptSign.test(content)) return []
  const spans: Span[] = []
  let start = -1
  for (const { start: from, end } of yield* splitFencedLinesInSteps(content)) {
    yield lineWork
    const isPrompt = promptLine.test(content.slice(from, Math.min(end, from + 400)))
    if (start < 0 && isPrompt) start = from
    if (start < 0) continue
    if (end === from) start = -1
    else spans.push([from, end])
  }
  return spans
}

/** Languages of blocks that show output, not code. */
const outputLanguages = new Set(['', 'text', 'txt', 'output', 'plaintext', 'log', ...shellLanguages])

/** Records commands of shell blocks and after prompts, if their output follows. */
function* recordTranscript({ id, content }: SummaryMessage, recorder: Recorder): Work<void> {
  let current: { readonly text: string; readonly start: number } | undefined
  let output: string[] = []
  let end = 0
  const finish = (): void => {
    if (current !== undefined && output.length > 0)
      recorder.command(current.text, output.join('\n'), { message: id, span: [current.start, end] })
    current = undefined
    output = []
  }
  for (const { start, end: lineEnd, fence, language } of yield* splitFencedLinesInSteps(content)) {
    yield lineWork
    const line = content.slice(start, Math.min(lineEnd, start + 400))
    const prompt = promptLine.exec(line)?.[1]
    if (fence === 'open' && (shellLanguages.has(language) || !outputLanguages.has(language))) finish()
    if (fence === 'open' || fence === 'close' || line.trim() === '') continue
    if (prompt !== undefined) {
      if (current?.text === prompt) continue
      finish()
      current = { text: prompt, start }
    } else if (fence === 'inside' && shellLanguages.has(language) && current === undefined) {
      if (!line.startsWith('#')) current = { text: line.trim(), start }
    } else if (current !== undefined && (fence === 'inside' || !/^[A-Z].{40}/.test(line))) {
      output.push(line)
      end = lineEnd
    } else finish()
  }
  finish()
}

/** True if a tool call runs a command or changes a file, so that its result is listed. */
export function isListedCall(call: ToolCall): boolean {
  const values = parseJson(call.arguments)
  const has = (fields: readonly string[]): boolean => fields.some((field) => getString(values, field) !== '')
  return has(commandFields) || (has(pathFields) && statesByTool.some(([pattern]) => pattern.test(call.name)))
}
