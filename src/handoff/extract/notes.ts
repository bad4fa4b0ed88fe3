import { type Anchor, isCompound } from '../../text/anchors.ts'
import { clip } from '../../text/clip.ts'
import { type FencedLine, linesOf } from '../../text/fences.ts'
import { sentencesOf } from '../../text/sentences.ts'
import type { Category } from '../item.ts'
import type { Found } from './blocks.ts'

/** A longer line is no note. */
const longest = 600

const task = /^\s*(?:[-*+]|\d{1,3}[.)])? ?\[ \] |\b(?:TODO|FIXME)\b/
const pending =
  /^[\s#*_>-]{0,12}(?:next steps?|remaining|open questions?|to[- ]?dos?|still (?:to do|open)|blocked|follow[- ]?ups?)\b[^.!?]{0,40}$/i
const listed = /^\s*(?:[-*+]|\d{1,3}[.)]) \S/
const failed = /(?:^|\s)(?:FAIL(?:ED)?|✗|✖|✘|not ok)(?=[\s:]|$)|\b[1-9]\d{0,5} (?:tests? )?fail(?:ed|ing|ures?)\b/
const decided =
  /\b(?:decided|decision|agreed|settled on|going with|opted for|we(?:['’]ll| will) (?:use|go with|keep|stick)|let['’]?s (?:use|go with|keep|stick|call)|instead of|rather than)\b/i
const defined = /^\s*(?:[-*+] |\d{1,3}[.)] )?(?:\*\*[^*\n]{2,60}\*\*|`[^`\n]{2,60}`)\s?(?::|[-–—] )\s?\S/

/** The notes of a text: lines that are left to do, decided or defined, or that hold a figure, an address or an id. */
export function notesIn(
  text: string,
  lines: readonly FencedLine[],
  anchors: readonly Anchor[],
  isBinding: boolean,
): readonly Found[] {
  const found: Found[] = []
  let isPending = false
  let next = 0
  for (const { start, end, fence } of lines) {
    const line = text.slice(start, end)
    if (fence !== 'none' || line.length > longest || !/\S/.test(line)) continue
    while (next < anchors.length && (anchors[next] as Anchor).start < start) next++
    let last = next
    while (last < anchors.length && (anchors[last] as Anchor).start < end) last++
    const own = anchors.slice(next, last)
    if (pending.test(line)) isPending = true
    else if (!listed.test(line)) isPending = false
    const category = isPending && listed.test(line) ? 'task' : categoryOf(line, own, isBinding)
    if (category !== undefined) found.push({ category, content: line.trim(), start, end })
  }
  return found
}

/** What a line is; `isBinding` when its speaker may forbid and decide. */
function categoryOf(line: string, anchors: readonly Anchor[], isBinding: boolean): Category | undefined {
  if (task.test(line)) return 'task'
  // what a program reports is nobody's wish
  if (failed.test(line)) return 'data'
  if ((isBinding && anchors.some(({ kind }) => kind === 'constraint')) || decided.test(line) || defined.test(line))
    return 'concept'
  return anchors.some(isFigure) ? 'data' : undefined
}

/** A figure with its unit, an address or the id of something. */
const isFigure = ({ kind, text }: Anchor): boolean =>
  kind === 'url' || kind === 'number' || (kind === 'identifier' && /^#?\w*\d{2}/.test(text))

/** What fails, also in the midst of what a test run prints. */
export function failuresIn(text: string): readonly Found[] {
  return linesOf(text).flatMap(({ start, end, fence }): Found[] => {
    const line = text.slice(start, end)
    return fence === 'inside' && line.length <= longest && failed.test(line)
      ? [{ category: 'data', content: line.trim(), start, end }]
      : []
  })
}

/** Questions that nobody has answered yet: those of the last message. */
export function questionsIn(text: string): readonly Found[] {
  return sentencesOf(text)
    .filter(({ text: sentence }) => /\?["'”’)*_]*$/.test(sentence))
    .map(({ text: question, start, end }) => ({ category: 'task', content: clip(question, longest), start, end }))
}

/** Files that are spoken of, by their paths. */
export function filesIn(anchors: readonly Anchor[]): readonly Found[] {
  return anchors
    .filter((anchor) => anchor.kind === 'path' && !isCompound(anchor))
    .map(({ text: content, start, end }) => ({ category: 'file', content, start, end }))
}
