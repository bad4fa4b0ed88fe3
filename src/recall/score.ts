import { isBlank, type Millis } from '../domain/entry.ts'
import { stem, termsOf, wordsOf } from '../text/words.ts'
import { Column, counts, floats, integers } from './column.ts'
import { Top } from './top.ts'

/** A text that can be found: of which session it is, where and when it was said, by whom, and its terms. */
export type Spoken = {
  readonly owner: number
  readonly sequence: number
  readonly at: Millis
  readonly name: string | undefined
  readonly terms: readonly string[]
}

export type Ranked = {
  readonly place: number
  readonly score: number
  readonly why: { readonly words: number; readonly nearby: number; readonly sitting: number }
}

/** What a text is found by; nothing, if it cannot be shown. */
export const searchTerms = (content: string): readonly string[] => (isBlank(content) ? [] : termsOf(content))

/** The weights of the ranking, as measured on dialogues (bench/recall.ts). */
const weights = { saturation: 1.2, length: 0.5, previous: 0.5, next: 0.3, sitting: 0.3, speaker: 0.4, date: 0.8 }

/** A word that more than one message in so many has is passed over when the question has rarer ones. */
const tooMany = 2
/** A question is known by so many of its rarest words. */
const mostWords = 24
/** After a pause like this a new sitting begins. */
const pause: Millis = 3_600_000
/** A question longer than this is known by its beginning. */
const longestQuery = 4_000

/** Words that stand in fewer than one of so many texts are looked for there and nowhere else. */
const rare = 24

/** What may be ranked: texts before a sequence number and within a time, so many at most. */
export type Limits = { readonly before: number; readonly from: Millis; readonly to: Millis; readonly most: number }

/** Everything there is. */
export const unlimited: Omit<Limits, 'most'> = { before: Number.POSITIVE_INFINITY, from: Number.NEGATIVE_INFINITY, to: Number.POSITIVE_INFINITY }

/** Where a term occurs: places of messages in the index, and how often in each. */
type Posting = { readonly places: Column<Uint32Array>; readonly counts: Column<Uint16Array> }
/** A word of a question: where it occurs, what it counts, and in how many texts it is. */
type Telling = { readonly posting: Posting; readonly weight: number; readonly having: number }

/**
 * Finds the texts that speak of a question: BM25 over word stems, raised by what stands next to a message in its
 * session, by the sitting it belongs to and by who said it. The statistics are those of what was added and of nothing
 * else. Texts of several sessions may come in any order; what stands next to what is told by their owner.
 */
export class SearchIndex {
  private readonly postings = new Map<string, Posting>()
  private readonly owners = new Column(integers)
  private readonly sequences = new Column(integers)
  private readonly times = new Column(floats)
  private readonly lengths = new Column(integers)
  private readonly sittings = new Column(integers)
  private readonly speakers = new Column(integers)
  /** The places of the texts before and after in the same sitting, plus one. */
  private readonly previous = new Column(integers)
  private readonly next = new Column(integers)
  private readonly newest: number[] = []
  private readonly names = new Map<string, number>([['', 0]])
  private readonly gone = new Set<number>()
  private sitting = 0
  private words = 0
  private scores = new Float64Array(256)
  private raised = new Float64Array(256)
  private best = new Float64Array(256)
  private everywhere = Uint32Array.from({ length: 256 }, (_, place) => place)

  get size(): number {
    return this.lengths.length
  }

  ownerAt(place: number): number {
    return this.owners.values[place] as number
  }

  sequenceAt(place: number): number {
    return this.sequences.values[place] as number
  }

  add({ owner, sequence, at, name, terms }: Spoken): number {
    const place = this.size
    const before = (this.newest[owner] ?? 0) - 1
    const goesOn = before >= 0 && Math.abs(at - (this.times.values[before] as number)) <= pause
    this.owners.push(owner)
    this.sequences.push(sequence)
    this.times.push(at)
    this.lengths.push(terms.length)
    this.sittings.push(goesOn ? (this.sittings.values[before] as number) : this.sitting++)
    this.speakers.push(this.numberOf(name))
    this.previous.push(goesOn ? before + 1 : 0)
    this.next.push(0)
    if (goesOn) this.next.values[before] = place + 1
    this.newest[owner] = place + 1
    this.words += terms.length
    for (const term of terms) this.post(term, place)
    for (const term of dateTerms(at)) this.post(term, place)
    return place
  }

  /** Takes a text out of every result and statistic. What it said stays in RAM until the index goes. */
  remove(place: number): void {
    if (this.gone.has(place)) return
    this.gone.add(place)
    this.words -= this.lengths.values[place] as number
    this.lengths.values[place] = 0
  }

