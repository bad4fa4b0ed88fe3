import { findFacts } from '../../text/facts.ts'
import type { Sentence } from '../../text/sentences.ts'
import type { TextFact } from './fields.ts'

const isUrl = /^(?:https?|ftp|wss?):\/\/[^\s/]/i
const sourceList = /^\W{0,4}(?:[a-z]+ )?(?:sources?|references?|links?|urls?)(?: urls?)?: (.+)$/i

/** Finds URLs, and listed sources without a scheme, such as a DOI. */
export function findUrls({ text, start }: Sentence): readonly TextFact[] {
  const facts: TextFact[] = []
  for (const fact of findFacts(text)) if (isUrl.test(fact.text)) facts.push(urlFact(fact.text, start + fact.start))
  if (facts.length > 0) return facts
  const list = sourceList.exec(text)?.[1] ?? ''
  const offset = start + text.length - list.length
  for (const { 0: word, index } of list.matchAll(/[^\s,;]{3,200}/g)) {
    const name = word.replace(/(?<![.!?)])[.!?)]+$/, '')
    if (/^[\w(][^\s]*[\d./]/.test(name) && !/^\d+$/.test(name)) facts.push(urlFact(name, offset + index))
  }
  return facts
}

const urlFact = (value: string, from: number): TextFact => ({
  field: 'source_urls',
  key: '',
  value,
  importance: 5,
  from,
  to: from + value.length,
})
