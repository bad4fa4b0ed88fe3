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

/** True for documented refusals: the offline model lacks an endpoint, or the store is in use by another request. */
const isDocumented = ({ status, body }: Answer): boolean =>
  status === 501 || (status === 503 && body.includes('"code":"busy"'))

/** Checks the response to a request. */
export function checkAnswer(target: Pick<Target, 'folder'>, step: HttpStep, answer: Answer): readonly Problem[] {
  const { status, body, type, failure } = answer
  const problems: Problem[] = []
  const add = (kind: string, detail: string): void => void problems.push({ kind: `${kind} ${step.route}`, detail })
  if (failure !== undefined) return [{ kind: `no response ${step.route}`, detail: failure }]
  if (status >= 500 && !isDocumented(answer)) add(`status ${status}`, body.slice(0, 300))
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
  if (step.method !== 'HEAD' && /^application\/json/.test(type)) {
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

/** Longest stretch of the main thread that is allowed for an input of this size. */
export const maxStretchMs = (bytes: number): number => (bytes <= 1_048_576 ? 50 : 250)

const sizeClasses: readonly (readonly [name: string, maxBytes: number])[] = [
  ['1 KB', 1_024],
  ['64 KB', 65_536],
  ['1 MB', 1_048_576],
  ['8 MB', 8_388_608],
  ['32 MB', 33_554_432],
]

export const sizeClassOf = (bytes: number): string => sizeClasses.find(([, max]) => bytes <= max)?.[0] ?? 'larger'

/** Size of a step in bytes, as far as the server reads it. */
export const sizeOf = (step: Step): number =>
  step.surface === 'http'
    ? step.path.length + Buffer.byteLength(step.body ?? '')
    : step.surface === 'tool'
      ? Buffer.byteLength(step.arguments)
      : step.surface === 'raw'
        ? step.bytes.length
        : step.args.join(' ').length
