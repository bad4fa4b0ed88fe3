import type { Message } from '../../domain/entry.ts'
import { type FencedLine, linesOf } from '../../text/fences.ts'
import type { Saying } from '../extract/said.ts'
import type { Chosen } from './choose.ts'
import { inLine, unforged } from './fence.ts'
import type { Block, Line } from './lines.ts'

/** Who speaks, on a line of its own. */
export const labelOf = ({ role, name }: Pick<Message, 'role' | 'name'>): string =>
  name === undefined ? `[${role}]` : `[${role} ${inLine(name.replace(/[[\]]/g, ' '))}]`

/** Stands for lines and messages that are not told. */
export const leftOut = '…'

/** Lines of a conversation as text: who speaks, code in its fences, and a mark where something was left out. */
export function told(lines: readonly Line[], { places, clipped }: Chosen, sayings: readonly Saying[]): string {
  const rows: string[] = []
  let saying = -1
  let block: Block | undefined
  let before = -1
  const close = (): void => {
    if (block !== undefined) rows.push(block.close)
    block = undefined
  }
  for (const place of places) {
    const line = lines[place] as Line
    if (line.block !== block || line.saying !== saying) close()
    if (place !== before + 1) rows.push(leftOut)
    if (line.saying !== saying) rows.push(labelOf((sayings[line.saying] as Saying).message))
    if (line.block !== undefined && line.block !== block) rows.push(line.block.open)
    const text = clipped.get(place) ?? line.text
    rows.push(line.block === undefined ? unforged(text) : text)
    saying = line.saying
    block = line.block
    before = place
  }
  close()
  if (before < lines.length - 1) rows.push(leftOut)
  return rows.join('\n')
}

/** A conversation as text, with all that was said. */
export function whole(sayings: readonly Saying[]): string {
  return sayings.map(({ message, text }) => `${labelOf(message)}\n${closed(text)}`).join('\n\n')
}

/** What was said, with its last fence closed: what comes after it is not code. */
function closed(text: string): string {
  const lines = linesOf(text)
  const rows = lines.map(({ start, end, fence }) =>
    fence === 'none' ? unforged(text.slice(start, end)) : text.slice(start, end),
  )
  if (lines.at(-1)?.fence !== 'inside' && lines.at(-1)?.fence !== 'open') return rows.join('\n')
  const opened = lines.findLast(({ fence }) => fence === 'open') as FencedLine
  return [...rows, closingOf(text.slice(opened.start, opened.end))].join('\n')
}

/** What closes a fence that is opened so. */
export const closingOf = (open: string): string => /^(?:`+|~+)/.exec(open.trim())?.[0] ?? '```'
