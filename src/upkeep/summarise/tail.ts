import { type Anchor, anchorsIn, isCompound } from '../../text/anchors.ts'
import type { Work } from '../work.ts'
import { finderIn } from './presence.ts'
import type { Named } from './render.ts'
import type { Told } from './told.ts'

/** What a name at the end of a summary is worth by itself: a plain number little, `user.id` and `well-known` less than a path. */
function weightOf(anchor: Pick<Anchor, 'kind' | 'text'>): number {
  if (anchor.kind === 'url' || anchor.kind === 'path') return isCompound(anchor) ? 0.4 : 1
  if (anchor.kind === 'number')
    return /\d[.,]?\d[.,]?\d[.,]?\d/.test(anchor.text) || /^[$€£¥].*\d\d/.test(anchor.text) ? 0.8 : 0.1
  if (anchor.kind !== 'identifier') return 0
  return isCompound(anchor) ? 0.4 : /^#\d|^[a-z]+(?:\.[a-z]+)+$|^[$.@]/.test(anchor.text) ? 0.4 : 1
}

/** A person is believed to mean what a program may only print. */
const said = { user: 3, person: 3, assistant: 1, tool: 0.5, system: 1 }

/** What a summary names at its end if no piece of it does. */
export const isNamed = (anchor: Pick<Anchor, 'kind' | 'text'>): boolean =>
  !anchor.text.includes(', ') && weightOf(anchor) > 0.1

/** How much a mention counts: by who made it. */
export const mentionOf = ({ role, name }: Pick<Told, 'role' | 'name'>): number =>
  role === 'assistant' && name !== undefined ? said.person : said[role]

/** A name with how much it is worth by itself and how much its mentions come to. */
type Candidate = { readonly named: Named; readonly weight: number; readonly mentions: number }

/** Every name and number of a conversation that could be named at the end, the most important for its length first. */
export function* namesOf(messages: readonly Told[], earlier: readonly Named[]): Work<readonly Named[]> {
  const found = new Map<string, Candidate>()
  const add = (named: Named, weight: number, mention: number): void => {
    const known = found.get(named.text)
    found.set(named.text, { named: known?.named ?? named, weight, mentions: (known?.mentions ?? 0) + mention })
  }
  for (const named of earlier) add(named, Math.max(0, ...anchorsIn(named.text).map(weightOf)), said.user)
  for (const message of messages) {
    for (const anchor of anchorsIn(message.content))
      if (isNamed(anchor))
        add(
          { text: anchor.text, sources: [{ message: message.id, span: [anchor.start, anchor.end] }] },
          weightOf(anchor),
          mentionOf(message),
        )
    yield message.content.length
  }
  return [...found.values()].sort((left, right) => worthOf(right) - worthOf(left)).map(({ named }) => named)
}

const worthOf = ({ named, weight, mentions }: Candidate): number =>
  (weight * Math.log(2 + mentions)) / (4 + named.text.length)

/** The names that a text does not show. */
export function unnamedIn(text: string, names: readonly Named[]): readonly Named[] {
  const has = finderIn(text)
  return names.filter((named) => !has(named.text))
}
