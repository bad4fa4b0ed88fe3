import { runSync, type Work } from '../../domain/work.ts'
import { splitFencedLines } from '../../text/fences.ts'

// Outcomes of test runs and states of tasks. A later outcome replaces an earlier one: a failure is open only if no
// later run has ended without it.

/** Longer lines state no outcome. */
const maxLineChars = 600
/** Lines between two counts of the same run, such as those of suites and of tests. */
const maxLinesBetweenCounts = 4

const failedCount =
  /\b(\d{1,6}) (?:(?:tests?|specs?|suites?|checks?) )?fail(?:ed|ing|ures?|s)?\b(?!-)|(?:\bfail(?:ed|ures?|ing)?|^# fail)[:=]? {1,4}(\d{1,6})\b/i
const passedCount =
  /\b(\d{1,6}) (?:(?:tests?|specs?|suites?|checks?) )?pass(?:ed|ing|es)?\b(?!-)|(?:\bpass(?:ed|ing)?|^# pass)[:=]? {1,4}(\d{1,6})\b/i
const allPassed =
  /\b(?:all|every) (?:of )?(?:the )?(?:\d{1,6} )?(?:tests?|specs?|suites?|checks?)(?: (?:now|are|have|do)){0,2} pass(?:ed|es|ing)?\b/i
const namesTests = /\b(?:tests?|specs?|suites?|checks?|assertions?)\b/i
/** A count alone on its line, after a few marks. */
const bareCount =
  /^[\s#=*>|✓✗✖✘×-]{0,12}(?:\d{1,6} (?:pass|fail)\w{0,6}|(?:pass|fail)\w{0,6}[:=]? {1,4}\d{1,6})\b.{0,20}$/i
const failureMark = /(?:^|\s)(?:FAIL(?:ED)?|✗|✖|✘|not ok)(?=[\s:]|$)/
const passMark = /(?:^|\s)(?:PASS(?:ED)?|✓|✔|ok)(?=[\s:]|$)/

/** Checks whether a line reports a failure. */
export const isFailure = (line: string): boolean => failureMark.test(line) || countIn(failedCount, line) > 0

function countIn(pattern: RegExp, line: string): number {
  const match = pattern.exec(line)
  return match === null ? -1 : Number(match[1] ?? match[2])
}

/** Checks whether a line has the counts of a test run; `3 failed logins` is not one. */
function isRunResult(line: string): boolean {
  if (allPassed.test(line)) return true
  const [failed, passed] = [countIn(failedCount, line), countIn(passedCount, line)]
  if (failed < 0 && passed < 0) return false
  return (failed >= 0 && passed >= 0) || namesTests.test(line) || bareCount.test(line)
}

/** Line of a conversation. */
export type OutcomeLine = { readonly message: number; readonly start: number; readonly end: number }

type Line = OutcomeLine & { readonly number: number; readonly text: string }
/** Test run: the number of its last line with counts, the first of those lines, and whether it failed. */
type Run = { readonly first: Line; lastNumber: number; hasFailed: boolean }

/** Outcomes of a conversation. */
export type Outcomes = {
  /** First line with the counts of the newest test run. */
  readonly newestResult: OutcomeLine | undefined
  /** Checks whether the failures or the task in a part of a message were settled later; false if there are none. */
  readonly isSettled: (part: OutcomeLine) => boolean
}

/**
 * Finds the outcomes of a conversation, given the texts of its messages.
 *
 * @example
 * findOutcomes(['3 tests failed', '33 pass, 0 fail']).isSettled({ message: 0, start: 0, end: 14 }) // true
 */
export const findOutcomes = (texts: readonly string[]): Outcomes => runSync(findOutcomesInSteps(texts))

/** Cost of a line beside its characters. */
const lineOverheadChars = 4

/** `findOutcomes` as interruptible work. */
export function* findOutcomesInSteps(texts: readonly string[]): Work<Outcomes> {
  const runs: Run[] = []
  const failures: Line[] = []
  const openTasks: Line[] = []
  /** Number of the last line that reports a success, by the name of the test or task. */
  const succeeded = new Map<string, number>()
  for (const line of readLines(texts)) {
    const { text, number } = line
    if (isRunResult(text)) addResult(runs, line)
    if (isFailure(text)) failures.push(line)
    else if (passMark.test(text)) succeeded.set(testName(text), number)
    const { box = '', task = '' } = checkbox.exec(text)?.groups ?? {}
    if (box === ' ') openTasks.push(line)
    else if (box !== '') succeeded.set(normalize(task), number)
    yield text.length + lineOverheadChars
  }
  const newestRun = runs.at(-1)
  // Failures before the previous run's counts belong to an earlier run.
  const settledUntil =
    newestRun === undefined ? 0 : newestRun.hasFailed ? (runs.at(-2)?.lastNumber ?? 0) : newestRun.lastNumber
  const isOpenFailure = ({ text, number }: Line): boolean =>
    number > settledUntil && (succeeded.get(testName(text)) ?? 0) < number
  const isOpenTask = ({ text, number }: Line): boolean =>
    (succeeded.get(normalize(checkbox.exec(text)?.groups?.task ?? '')) ?? 0) < number
  const open = new Set([...failures.filter(isOpenFailure), ...openTasks.filter(isOpenTask)])
  return { newestResult: newestRun?.first, isSettled: createSettledCheck([...failures, ...openTasks], open) }
}

function createSettledCheck(lines: readonly Line[], open: ReadonlySet<Line>): Outcomes['isSettled'] {
  const byMessage = Map.groupBy(
    lines.toSorted((left, right) => left.start - right.start),
    ({ message }) => message,
  )
  return ({ message, start, end }) => {
    const own = byMessage.get(message) ?? []
    let [low, high] = [0, own.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((own[middle] as Line).start < start) low = middle + 1
      else high = middle
    }
    // Lines do not overlap, so that those within the part follow each other.
    const first = low
    while (low < own.length && (own[low] as Line).end <= end) if (open.has(own[low++] as Line)) return false
    return low > first
  }
}

/** Reads the lines that may state an outcome; they are numbered from 1 on. */
function* readLines(texts: readonly string[]): Generator<Line> {
  let number = 0
  for (const [message, content] of texts.entries())
    for (const { start, end } of splitFencedLines(content)) {
      number++
      if (end - start <= maxLineChars) yield { message, start, end, number, text: content.slice(start, end) }
    }
}

/** Adds counts to the newest run, or begins another one if they are not next to those of the newest. */
function addResult(runs: Run[], line: Line): void {
  const hasFailed = countIn(failedCount, line.text) > 0
  const newest = runs.at(-1)
  const isSameRun =
    newest !== undefined &&
    newest.first.message === line.message &&
    line.number - newest.lastNumber <= maxLinesBetweenCounts
  if (!isSameRun) runs.push({ first: line, lastNumber: line.number, hasFailed })
  else {
    newest.lastNumber = line.number
    newest.hasFailed ||= hasFailed
  }
}

const checkbox = /^\s*(?:(?:[-*+]|\d{1,3}[.)]) )?\[(?<box>[ xX])\] (?<task>.{1,300})/
const normalize = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim()
/** Returns the name of a test without its mark and its duration. */
const testName = (line: string): string =>
  normalize(
    line
      .replace(failureMark, ' ')
      .replace(passMark, ' ')
      .replace(/(?<!\d)[[(]?\d+(?:\.\d+)? ?m?s[\])]?\s*$/, ''),
  )
