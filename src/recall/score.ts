import { isBlank, type Message, type Millis } from '../domain/entry.ts'
import { placeOf } from '../domain/session.ts'
import { stem, termsOf, wordsOf } from '../text/words.ts'
import { Column, counts, floats, integers } from './column.ts'
import { Top } from './top.ts'

export type Ranked = {
  readonly message: Message
  readonly score: number
  readonly why: { readonly words: number; readonly nearby: number; readonly sitting: number }
}

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

/** What may be ranked: messages before a sequence number and within a time, so many at most. */
export type Limits = { readonly before: number; readonly from: Millis; readonly to: Millis; readonly most: number }

/** Where a term occurs: places of messages in the index, and how often in each. */
type Posting = { readonly places: Column<Uint32Array>; readonly counts: Column<Uint16Array> }

/**
 * Finds the messages of one session that speak of a question: BM25 over word stems, raised by what stands next to a
 * message, by the sitting it belongs to and by who said it. Grows with the session; messages without a word of the
 * question in or beside them are passed over.
 */
export class SessionIndex {
  private readonly postings = new Map<string, Posting>()
  private readonly messages: Message[] = []
  private readonly times = new Column(floats)
  private readonly lengths = new Column(integers)
  private readonly sittings = new Column(integers)
  private readonly speakers = new Column(integers)
  private readonly names: string[] = ['']
  private words = 0
  private scores = new Float64Array(256)
  private raised = new Float64Array(256)

  /** The sequence number up to which messages have been added. */
  get reached(): number {
    return this.messages.at(-1)?.sequence ?? 0
  }

  add(message: Message): void {
    const place = this.messages.length
    const terms = isBlank(message.content) ? [] : termsOf(message.content)
    const previous = this.messages[place - 1]
    const sitting = previous === undefined ? 0 : (this.sittings.values[place - 1] as number) + (Math.abs(message.at - previous.at) > pause ? 1 : 0)
    this.messages.push(message)
    this.times.push(message.at)
    this.lengths.push(terms.length)
    this.sittings.push(sitting)
    this.speakers.push(this.nameOf(message))
    this.words += terms.length
    for (const term of terms) this.post(term, place)
    for (const term of dateTerms(message.at)) this.post(term, place)
  }

  rank(query: string, limits: Limits): Ranked[] {
    const end = placeOf(this.messages, limits.before)
    if (!this.match(query, end)) return []
    const lifted = this.lift(end)
    const best = this.bestOfSittings(end)
    const asked = this.askedFor(query)
    const top = new Top(limits.most)
    const [times, sittings, speakers] = [this.times.values, this.sittings.values, this.speakers.values]
    const bySitting = weights.sitting
    for (let place = 0; place < end; place++) {
      const own = lifted[place] as number
      if (own === 0) continue
      const score = own * (asked[speakers[place] as number] as number) + bySitting * (best[sittings[place] as number] as number)
      if (score < top.bar) continue
      const at = times[place] as number
      if (at >= limits.from && at <= limits.to) top.offer(place, score)
    }
    const ranked = top.best().map(({ place, score }) => {
      const words = this.scores[place] as number
      const why = { words, nearby: (lifted[place] as number) - words, sitting: bySitting * (best[sittings[place] as number] as number) }
      return { message: this.messages[place] as Message, score, why }
    })
    this.scores.fill(0, 0, end)
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

  /** Adds up what each word of the question is worth in each message; false if no message has any. */
  private match(query: string, end: number): boolean {
    if (this.scores.length < this.messages.length) {
      this.scores = new Float64Array(this.messages.length * 2)
      this.raised = new Float64Array(this.messages.length * 2)
    }
    const scores = this.scores
    const lengths = this.lengths.values
    const mean = Math.max(1, this.words / Math.max(1, this.messages.length))
    const [flat, slope] = [weights.saturation * (1 - weights.length), (weights.saturation * weights.length) / mean]
    let any = false
    for (const { posting, weight } of this.telling(query)) {
      const [places, often, length] = [posting.places.values, posting.counts.values, posting.places.length]
      const worth = weight * (weights.saturation + 1) * Math.log(1 + (this.messages.length - length + 0.5) / (length + 0.5))
      for (let at = 0; at < length; at++) {
        const place = places[at] as number
        if (place >= end) break
        const count = often[at] as number
        scores[place] = (scores[place] as number) + (worth * count) / (count + flat + slope * (lengths[place] as number))
        any = true
      }
    }
    return any
  }

  /** The rarest words of the question that occur here, without those that so many messages have that they tell nothing. */
  private telling(query: string): { posting: Posting; weight: number }[] {
    const found: { posting: Posting; weight: number }[] = []
    for (const [term, weight] of queryTerms(query)) {
      const posting = this.postings.get(term)
      if (posting !== undefined) found.push({ posting, weight })
    }
    const rare = found.filter(({ posting }) => posting.places.length <= this.messages.length / tooMany)
    return (rare.length > 1 ? rare : found).sort((a, b) => a.posting.places.length - b.posting.places.length).slice(0, mostWords)
  }

  /** The best score of each sitting, so that a message gains from a conversation that was about the question. */
  private bestOfSittings(end: number): Float64Array {
    const sittings = this.sittings.values
    const best = new Float64Array((sittings[end - 1] ?? 0) + 1)
    for (let place = 0; place < end; place++) {
      const sitting = sittings[place] as number
      const score = this.scores[place] as number
      if (score > (best[sitting] as number)) best[sitting] = score
    }
    return best
  }

  /** Each message's own score with what the messages right before and after it in the same sitting lend to it. */
  private lift(end: number): Float64Array {
    const { scores, raised } = this
    const [sittings, lengths] = [this.sittings.values, this.lengths.values]
    const { previous, next } = weights
    let before = 0
    let current = end > 0 ? (scores[0] as number) : 0
    for (let place = 0; place < end; place++) {
      const after = place + 1 < end && sittings[place + 1] === sittings[place] ? (scores[place + 1] as number) : 0
      // what says nothing cannot answer anything, whatever stands beside it
      raised[place] = lengths[place] === 0 ? 0 : current + previous * before + next * after
      const goesOn = sittings[place + 1] === sittings[place]
      before = goesOn ? current : 0
      current = place + 1 < end ? (scores[place + 1] as number) : 0
    }
    return raised
  }

  /** For each speaker, by how much being named in the question raises what was said. */
  private askedFor(query: string): Float64Array {
    const asked = new Set(wordsOf(query.slice(0, longestQuery)).map(stem))
    return Float64Array.from(this.names, (name) => (name !== '' && asked.has(name) ? 1 + weights.speaker : 1))
  }

  private nameOf({ name }: Message): number {
    const first = name === undefined ? '' : stem(wordsOf(name)[0] ?? '')
    const known = this.names.indexOf(first)
    return known >= 0 ? known : this.names.push(first) - 1
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
