import type { Tokens } from '../../domain/entry.ts'
import { runSync, type Work } from '../../domain/work.ts'
import { stripComments } from '../../text/comments.ts'
import { squeezeSpaceInSteps } from '../../text/compress.ts'
import { findLargestInSteps, toWork } from '../../upkeep/summarise/select.ts'

/** Tokens per part of a restored text. */
export type BudgetSplit = { readonly code: Tokens; readonly conversation: Tokens; readonly metadata: Tokens }

const percentWithCode = { code: 60, metadata: 10 }
const percentWithoutCode = { code: 0, metadata: 30 }

/**
 * Splits a budget: code 60, conversation 30 and metadata 10 percent; without code 70 and 30. The conversation gets the
 * rounding remainder.
 *
 * @example
 * splitBudget(4_000, true) // { code: 2400, conversation: 1200, metadata: 400 }
 */
export function splitBudget(budget: Tokens, hasCode: boolean): BudgetSplit {
  const percent = hasCode ? percentWithCode : percentWithoutCode
  const code = Math.floor((budget * percent.code) / 100)
  const metadata = Math.floor((budget * percent.metadata) / 100)
  return { code, conversation: budget - code - metadata, metadata }
}

/**
 * Allocates tokens by share and demand. Each gets its share or less if it demands less; unused tokens go to the others
 * in order. A share is a guarantee, not a limit.
 *
 * @example
 * allocate({ code: 60, conversation: 30, metadata: 10 }, { code: 20, conversation: 90, metadata: 5 }) // { code: 20, conversation: 75, metadata: 5 }
 */
export function allocate<K extends string>(
  shares: Readonly<Record<K, Tokens>>,
  demands: Readonly<Record<K, Tokens>>,
): Record<K, Tokens> {
  const names = Object.keys(shares) as K[]
  const allocated: Record<K, Tokens> = { ...shares }
  let unused = 0
  for (const name of names) {
    allocated[name] = Math.min(shares[name], demands[name])
    unused += shares[name] - allocated[name]
  }
  for (const name of names) {
    const extra = Math.min(unused, demands[name] - allocated[name])
    allocated[name] += extra
    unused -= extra
  }
  return allocated
}

/** Compression applied to a conversation; each level includes the previous ones. */
export type Compression = 'none' | 'whitespace' | 'comments' | 'sections'

export type CompressedTexts = { readonly texts: readonly string[]; readonly compression: Compression }

/**
 * Removes redundant whitespace, then comments, oldest first, until the texts fit. If they never fit, `compression` is
 * `sections`: the caller must shorten the texts, which are returned without whitespace and comments.
 *
 * @example
 * compressTexts(['a   b'], ([text]) => text.length < 4) // { texts: ['a b'], compression: 'whitespace' }
 */
export const compressTexts = (texts: readonly string[], fits: (texts: readonly string[]) => boolean): CompressedTexts =>
  runSync(compressTextsInSteps(texts, toWork(fits)))

/** `compressTexts` as interruptible work. */
export function* compressTextsInSteps(
  texts: readonly string[],
  fits: (texts: readonly string[]) => Work<boolean>,
): Work<CompressedTexts> {
  if (yield* fits(texts)) return { texts, compression: 'none' }
  const squeezed: string[] = []
  for (const text of texts) {
    squeezed.push(yield* squeezeSpaceInSteps(text))
    yield text.length
  }
  if (yield* fits(squeezed)) return { texts: squeezed, compression: 'whitespace' }
  const stripped: string[] = []
  for (const text of squeezed) {
    yield text.length
    stripped.push(stripComments(text))
  }
  if (!(yield* fits(stripped))) return { texts: stripped, compression: 'sections' }
  return { texts: yield* stripOldestComments(squeezed, fits), compression: 'comments' }
}

/** Strips comments from the first line on, only as far as needed for the rest to fit unchanged. */
function* stripOldestComments(
  texts: readonly string[],
  fits: (texts: readonly string[]) => Work<boolean>,
): Work<readonly string[]> {
  const linesPerText = texts.map((text) => text.split('\n'))
  const lineCount = linesPerText.reduce((sum, lines) => sum + lines.length, 0)
  const keepNewest = function* (unchangedLines: number): Work<readonly string[]> {
    let remaining = lineCount - unchangedLines
    const kept: string[] = []
    for (const lines of linesPerText) {
      const older = lines.slice(0, remaining)
      remaining -= older.length
      const stripped = older.length === 0 ? [] : [stripComments(older.join('\n'))]
      const text = [...stripped, ...lines.slice(older.length)].join('\n')
      kept.push(text)
      yield text.length
    }
    return kept
  }
  const holds = function* (unchangedLines: number): Work<boolean> {
    return yield* fits(yield* keepNewest(unchangedLines))
  }
  return yield* keepNewest(yield* findLargestInSteps(lineCount, holds))
}
