/**
 * Weights of the ranking. The score of a passage is the weighted sum of its features, each divided by its maximum over
 * the passages, times the factors. Fitted by `bench/fit.ts` on five sets of conversations at once, cross-validated by
 * conversation; docs/decisions/0022-recall-ranking.md has the figures.
 */
export type RankingWeights = {
  readonly features: Readonly<Record<FeatureName, number>>
  /** Factor for messages of a speaker that the question names. */
  readonly namedSpeaker: number
  /** Factor for a person's own words in a chat with an assistant. */
  readonly user: number
  /** Factor for passages of long messages. */
  readonly longMessage: number
  /** For a token budget, scores are divided by (tokens + `baseTokens`) ^ `density`. */
  readonly density: number
  readonly baseTokens: number
}

export const featureNames = [
  /** BM25 of the words of the question. */
  'words',
  /** The better of the passages before and after, in the same message. */
  'wordsBeside',
  /** The messages around, halved with every message of distance. */
  'wordsNear',
  /** The part of the conversation around, fading over some fifteen messages. */
  'wordsAround',
  /** The best message of the burst. */
  'burstBest',
  /** The burst as one document. */
  'burstWords',
  /** For each word of the question, the most similar word of the passage (MaxSim). */
  'meaning',
  'meaningBeside',
  'meaningNear',
  /** Cosine of the summed word vectors of question and passage. */
  'topic',
  /** The question asks when, and the passage names a time; it asks how many, and the passage names a number. */
  'time',
  'number',
] as const
export type FeatureName = (typeof featureNames)[number]

/** Parameters of BM25 for passages, and for bursts. `saturation` and `length` are k1 and b. */
export const bm25 = { saturation: 1.2, length: 0.5, burstLength: 0.75 }

/** Share that a message passes on to the next one, for `wordsNear` and `wordsAround`. */
export const decay = { near: 0.5, around: 0.93 }

/** Stems below this cosine are unrelated. */
export const minSimilarity = 0.45
/** Stems from this cosine on mean much the same: a search returns a text for such a word alone. */
export const strongSimilarity = 0.6

/** Weights with a word table. */
export const semanticWeights: RankingWeights = {
  features: {
    words: 0.5,
    wordsBeside: 0.2,
    wordsNear: 0.6,
    wordsAround: 0.27,
    burstBest: 0.3,
    burstWords: 0.2,
    meaning: 0.7,
    meaningBeside: 0.1,
    meaningNear: 0.15,
    topic: 0.2,
    time: 0.15,
    number: 0.1,
  },
  namedSpeaker: 1.35,
  user: 1.5,
  longMessage: 0.85,
  density: 0.33,
  baseTokens: 20,
}

/** Weights without a word table. */
export const lexicalWeights: RankingWeights = {
  ...semanticWeights,
  features: {
    ...semanticWeights.features,
    words: 1,
    wordsBeside: 0.2,
    wordsNear: 0.5,
    wordsAround: 0.4,
    meaning: 0,
    meaningBeside: 0,
    meaningNear: 0,
    topic: 0,
  },
  density: 0.25,
  baseTokens: 35,
}

/**
 * Factor of the features that come from the surroundings of a passage, in a search for single results: a context shows
 * what was said around a match, a list of results shows the match.
 */
const surroundingsInSearch = 0.35
const surroundings: readonly FeatureName[] = ['wordsNear', 'wordsAround', 'meaningNear', 'burstBest', 'burstWords']

/** Returns the weights of features for a search without a token budget. */
export const weightsForSearch = ({ features }: RankingWeights): RankingWeights['features'] => ({
  ...features,
  ...Object.fromEntries(surroundings.map((name) => [name, surroundingsInSearch * features[name]])),
})
