import type { Json } from '../../src/domain/entry.ts'
import { isObject } from '../../src/domain/error.ts'

export type ShrinkLimits = { readonly maxTries: number; readonly deadline: number }

/**
 * Reduces an input while it still fails: removes elements, fields and halves of texts, largest first. The result fails,
 * and no single removal of it does unless a limit was reached.
 */
export async function shrink(
  input: Json,
  fails: (candidate: Json) => Promise<boolean>,
  { maxTries, deadline }: ShrinkLimits,
): Promise<Json> {
  let current = input
  let tries = 0
  for (let improved = true; improved; ) {
    improved = false
    for (const candidate of reductions(current)) {
      if (++tries > maxTries || Date.now() > deadline) return current
      if (!(await fails(candidate))) continue
      current = candidate
      improved = true
      break
    }
  }
  return current
}

/** Smaller versions of a value, the smallest first. */
function* reductions(value: Json): Generator<Json> {
  if (typeof value === 'string') yield* shorterTexts(value)
  else if (Array.isArray(value)) yield* shorterLists(value)
  else if (isObject(value)) yield* smallerObjects(value as Readonly<Record<string, Json>>)
  else if (typeof value === 'number' && value !== 0) yield 0
}

function* shorterTexts(text: string): Generator<string> {
  if (text === '') return
  if (text.length > 1) yield ''
  for (let size = Math.ceil(text.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    // Single characters are removed from short texts only.
    if (text.length / size > 32) return
    for (let from = 0; from < text.length; from += size) yield text.slice(0, from) + text.slice(from + size)
  }
}

function* shorterLists(list: readonly Json[]): Generator<Json[]> {
  for (let size = Math.ceil(list.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < list.length; from += size) yield [...list.slice(0, from), ...list.slice(from + size)]
  for (const [index, element] of list.entries())
    for (const smaller of reductions(element)) yield list.with(index, smaller)
}

function* smallerObjects(object: Readonly<Record<string, Json>>): Generator<Json> {
  const entries = Object.entries(object)
  for (const [name] of entries) yield fromEntries(entries.filter(([other]) => other !== name))
  for (const [index, [name, child]] of entries.entries())
    for (const smaller of reductions(child)) yield fromEntries(entries.with(index, [name, smaller]))
}

/** Unlike assignment, keeps a field with the name `__proto__`. */
const fromEntries = (entries: readonly (readonly [string, Json])[]): Json => Object.fromEntries(entries) as Json
