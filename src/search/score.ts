import type { Millis } from '../domain/entry.ts'
import { stem, wordsOf } from '../text/words.ts'
import { longestQuery, queryTerms } from './terms.ts'
import { type IndexParts, type Posting, type Spoken, Texts } from './texts.ts'
import { Top } from './top.ts'

export type Ranked = {
  readonly place: number
  readonly score: number
  readonly why: { readonly words: number; readonly nearby: number; readonly sitting: number }
}

/** The weights of the ranking, as measured on dialogues (bench/recall.ts). */
const weights = { saturation: 1.2, length: 0.5, previous: 0.5, next: 0.3, sitting: 0.3, speaker: 0.4 }

/** A word that more than one message in so many has is passed over when the question has rarer ones. */
const tooMany = 2
/** A question is known by so many of its rarest words. */
const mostWords = 24

/** Words that stand in fewer than one of so many texts are looked for there and nowhere else. */
const rare = 6

/** What may be ranked: texts before a sequence number and within a time, so many at most. */
export type Limits = { readonly before: number; readonly from: Millis; readonly to: Millis; readonly most: number }

/** Everything there is. */
export const unlimited: Omit<Limits, 'most'> = {
  before: Number.POSITIVE_INFINITY,
  from: Number.NEGATIVE_INFINITY,
  to: Number.POSITIVE_INFINITY,
}

/** A word of a question: where it occurs, what it counts, and in how many texts it is. */
type Telling = { readonly posting: Posting; readonly weight: number; readonly having: number }

/**
 * Finds the texts that speak of a question: BM25 over word stems, raised by what stands next to a message in its
 * session, by the sitting it belongs to and by who said it. The statistics are those of what was added and of nothing
 * else. Texts of several sessions may come in any order; what stands next to what is told by their owner.
 */
export class SearchIndex {
  private readonly texts: Texts
  private readonly gone = new Set<number>()
  private scores = new Float64Array()
  private raised = new Float64Array()
  private best = new Float64Array()
  private marked = new Uint8Array()
  private near = new Uint32Array()
  private everywhere = new Uint32Array()

  constructor(texts = new Texts()) {
    this.texts = texts
  }

  get size(): number {
    return this.texts.size
  }

  ownerAt(place: number): number {
    return this.texts.owners.values[place] as number
  }

  sequenceAt(place: number): number {
    return this.texts.sequences.values[place] as number
  }

  add(spoken: Spoken): number {
    return this.texts.add(spoken)
  }

  /** Everything the index is made of, as long as nothing was removed. */
  parts(): IndexParts {
    return this.texts.parts()
  }

  /** Takes a text out of every result and statistic. What it said stays in RAM until the index goes. */
  remove(place: number): void {
    if (this.gone.has(place)) return
    this.gone.add(place)
    this.texts.silence(place)
  }

