import { findFacts } from '../../text/facts.ts'
import { collapseWhitespace } from './summary.ts'

/** Counts of a test runner, compiler or linter, such as `33 pass`, `2 failed` or `0 errors`. */
const tally =
  /(?<![\w.#/-])(\d{1,6}) (?:tests? |specs? |checks? |files? )?(pass(?:ed|es|ing)?|fail(?:ed|ures?|s|ing)?|errors?|problems?|warnings?|skipped|vulnerabilities)(?![\w-])/gi
const failureUnit = /^(?:fail|error|problem|vulner)/i
const exitCode = /\bexit(?:ed)?(?: with)?(?: code| status)?:? (\d{1,3})\b/i
const success =
  /^.{0,80}\b(?:success(?:ful(?:ly)?)?|succeeded|all (?:tests |checks )?(?:pass(?:ed)?|green)|no (?:errors|issues|problems|warnings)(?: found)?|up to date|deployed|published|BUILD SUCCESS\w*)\b.{0,80}$/im
const maxErrorChars = 120
/** Outcomes are at the end of an output. */
const maxOutputChars = 8_000

/** Result of a command: a few words of its output, and if they report a failure. */
export type Outcome = { readonly text: string; readonly isFailure: boolean }

/** Finds the result in the output of a command: the last counts, the first error, or a message of success. */
export function findOutcome(output: string): Outcome | undefined {
  const end = output.slice(-maxOutputChars)
  const counts = findTally(end)
  if (counts !== undefined) return counts
  const error = findFacts(end).find(({ text }) => /(?:error|exception|failure|fatal|panic|failed)/i.test(text))
  if (error !== undefined)
    return { text: collapseWhitespace(error.text).slice(0, maxErrorChars).toWellFormed(), isFailure: true }
  const commit = /^\[(\S{1,100} [0-9a-f]{7,40})\]/m.exec(end)?.[1]
  if (commit !== undefined) return { text: commit, isFailure: false }
  const done = success.exec(end)?.[0].trim()
  if (done !== undefined) return { text: collapseWhitespace(done), isFailure: false }
  const code = exitCode.exec(end)
  return code === null ? undefined : { text: code[0], isFailure: code[1] !== '0' }
}

/** Finds the last counts of each kind in a text. */
export function findTally(text: string): Outcome | undefined {
  const byUnit = new Map<string, { readonly text: string; readonly isFailure: boolean }>()
  for (const [found, count = '', unit = ''] of text.matchAll(tally)) {
    const key = unit.slice(0, 4).toLowerCase()
    byUnit.delete(key)
    byUnit.set(key, { text: collapseWhitespace(found), isFailure: failureUnit.test(unit) && Number(count) > 0 })
  }
  if (byUnit.size === 0) return undefined
  const counts = [...byUnit.values()].slice(-4)
  return { text: counts.map((count) => count.text).join(', '), isFailure: counts.some(({ isFailure }) => isFailure) }
}

const subjects: readonly (readonly [subject: string, pattern: RegExp])[] = [
  ['tests', /\b(?:tests?|specs?|suites?|vitest|jest|pytest|pass(?:ed|es|ing)?|failing)\b/i],
  ['build', /\b(?:builds?|compil\w{1,5}|bundle)\b/i],
  ['lint', /\b(?:lint\w{0,4}|eslint|biome|prettier|ruff)\b/i],
  ['types', /\b(?:type ?checks?|typecheck|tsc|mypy)\b/i],
]
const report =
  /\b(?:pass(?:es|ed|ing)?|fail(?:s|ed|ing|ures?)?|green|red|clean|succe\w{2,8}|breaks?|broken|works?|errors?)\b/i

/** Subject of a sentence that reports a result, such as `tests`: a later report replaces an earlier one. */
export const reportSubject = (text: string): string | undefined =>
  report.test(text) ? subjects.find(([, pattern]) => pattern.test(text))?.[0] : undefined

/** True if a sentence reports that something works. */
export const reportsSuccess = (text: string): boolean => {
  const counts = findTally(text)
  if (counts !== undefined) return !counts.isFailure
  return (
    /\b(?:fixed|resolved|solved|works?(?: now| again| fine)?|worked|succeeded|working now|funktioniert|klappt|fonctionne|funciona|werkt|all (?:tests |checks )?(?:pass|green)|no (?:more )?(?:errors|failures)|tests? (?:now )?pass(?:es)?|builds? (?:now )?(?:pass(?:es)?|succeeds?))\b/i.test(
      text,
    ) && !/\b(?:not|isn['’]t|aren['’]t|doesn['’]t|still|never|should|will|would|if|to be)\b/i.test(text)
  )
}
