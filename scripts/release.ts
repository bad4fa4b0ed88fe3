import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

// npm run release -- --dry-run    checks and packs everything and uploads nothing
// npm run release                 checks the same and pushes the tag, from which CI publishes with provenance

const isDryRun = process.argv.includes('--dry-run')
const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { readonly version: string }

const read = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: 'utf8' }).trim()
const run = (command: string, ...args: readonly string[]): void => {
  process.stdout.write(`\n> ${command} ${args.join(' ')}\n`)
  execFileSync(command, args, { stdio: 'inherit' })
}

/** Returns the reasons why this checkout cannot be released as it is. */
function findProblems(): readonly string[] {
  const problems: string[] = []
  const expect = (holds: boolean, problem: string): void => void (holds || problems.push(problem))
  expect(read('git', 'status', '--porcelain') === '', 'There are uncommitted changes. Commit them first.')
  expect(
    readFileSync('CHANGELOG.md', 'utf8').includes(`\n## ${version}`),
    `CHANGELOG.md has no section "## ${version}". Describe the release there.`,
  )
  expect(
    (JSON.parse(readFileSync('server.json', 'utf8')) as { version?: string }).version === version,
    `server.json has another version than package.json, which has ${version}.`,
  )
  expect(read('git', 'tag', '--list', `v${version}`) === '', `The tag v${version} exists. Raise the version.`)
  return problems
}

const problems = findProblems()
for (const problem of problems) process.stderr.write(`${problem}\n`)
if (problems.length > 0 && !isDryRun) process.exit(1)

run('npm', 'run', 'check')
run('npm', 'run', 'build')
run('npx', 'publint', 'run', '--strict')
run('npx', 'attw', '--pack', '.', '--profile', 'esm-only')
run('npm', 'publish', '--ignore-scripts', '--dry-run', '--provenance=false')
if (!isDryRun) {
  run('git', 'tag', `v${version}`)
  run('git', 'push', 'origin', `v${version}`)
}
process.exitCode = problems.length > 0 ? 1 : 0
