import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { isStopword, splitWords, stem } from '../../src/text/words.ts'
import { readStems } from '../../tools/recall-table/tableFile.ts'

// The table finds a word by its stem: a word that gets another stem loses its vector without any error. Therefore
// these hashes change only together with data/word-table.bin.
const remedy = 'the word table must be rebuilt, see tools/recall-table'

const texts = {
  plurals: `cats dogs boxes wishes churches buses glasses houses knives wolves cities stories flies skies ties dies gas
    this us bus lens species series analyses criteria children people feet mice women men news atlas cosmos bias andes
    skis focuses viruses caress caresses`,
  ing: `running hopping hoping falling filling controlling seeing being dying lying tying skiing singing king thing
    bring string evening inning outing canning herring earring luxuriating troubling sizing travelling picking ringing
    hissing failing filing`,
  ed: `walked hopped hoped fell agreed feed need bleed proceed exceed succeed played stayed tried cried used red bed
    plastered bled motored conflated troubled sized tanned fizzed sled hundred kindred repeatedly guaranteed`,
  suffixes: `relational conditional rational valency hesitancy digitizer conformably radically differently vilely
    analogously vietnamization predication operator feudalism decisiveness hopefulness callousness formality sensitivity
    sensibility triplicate formative formalize electricity electrical hopeful goodness revival allowance inference
    airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption communism activate
    angularity homologous effective bowdlerize probate rate cease controller roll generously generation communication
    arsenal happily gently idly ugly early only singly quickly geology biological argument national nationality`,
  finals: `happy happiness cry crying by say day enjoy enjoyed sky yes yellow youth boy toy fly flying apology syzygy
    lovely lonely ally rally relay`,
  shortWords: 'a i be go ox tv uk eu ad 5 42 2024 3rd 1990s b2b h1n1 mp3 4k',
  apostrophes: `don't Caroline's dogs' 'quoted' it’s I'm we'll they've o'clock rock'n'roll James's l'avenir O'Brien ’tis
    y'all shouldn't've`,
  accents:
    'café naïve résumé Zürich São Paulo Ångström Łódź smörgåsbord jalapeño façade ﬁne ﬂow ＡＢＣ ½ x² e\u0301tude',
  identifiers: `camelCase parseHTMLFile userID XMLHttpRequest snake_case __init__ kebab-case src/text/words.ts ./a/b.mjs
    user@example.com https://example.com/a/b?c=d v24.21.0 3.14 10:30 192.168.0.1 C++ node.js $HOME A_B_C iPhone eBay
    well-known state-of-the-art 2024-05-01 foo.bar.baz --dry-run @scope/package #tag`,
  otherScripts: `東京タワー 我爱北京 한국어 สวัสดี Привет мир Ελλάδα שלום مرحبا हिन्दी 日本語 and English 😀 👍🏽 co\u00adoperate
    zero\u200dwidth`,
  stopwords: `a about after again all also am an and any are aren't as at be because been before being but by can can't
    could couldn't did didn't do does doesn't doing don't down each few for from further had hadn't has hasn't have
    haven't having he he'd he'll he's her here here's hers herself him himself his how how's i i'd i'll i'm i've if in
    into is isn't it it'd it'll it's its itself just let's me more most my myself no nor not now of off ok okay on once
    only or other our ours ourselves out over own please really same shall she she'd she'll she's should shouldn't so
    some such than that that's the their theirs them themselves then there there's these they they'd they'll they're
    they've this those through to too under until up us very was wasn't we we'd we'll we're we've were weren't what
    what's when when's where where's which while who who's whom whose why why's will with won't would wouldn't yeah yes
    you you'd you'll you're you've your yours yourself yourselves maybe never always many much still well like`,
  sentences: `Did Melanie's kids enjoy the museums they'd visited last weekend? I'VE BEEN WORKING on the API... it's 80%
    done!!! "Quotes", (brackets) [and] {braces}; semi-colons: e.g. this/that & those. Email me at jane.doe@mail.org or
    call +1 (555) 010-9999. The prices rose from $3.50 to €4,20 — a 20 % increase. Les élèves étudiaient à l’école.`,
}

const frozenTexts: Readonly<Record<keyof typeof texts, string>> = {
  plurals: 'a59ebdb2a4223ff7',
  ing: '2172de8bdd38322d',
  ed: 'f9198ca6346aa718',
  suffixes: 'acdf3527c75fb22a',
  finals: 'b54b56f24058d9f8',
  shortWords: 'acff7e953aed7c2e',
  apostrophes: '9229ea49f97fc180',
  accents: 'cea865f2a1ac393c',
  identifiers: '92133a4b31752928',
  otherScripts: 'e028106649e9172a',
  stopwords: '076804d449c72063',
  sentences: 'c63b0e52cdc65779',
}
const frozenStems = {
  all: 'a2e347af77ad5863',
  inflected: '1603d4a06d0be6d4',
  words: 'abbcb9e4af7d891e',
  stopwords: '4954ac5b72f55fa7',
}

const hash = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 16)
const describeWord = (word: string): string => (isStopword(word) ? `stopword ${word}` : `${word} ${stem(word)}`)

describe('the word functions of the word table', () => {
  it.each(Object.entries(texts))('with a fixed text › return the same %s', (group, text) =>
    expect(hash(splitWords(text).map(describeWord)), remedy).toBe(frozenTexts[group as keyof typeof texts]),
  )

  const stems = readStems(readFileSync(new URL('../../data/word-table.bin', import.meta.url)))
  const inflect = (word: string): string[] => ['s', 'ing', 'ed', 'ly', 'er', 'ness'].map((suffix) => word + suffix)

  it('with the stems of the table › return the same stems', () =>
    expect(hash(stems.map(stem)), remedy).toBe(frozenStems.all))
  it('with inflected stems of the table › return the same stems', () =>
    expect(hash(stems.slice(0, 2_000).flatMap(inflect).map(stem)), remedy).toBe(frozenStems.inflected))
  it('with the stems of the table › return the same words', () =>
    expect(hash(stems.map(splitWords)), remedy).toBe(frozenStems.words))
  it('with the stems of the table › return the same stopwords', () =>
    expect(hash(stems.filter(isStopword)), remedy).toBe(frozenStems.stopwords))
})
