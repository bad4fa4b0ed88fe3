import { stemmer as stemDutch } from '@orama/stemmers/dutch'
import { stemmer as stemFrench } from '@orama/stemmers/french'
import { stemmer as stemGerman } from '@orama/stemmers/german'
import { stemmer as stemPortuguese } from '@orama/stemmers/portuguese'
import { stemmer as stemSpanish } from '@orama/stemmers/spanish'
import { LruCache } from '../domain/lruCache.ts'
import type { LanguageAnalyzer } from '../text/languages.ts'
import { stopwordsByLanguage } from './stopwords.ts'

type StemmedLanguage = keyof typeof stopwordsByLanguage

/** Rules of a language around its stemmer. */
type LanguageRules = {
  /**
   * Endings and their replacement before the stemmer; the longest matching one counts. Most restore an accent: words
   * arrive without accents, and people leave them out as well. An accent restored wrongly does no harm as long as all
   * forms of a word get it.
   */
  readonly endings: Readonly<Record<string, string>>
  /** Whole words and their replacement before the stemmer. */
  readonly words?: Readonly<Record<string, string>>
  /** Corrects a stem. */
  correct(stem: string): string
}

const unchanged = (stem: string): string => stem

const rules: Readonly<Record<StemmedLanguage, LanguageRules>> = {
  de: { endings: { innen: 'in' }, correct: dropGermanVerbEnding },
  es: {
    endings: {
      cion: 'ción',
      ...{ abamos: 'ábamos', aramos: 'áramos', asemos: 'ásemos', ieramos: 'iéramos', iesemos: 'iésemos' },
    },
    words: { aleman: 'alemán', frances: 'francés', japones: 'japonés', portugues: 'portugués' },
    correct: dropSpanishPastEnding,
  },
  fr: {
    // Without the literary -âmes, -âtes, -ât and -èrent, which would change `tomates`, `candidat` and `différent`.
    endings: { ee: 'ée', ees: 'ées', iere: 'ière', ieres: 'ières', ite: 'ité', ites: 'ités' },
    correct: unchanged,
  },
  nl: {
    // Diminutives, participles and plurals after a vowel; -les stays: `les` is no plural.
    endings: {
      ...{ tje: '', tjes: '', pje: '', pjes: '', end: 'en', ende: 'en' },
      ...{ des: 'de', ges: 'ge', ies: 'ie', jes: 'je', nes: 'ne', ses: 'se', tes: 'te' },
    },
    correct: correctDutchStem,
  },
  pt: {
    endings: {
      ...{ ao: 'ão', cao: 'ção', ancia: 'ância', ancias: 'âncias', encia: 'ência', encias: 'ências' },
      ...{ avel: 'ável', ivel: 'ível', iamos: 'íamos', avamos: 'ávamos', aramos: 'áramos', eramos: 'êramos' },
      ...{ iramos: 'íramos', assemos: 'ássemos', essemos: 'êssemos', issemos: 'íssemos' },
      // The stemmer keeps these plurals apart from their singular: `corações`, `jornais`, `hotéis`, `viagens`.
      ...{ oes: 'ão', coes: 'ção', aveis: 'ável', iveis: 'ível' },
      ...{ ais: 'al', eis: 'el', ens: 'em', ins: 'im', ons: 'om' },
    },
    correct: unchanged,
  },
}

/** Removes -t and -et, which the stemmer leaves: `kommt`, `kommen`; `arbeitet`, `arbeiten`. */
function dropGermanVerbEnding(stem: string): string {
  let rest = stem
  for (;;) {
    if (rest.length > 5 && rest.endsWith('et')) rest = rest.slice(0, -2)
    else if (rest.length > 4 && rest.endsWith('t')) rest = rest.slice(0, -1)
    else return rest
  }
}

