import type { Tokens } from '../../domain/entry.ts'
import { termsOf } from '../../text/words.ts'
import type { Saying } from '../extract/said.ts'
import { recencyOf } from '../priority.ts'
import type { Line } from './lines.ts'

/** What telling something is worth: a name once, and a line for itself. */
export type Worth = { readonly names: ReadonlyMap<string, number>; readonly base: (place: number) => number }

/** What a line says besides names: a person's words more than a program's, and what is asked for most of all. */
const bases = { user: 1, other: 0.1, asked: 3 }

/**
 * What names and lines are worth to whoever goes on: a name the more, the later it was last used and the more messages use it,
 * since that is how likely it comes back.
 */
export function worthOf(lines: readonly Line[], sayings: readonly Saying[], query = ''): Worth {
  const behind: Tokens[] = []
  const uses = new Map<string, { readonly recency: number; readonly sayings: Set<number> }>()
  let tokens = 0
  for (let place = lines.length - 1; place >= 0; place--) {
    const line = lines[place] as Line
    behind[place] = tokens
    for (const { name } of line.mentions) {
      const known = uses.get(name)
      if (known === undefined) uses.set(name, { recency: recencyOf(tokens), sayings: new Set([line.saying]) })
      else known.sayings.add(line.saying)
    }
    tokens += line.tokens
  }
  const wanted = new Set(termsOf(query))
  const base = (place: number): number => {
    const line = lines[place] as Line
    const own = sayings[line.saying]?.message.role === 'user' ? bases.user : bases.other
    return own * recencyOf(behind[place] ?? 0) + bases.asked * askedFor(line.text, wanted)
  }
  return {
    names: new Map([...uses].map(([name, use]) => [name, use.recency * use.sayings.size])),
    base: remembered(base, lines.length),
  }
}

/** The share of what is asked for that a line speaks of. */
function askedFor(text: string, wanted: ReadonlySet<string>): number {
  if (wanted.size === 0) return 0
  const terms = new Set(termsOf(text))
  return [...wanted].filter((term) => terms.has(term)).length / wanted.size
}

/** Asked for many times, worked out once. */
function remembered(base: (place: number) => number, length: number): (place: number) => number {
  const known = new Float64Array(length).fill(-1)
  return (place) => {
    if ((known[place] ?? -1) < 0) known[place] = base(place)
    return known[place] ?? 0
  }
}
