import type { Tokens } from '../domain/entry.ts'
import type { TextSegment } from './segments.ts'

/** A part of a text that is stored and searched as a unit; `location` are the headings and the page above its start. */
export type Chunk = { readonly body: string; readonly location: string }

type CountedSegment = { readonly segment: TextSegment; readonly tokens: Tokens }

/** Target size: large enough to be understood alone, small enough to be about one thing. */
const targetTokens: Tokens = 350

/**
 * Packs segments into chunks in order; the joined bodies give the text. A chunk ends with its section or page, except
 * that a chunk under half the target size continues into subsections. A full chunk is divided at its best break.
 */
export class ChunkBuilder {
  private readonly countTokens: (text: string) => Tokens
  private segments: CountedSegment[] = []
  private tokens: Tokens = 0

  constructor(countTokens: (text: string) => Tokens) {
    this.countTokens = countTokens
  }

  /** Adds a segment and returns the chunks that are complete without it. */
  add(segment: TextSegment): readonly Chunk[] {
    const chunks: Chunk[] = []
    if (this.endsBefore(segment)) chunks.push(...this.flush())
    const tokens = this.countTokens(segment.text)
    while (this.segments.length > 0 && this.tokens + tokens > targetTokens)
      chunks.push(this.take(this.findBestBreak(segment)))
    this.segments.push({ segment, tokens })
    this.tokens += tokens
    return chunks
  }

  /** Returns the last chunk, if any segments are left. */
  flush(): readonly Chunk[] {
    return this.segments.length === 0 ? [] : [this.take(this.segments.length)]
  }

  private endsBefore(next: TextSegment): boolean {
    const first = this.segments[0]?.segment
    if (first === undefined || next.location === first.location) return false
    return this.tokens >= targetTokens / 2 || !isBelow(next.location, first.location)
  }

  /** Returns how many segments to take: up to the best break in the second half, the last one among equals. */
  private findBestBreak(next: TextSegment): number {
    let best = this.segments.length
    let bestQuality: number = next.breakQuality
    let tokensBefore = this.tokens
    for (let index = this.segments.length - 1; index > 0; index--) {
      const { segment, tokens } = this.segments[index] as CountedSegment
      tokensBefore -= tokens
      if (tokensBefore < this.tokens / 2) break
      if (segment.breakQuality > bestQuality) {
        best = index
        bestQuality = segment.breakQuality
      }
    }
    return best
  }

  private take(count: number): Chunk {
    const taken = this.segments.splice(0, count)
    this.tokens -= taken.reduce((sum, { tokens }) => sum + tokens, 0)
    return {
      body: taken.map(({ segment }) => segment.text).join(''),
      location: taken[0]?.segment.location ?? '',
    }
  }
}

const isBelow = (location: string, ancestor: string): boolean =>
  ancestor === '' || location.startsWith(`${ancestor} › `)

/** Formats a chunk for storage: the location on a line of its own, then the body. */
export const formatChunk = ({ location, body }: Chunk): string => (location === '' ? body : `${location}\n${body}`)

/** Returns the body of a stored chunk that has a location line. */
export const parseChunkBody = (content: string): string => content.slice(content.indexOf('\n') + 1)
