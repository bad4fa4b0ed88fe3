import type { KnowledgeCategory } from '../../domain/knowledge.ts'

/** Sentence pattern of a kind of knowledge. All patterns must match. */
export type LearningRule = {
  readonly category: KnowledgeCategory
  readonly patterns: readonly RegExp[]
  /** First match names the subject; with the host it is the key of the entry. */
  readonly subject: RegExp
}

/** Host name of a website. */
export const hostPattern =
  /(?<![\w@.-])(?:[a-z0-9-]{1,40}\.){1,3}(?:com|org|net|io|dev|app|co|de|fr|es|pt|nl|uk|eu|info|gov|edu|ai|shop|local|test)(?![\w-])/i

/** A CSS selector, an XPath or a path of a website. */
const placePattern =
  /(?<![\w/#.[-])(?:[#.][a-z][\w-]{1,60}|\[[a-z-]{1,40}[~|^$*]?=[^\]\s]{1,60}\]|\/\/[\w*]{1,40}\[[^\]\s]{1,60}\]|\/[a-z][\w/-]{1,60})/i

/** Rules in the order in which they are tried; a sentence is used once. */
export const learningRules: readonly LearningRule[] = [
  {
    category: 'error_pattern',
    patterns: [/\b(?:after|when|whenever|unless|if|because|until|per (?:second|minute|hour)|at \d{1,6})\b/i],
    subject: /\b(?:captcha|rate[- ]limit\w{0,3}|timeout|times out|blocked|denied|throttled|error|fails|4\d\d|5\d\d)\b/i,
  },
  {
    category: 'website_knowledge',
    patterns: [hostPattern, /\b(?:uses?|is|are|has|have|at|under|holds?|contains?|opens?|leads?)\b/i],
    subject: placePattern,
  },
  {
    category: 'execution_pattern',
    patterns: [
      /\b(?:must|needs? to|has to|have to|always|only|first|otherwise|before|until)\b/i,
      /\b(?:before|after|until|first|for \d{1,5}|\d{1,5} ?(?:s|ms|seconds?|minutes?))\b/i,
    ],
    subject:
      /\b(?:click|wait|scroll|dismiss|close|accept|log ?in|sign in|retry|reload|submit|confirm|enable|install|build|run)\b/i,
  },
  {
    category: 'domain',
    patterns: [hostPattern],
    subject: /\b(?:is an?|requires?|is built with|runs on|is written in)\b/i,
  },
]

/** Sentences about one moment, plans and guesses. */
export const passingPattern =
  /^\W{0,3}(?:I(?:'ll| will| am| have|'m|'ve)|let me|now|next|we will|should|could|would|maybe|perhaps)\b|\b(?:might|maybe|perhaps|probably|seems?|I think|not sure|today|right now)\b|⟨secret:/i
