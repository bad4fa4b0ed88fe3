import type { Degradation, DegradationNotice } from './ledger.ts'

const modelSteps: Readonly<Record<string, { readonly result: string; readonly fallback: string }>> = {
  summary: { result: 'The summary from the model', fallback: 'the built-in summary was used' },
  facts: { result: 'The list of facts from the model', fallback: 'the facts found by the built-in rules were used' },
  knowledge: { result: 'The knowledge from the model', fallback: 'the knowledge found by the built-in rules was used' },
}

/** Reasons for which a result of the model is rejected. */
const rejections: Readonly<Record<string, string>> = {
  empty: 'it was empty',
  'too short': 'it was too short',
  longer: 'it was no shorter than the messages',
  invented: 'it contained something that nobody said',
  misplaced: 'it connected a value or a person with the wrong thing',
  stale: 'it contained a value that was replaced later',
  negated: 'it stated what the user had denied',
  uncovered: 'it left out something important',
  'no content': 'it said too little about the conversation',
  'off topic': 'it was about something else',
  repetition: 'it repeated itself',
  echo: 'it repeated the text of its instructions',
  'over target': 'it was too long',
  markup: 'it was HTML, JSON or code instead of prose',
  'not the requested JSON': 'it was not in the requested form',
  'not said by the user': 'the user did not say it',
}

/** Reasons for which the model gave no result. */
const modelFailures: Readonly<Record<string, string>> = {
  failed: 'could not be created because the request failed',
  timeout: 'did not arrive in time',
  empty: 'was empty',
  'too long': 'was far too long',
  'not asked, no sentences': 'was not requested because the messages have no sentences to show to it',
}

/** Notices of the server about one prompt. */
const promptNotices: Readonly<Record<string, string>> = {
  budget: 'The messages left no room for memory, so they were sent without it.',
  messages: 'Memory could not show the newest messages, so they were sent as they are, without memory.',
  'secrets unknown here':
    'The model was sent placeholders for secrets of this session: this server has not seen their values.',
  'reply not stored': 'The reply could not be stored, so later prompts lack it unless the client resends it.',
  'conversation shortened': 'The conversation was longer than the limit, so its oldest turns were left out.',
}

const maxCodeLength = 60

/**
 * Describes a step that fell back. The code is made of lower-case letters, digits and hyphens.
 *
 * @example
 * describeDegradation({ step: 'summary', why: 'timeout' })
 * // { code: 'summary-timeout', message: 'The summary from the model did not arrive in time; the built-in summary was used.' }
 */
export function describeDegradation({ step, why }: Degradation): DegradationNotice {
  if (step === 'recall') return { code: 'recall-by-words', message: toSentence(why) }
  if (step === 'framing') return { code: 'framing-shortened', message: toSentence(`${why}, so a shorter one was used`) }
  return { code: toCode(step, why), message: describe(step, why) }
}

function describe(step: string, why: string): string {
  const modelStep = Object.hasOwn(modelSteps, step) ? modelSteps[step] : undefined
  if (modelStep !== undefined) {
    const { result, fallback } = modelStep
    const rejection = why.startsWith('refused, ') ? lookUp(rejections, why.slice('refused, '.length)) : undefined
    if (rejection !== undefined) return `${result} was rejected because ${rejection}; ${fallback}.`
    return `${result} ${lookUp(modelFailures, why) ?? `could not be used (${why})`}; ${fallback}.`
  }
  if (step === 'upkeep') return `Upkeep of this session failed (${why}) and is tried again later.`
  if (step === 'file')
    return `A file in the message could not be read (${why}), so it cannot be searched. The model received it.`
  return lookUp(promptNotices, [step, why].join(' ').trim()) ?? toSentence(`${step}: ${why}`)
}

const lookUp = (table: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(table, name) ? table[name] : undefined

const toCode = (...words: readonly string[]): string =>
  words
    .join(' ')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, maxCodeLength)
    .replaceAll(/^-|-$/g, '')

const toSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, '')}.`

/** Adds code and sentence to each step. */
export const describeDegradations = (steps: readonly Degradation[]): readonly (Degradation & DegradationNotice)[] =>
  steps.map((step) => ({ ...step, ...describeDegradation(step) }))
