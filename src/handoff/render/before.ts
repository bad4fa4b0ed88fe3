import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { pressed } from '../compression.ts'
import { type Saying, sayingsOf } from '../extract/said.ts'
import { byPriority } from '../priority.ts'
import type { Earlier } from '../render.ts'
import { headed } from './cloth.ts'
import { headings, inLine } from './fence.ts'
import { inShort } from './short.ts'
import { whole } from './told.ts'

/** Less room than this is not worth a heading. */
const least = 80
/** Rules and decisions last longer than code, which has been worked on since. */
const codePart = 1 / 3

/** What was said in earlier sessions, the oldest first, which they are, and whether all of them are told whole. */
export type Before = {
  readonly texts: readonly string[]
  readonly sessions: ReadonlySet<string>
  readonly isWhole: boolean
}

type Means = { readonly tokenizer: Tokenizer; readonly query?: string }

/** What was said in the sessions before, from the newest back while there is room, each whole if it fits and else in short. */
export function before(earlier: readonly Earlier[], room: Tokens, means: Means): Before {
  const texts: string[] = []
  const sessions = new Set<string>()
  let left = room
  let isWhole = true
  for (const one of [...earlier].reverse()) {
    if (left < least) break
    const { text, isShort } = toldOf(one, left, means)
    if (text === '') continue
    isWhole &&= !isShort
    texts.unshift(text)
    sessions.add(one.session)
    left -= means.tokenizer.count(text) + 1
  }
  return { texts, sessions, isWhole }
}

function toldOf(
  { session, messages = [], items = [] }: Earlier,
  budget: Tokens,
  means: Means,
): { readonly text: string; readonly isShort: boolean } {
  const sayings = sayingsOf(messages)
  if (sayings.length === 0) return { text: '', isShort: false }
  const heading = `${headings.before} (${inLine(session)})`
  const said = (texts: readonly string[]): readonly Saying[] =>
    sayings.map(({ message }, at) => ({ message, text: texts[at] ?? '' }))
  const all = (texts: readonly string[]): string => headed(heading, whole(said(texts)))
  const { texts, compression } = pressed(
    sayings.map(({ text }) => text),
    (some) => means.tokenizer.count(all(some)) <= budget,
  )
  if (compression !== 'sections') return { text: all(texts), isShort: false }
  const known = { tokens: 0, within: () => '' }
  // what was decided and is left to do has no list of its own here
  const long = {
    sayings: said(texts),
    items: [...items].sort(byPriority),
    isListed: () => false,
    codePart,
    known,
    hem: { opening: '', heading, closing: '' },
  }
  const { text } = inShort(long, { ...means, budget })
  // without its heading it would pass for somebody else's words
  return { text: text.startsWith(heading) ? text : '', isShort: true }
}
