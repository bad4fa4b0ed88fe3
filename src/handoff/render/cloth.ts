import type { Tokens } from '../../domain/entry.ts'
import type { Tokenizer } from '../../domain/ports.ts'
import { linesOf } from '../../text/fences.ts'
import type { Split } from '../split.ts'

/** A text, and what of it was said by somebody. */
export type Cloth = { readonly text: string; readonly said: string }

/** What stands around what is known and what was said; `before` is what was said in earlier sessions. */
export type Hem = {
  readonly opening: string
  readonly before?: readonly string[]
  readonly heading: string
  readonly closing: string
}

/** Everything in its order, with a blank line between. */
export function joined({ opening, before = [], heading, closing }: Hem, known: string, said: string): Cloth {
  const parts = [opening, known, ...before, headed(heading, said), closing]
  return { text: parts.filter((text) => text !== '').join('\n\n'), said: [...before, said].join('\n') }
}

/** What was said, under its heading; nothing has none. */
export const headed = (heading: string, said: string): string => (said === '' ? '' : `${heading}\n${said}`)

/** What the parts of a text have cost: fenced lines of the conversation are code, and all that nobody has said is metadata. */
export function sharesOf({ text, said }: Cloth, tokenizer: Tokenizer): Split {
  const fenced = linesOf(said).filter(({ fence }) => fence !== 'none')
  const tokens: Tokens = tokenizer.count(text)
  const spoken = Math.min(tokens, tokenizer.count(said))
  const code = Math.min(spoken, tokenizer.count(fenced.map(({ start, end }) => said.slice(start, end)).join('\n')))
  return { code, conversation: spoken - code, metadata: tokens - spoken }
}
