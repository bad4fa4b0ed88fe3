import { LruCache } from '../domain/lruCache.ts'
import type { LanguageAnalyzer } from '../text/languages.ts'
import { stopwordsByLanguage } from './stopwords.ts'

type StemmedLanguage = keyof typeof stopwordsByLanguage

/** Rules of a language around its stemmer. */
type LanguageRules = {
  /**
   * Suffixes without accents and their spelling in the rules of the stemmer. Words arrive without accents, and people
   * leave them out as well; an accent restored wrongly does no harm as long as all forms of a word get it.
   */
  readonly accents: Readonly<Record<string, string>>
  /** Corrects a stem. */
  correct(stem: string): string
}

const unchanged = (stem: string): string => stem
const plainRules: LanguageRules = { accents: {}, correct: unchanged }

const rules: Readonly<Record<StemmedLanguage, LanguageRules>> = {
  de: plainRules,
  es: {
    accents: { cion: 'ción', aleman: 'alemán', ngles: 'nglés', rances: 'rancés', tugues: 'tugués', japones: 'japonés' },
    // Rest of -ía, -ías, -ían, -íamos and -ió, which the stemmer removes with their accents only.
    correct: (stem) => (stem.length > 3 && stem.endsWith('i') ? stem.slice(0, -1) : stem),
  },
  fr: {
    // Without the literary -âmes, -âtes, -ât and -èrent, which would change `tomates`, `candidat` and `différent`.
    accents: { ee: 'ée', ees: 'ées', iere: 'ière', ieres: 'ières', ite: 'ité', ites: 'ités' },
    correct: unchanged,
  },
  nl: {
    accents: {},
    // A final v or z becomes f or s in the singular: `huizen`, `huis`; `brieven`, `brief`.
    correct: (stem) =>
      stem.endsWith('v') ? `${stem.slice(0, -1)}f` : stem.endsWith('z') ? `${stem.slice(0, -1)}s` : stem,
  },
  pt: {
    accents: {
      ...{ ao: 'ão', cao: 'ção', ancia: 'ância', ancias: 'âncias', encia: 'ência', encias: 'ências' },
      ...{ avel: 'ável', ivel: 'ível', iamos: 'íamos', avamos: 'ávamos', aramos: 'áramos', eramos: 'êramos' },
      ...{ iramos: 'íramos', assemos: 'ássemos', essemos: 'êssemos', issemos: 'íssemos' },
      // The stemmer leaves these plurals apart from their singular.
      ...{ oes: 'ão', coes: 'ção', aveis: 'ável', iveis: 'ível' },
    },
    correct: unchanged,
  },
}

type StemmerModule = { readonly stemmer: (word: string) => string }

const loadModule: Readonly<Record<StemmedLanguage, () => Promise<StemmerModule>>> = {
  de: () => import('@orama/stemmers/german'),
  es: () => import('@orama/stemmers/spanish'),
  fr: () => import('@orama/stemmers/french'),
  nl: () => import('@orama/stemmers/dutch'),
  pt: () => import('@orama/stemmers/portuguese'),
}

/** Stemming takes about a microsecond per word, and a few thousand words make up most text. */
const maxCachedWords = 8_192
const maxCachedLetters = 32

/** Loads the analyzers of all languages that have a stemmer. */
export async function loadAnalyzers(): Promise<readonly LanguageAnalyzer[]> {
  const languages = Object.keys(loadModule) as StemmedLanguage[]
  return Promise.all(
    languages.map(async (language) => createAnalyzer(language, (await loadModule[language]()).stemmer)),
  )
}

function createAnalyzer(language: StemmedLanguage, stemmer: (word: string) => string): LanguageAnalyzer {
  const { accents, correct } = rules[language]
  const stopwords = stopwordsByLanguage[language]
  const restoreAccents = createSuffixReplacer(accents)
  const hasElision = language === 'fr'
  const stems = new LruCache<string, string>({ maxEntries: maxCachedWords })
  return {
    language,
    stem(word) {
      const cached = stems.get(word)
      if (cached !== undefined) return cached
      const bare = hasElision ? word.replace(elidedWord, '') : word
      const stem = isLetters.test(bare) ? correct(removeAccents(stemmer(restoreAccents(bare)))) : bare
      if (word.length <= maxCachedLetters) stems.set(word, stem)
      return stem
    },
    isStopword: (word) => stopwords.has(word) || (hasElision && isElidedStopword(word, stopwords)),
  }
}

/** Identifiers and numbers have no inflection. */
const isLetters = /^\p{L}+$/u
const elidedWord = /^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quelqu)'(?=.)/

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

/** Replaces the longest matching suffix. */
function createSuffixReplacer(replacements: Readonly<Record<string, string>>): (word: string) => string {
  const bySuffix = new Map(Object.entries(replacements))
  const maxLetters = Math.max(0, ...[...bySuffix.keys()].map((suffix) => suffix.length))
  return (word) => {
    for (let letters = Math.min(maxLetters, word.length); letters > 0; letters--) {
      const replacement = bySuffix.get(word.slice(-letters))
      if (replacement !== undefined) return word.slice(0, -letters) + replacement
    }
    return word
  }
}
