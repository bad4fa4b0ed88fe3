import { formatKey, type Key } from '../domain/key.ts'
import type { Languages, TermExtractor } from '../domain/ports.ts'
import { englishExtractor, isPlainEnglish, sampleProse } from '../text/languages.ts'

/** Characters of prose after which the language of a session is no longer open. */
const decisiveCharacters = 1_000

/** Languages of the sessions in an index, detected from their first messages. */
export class SessionLanguages {
  private readonly load: (() => Languages) | undefined
  /** Languages by session; a session that is missing is still open and is indexed as English. */
  private readonly known = new Map<string, string>()
  private readonly samples = new Map<string, string>()
  private readonly used = new Map<string, TermExtractor>([['en', englishExtractor]])
  private hasChanged = false

  constructor(load: (() => Languages) | undefined) {
    this.load = load
  }

  /** Extractors of all languages that occur. */
  get extractors(): readonly TermExtractor[] {
    return [...this.used.values()]
  }

  of(key: Key): string | undefined {
    return this.known.get(formatKey(key))
  }

  set(key: Key, language: string | undefined): void {
    if (language === undefined) return
    this.known.set(formatKey(key), language)
    this.use(language)
  }

  /** Returns and resets whether the language of a session became known after part of it had been indexed. */
  takeChange(): boolean {
    const { hasChanged } = this
    this.hasChanged = false
    return hasChanged
  }

  /** Returns the extractor for the next messages of a session; `isStarted` if earlier ones are indexed. */
  extractorFor(key: Key, messages: readonly { readonly content: string }[], isStarted: boolean): TermExtractor {
    if (this.load === undefined) return englishExtractor
    const name = formatKey(key)
    const language = this.known.get(name) ?? this.detect(name, messages)
    if (language === undefined) return englishExtractor
    const extractor = this.use(language)
    if (isStarted && this.samples.has(name) && extractor !== englishExtractor) this.hasChanged = true
    this.samples.delete(name)
    return extractor
  }

  private detect(name: string, messages: readonly { readonly content: string }[]): string | undefined {
    const sample = sampleProse([this.samples.get(name) ?? '', ...messages.map(({ content }) => content)])
    const detected = isPlainEnglish(sample) ? 'en' : this.load?.().detect(sample)
    const language = detected ?? (sample.length > decisiveCharacters ? 'en' : undefined)
    if (language === undefined) this.samples.set(name, sample)
    else this.known.set(name, language)
    return language
  }

  private use(language: string): TermExtractor {
    const extractor = language === 'en' ? englishExtractor : (this.load?.().extractorFor(language) ?? englishExtractor)
    if (extractor !== englishExtractor) this.used.set(language, extractor)
    return extractor
  }
}
