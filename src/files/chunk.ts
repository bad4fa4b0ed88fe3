import type { Tokens } from '../domain/entry.ts'
import type { Piece } from './pieces.ts'

/** A part of a text that is stored and found by itself; `place` are the headings and the page it begins under. */
export type Chunk = { readonly body: string; readonly place: string }

/** What a chunk is to hold: enough to be understood alone, and little enough to say one thing. */
const wanted: Tokens = 350

/**
 * Packs pieces into chunks in their order: nothing is lost, and the bodies joined give the text. A chunk ends where its
 * headings or page do, unless it is still small and what follows is a section of it, and is cut at the best place it has.
 */
export class Packer {
  private readonly count: (text: string) => Tokens
  private held: { readonly piece: Piece; readonly tokens: Tokens }[] = []
  private tokens: Tokens = 0

  constructor(count: (text: string) => Tokens) {
    this.count = count
  }

  /** Takes in the next piece, and gives what is complete without it. */
  take(piece: Piece): readonly Chunk[] {
    const done: Chunk[] = []
    const first = this.held[0]?.piece
    if (
      first !== undefined &&
      piece.place !== first.place &&
      !(this.tokens < wanted / 2 && isUnder(piece.place, first.place))
    )
      done.push(...this.rest())
    const tokens = this.count(piece.text)
    while (this.held.length > 0 && this.tokens + tokens > wanted) done.push(this.cut(this.bestBefore(piece)))
    this.held.push({ piece, tokens })
    this.tokens += tokens
    return done
  }

  /** What is left when there are no more pieces. */
  rest(): readonly Chunk[] {
    return this.held.length === 0 ? [] : [this.cut(this.held.length)]
  }

  /** How many pieces go into the chunk: the best place to cut in its second half, the last one of those that are alike. */
  private bestBefore(next: Piece): number {
    let [best, bestCut, sum] = [this.held.length, next.cut as number, this.tokens]
    for (let at = this.held.length - 1; at > 0; at--) {
      const { piece, tokens } = this.held[at] as (typeof this.held)[number]
      sum -= tokens
      if (sum < this.tokens / 2) break
      if (piece.cut > bestCut) [best, bestCut] = [at, piece.cut]
    }
    return best
  }

  private cut(many: number): Chunk {
    const pieces = this.held.splice(0, many)
    this.tokens -= pieces.reduce((sum, { tokens }) => sum + tokens, 0)
    return { body: pieces.map(({ piece }) => piece.text).join(''), place: pieces[0]?.piece.place ?? '' }
  }
}

const isUnder = (place: string, above: string): boolean => above === '' || place.startsWith(`${above} › `)

/** A chunk as it is stored: where it stands, on a line of its own, then what it says. */
export const contentOf = ({ place, body }: Chunk): string => (place === '' ? body : `${place}\n${body}`)

/** What a chunk says, without the line that tells where. */
export const bodyOf = (content: string): string => content.slice(content.indexOf('\n') + 1)
