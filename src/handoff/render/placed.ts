import { linesOf } from '../../text/fences.ts'
import { squeezeSpace, stripComments } from '../../text/squeeze.ts'
import type { Saying } from '../extract/said.ts'
import type { ContextItem } from '../item.ts'
import { fenced } from './fence.ts'
import type { Line } from './lines.ts'

/** Whether an item is told among the notes: what has several lines is told where it was said. */
export const isNote = ({ category, content }: ContextItem): boolean => category !== 'code' && !content.includes('\n')

/** Whether an item is in none of these messages: it was said too long ago, or given besides by whoever saved the conversation. */
export const isGiven = ({ sources }: ContextItem, messages: ReadonlySet<string>): boolean =>
  !sources.some((source) => messages.has(source))

/** A given item of several lines, told as if it had been said before everything else. */
export function givenAs({ id, category, content }: ContextItem): Saying {
  const isFenced = linesOf(content)[0]?.fence === 'open'
  return {
    message: { id, role: 'tool', name: `saved ${category}` },
    text: isFenced || category !== 'code' ? content : fenced(content, ''),
  }
}

/** The places of the lines of each item, in the order of the items; those that are not found have none. */
export function placesOf(
  items: readonly ContextItem[],
  lines: readonly Line[],
  sayings: readonly Saying[],
): readonly (readonly number[])[] {
  const byMessage = new Map<string, Map<string, number>>()
  for (const [place, line] of lines.entries()) {
    const { id } = (sayings[line.saying] as Saying).message
    const own = byMessage.get(id) ?? new Map<string, number>()
    if (own.size === 0) byMessage.set(id, own)
    own.set(line.text.trim(), place)
  }
  return items.map(({ id, content, sources }) => {
    // as it was said last, or was given
    const own = byMessage.get(sources.findLast((source) => byMessage.has(source)) ?? id)
    const places = rowsOf(content).flatMap((row) => own?.get(row) ?? [])
    return [...new Set(places)].sort((left, right) => left - right)
  })
}

/** Which of the items a text shows: a note by its words, and what has several lines by each of them. */
export function shownIn(text: string, items: readonly ContextItem[]): ReadonlySet<string> {
  // what was told with comments shows an item as well as what was told without
  const rows = new Set([...text.split('\n').map((row) => row.trim()), ...rowsOf(text)])
  const flat = text.replace(/\s+/g, ' ')
  const isShown = (item: ContextItem): boolean => {
    if (isNote(item)) return flat.includes(item.content.replace(/\s+/g, ' '))
    const own = rowsOf(item.content)
    return own.length > 0 && own.every((row) => rows.has(row))
  }
  return new Set(items.filter(isShown).map(({ id }) => id))
}

/** The lines of an item as they are told: without white space, comments and fences, and without those that were cut where `...` stands for the middle. */
function rowsOf(content: string): readonly string[] {
  const rows = stripComments(squeezeSpace(content))
    .split('\n')
    .map((row) => row.trim())
  const isCut = (at: number): boolean => [rows[at - 1], rows[at], rows[at + 1]].includes('...')
  return rows.filter((row, at) => row !== '' && !isCut(at) && !/^(?:`{3,}|~{3,})/.test(row))
}