  /**
   * The best texts, best first. Of equals at the end of the list a session's later ones are taken; if there are several
   * sessions, all of them are, since no order of theirs is known here.
   */
  rank(query: string, limits: Limits): Ranked[] {
    const end = this.endOf(limits.before)
    const telling = this.telling(query)
    if (telling.length === 0) return []
    const top = new Top(Math.min(limits.most, end))
    this.match(telling, end)
    const places = this.considered(telling, end)
    this.lift(places, end)
    const asked = this.askedFor(query)
    const { scores, raised, best } = this
    const [times, sittings, speakers] = [
      this.texts.times.values,
      this.texts.sittings.values,
      this.texts.speakers.values,
    ]
    const scoreAt = (place: number): number => {
      const own = raised[place] as number
      return own === 0
        ? 0
        : own * (asked[speakers[place] as number] as number) +
            weights.sitting * (best[sittings[place] as number] as number)
    }
    const isWithin = (place: number): boolean =>
      (times[place] as number) >= limits.from && (times[place] as number) <= limits.to
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      if (raised[place] === 0) continue
      const score = scoreAt(place)
      if (score >= top.bar && isWithin(place)) top.offer(place, score)
    }
    const chosen = top.best()
    if (this.texts.sessions > 1 && chosen.length === limits.most) {
      const had = new Set(chosen.map(({ place }) => place))
      for (const place of places)
        if (scoreAt(place) === top.bar && isWithin(place) && !had.has(place)) chosen.push({ place, score: top.bar })
    }
    const ranked = chosen.map(({ place, score }) => {
      const words = scores[place] as number
      return {
        place,
        score,
        why: {
          words,
          nearby: (raised[place] as number) - words,
          sitting: weights.sitting * (best[sittings[place] as number] as number),
        },
      }
    })
    this.reset(places)
    return ranked
  }

  /** Adds up what each word of the question is worth in each text. */
  private match(telling: readonly Telling[], end: number): void {
    this.makeRoom()
    const { scores, gone } = this
    const lengths = this.texts.lengths.values
    const many = this.size - gone.size
    const mean = Math.max(1, this.texts.words / Math.max(1, many))
    const [flat, slope] = [weights.saturation * (1 - weights.length), (weights.saturation * weights.length) / mean]
    for (const { posting, weight, having } of telling) {
      const [places, often, length] = [posting.places.values, posting.counts.values, posting.places.length]
      const worth = weight * (weights.saturation + 1) * Math.log(1 + (many - having + 0.5) / (having + 0.5))
      for (let at = 0; at < length; at++) {
        const place = places[at] as number
        if (place >= end) break
        if (gone.size > 0 && gone.has(place)) continue
        const count = often[at] as number
        scores[place] =
          (scores[place] as number) + (worth * count) / (count + flat + slope * (lengths[place] as number))
      }
    }
  }

  private reset(places: Uint32Array): void {
    const { scores, raised, best, marked } = this
    const sittings = this.texts.sittings.values
    if (places.buffer === this.everywhere.buffer) {
      scores.fill(0, 0, places.length)
      raised.fill(0, 0, places.length)
      best.fill(0, 0, this.texts.size)
      return
    }
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      scores[place] = 0
      raised[place] = 0
      marked[place] = 0
      best[sittings[place] as number] = 0
    }
  }

  private makeRoom(): void {
    if (this.scores.length >= this.size) return
    const room = Math.max(256, this.size * 2)
    this.scores = new Float64Array(room)
    this.raised = new Float64Array(room)
    this.best = new Float64Array(room)
    this.marked = new Uint8Array(room)
    this.near = new Uint32Array(room)
    this.everywhere = Uint32Array.from({ length: room }, (_, place) => place)
  }

  /** Where a score can be other than nothing: everywhere, or if the words are rare, where they stand and beside it. */
  private considered(telling: readonly Telling[], end: number): Uint32Array {
    const total = telling.reduce((sum, { posting }) => sum + posting.places.length, 0)
    if (total * rare > end) return this.everywhere.subarray(0, end)
    const { marked, near } = this
    const [previous, next] = [this.texts.previous.values, this.texts.next.values]
    let many = 0
    const mark = (place: number): void => {
      if (place < 0 || place >= end || marked[place] === 1) return
      marked[place] = 1
      near[many++] = place
    }
    for (const { posting } of telling) {
      const [places, length] = [posting.places.values, posting.places.length]
      for (let at = 0; at < length && (places[at] as number) < end; at++) {
        const place = places[at] as number
        mark(place)
        mark((previous[place] as number) - 1)
        mark((next[place] as number) - 1)
      }
    }
    return near.subarray(0, many)
  }

  /** The rarest words of the question that occur here, without those that so many texts have that they tell nothing. */
  private telling(query: string): Telling[] {
    const many = this.size - this.gone.size
    const found: Telling[] = []
    for (const [term, weight] of queryTerms(query)) {
      const posting = this.texts.postings.get(term)
      const having = posting === undefined ? 0 : this.having(posting)
      if (posting !== undefined && having > 0) found.push({ posting, weight, having })
    }
    const some = found.filter(({ having }) => having <= many / tooMany)
    return (some.length > 1 ? some : found).sort((a, b) => a.having - b.having).slice(0, mostWords)
  }

  private having({ places }: Posting): number {
    if (this.gone.size === 0) return places.length
    let count = 0
    for (let at = 0; at < places.length; at++) if (!this.gone.has(places.values[at] as number)) count++
    return count
  }

  private endOf(before: number): number {
    if (before === Number.POSITIVE_INFINITY) return this.size
    let [low, high] = [0, this.size]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.sequenceAt(middle) < before) low = middle + 1
      else high = middle
    }
    return low
  }

  /**
   * Each text's own score with what the messages right before and after it in the same sitting lend to it, and the best
   * score of each sitting, so that a message gains from a conversation that was about the question.
   */
  private lift(places: Uint32Array, end: number): void {
    const { scores, raised, best } = this
    const [lengths, previous, next, sittings] = [
      this.texts.lengths.values,
      this.texts.previous.values,
      this.texts.next.values,
      this.texts.sittings.values,
    ]
    const { previous: byPrevious, next: byNext } = weights
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      const own = scores[place] as number
      if (own > 0) {
        const sitting = sittings[place] as number
        if (own > (best[sitting] as number)) best[sitting] = own
      }
      const before = previous[place] as number
      const after = next[place] as number
      const lent = before === 0 ? own : own + byPrevious * (scores[before - 1] as number)
      const lifted = after === 0 || after > end ? lent : lent + byNext * (scores[after - 1] as number)
      // what says nothing cannot answer anything, whatever stands beside it
      if (lifted > 0 && lengths[place] !== 0) raised[place] = lifted
    }
  }

  /** For each speaker, by how much being named in the question raises what was said. */
  private askedFor(query: string): Float64Array {
    const asked = new Set(wordsOf(query.slice(0, longestQuery)).map(stem))
    return Float64Array.from(this.texts.names.keys(), (name) =>
      name !== '' && asked.has(name) ? 1 + weights.speaker : 1,
    )
  }
}