/** Removes the rest of -ía, -ías, -ían, -ió and -aría, which the stemmer removes with their accents only. */
function dropSpanishPastEnding(stem: string): string {
  if (stem.length <= 3 || !stem.endsWith('i')) return stem
  const rest = stem.slice(0, -1)
  return rest.length > 5 && /[aei]r$/.test(rest) ? rest.slice(0, -2) : rest
}

/** Removes -t and -d of verbs after a consonant, undoubles letters and devoices: `werkt`, `pillen`, `huizen`. */
function correctDutchStem(stem: string): string {
  const bare = stem.length > 4 ? stem.replace(/(?<=[^aeiou])[dt]$/, '') : stem
  const single = bare.replace(/([aeou])\1(?=[^aeiou]$)/, '$1').replace(/([^aeiou])\1$/, '$1')
  return single.replace(/v$/, 'f').replace(/z$/, 's')
}

const stemmers: Readonly<Record<StemmedLanguage, (word: string) => string>> = {
  de: stemGerman,
  es: stemSpanish,
  fr: stemFrench,
  nl: stemDutch,
  pt: stemPortuguese,
}

/** Stemming takes about a microsecond per word, and a few thousand words make up most text. */
const maxCachedWords = 8_192
const maxCachedLetters = 32

/** Loads the analyzers of all languages that have a stemmer. */
export const loadAnalyzers = (): readonly LanguageAnalyzer[] =>
  (Object.keys(stemmers) as StemmedLanguage[]).map((language) => createAnalyzer(language, stemmers[language]))

function createAnalyzer(language: StemmedLanguage, stemmer: (word: string) => string): LanguageAnalyzer {
  const { endings, words = {}, correct } = rules[language]
  const stopwords = stopwordsByLanguage[language]
  const replaceEnding = createEndingReplacer(endings, new Map(Object.entries(words)))
  const hasElision = language === 'fr'
  const stems = new LruCache<string, string>({ maxEntries: maxCachedWords })
  return {
    language,
    stem(word) {
      const cached = stems.get(word)
      if (cached !== undefined) return cached
      const bare = (hasElision ? word.replace(elidedWord, '') : word).replace(apostropheEnding, '')
      const stem = isLetters.test(bare) ? correct(removeAccents(stemmer(replaceEnding(bare)))) : bare
      if (word.length <= maxCachedLetters) stems.set(word, stem)
      return stem
    },
    isStopword: (word) => stopwords.has(word) || (hasElision && isElidedStopword(word, stopwords)),
  }
}

/** Identifiers and numbers have no inflection. */
const isLetters = /^\p{L}+$/u
const elidedWord = /^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu)'(?=.)/

/** Genitive and plural: `Anna's`, `foto's`. */
const apostropheEnding = /'s?$/

/** Elided words of three letters or more follow as words of their own: `l'homme`, `l`, `homme`. */
function isElidedStopword(word: string, stopwords: ReadonlySet<string>): boolean {
  const bare = word.replace(elidedWord, '')
  return bare !== word && (bare.length >= 3 || stopwords.has(bare))
}

const removeAccents = (stem: string): string =>
  stem
    .normalize('NFD')
    .replace(/[\u0300-\u036f]/g, '')
    .normalize('NFC')

/** Letters that must precede a replaced ending. */
const minLettersBeforeEnding = 2

/** Returns a function that replaces a whole word or the longest matching ending. */
function createEndingReplacer(
  endings: Readonly<Record<string, string>>,
  words: ReadonlyMap<string, string>,
): (word: string) => string {
  const byEnding = new Map(Object.entries(endings))
  const maxLetters = Math.max(0, ...[...byEnding.keys()].map((ending) => ending.length))
  return (word) => {
    for (let letters = Math.min(maxLetters, word.length - minLettersBeforeEnding); letters > 0; letters--) {
      const replacement = byEnding.get(word.slice(-letters))
      if (replacement !== undefined) return word.slice(0, -letters) + replacement
    }
    return words.get(word) ?? word
  }
}
