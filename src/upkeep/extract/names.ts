import { findFacts } from '../../text/facts.ts'
import type { Sentence } from '../../text/sentences.ts'
import { isStopword, wordsOf } from '../../text/words.ts'
import type { Noted } from './found.ts'

const isUrl = /^(?:https?|ftp|wss?):\/\/[^\s/]/i
const sources = /^\W{0,4}(?:[a-z]+ )?(?:sources?|references?|links?|urls?)(?: urls?)?: (.+)$/i

/** Every URL, and what is listed as a source without being one: an address without its scheme, a DOI. */
export function urlsIn({ text, start }: Sentence): readonly Noted[] {
  const noted: Noted[] = []
  for (const fact of findFacts(text)) if (isUrl.test(fact.text)) noted.push(source(fact.text, start + fact.start))
  if (noted.length > 0) return noted
  const list = sources.exec(text)?.[1] ?? ''
  const offset = start + text.length - list.length
  for (const { 0: word, index } of list.matchAll(/[^\s,;]{3,200}/g)) {
    const name = word.replace(/[.!?)]+$/, '')
    if (/^[\w(][^\s]*[\d./]/.test(name) && !/^\d+$/.test(name)) noted.push(source(name, offset + index))
  }
  return noted
}

const source = (value: string, from: number): Noted => ({
  field: 'source_urls',
  key: '',
  value,
  importance: 5,
  from,
  to: from + value.length,
})

const capitalised =
  /(?<![\p{L}\p{N}\p{M}_./@#:'’-])\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*(?: (?:of |the |de |van |von |der |del |di |da |al )?\p{Lu}[\p{L}\p{M}\p{N}]*(?:[-'’&][\p{L}\p{N}]+)*){0,4}(?![\p{L}\p{N}_@/]|[.:][\p{L}\p{N}])/gu
const humped = /^\p{Lu}?\p{Ll}+\p{Lu}/u
const common = new Set(
  `monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september october november december
  english german french spanish american british european god ok tv pm am hi hey hello thanks christmas easter halloween thanksgiving mr mrs ms dr sir
  mom dad mum grandma grandpa bro lol omg wow btw fyi asap diy faq pdf url api json html css sql i'm i've i'd i'll internet web`.split(
    /\s+/,
  ),
)
/** What stands before a word that does not begin a sentence. */
const inside = /[\p{L}\p{N},)][’'”"]?\s$/u
const mostNames = 20

/**
 * The names of people, places, organisations and products. A capital at the beginning of a sentence proves nothing, unless
 * the same name stands inside another one; a heading proves nothing at all, and neither does German.
 */
export function namesIn(sentences: readonly Sentence[]): readonly Noted[] {
  const isEnglish = looksEnglish(sentences)
  const found = new Map<string, Noted>()
  for (const { text, start } of sentences) {
    if (isHeading(text)) continue
    for (const { 0: match, index } of text.matchAll(capitalised)) {
      const { name, offset } = withoutPlain(match)
      const place = index + offset
      const isSure = humped.test(name) || (inside.test(text.slice(0, place)) && (isEnglish || name.includes(' ')))
      if (!isSure || found.has(name) || !isName(name)) continue
      found.set(name, {
        field: 'entities',
        key: '',
        value: name,
        importance: 3,
        from: start + place,
        to: start + place + name.length,
      })
      if (found.size >= mostNames) return [...found.values()]
    }
  }
  return [...found.values()]
}

/** Words of every day at either end are no part of a name; a possessive belongs to what is owned. */
function withoutPlain(match: string): { readonly name: string; readonly offset: number } {
  const words = match.split(' ')
  let first = 0
  while (first < words.length && isPlain(words[first] ?? '')) first++
  let last = words.length
  while (last > first && isPlain(words[last - 1] ?? '')) last--
  const offset = words.slice(0, first).reduce((sum, word) => sum + word.length + 1, 0)
  return {
    name: words
      .slice(first, last)
      .join(' ')
      .replace(/['’]s?$/, ''),
    offset: Math.min(offset, match.length),
  }
}

const isPlain = (word: string): boolean =>
  common.has(word.toLowerCase().replace(/days$/, 'day')) ||
  isStopword(word.toLowerCase().replace('’', "'")) ||
  word.length < 2

/** Letters in capitals throughout are shouted or stand for a technical term. */
const isName = (name: string): boolean => name.length > 1 && /\p{Ll}/u.test(name)

function isHeading(text: string): boolean {
  const words = text.split(/\s+/).filter((word) => /^\p{L}{4}/u.test(word))
  return /^\s*#/.test(text) || (words.length > 2 && words.every((word) => /^\p{Lu}/u.test(word)))
}

function looksEnglish(sentences: readonly Sentence[]): boolean {
  const words = sentences.slice(0, 20).flatMap(({ text }) => wordsOf(text.slice(0, 400)))
  return words.filter(isStopword).length * 7 >= words.length
}
