import { isObject } from '../../../src/domain/error.ts'
import { canaries, type HttpStep, type Step } from './input.ts'
import type { Answer, Target } from './target.ts'

/** A problem without its input. */
export type Problem = { readonly kind: string; readonly detail: string }

/** Details of the implementation that no client may see. */
const internals: readonly (readonly [name: string, pattern: RegExp])[] = [
  ['stack', /\n\s+at (?:async )?[\w.<>]+ \(|\bat file:\/\//],
  ['source', /node_modules\/|\/src\/(?:server|stores|memory)\/|node:internal/],
  ['SQL', /SQLITE_[A-Z]+|\b(?:INSERT INTO|DELETE FROM|PRAGMA) \w+|no such (?:table|column)|constraint failed/],
  ['engine error', /Cannot read propert|is not a function|is not iterable|Maximum call stack|Invalid string length/],
]

/**
 * True for the refusal of a request because another one holds the store or fills a queue: its client is told when to
 * try again. The same request alone must not be refused.
 */
export const isBusy = ({ status, body, headers }: Answer): boolean =>
  status === 503 && body.includes('"code":"busy"') && headers['retry-after'] !== undefined

/** Checks the response to a request. */
export function checkAnswer(target: Pick<Target, 'folder'>, step: HttpStep, answer: Answer): readonly Problem[] {
  const { status, body, headers, failure } = answer
  const type = headers['content-type'] ?? ''
  const problems: Problem[] = []
  const add = (kind: string, detail: string): void => void problems.push({ kind: `${kind} ${step.route}`, detail })
  if (failure !== undefined) return [{ kind: `no response ${step.route}`, detail: failure }]
  if (status >= 500 && !isBusy(answer)) add(`status ${status}`, body.slice(0, 300))
  const sent = JSON.stringify(step)
  if (hasPath(target, body)) add('path in response', excerpt(body, target.folder))
  for (const [name, pattern] of internals) {
    const match = pattern.exec(body)?.[0]
    if (match !== undefined && status >= 400 && !sent.includes(JSON.stringify(match).slice(1, -1)))
      add(`${name} in response`, excerpt(body, match))
  }
  for (const [tenant, canary] of Object.entries(canaries))
    if (step.caller !== tenant && step.caller !== 'operator' && body.includes(canary) && !sent.includes(canary))
      add(`text of ${tenant} for ${step.caller}`, excerpt(body, canary))
  if (step.method !== 'HEAD' && /^application\/json(?:;|$)/.test(type)) {
    const value = parse(body)
    if (value === undefined) add('invalid JSON', body.slice(0, 200))
    else if (status >= 400 && !hasErrorShape(step, value)) add('error shape', body.slice(0, 300))
  } else if (status >= 400 && body !== '' && step.method !== 'HEAD') add('error type', `${type}: ${body.slice(0, 200)}`)
  return problems
}

/** Tools for files show the paths of the folders that the operator allows. */
export const hasPath = ({ folder }: Pick<Target, 'folder'>, text: string): boolean =>
  text.includes(folder) && text.replaceAll(`${folder}/shared`, '').includes(folder)

const excerpt = (body: string, match: string): string => {
  const at = body.indexOf(match)
  return body.slice(Math.max(0, at - 60), at + 160)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** True for an error in the format of the route's protocol. */
function hasErrorShape({ path }: HttpStep, body: unknown): boolean {
  if (!isObject(body) || !isObject(body.error)) return isObject(body) && Array.isArray(body.degraded)
  const { error } = body
  if (typeof error.message !== 'string' || error.message === '') return false
  if (body.jsonrpc === '2.0') return path.startsWith('/mcp') && typeof error.code === 'number'
  if (body.type === 'error') return typeof error.type === 'string'
  return typeof error.type === 'string' && 'param' in error && 'code' in error
}

/** Classes of inputs by their size, with the longest stretch of the main thread that is allowed. */
const sizeClasses = [
  { name: '≤ 100 kB', maxBytes: 100_000, maxStretchMs: 50 },
  { name: '≤ 1 MB', maxBytes: 1_048_576, maxStretchMs: 50 },
  { name: '≤ body limit', maxBytes: Number.POSITIVE_INFINITY, maxStretchMs: 250 },
] as const
export type SizeClass = (typeof sizeClasses)[number]

export const sizeClassOf = (step: Step): SizeClass =>
  sizeClasses.find(({ maxBytes }) => sizeOf(step) <= maxBytes) as SizeClass

/** Size of a step in bytes, as far as the server reads it. */
export const sizeOf = (step: Step): number =>
  step.surface === 'http'
    ? step.path.length + Buffer.byteLength(step.body ?? '')
    : step.surface === 'tool'
      ? Buffer.byteLength(step.arguments)
      : step.surface === 'raw'
        ? step.bytes.length
        : step.args.join(' ').length
