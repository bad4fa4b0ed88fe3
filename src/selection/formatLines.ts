import type { ConversationLine } from './conversationLines.ts'
import type { CodeBlock } from './lines.ts'

/** Stands for omitted lines and messages. */
export const omissionMark = '…'

export type FormatOptions = {
  /** Texts of clipped lines by index. */
  readonly clipped?: ReadonlyMap<number, string>
  /** Escapes a line of prose. */
  readonly escapeLine?: (text: string) => string
}

/**
 * Formats lines of one message, given by sorted indexes: fences around code, an omission mark at each gap. Parts of a
 * long line are joined.
 */
export function formatLines(
  lines: readonly ConversationLine[],
  indexes: readonly number[],
  { clipped, escapeLine = (text) => text }: FormatOptions = {},
): string {
  const rows: string[] = []
  let block: CodeBlock | undefined
  let previous: number | undefined
  const closeBlock = (): void => {
    if (block !== undefined) rows.push(block.close)
    block = undefined
  }
  for (const index of indexes) {
    const line = lines[index] as ConversationLine
    const text = clipped?.get(index) ?? line.text
    const row = line.block === undefined ? escapeLine(text) : text
    const isAdjacent = previous !== undefined && index === previous + 1
    if (line.block !== block) closeBlock()
    if (previous !== undefined && !isAdjacent) rows.push(omissionMark)
    if (line.block !== undefined && line.block !== block) rows.push(line.block.open)
    if (isAdjacent && line.isContinuation)
      rows.push(rows.pop() + (lines[index - 1]?.end === line.start ? row : ` ${row}`))
    else rows.push(row)
    block = line.block
    previous = index
  }
  closeBlock()
  return rows.join('\n')
}

/** Groups sorted line indexes by message. */
export function groupByMessage(
  lines: readonly ConversationLine[],
  indexes: readonly number[],
): readonly (readonly number[])[] {
  const groups: number[][] = []
  for (const [position, index] of indexes.entries()) {
    const isSame = position > 0 && lines[indexes[position - 1] ?? -1]?.message === lines[index]?.message
    if (isSame) groups.at(-1)?.push(index)
    else groups.push([index])
  }
  return groups
}
