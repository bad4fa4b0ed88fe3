import { beforeAll, describe, expect, it } from 'vitest'
import { loadAnalyzers } from '../../src/languages/stemmers.ts'
import { createStemExtractor, type LanguageAnalyzer } from '../../src/text/languages.ts'
import { splitWords } from '../../src/text/words.ts'

let analyzers: ReadonlyMap<string, LanguageAnalyzer>
beforeAll(async () => {
  analyzers = new Map(loadAnalyzers().map((analyzer) => [analyzer.language, analyzer]))
})

const analyzerOf = (language: string): LanguageAnalyzer => analyzers.get(language) as LanguageAnalyzer
const stemsOf = (language: string, words: string): string[] => [
  ...new Set(splitWords(words).map((word) => analyzerOf(language).stem(word))),
]
const extract = (language: string, text: string): string[] => createStemExtractor(analyzerOf(language)).extract(text)

/** Forms of one word each. */
const families: readonly (readonly [language: string, forms: string])[] = [
  ['de', 'Haus Hauses Häuser Häusern'],
  ['de', 'Straße Straßen Strasse'],
  ['de', 'schreiben schreibe schreibt'],
  ['de', 'arbeiten arbeitet arbeitete Arbeit'],
  ['de', 'Lehrerin Lehrerinnen'],
  ['de', 'Prüfung Prüfungen'],
  ['es', 'canción canciones cancion'],
  ['es', 'información informaciones informacion'],
  ['es', 'comer comía comíamos comió comieron comido'],
  ['es', 'hablar hablaba hablábamos habló hablando'],
  ['es', 'comprar compraría comprarían'],
  ['es', 'historia historias'],
  ['es', 'servicio servicios'],
  ['es', 'inglés ingleses inglesa'],
  ['es', 'alemán alemanes'],
  ['es', 'francés franceses francesa'],
  ['es', 'japonés japoneses'],
  ['es', 'portugués portugueses'],
  ['fr', 'travailler travaillait travaillé travaillée travaillées travaille'],
  ['fr', 'activité activités active'],
  ['fr', 'première premières'],
  ['fr', 'différent différents différente'],
  ['nl', 'huis huizen'],
  ['nl', 'brief brieven'],
  ['nl', 'straat straten'],
  ['nl', 'werken werkt werkend werkte'],
  ['nl', 'pil pillen pilletje'],
  ['nl', "foto foto's"],
  ['nl', 'actie acties'],
  ['pt', 'coração corações coracao'],
  ['pt', 'informação informações informacao'],
  ['pt', 'possível possíveis'],
  ['pt', 'aceitável aceitáveis aceitar'],
  ['pt', 'jornal jornais'],
  ['pt', 'hotel hotéis'],
  ['pt', 'viagem viagens'],
  ['pt', 'falar falava falávamos falaríamos falarão falou'],
]

describe('stem', () => {
  it.each(families)('in %s › given %s › returns one stem', (language, forms) =>
    expect(stemsOf(language, forms)).toHaveLength(1),
  )
  it.each([
    ['de', 'Kirsche Kirche'],
    ['es', 'perro pera'],
    ['fr', 'poisson poison'],
    ['nl', 'kaas kast'],
    ['pt', 'mãe mão'],
    ['pt', 'seis sela'],
  ])('in %s › given the unrelated words %s › returns two stems', (language, words) =>
    expect(stemsOf(language, words)).toHaveLength(2),
  )
  it('returns stems without accents', () => {
    for (const [language, forms] of families) expect(stemsOf(language, forms).join(' ')).toMatch(/^[a-zß ]+$/)
  })
  it.each(['de', 'es', 'fr', 'nl', 'pt'])(
    'in %s › given identifiers and numbers › returns them unchanged',
    (language) => {
      for (const word of ['src/classes.ts', 'user_names', '2024', 'v24.21.0', 'ids@example.com', 'мир'])
        expect(analyzerOf(language).stem(word)).toBe(word)
    },
  )
})

describe('isStopword', () => {
  it.each([
    ['de', 'Was hat sie über die neue Wohnung gesagt?', ['neu', 'wohnung', 'gesag']],
    ['es', '¿Qué está en la mesa de mi oficina?', ['mes', 'oficin']],
    ['fr', "Qu'est-ce que l'homme a dit à l'an ?", ['homm', 'dit', 'an']],
    ['nl', 'Waar heb ik mijn sleutels gelaten?', ['sleutel', 'gelat']],
    ['pt', 'Onde é que você não foi com a bicicleta?', ['biciclet']],
  ])('in %s › given a sentence › leaves its content words', (language, sentence, expected) =>
    expect(extract(language, sentence).filter((term) => !term.includes('-'))).toEqual(expected),
  )
  it('keeps words that are stopwords of another language', () => {
    expect(analyzerOf('es').isStopword('the')).toBe(false)
    expect(analyzerOf('de').isStopword('des')).toBe(true)
    expect(analyzerOf('pt').isStopword('des')).toBe(false)
  })
})
