import type { Work } from '../../domain/work.ts'
import { splitFencedLinesInSteps } from '../../text/fences.ts'
import { splitSentencesInSteps } from '../../text/sentences.ts'
import type { Span } from './injectionCheck.ts'
import { collapseWhitespace, countWords } from './summary.ts'

/** Sentences are split at spaces, so that a longer one is a blob and not a statement. */
const maxSentenceChars = 8_192
/** Longer sentences are split into clauses. */
const longSentenceWords = 20
/** Cost of a sentence beside its characters. */
const sentenceWork = 10

/** `joint` is the text before a clause that continues a sentence. */
type ClauseSpan = { readonly span: Span; readonly isCode: boolean; readonly joint: string }

/**
 * Spans of sentences, of clauses of long sentences, and of lines of fenced code. A text of more sentences is data: its
 * beginning and its end stand for it.
 */
export function* splitIntoClauses(content: string, maxSentences: number): Work<readonly ClauseSpan[]> {
  const code =
    content.includes('```') || content.includes('~~~')
      ? (yield* splitFencedLinesInSteps(content)).filter(({ fence }) => fence === 'inside')
      : []
  let next = 0
  const clauses: ClauseSpan[] = []
  const sentences = yield* splitSentencesInSteps(content)
  const omitted = sentences.length - maxSentences
  if (omitted > 0) sentences.splice(Math.ceil(maxSentences / 2), omitted)
  for (const { text, start, end } of sentences) {
    yield text.length + sentenceWork
    if (text.length > maxSentenceChars) continue
    while (next < code.length && (code[next] as (typeof code)[number]).end <= start) next++
    if ((code[next]?.start ?? Number.POSITIVE_INFINITY) <= start) {
      clauses.push({ span: [start, end], isCode: true, joint: '' })
      continue
    }
    for (const [at, [from, to], all] of splitClauses(text).map((span, index, spans) => [index, span, spans] as const)) {
      const gap = text.slice(all[at - 1]?.[1] ?? from, from)
      const isNew = at === 0 || gap.startsWith(';') || /[.!?"”»]/.test(text.charAt(from - gap.length - 1))
      clauses.push({ span: [start + from, start + to], isCode: false, joint: isNew ? '' : gap })
    }
  }
  return clauses
}

const clauseJoint =
  /[;,] (?=(?:and |but |so )?(?:can|could|would|will) you |(?:and |but |so )?(?:I|we|my|our|the|it|they|he|she)(?:['’]\w{1,2})? |(?:so|but|because|although|which|maybe|been|here['’]s) )| (?=and (?:(?:I|we|it|they|he|she)['’]\w{1,2}|my|our|the|it|they) |(?:but|because|so) (?:I|we|my|our|the|it|they|he|she)(?:['’]\w{1,2})? )/g
const quotationEnd = /(?<=["”»]),? (?=(?:but|and|so|which)\b)/g
/** In texts without capitals a sentence starts with a small letter; `e.g. this` does not. */
const smallStart = /(?<=[\p{L}\p{N}]{3}[.!?]) (?=\p{Ll})/gu
const minClauseWords = 5

/** Splits a sentence where a text without capitals starts a new one, after a quotation, and a long one into clauses. */
function splitClauses(sentence: string): readonly Span[] {
  const isSmall = /^\P{Lu}{8}/u.test(sentence)
  const joints = [
    ...(isSmall ? sentence.matchAll(smallStart) : []),
    ...sentence.matchAll(quotationEnd),
    ...sentence.matchAll(/; /g),
    ...(countWords(sentence) > longSentenceWords ? sentence.matchAll(clauseJoint) : []),
  ].map(({ 0: joint, index }) => [index, index + joint.length] as const)
  const spans: Span[] = []
  let start = 0
  for (const [end, next] of [...joints, [sentence.length, sentence.length] as const].sort(
    ([left], [right]) => left - right,
  )) {
    // A short clause stays with its neighbour.
    const isLast = end === sentence.length
    const isStop = /[.!?]/.test(sentence.charAt(end - 1))
    if (end < start || (!isLast && !isStop && countWords(sentence.slice(start, end)) < minClauseWords)) continue
    if (!isLast && !isStop && countWords(sentence.slice(next)) < minClauseWords) continue
    spans.push([start, end])
    start = next
  }
  return spans
}

const codeStart =
  /^(?:\||\d+ ?\||at \S{1,200} \(|[+-]{2}|@@|[$❯>] |<\/?\w|(?:import|export|const|let|var|return|def|class|function|public|private|async|await|from|if|for|while|else|elif|try|catch|#include|SELECT|INSERT|UPDATE|CREATE)\b.{0,200}[;{(=:]|[\])}]|\/\/|\/\*|#!|[\w.]{1,60}\([^)]{0,200}\)[;{]?$|[\w.[\]]{1,60} ?[+-]?= ?\S)/
const codeEnd = /(?:;|\{|\}|=>|\) ?\{|,\)|\/>|\\)$/

/** True for table rows, stack frames, tags, prompts, diffs and lines of code that are not fenced. */
export function isCodeLine(text: string): boolean {
  if (codeStart.test(text) || (codeEnd.test(text) && !/\p{L}{3} \p{L}{2,} \p{L}{2}/u.test(text))) return true
  const symbols = text.match(/[{}()[\]<>=;|\\/_*&^%$#`]/g)?.length ?? 0
  return symbols > 3 && symbols > 0.15 * text.length
}

const bold = /(?<![\w/*])\*\*([^\s*](?:[^*\n]{0,200}[^\s*])?)\*\*(?![\w/*])/g
const blockMarks = /(?<=^|\n)[ \t]{0,16}(?:#{1,6}|[-*+•>]|\d{1,3}[.)]) (?:\[[ x]\] )?/g

/** Joins a text to one line and removes Markdown for headings, lists and bold. */
export const stripMarkdown = (text: string): string =>
  collapseWhitespace(text.replace(blockMarks, '').replace(bold, '$1')).trim()