  /**
   * The best texts, best first. Of equals at the end of the list a session's later ones are taken; if there are several
   * sessions, all of them are, since no order of theirs is known here.
   */
  rank(query: string, limits: Limits): Ranked[] {
    const end = this.endOf(limits.before)
    const telling = this.telling(query)
    if (telling.length === 0) return []
    this.match(telling, end)
    const places = this.considered(telling, end)
    this.lift(places, end)
    const asked = this.askedFor(query)
    const { scores, raised, best } = this
    const [times, sittings, speakers] = [this.times.values, this.sittings.values, this.speakers.values]
    const scoreAt = (place: number): number => {
      const own = raised[place] as number
      return own === 0 ? 0 : own * (asked[speakers[place] as number] as number) + weights.sitting * (best[sittings[place] as number] as number)
    }
    const isWithin = (place: number): boolean => (times[place] as number) >= limits.from && (times[place] as number) <= limits.to
    const top = new Top(limits.most)
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      const score = scoreAt(place)
      if (score > 0 && score >= top.bar && isWithin(place)) top.offer(place, score)
    }
    const chosen = top.best()
    if (this.newest.length > 1 && chosen.length === limits.most) {
      const had = new Set(chosen.map(({ place }) => place))
      for (const place of places) if (scoreAt(place) === top.bar && isWithin(place) && !had.has(place)) chosen.push({ place, score: top.bar })
    }
    const ranked = chosen.map(({ place, score }) => {
      const words = scores[place] as number
      return { place, score, why: { words, nearby: (raised[place] as number) - words, sitting: weights.sitting * (best[sittings[place] as number] as number) } }
    })
    this.reset(places)
    return ranked
  }

  private post(term: string, place: number): void {
    let posting = this.postings.get(term)
    if (posting === undefined) {
      posting = { places: new Column(integers), counts: new Column(counts) }
      this.postings.set(term, posting)
    }
    const last = posting.places.length - 1
    if (last >= 0 && posting.places.values[last] === place) {
      posting.counts.values[last] = Math.min(65_535, (posting.counts.values[last] as number) + 1)
    } else {
      posting.places.push(place)
      posting.counts.push(1)
    }
  }

  /** Adds up what each word of the question is worth in each text. */
  private match(telling: readonly Telling[], end: number): void {
    this.makeRoom()
    const { scores, gone } = this
    const lengths = this.lengths.values
    const many = this.size - gone.size
    const mean = Math.max(1, this.words / Math.max(1, many))
    const [flat, slope] = [weights.saturation * (1 - weights.length), (weights.saturation * weights.length) / mean]
    for (const { posting, weight, having } of telling) {
      const [places, often, length] = [posting.places.values, posting.counts.values, posting.places.length]
      const worth = weight * (weights.saturation + 1) * Math.log(1 + (many - having + 0.5) / (having + 0.5))
      for (let at = 0; at < length; at++) {
        const place = places[at] as number
        if (place >= end) break
        if (gone.size > 0 && gone.has(place)) continue
        const count = often[at] as number
        scores[place] = (scores[place] as number) + (worth * count) / (count + flat + slope * (lengths[place] as number))
      }
    }
  }

  private reset(places: Uint32Array): void {
    const { scores, raised, best } = this
    const sittings = this.sittings.values
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      scores[place] = 0
      raised[place] = 0
      best[sittings[place] as number] = 0
    }
  }

  private makeRoom(): void {
    if (this.scores.length >= this.size) return
    const room = this.size * 2
    this.scores = new Float64Array(room)
    this.raised = new Float64Array(room)
    this.best = new Float64Array(room)
    this.everywhere = Uint32Array.from({ length: room }, (_, place) => place)
  }

  /** Where a score can be other than nothing: everywhere, or if the words are rare, where they stand and beside it; in rising order. */
  private considered(telling: readonly Telling[], end: number): Uint32Array {
    const total = telling.reduce((sum, { posting }) => sum + posting.places.length, 0)
    if (total * rare > end) return this.everywhere.subarray(0, end)
    const near = new Set<number>()
    const [previous, next] = [this.previous.values, this.next.values]
    for (const { posting } of telling) {
      for (let at = 0; at < posting.places.length; at++) {
        const place = posting.places.values[at] as number
        if (place >= end) break
        near.add(place)
        near.add((previous[place] as number) - 1)
        near.add((next[place] as number) - 1)
      }
    }
    return Uint32Array.from(near)
      .sort()
      .filter((place) => place < end)
  }

  /** The rarest words of the question that occur here, without those that so many texts have that they tell nothing. */
  private telling(query: string): Telling[] {
    const many = this.size - this.gone.size
    const found: Telling[] = []
    for (const [term, weight] of queryTerms(query)) {
      const posting = this.postings.get(term)
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
    const [lengths, previous, next, sittings] = [this.lengths.values, this.previous.values, this.next.values, this.sittings.values]
    for (let at = 0; at < places.length; at++) {
      const place = places[at] as number
      const own = scores[place] as number
      const sitting = sittings[place] as number
      if (own > (best[sitting] as number)) best[sitting] = own
      // what says nothing cannot answer anything, whatever stands beside it
      if (lengths[place] === 0) continue
      const before = (previous[place] as number) - 1
      const after = (next[place] as number) - 1
      const lent = before < 0 ? own : own + weights.previous * (scores[before] as number)
      raised[place] = after < 0 || after >= end ? lent : lent + weights.next * (scores[after] as number)
    }
  }

  /** For each speaker, by how much being named in the question raises what was said. */
  private askedFor(query: string): Float64Array {
    const asked = new Set(wordsOf(query.slice(0, longestQuery)).map(stem))
    return Float64Array.from(this.names.keys(), (name) => (name !== '' && asked.has(name) ? 1 + weights.speaker : 1))
  }

  private numberOf(name: string | undefined): number {
    const first = name === undefined ? '' : stem(wordsOf(name)[0] ?? '')
    const known = this.names.get(first)
    if (known === undefined) this.names.set(first, this.names.size)
    return known ?? this.names.size - 1
  }
}

function queryTerms(query: string): Map<string, number> {
  const text = query.slice(0, longestQuery)
  const terms = new Map<string, number>()
  for (const term of termsOf(text)) terms.set(term, 1)
  for (const word of wordsOf(text)) if (isDateWord(word)) terms.set(`date:${word}`, weights.date)
  return terms
}

const months = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october', 'november', 'december']
const isDateWord = (word: string): boolean => months.includes(word) || /^(19|20)[0-9]{2}$/.test(word)

/** When a message was said, as words a question may use. */
function dateTerms(at: Millis): string[] {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? [] : [`date:${months[date.getUTCMonth()]}`, `date:${date.getUTCFullYear()}`]
}
