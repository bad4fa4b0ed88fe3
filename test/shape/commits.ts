import { execFileSync } from 'node:child_process'
import { root } from './source.ts'

/** Last commit before the rule; older messages do not follow it. */
const base = 'e9c50d28e6b99da3d665e82b0e205ecf4ca3a1f6'

const format =
  /^(?:feat|fix|refactor|perf|docs|test|build|ci|chore|style|revert)(?:\([a-z0-9,/ -]+\))?!?: (?!wip\b|tidy\b)\S.*[^.\s]$/

/** Checks `type(scope): summary`; the scope may be left out when a change concerns the whole repository. */
export const hasConventionalFormat = (subject: string): boolean => format.test(subject) && subject.length <= 120

/** Reads the subjects of all commits since the rule; undefined without git, and in a clone that lacks the base commit. */
export function readCommitSubjects(): readonly string[] | undefined {
  try {
    const options = { cwd: root, encoding: 'utf8', stdio: 'pipe' } as const
    const log = execFileSync('git', ['log', '--no-merges', '--format=%s', `${base}..HEAD`], options)
    return log.split('\n').filter((subject) => subject !== '')
  } catch {
    return undefined
  }
}
